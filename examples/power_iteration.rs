//! Broadcast, allreduce and allgather: the largest eigenvalue of a matrix with distributed rows.

use lpf::collectives::{Collectives, Sum};
use lpf::{Context, Lpf, Result};

const N: usize = 64;
/// 2 on the diagonal and 1 beside it: the largest eigenvalue is 2 + 2 cos(π / 65).
const NEAR: [f64; 3] = [2.0, 1.0, 0.0];

fn largest<L: Lpf>(ctx: &mut Context<'_, L>, steps: usize) -> Result<f64> {
    let mut all = Collectives::new(ctx)?;
    let (s, p) = (ctx.pid(), ctx.nprocs());
    let first = |process| process * N / p;
    let mut start = vec![0.0; N];
    start[N / 2] = 1.0;
    let mut x = all.broadcast_vec(ctx, 0, &start)?;
    let mut length = 0.0;
    for _ in 0..steps {
        // This process's rows of the product.
        let mut y = Vec::new();
        for row in first(s)..first(s + 1) {
            let entries = (0..N).map(|column| NEAR[row.abs_diff(column).min(2)]);
            y.push(entries.zip(&x).map(|(entry, x)| entry * x).sum::<f64>());
        }
        let squares: f64 = y.iter().map(|y| y * y).sum();
        length = all.allreduce_value(ctx, &Sum, squares)?.sqrt();
        for entry in &mut y {
            *entry /= length;
        }
        x = all.allgather_vec(ctx, &y)?;
    }
    Ok(length)
}

fn power(ctx: &mut Context<'_>) -> Result<()> {
    let value = largest(ctx, 3000)?;
    println!("process {}: {value:.6}", ctx.pid());
    Ok(())
}

fn main() -> Result<()> {
    lpf::run(power)
}
