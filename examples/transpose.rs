//! Alltoall and gather: a matrix with distributed rows is transposed, and one process gathers all of it.

use lpf::Result;
use lpf::collectives::Collectives;

lpf::program! { fn Transpose(ctx, _args) {
    let mut all = Collectives::new(ctx)?;
    let (s, p) = (ctx.pid() as usize, ctx.nprocs() as usize);
    let (rows, n) = (2, 2 * p); // n x n, two rows at each process
    ctx.resize(3, 0).and_then(|()| ctx.sync())?;
    let (mut blocks, mut came) = (ctx.local::<u32>(rows * n)?, ctx.local::<u32>(rows * n)?);
    let mut whole = ctx.local::<u32>(if s == 0 { n * n } else { 0 })?;

    // Entry (r, c) is 100 r + c. Block t goes to process t: its part of our rows, transposed.
    let entry = |r: usize, c: usize| (100 * (rows * s + r) + c) as u32;
    let slots = ctx.write(&mut blocks).iter_mut().enumerate();
    slots.for_each(|(i, x)| *x = entry(i % rows, i / rows));
    all.alltoall(ctx, &blocks, &mut came)?;

    // Block t that arrived has the entries of process t for each of our rows.
    let (came, mine) = ctx.access((&came, &mut blocks));
    for (i, x) in mine.iter_mut().enumerate() {
        let (row, column) = (i / n, i % n);
        *x = came[column / rows * rows * rows + row * rows + column % rows];
    }
    all.gather(ctx, 0, &blocks, &mut whole)?;
    for (row, entries) in ctx.read(&whole).chunks(n).enumerate() {
        println!("row {row}: {entries:3?}");
    }
    Ok(())
} }

fn main() -> Result<()> {
    lpf::run(Transpose)
}
