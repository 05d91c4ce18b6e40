//! Training on batches of different length: late processes are predicted, and gradients are summed accordingly.
//! (Section 6 of Proficz 2018: 145,578 weights; 44 % of a batch is done when the last layer begins.)

use std::{thread::sleep, time::Duration, time::Instant};

use lpf::collectives::AllreduceByArrival::{PreReducedRing, Ring, SortedLinearTree};
use lpf::collectives::{Collectives, Sum, monitor::Monitor};

lpf::program! { fn Training(ctx, _args) {
    ctx.resize(1, 0)?;
    let (mut all, mut gradient) = (Collectives::new(ctx)?, ctx.local::<f32>(145_578)?);
    let (late, p) = (ctx.pid() + 1 == ctx.nprocs(), ctx.nprocs() as f32);
    for way in [Some(Ring), Some(SortedLinearTree), Some(PreReducedRing), None] {
        all.preferences_mut().allreduce_by_arrival = way;
        let (mut monitor, start) = (Monitor::new(ctx, &mut all)?, Instant::now());
        let (mut weights, mut elapsed, mut known) = (vec![0f32; 145_578], 0.0, 0);
        for _batch in 0..20 {
            monitor.begin();
            let work = Duration::from_millis(if late { 15 } else { 5 });
            sleep(work.mul_f64(0.44));
            monitor.edge(0.44);
            sleep(work.mul_f64(0.56));
            ctx.write(&mut gradient).iter_mut().zip(&weights).for_each(|(g, w)| *g = (1.0 - w) / p);
            let (arrivals, come) = (monitor.finish(ctx)?, Instant::now());
            all.allreduce_in_place_by_arrival(ctx, &arrivals, &Sum, &mut gradient)?;
            (elapsed, known) = (elapsed + come.elapsed().as_secs_f64(), known + u32::from(arrivals.spread_ns() > 0));
            weights.iter_mut().zip(ctx.read(&gradient)).for_each(|(w, step)| *w += 0.1 * step);
        }
        let elapsed = all.allreduce_value(ctx, &Sum, elapsed * 1e3 / 20.0 / f64::from(p))?;
        if late {
            let (name, total) = (way.map_or("auto", |way| way.name()), start.elapsed().as_millis());
            println!("{name}: {elapsed:.3} ms a batch, {total} ms in all, {known} of 20 predicted, weights {:.3}", weights[0]);
        }
    }
    Ok(())
} }

fn main() -> lpf::Result<()> {
    lpf::run(Training)
}
