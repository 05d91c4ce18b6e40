//! Landings: large messages go straight into memory that their receiver offers.

use std::time::Instant;

use lpf_core::board::{Board, Topic};
use lpf_core::{Args, Context, GlobalSlot, Link, Lpf, Result, SyncAttr};

use super::{Mesh, bodies, body, channels, expect, latest, send, send_landing};
use crate::memory::Buffer;
use crate::primitives::board::{await_version, board};
use crate::verdict::{
    BOUND, assert_fatal_naming, assert_in_time, failing_rehook, refused, sync_until_fatal,
};
use crate::{Harness, Mode, runner};

case! {
    /// The offer is there long before the message.
    pub fn a_landing_may_be_offered_early both_ways [2, 3] |ctx| {
        const LEN: usize = 5000;
        let mut all = channels::<_, u64>(ctx, 3, 4, 2)?;
        let mut parts = ctx.outbox::<u64>(1, LEN)?;
        let (p, me) = (ctx.nprocs(), ctx.pid());
        let (next, left) = ((me + 1) % p, (me + p - 1) % p);
        let mut area = ctx.local::<u64>(LEN)?;
        for round in 0..20u64 {
            let left = all[left].as_mut().expect("a channel");
            let landing = ctx.offer(left, area)?;
            ctx.sync()?;
            let next = all[next].as_mut().expect("a channel");
            let mut part = parts.pop().expect("one part");
            part.fill(100 * round + me as u64);
            let sent = ctx.send_landing(next, part, ..)?;
            let left = all[(me + p - 1) % p].as_mut().expect("a channel");
            let (landed, elements) = ctx.land(left, landing)?;
            area = landed;
            assert_eq!(elements, LEN);
            let from = ((me + p - 1) % p) as u64;
            assert!(ctx.read(&area).iter().all(|&word| word == 100 * round + from), "{round}");
            let flushed = ctx.flush()?;
            parts.push(sent.part(&flushed).expect("flushed since"));
        }
        ctx.sync()?;
    }
}

case! {
    /// The put comes first: it waits for its offer, delays nothing to others, and leaves in any
    /// later poll.
    pub fn a_landing_may_be_offered_late both_ways [3] |ctx| {
        let mesh = Mesh::open(ctx, 1, 0, 2, 8)?;
        let board = board(ctx);
        ctx.sync()?;
        match ctx.pid() {
            0 => {
                let (_kept, source) = bodies(ctx, 2, 100_000)?;
                send_landing(ctx, source, 0..100_000, mesh.with(1))?;
                send(ctx, source, 100_000..100_008, mesh.with(2))?;
                expect(ctx, &[])?;
                board.write(Topic(1), &[])?;
                ctx.sync_with(SyncAttr::Flush)?;
            }
            1 => {
                // Process 0 has put, and process 2 has what was put after it.
                await_version(&board, 0, Topic(1), 1);
                await_version(&board, 2, Topic(2), 1);
                let area = Buffer::zeroed(100_010);
                let slot = area.local(ctx)?;
                let link = mesh.with(0);
                // SAFETY: nothing touches the area until the sync that awaits the message.
                unsafe { ctx.raw().offer(link, slot, 5, 100_000)? };
                expect(ctx, &[(link, 1)])?;
                let arrival = ctx.raw().arrival(link, 0)?;
                assert!(arrival.landed && arrival.bytes == 100_000);
                assert!(area.read(5, 100_000) == body(0, 100_000), "other bytes landed");
                assert_eq!((area.read(0, 5), area.read(100_005, 5)), (vec![0; 5], vec![0; 5]));
            }
            _ => {
                expect(ctx, &[(mesh.with(0), 1)])?;
                assert_eq!(latest(ctx, mesh.with(0))?, &body(1, 100_000)[..8]);
                board.write(Topic(2), &[])?;
            }
        }
        ctx.sync()?;
    }
}

