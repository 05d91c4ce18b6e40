//! Sorts 1000 keys per process, the shuffled numbers from 0 on, by regular sampling.

use lpf::collectives::Collectives;
use lpf::{Context, Lpf, Result};

/// Sorts the keys of all processes; process s gets the s-th part of them, in order.
fn sample_sort<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    all: &mut Collectives<'s>,
    mut keys: Vec<u64>,
) -> Result<Vec<u64>> {
    let (p, n) = (all.len(), keys.len());
    keys.sort_unstable();

    // Every process takes p keys at equal distances, and gets those of all.
    let sample: Vec<u64> = (0..p).map(|i| keys[i * n / p]).collect();
    let mut samples = all.allgather_vec(ctx, &sample)?;
    samples.sort_unstable();

    // Part t goes to process t: the keys from the splitter before it up to its own.
    let mut parts = Vec::new();
    let mut rest = keys.as_slice();
    for t in 1..p {
        let splitter = samples[t * p];
        let (part, behind) = rest.split_at(rest.partition_point(|&key| key < splitter));
        parts.push(part);
        rest = behind;
    }
    parts.push(rest);

    let mut sorted = all.exchange(ctx, &parts)?.concat();
    sorted.sort_unstable();
    Ok(sorted)
}

fn main() -> Result<()> {
    lpf::run(|ctx| {
        let mut all = Collectives::new(ctx)?;
        let first = 1000 * ctx.pid() as u64;
        let total = 1000 * ctx.nprocs() as u64;
        let keys = (first..first + 1000).map(|i| i * 7919 % total).collect();
        let part = sample_sort(ctx, &mut all, keys)?;
        println!("{} to {}", part[0], part[part.len() - 1]);
        Ok(())
    })
}
