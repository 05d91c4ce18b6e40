//! Reduce-scatter and exscan: how often each value occurs, and its position if all values were sorted.

use lpf::Result;
use lpf::collectives::{Collectives, Sum};

/// Values are 0 to 15, a quarter of them counted by each of four processes.
const VALUES: usize = 16;

fn main() -> Result<()> {
    lpf::run(|ctx| {
        let mut all = Collectives::new(ctx)?;
        let (s, p) = (all.me(), all.len());
        let part = VALUES.div_ceil(p);
        let mut seen = vec![0_u64; p * part];
        for i in 0..10_000 {
            let value = (i * i + 7 * i * s + s) % VALUES;
            seen[value] += 1;
        }
        let counts = all.reduce_scatter_vec(ctx, &Sum, &seen)?;

        // The values that all processes before this one have counted are in front.
        let own = counts.iter().sum();
        let mut first: u64 = all.exscan_value(ctx, &Sum, own)?;
        for (value, count) in (s * part..).zip(counts) {
            println!("value {value:2}: {count:5} of them, from place {first:5} on");
            first += count;
        }
        Ok(())
    })
}
