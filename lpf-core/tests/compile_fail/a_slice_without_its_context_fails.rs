//! A slice comes from a context, which has to be borrowed for it: `slices` by itself would give one
//! that outlives a sync.

use lpf_core::{Access, Area, Context, Lpf, Result};

fn a_slice_that_borrows_no_context<'s, L: Lpf>(ctx: &mut Context<'s, L>) -> Result<()> {
    let mut area: Area<'s, u64> = ctx.area(1)?;
    let slice = (&mut area).slices();
    ctx.sync()?;
    slice[0] = 1;
    Ok(())
}

fn main() {}