case! {
    /// Landings and cells of one link are one stream, in the order of the puts; offers are used
    /// in the order they are made.
    pub fn landings_and_cells_keep_the_order_of_their_link both_ways [2] |ctx| {
        const BYTES: usize = 3000;
        const ROUNDS: usize = 50;
        let mesh = Mesh::open(ctx, 2, 0, 4, 16)?;
        let link = mesh.with(1 - ctx.pid());
        let (_kept, source) = bodies(ctx, 4, BYTES)?;
        let mut area = Buffer::zeroed(2 * BYTES);
        let slot = area.local(ctx)?;
        for round in 0..ROUNDS {
            area.fill(0);
            for half in 0..2 {
                // SAFETY: nothing touches the half until the sync that awaits its message.
                let number = unsafe { ctx.raw().offer(link, slot, half * BYTES, BYTES)? };
                assert_eq!(number, (2 * round + half) as u64, "offers are counted");
            }
            let of = |k: usize, len: usize| k * BYTES..k * BYTES + len;
            send_landing(ctx, source, of(0, BYTES), link)?;
            send(ctx, source, of(1, 16), link)?;
            send_landing(ctx, source, of(2, BYTES), link)?;
            send(ctx, source, of(3, 7), link)?;
            expect(ctx, &[(link, 4)])?;
            let first = 4 * round as u64;
            let landed = [true, false, true, false];
            for (k, bytes) in [BYTES, 16, BYTES, 7].into_iter().enumerate() {
                let arrival = ctx.raw().arrival(link, first + k as u64)?;
                assert_eq!((arrival.bytes, arrival.landed), (bytes, landed[k]), "message {k}");
                if arrival.landed {
                    assert_eq!(arrival.offer, (2 * round + k / 2) as u64, "the offer it used");
                }
                let got = super::message(ctx, link, first + k as u64)?;
                assert!(got == body(k, BYTES)[..bytes], "message {k} of round {round}");
            }
            assert!(area.read(0, BYTES) == body(0, BYTES), "the first offer");
            assert!(area.read(BYTES, BYTES) == body(2, BYTES), "the second offer");
            ctx.sync_with(SyncAttr::Flush)?;
        }
        ctx.sync()?;
    }
}

case! {
    /// Offers of different lengths are used in the order they are made, whichever of them a message would fit.
    pub fn offers_of_different_lengths_are_used_in_order both_ways [2] |ctx| {
        const LENS: [usize; 4] = [3000, 8, 70_000, 1];
        const ALL: usize = 3000 + 8 + 70_000 + 1;
        let mesh = Mesh::open(ctx, 2, 0, 4, 8)?;
        let link = mesh.with(1 - ctx.pid());
        let (kept, source) = bodies(ctx, 1, ALL)?;
        let sent = kept.to_vec();
        let mut area = Buffer::zeroed(ALL);
        let slot = area.local(ctx)?;
        for round in 0..10u64 {
            area.fill(0);
            let mut start = 0;
            for len in LENS {
                // SAFETY: nothing touches the area until the sync that awaits the messages.
                unsafe { ctx.raw().offer(link, slot, start, len)? };
                start += len;
            }
            // All offers are known before the first message.
            ctx.sync()?;
            start = 0;
            for len in LENS {
                send_landing(ctx, source, start..start + len, link)?;
                start += len;
            }
            expect(ctx, &[(link, 4)])?;
            for (nth, len) in (4 * round..).zip(LENS) {
                let arrival = ctx.raw().arrival(link, nth)?;
                assert_eq!((arrival.bytes, arrival.offer), (len, nth), "message {nth}");
            }
            assert!(area.read(0, ALL) == sent, "other bytes landed");
            ctx.sync_with(SyncAttr::Flush)?;
        }
        ctx.sync()?;
    }
}

case! {
    /// Landings from empty to several MiB, also shorter than what is offered.
    pub fn landings_of_every_size_arrive_exactly both_ways [2] |ctx| {
        const MOST: usize = 2 << 20;
        let mesh = Mesh::open(ctx, 2, 0, 2, 8)?;
        let link = mesh.with(1 - ctx.pid());
        let (kept, source) = bodies(ctx, 1, MOST)?;
        let sent = kept.to_vec();
        let mut area = Buffer::zeroed(MOST + 1);
        let slot = area.local(ctx)?;
        for bytes in [0, 1, 31, 32, 33, 4096, 65_535, 65_536, 1_000_001, MOST] {
            area.fill(0xaa);
            // SAFETY: nothing touches the area until the sync that awaits the message.
            unsafe { ctx.raw().offer(link, slot, 0, MOST)? };
            send_landing(ctx, source, 0..bytes, link)?;
            expect(ctx, &[(link, 1)])?;
            ctx.sync_with(SyncAttr::Flush)?;
            assert!(area.read(0, bytes) == sent[..bytes], "{bytes} bytes differ");
            let rest = area.read(bytes, MOST + 1 - bytes);
            assert!(rest == vec![0xaa; rest.len()], "{bytes} bytes wrote beyond their end");
        }
        ctx.sync()?;
    }
}

