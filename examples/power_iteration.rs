//! Broadcast, allreduce and allgather: the largest eigenvalue of a matrix with distributed rows.

use lpf::collectives::{Collectives, Sum};
use lpf::{Context, Lpf, Result};

const N: usize = 64;
/// 2 on the diagonal and 1 beside it: the largest eigenvalue is 2 + 2 cos(π / 65).
const NEAR: [f64; 3] = [2.0, 1.0, 0.0];

fn largest<L: Lpf>(ctx: &mut Context<'_, L>, steps: usize) -> Result<f64> {
    let mut all = Collectives::new(ctx)?;
    let (s, p) = (ctx.pid() as usize, ctx.nprocs() as usize);
    let first = |process| process * N / p;
    let counts: Vec<usize> = (0..p).map(|i| first(i + 1) - first(i)).collect();
    ctx.resize(2, 0).and_then(|()| ctx.sync())?;
    let (mut x, mut y) = (ctx.local::<f64>(N)?, ctx.local::<f64>(counts[s])?);
    ctx.write(&mut x)[N / 2] = 1.0;
    all.broadcast(ctx, 0, &mut x)?;
    let mut length = 0.0;
    for _ in 0..steps {
        let (x_now, next) = ctx.access((&x, &mut y));
        for (row, y) in (first(s)..).zip(next.iter_mut()) {
            let entries = (0..N).map(|column| NEAR[row.abs_diff(column).min(2)]);
            *y = entries.zip(x_now).map(|(a, x)| a * x).sum();
        }
        let squares: f64 = next.iter().map(|y| y * y).sum();
        length = all.allreduce_value(ctx, &Sum, squares)?.sqrt();
        ctx.write(&mut y).iter_mut().for_each(|y| *y /= length);
        all.allgather_v(ctx, &y, &counts, &mut x)?;
    }
    Ok(length)
}
lpf::program! { fn Power(ctx, _args) {
    largest(ctx, 3000).map(|value| println!("process {}: {value:.6}", ctx.pid()))
} }

fn main() -> Result<()> {
    lpf::run(Power)
}
