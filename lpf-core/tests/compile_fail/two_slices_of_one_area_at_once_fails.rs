// One area has one handle, and an exclusive slice borrows it exclusively.

#![allow(dead_code)]

use lpf_core::{Context, Lpf, Result};

fn both_exclusive<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let mut area = ctx.area::<u64>(1)?;
    let (x, y) = ctx.access((&mut area, &mut area));
    x[0] = y[0];
    Ok(())
}

fn one_shared<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let mut area = ctx.area::<u64>(1)?;
    let (x, y) = ctx.access((&area, &mut area));
    y[0] = x[0];
    Ok(())
}

fn one_after_the_other<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let mut area = ctx.area::<u64>(1)?;
    let x = ctx.write(&mut area);
    let y = ctx.write(&mut area);
    x[0] = y[0];
    Ok(())
}

fn a_second_handle<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let mut area = ctx.area::<u64>(1)?;
    let mut other = area.clone();
    let (x, y) = ctx.access((&mut area, &mut other));
    x[0] = y[0];
    Ok(())
}

fn main() {}
