//! The inner product of two block-distributed vectors: one superstep of p puts each.

use lpf::{Context, Lpf, Result};

/// x·y, known to every process; x and y are this process's blocks.
fn inner_product<L: Lpf>(ctx: &mut Context<'_, L>, x: &[f64], y: &[f64]) -> Result<f64> {
    let p = ctx.nprocs();
    let (mut own, all) = ctx.alloc((1, p))?;
    ctx.write(&mut own)[0] = x.iter().zip(y).map(|(x, y)| x * y).sum();
    for to in 0..ctx.nprocs() {
        ctx.put(&own, .., to, &all, ctx.pid())?;
    }
    // h = 8p bytes: this costs 8p·g + l.
    ctx.sync()?;
    Ok(ctx.read(&all).iter().sum())
}

/// x = (1, 2, ..., n), y = (1, 1, ..., 1), in blocks.
fn main() -> Result<()> {
    lpf::run(|ctx| {
        let n = 1_000_000;
        let (s, p) = (ctx.pid(), ctx.nprocs());
        let block = s * n / p..(s + 1) * n / p;
        let x: Vec<f64> = block.map(|i| (i + 1) as f64).collect();
        let product = inner_product(ctx, &x, &vec![1.0; x.len()])?;
        if s == 0 {
            println!("1 + 2 + ... + {n} = {product}");
        }
        Ok(())
    })
}