fn misused(result: Result<u64>) {
    let error = result.expect_err("a wrong offer");
    assert!(error.is_misuse(), "{error}");
}

case! {
    /// Offers are checked at the call: the slot, its range, and at most W open ones.
    pub fn what_is_misused_on_offers_is_found_at_the_call both_ways [2] |ctx| {
        let mesh = Mesh::open(ctx, 1, 0, 2, 8)?;
        let (_kept, slot) = bodies(ctx, 1, 64)?;
        let link = mesh.with(1 - ctx.pid());
        // SAFETY: it names no slot.
        let unknown = unsafe { GlobalSlot::from_bits(77) };
        // SAFETY: nobody touches the memory until the messages were awaited; wrong offers are
        // refused.
        unsafe {
            misused(ctx.raw().offer(link, slot, 60, 5));
            misused(ctx.raw().offer(link, slot, usize::MAX, 2));
            misused(ctx.raw().offer(link, unknown, 0, 8));
            misused(ctx.raw().offer(Link::new(99, 0), slot, 0, 8));
            ctx.raw().offer(link, slot, 0, 8)?;
            ctx.raw().offer(link, slot, 8, 8)?;
            misused(ctx.raw().offer(link, slot, 16, 8));
        }
        // The memory is the runtime's until the messages were awaited.
        refused!(ctx.raw().deregister(slot), Misuse, SlotOffered { .. });
        let (_kept, source) = {
            ctx.resize(2, 0)?;
            ctx.sync()?;
            bodies(ctx, 1, 8)?
        };
        for _ in 0..2 {
            send_landing(ctx, source, 0..8, link)?;
        }
        expect(ctx, &[(link, 2)])?;
        assert_eq!(latest(ctx, link)?, body(0, 8));
        ctx.raw().deregister(slot)?;
        ctx.sync()?;
    }
}

fn longer_than_offered<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    let (seen, outer) = failing_rehook(ctx, |inner| {
        let mesh = Mesh::open(inner, 1, 0, 2, 8)?;
        let (_kept, slot) = bodies(inner, 1, 100)?;
        if inner.pid() == 1 {
            // SAFETY: nothing touches the memory until the section has failed.
            unsafe { inner.raw().offer(mesh.with(0), slot, 0, 50)? };
        }
        inner.sync()?;
        let error = match inner.pid() {
            0 => send_landing(inner, slot, 0..51, mesh.with(1))
                .and_then(|()| inner.sync_with(SyncAttr::Flush)),
            1 => expect(inner, &[(mesh.with(0), 1)]),
            _ => inner.sync(),
        };
        Ok(error.expect_err("51 bytes for an offer of 50"))
    });
    assert_fatal_naming(&seen.expect("every process sees it"), &[0, 1]);
    assert_fatal_naming(&outer, &[0, 1]);
    Ok(())
}

/// A landing longer than its offer is written nowhere: fatal, naming both.
pub fn a_landing_longer_than_its_offer_is_fatal_and_names_both<H: Harness>(harness: &H) {
    let case = "a_landing_longer_than_its_offer_is_fatal_and_names_both";
    for procs in [2, 3] {
        runner::beside_others(|| {
            let args = lpf_core::Args::none();
            runner::section(harness, case, Mode::default(), procs, longer_than_offered, args);
        });
    }
}

fn never_offered<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    let (waited, outer) = failing_rehook(ctx, |inner| {
        let mesh = Mesh::open(inner, 1, 0, 2, 8)?;
        let (_kept, source) = bodies(inner, 1, 1000)?;
        inner.sync()?;
        let start = Instant::now();
        let error = if inner.pid() == 0 {
            send_landing(inner, source, 0..1000, mesh.with(1))?;
            inner.sync_with(SyncAttr::Flush).expect_err("the peer never offers")
        } else {
            sync_until_fatal(inner)
        };
        assert_fatal_naming(&error, &[0, 1]);
        Ok(start.elapsed())
    });
    let waited = waited.expect("every process sees it");
    assert_in_time(waited, BOUND);
    assert_fatal_naming(&outer, &[0, 1]);
    Ok(())
}

/// A landing never offered: its sender's flush would wait for ever. Fatal on both sides, naming
/// both, within a second.
pub fn a_landing_never_offered_is_fatal_on_both_sides<H: Harness>(harness: &H) {
    let case = "a_landing_never_offered_is_fatal_on_both_sides";
    for procs in [2, 3] {
        runner::alone(|| {
            let args = lpf_core::Args::none();
            runner::section(harness, case, Mode::default(), procs, never_offered, args);
        });
    }
}
