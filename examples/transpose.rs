//! Alltoall and gather: a matrix with distributed rows is transposed, and one process gathers all of it.

use lpf::collectives::Collectives;
use lpf::{Context, Result};

fn transpose(ctx: &mut Context<'_>) -> Result<()> {
    let mut all = Collectives::new(ctx)?;
    let (s, p) = (ctx.pid(), ctx.nprocs());
    // The matrix is n x n, with two rows at each process.
    let rows = 2;
    let n = rows * p;
    let [mut blocks, mut arrived] = ctx.alloc([rows * n, rows * n])?;

    // Entry (r, c) is 100 r + c. Block t goes to process t: its part of our rows, transposed.
    let entry = |r: usize, c: usize| (100 * (rows * s + r) + c) as u32;
    for (i, x) in ctx.write(&mut blocks).iter_mut().enumerate() {
        *x = entry(i % rows, i / rows);
    }
    all.alltoall(ctx, &blocks, &mut arrived)?;

    // Block t that arrived has the entries of process t for each of our rows.
    let arrived = ctx.read(&arrived);
    let entry = |i: usize| {
        let (row, column) = (i / n, i % n);
        arrived[column / rows * rows * rows + row * rows + column % rows]
    };
    let transposed: Vec<u32> = (0..rows * n).map(entry).collect();
    // The whole matrix at process 0, and nothing at the others.
    let whole = all.gather_vec(ctx, 0, &transposed)?;
    for (row, entries) in whole.chunks(n).enumerate() {
        println!("row {row}: {entries:3?}");
    }
    Ok(())
}

fn main() -> Result<()> {
    lpf::run(transpose)
}
