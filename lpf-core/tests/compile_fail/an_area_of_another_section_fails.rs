// A section is a lifetime of its own, which no other lifetime equals: an area of the outer section
// means nothing to the inner context. The compiler says E0521 (borrowed data escapes): the 's of the
// area would have to be the 's of the context.

#![allow(dead_code)]

use lpf_core::{Context, Lpf, Result};

fn read<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let outer = ctx.area::<u64>(1)?;
    ctx.rehook(|inner| {
        assert_eq!(inner.read(&outer)[0], 0);
        Ok(())
    })
}

fn put<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let outer = ctx.area::<u64>(1)?;
    ctx.rehook(|inner| {
        let own = inner.local::<u64>(1)?;
        inner.put(&own, .., 0, &outer, 0)
    })
}

fn main() {}
