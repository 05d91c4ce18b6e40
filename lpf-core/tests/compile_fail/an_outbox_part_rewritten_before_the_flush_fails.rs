// What was sent leaves its memory some time before the flush returns; until then the part belongs to
// the runtime. An earlier flush proves nothing: that is found at run time.

#![allow(dead_code)]

use lpf_core::{Channel, Context, Flushed, Lpf, Part};

fn rewritten<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    to: &mut Channel<'s, u64>,
    mut part: Part<'s, u64>,
) {
    let _sent = ctx.send(to, part, ..);
    part[0] = 1;
}

fn sent_twice<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    to: &mut Channel<'s, u64>,
    part: Part<'s, u64>,
) {
    let _first = ctx.send(to, part, ..);
    let _second = ctx.send(to, part, ..);
}

fn through_the_receipt<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    to: &mut Channel<'s, u64>,
    part: Part<'s, u64>,
) {
    let mut sent = ctx.send(to, part, ..).unwrap();
    sent[0] = 1;
}

fn proof_of_another_section<'s, 'r, L: Lpf>(
    ctx: &mut Context<'s, L>,
    to: &mut Channel<'s, u64>,
    part: Part<'s, u64>,
    flushed: &Flushed<'r>,
) {
    let sent = ctx.send(to, part, ..).unwrap();
    let _part = sent.part(flushed);
}

fn main() {}
