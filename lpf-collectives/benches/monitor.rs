//! What the arrival monitor takes: an edge, and its helper thread's share of a core.
//!
//! ```text
//! cargo bench -p lpf-collectives --bench monitor
//! ```

use std::fs;
use std::time::{Duration, Instant};

use lpf_collectives::monitor::Monitor;
use lpf_collectives::{Collectives, Sum};
use lpf_core::{Args, Pid};
use lpf_pthreads::Config;

/// Edges of a phase, all of which are timed.
const EDGES: u32 = 10;

/// How long the helper has run so far, by the system's count.
fn helper_ns() -> u64 {
    let threads = fs::read_dir("/proc/self/task").expect("Linux").flatten().map(|task| task.path());
    let is_helper = |path: &std::path::PathBuf| {
        fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == "lpf-monitor")
    };
    let ran = |path: std::path::PathBuf| -> Option<u64> {
        fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    threads.filter(is_helper).filter_map(ran).sum()
}

/// Phases of so many milliseconds, and 3 more at each process than at the one before.
fn measure(processes: Pid, phase_ms: u64, phases: u32) {
    let done = Config::new().procs(processes).exec(processes, Args::none(), |ctx, _args| {
        ctx.resize(1, 0)?;
        let mut all = Collectives::new(ctx)?;
        let mut gradient = ctx.local::<f32>(1000)?;
        let mut monitor = Monitor::new(ctx, &mut all)?;
        let (mut in_edges, mut predicted) = (Duration::ZERO, 0);
        ctx.sync()?;
        let (before, start) = (helper_ns(), Instant::now());
        for _ in 0..phases {
            monitor.begin();
            std::thread::sleep(Duration::from_millis(phase_ms * 44 / 100));
            let edge = Instant::now();
            (0..EDGES).for_each(|_| monitor.edge(0.44));
            in_edges += edge.elapsed();
            let late = 3 * ctx.pid() as u64;
            std::thread::sleep(Duration::from_millis(phase_ms * 56 / 100 + late));
            let arrivals = monitor.finish(ctx)?;
            predicted += u32::from(arrivals.spread_ns() > 0);
            all.allreduce_in_place_by_arrival(ctx, &arrivals, &Sum, &mut gradient)?;
        }
        ctx.sync()?;
        if ctx.pid() == 0 {
            let share = (helper_ns() - before) as f64 / start.elapsed().as_nanos() as f64;
            println!(
                "{processes} processes, phases of {phase_ms} ms: an edge takes {} ns, the helper {:.3} % of a core; {predicted} of {phases} phases predicted",
                (in_edges / (EDGES * phases)).as_nanos(),
                100.0 * share
            );
        }
        Ok(())
    });
    done.expect("nothing fails here");
}

fn main() {
    for processes in [1, 2, 8] {
        for (phase_ms, phases) in [(20, 100), (50, 40), (500, 6)] {
            measure(processes, phase_ms, phases);
        }
    }
}
