//! Sorts 1000 keys per process, the shuffled numbers from 0 on, by regular sampling.

use lpf::{Context, Lpf, Result};

/// Sorts n keys of every process; process s gets the s-th part of all keys, in order.
fn sample_sort<L: Lpf>(ctx: &mut Context<'_, L>, mut own: Vec<u64>) -> Result<Vec<u64>> {
    let (s, p, n) = (ctx.pid() as usize, ctx.nprocs() as usize, own.len());
    own.sort_unstable();
    ctx.resize(6, 2 * p).and_then(|()| ctx.sync())?;
    let (mut keys, mut sample, mut all) = (ctx.area(n)?, ctx.local(p)?, ctx.area::<u64>(p * p)?);
    let (mut cuts, parts) = (ctx.local::<usize>(p + 1)?, ctx.area(2 * p)?);
    ctx.sync()?;
    ctx.write(&mut keys).copy_from_slice(&own);
    ctx.write(&mut sample).iter_mut().enumerate().for_each(|(i, key)| *key = own[i * n / p]);
    (0..p).try_for_each(|to| ctx.put(&sample, .., to as u32, &all, s * p))?;
    ctx.sync()?;
    let (samples, cut) = ctx.access((&mut all, &mut cuts)); // part t is cut[t] to cut[t + 1]
    samples.sort_unstable();
    (1..=p).for_each(|t| cut[t] = own.partition_point(|&k| t == p || k < samples[t * p]));
    (0..p).try_for_each(|to| ctx.put(&cuts, to..to + 2, to as u32, &parts, 2 * s))?;
    ctx.sync()?;
    let (parts, mut at) = (ctx.read(&parts).to_vec(), 0);
    let mut sorted = ctx.local(parts.chunks(2).map(|cut| cut[1] - cut[0]).sum())?;
    for (process, cut) in (0..).zip(parts.chunks(2)) {
        ctx.get(process, &keys, cut[0]..cut[1], &sorted, at)?;
        at += cut[1] - cut[0];
    }
    ctx.sync()?;
    ctx.write(&mut sorted).sort_unstable();
    Ok(ctx.read(&sorted).to_vec())
}
lpf::program! { fn Sort(ctx, _args) {
    let (first, all) = (1000 * u64::from(ctx.pid()), 1000 * u64::from(ctx.nprocs()));
    let keys = (first..first + 1000).map(|i| i * 7919 % all).collect();
    sample_sort(ctx, keys).map(|part| println!("{} to {}", part[0], part[part.len() - 1]))
} }

fn main() -> Result<()> {
    lpf::run(Sort)
}
