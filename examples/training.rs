//! Training on batches of different length: late processes are predicted, and gradients are summed accordingly.
//! (Section 6 of Proficz 2018: 145,578 weights; 44 % of a batch is done when the last layer begins.)

use std::thread::sleep;
use std::time::Duration;

use lpf::collectives::AllreduceByArrival::{PreReducedRing, Ring, SortedLinearTree};
use lpf::collectives::monitor::Monitor;
use lpf::collectives::{Collectives, Sum};

const WEIGHTS: usize = 145_578;

fn training(ctx: &mut lpf::Context<'_>) -> lpf::Result<()> {
    let mut all = Collectives::new(ctx)?;
    let mut gradient = ctx.alloc(WEIGHTS)?;
    let nprocs = ctx.nprocs() as f32;
    let is_late = ctx.pid() + 1 == ctx.nprocs();
    let work = Duration::from_millis(if is_late { 15 } else { 5 });
    for algorithm in [Some(Ring), Some(SortedLinearTree), Some(PreReducedRing), None] {
        all.preferences_mut().allreduce_by_arrival = algorithm;
        let mut monitor = Monitor::new(ctx, &mut all)?;
        let start = ctx.now();
        let mut weights = vec![0f32; WEIGHTS];
        let mut communicated = Duration::ZERO;
        let mut predicted = 0;
        for _batch in 0..20 {
            monitor.begin();
            sleep(work.mul_f64(0.44));
            monitor.edge(0.44);
            sleep(work.mul_f64(0.56));
            for (step, weight) in ctx.write(&mut gradient).iter_mut().zip(&weights) {
                *step = (1.0 - weight) / nprocs;
            }
            let arrivals = monitor.finish(ctx)?;
            let arrived = ctx.now();
            all.allreduce_in_place_by_arrival(ctx, &arrivals, &Sum, &mut gradient)?;
            communicated += ctx.now() - arrived;
            predicted += u32::from(arrivals.spread_ns() > 0);
            for (weight, step) in weights.iter_mut().zip(ctx.read(&gradient)) {
                *weight += 0.1 * step;
            }
        }
        let own = communicated.as_secs_f64() * 1e3 / 20.0 / f64::from(nprocs);
        let batch = all.allreduce_value(ctx, &Sum, own)?;
        if is_late {
            let name = algorithm.map_or("auto", |algorithm| algorithm.name());
            let total = (ctx.now() - start).as_millis();
            let weight = weights[0];
            println!(
                "{name}: {batch:.3} ms a batch, {total} ms in all, {predicted} of 20 predicted, weights {weight:.3}"
            );
        }
    }
    Ok(())
}

fn main() -> lpf::Result<()> {
    lpf::run(training)
}
