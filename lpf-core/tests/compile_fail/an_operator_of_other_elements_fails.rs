// An operator combines elements of certain types, and has an identity: a closure has none.

#![allow(dead_code)]

use lpf_collectives::{At, Collectives, Or, Sum};
use lpf_core::{Context, Lpf, Result};

fn of_floats<'s, L: Lpf>(ctx: &mut Context<'s, L>, all: &mut Collectives<'s>) -> Result<f64> {
    all.allreduce_value(ctx, &Or, 1.0)
}

fn of_positions<'s, L: Lpf>(ctx: &mut Context<'s, L>, all: &mut Collectives<'s>) -> Result<()> {
    let _: At<f64> = all.allreduce_value(ctx, &Sum, At::new(1.0, 7))?;
    Ok(())
}

fn a_closure<'s, L: Lpf>(ctx: &mut Context<'s, L>, all: &mut Collectives<'s>) -> Result<f64> {
    all.allreduce_value(ctx, &|a: f64, b: f64| a.hypot(b), 1.0)
}

fn a_value<'s, L: Lpf>(ctx: &mut Context<'s, L>, all: &mut Collectives<'s>) -> Result<()> {
    let mut y = ctx.local::<[u8; 3]>(1)?;
    let _ = At::new([1u8; 3], 7);
    all.allreduce(ctx, &Sum, [1u8; 3], &mut y)
}

fn main() {}
