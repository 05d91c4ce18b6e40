//! `lpf schedule bench`: how long it takes to make schedules, on the instances of the paper's Table 1.

use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use lpf::collectives::arrival_pattern::clairvoyant::{Digest, Instance, Scheduler};
use lpf::measure::Random;
use lpf::measure::stats::Samples;
use serde::Serialize;

use super::options::ScheduleBench;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::output::{self, digits, json, table, time};
use crate::progress::Bar;

/// When processes arrive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrivals {
    /// At random within as many seconds as there are processes.
    Uniform,
    /// All at once but for the last, which is as many seconds late.
    Skewed,
}

impl Arrivals {
    fn name(self) -> &'static str {
        match self {
            Arrivals::Uniform => "uniform",
            Arrivals::Skewed => "skewed",
        }
    }

    /// One instance of p processes and segments; a round takes up to a second.
    fn instance(self, p: u32, random: &mut Random) -> Result<Instance> {
        const SECOND: usize = 1_000_000_000;
        let round_time = (SECOND / 1000 + random.below(SECOND - SECOND / 1000)) as u64;
        let all = p as usize;
        let (arrivals, root) = match self {
            Arrivals::Uniform => {
                let most = all * SECOND + SECOND / 10;
                ((0..p).map(|_| random.below(most) as u64).collect(), random.below(all))
            }
            Arrivals::Skewed => {
                let mut arrivals = vec![0; all];
                arrivals[all - 1] = (all * SECOND) as u64;
                (arrivals, 0)
            }
        };
        Instance::new(p, root, round_time, arrivals).map_err(|why| Failure::Failed(why.to_string()))
    }
}

/// A row of `--json`.
#[derive(Serialize)]
struct Row {
    algorithm: &'static str,
    /// How they are spread.
    arrivals: &'static str,
    #[serde(rename = "P")]
    p: u32,
    #[serde(rename = "N")]
    n: u32,
    median_ns: f64,
    min_ns: f64,
    transfers: f64,
    ns_per_transfer: f64,
    /// What the scheduler keeps for each process and segment.
    bytes_per_cell: f64,
    samples: usize,
}

pub(super) fn run(options: &ScheduleBench) -> Result<()> {
    let sizes: Vec<u32> = match options.p.is_empty() {
        true => (2..=11).map(|power| 1 << power).collect(),
        false => options.p.clone(),
    };
    let (time, too_long) = if options.quick { (10, 1) } else { (60, 10) };
    let time = options.seconds.unwrap_or(Duration::from_secs(time));
    // An algorithm is left out from the size on where one schedule of it would take longer than this.
    let too_long = Duration::from_secs(too_long);
    let each = time.div_f64((2 * sizes.len()) as f64);
    let instances = 2 * sizes.len();
    let bar = Bar::new("schedule bench", time);
    let (sender, found) = mpsc::channel();
    interrupt::heed()?;
    let shown_there = bar.clone();
    // A schedule for many processes takes minutes, and cannot be cut: after an interrupt the thread has a second to
    // end, and then it ends with the program.
    thread::spawn(move || {
        if let Err(failure) = measure(&sizes, each, too_long, &shown_there, &sender) {
            drop(sender.send(Err(failure)));
        }
    });
    let (mut rows, mut polls) = (Vec::new(), 20u32);
    loop {
        match found.recv_timeout(Duration::from_millis(50)) {
            Ok(more) => rows.extend(more?),
            Err(RecvTimeoutError::Timeout) if polls > 0 => polls -= u32::from(interrupt::came()),
            Err(_) => break,
        }
    }
    drop(bar);
    let end = interrupt::ended(Ok(()));
    if rows.is_empty() {
        return interrupt::without_rows(end);
    }
    if options.json {
        let mut out = output::standard();
        json(&mut out, &rows)?;
        out.flush()?;
    } else {
        output::people(|out| shown(out, &rows, too_long))?;
    }
    if end.is_err() {
        output::say(format!("interrupted after {} of {instances} instances", timed(&rows)));
    }
    end
}

/// Sends the rows of one instance after the other.
fn measure(
    sizes: &[u32],
    each: Duration,
    too_long: Duration,
    bar: &Bar,
    sender: &Sender<Result<Vec<Row>>>,
) -> Result<()> {
    let begin = Instant::now();
    // What one transfer took last, for each algorithm: the next size takes longer.
    let mut slow = [0.0f64; Scheduler::ALL.len()];
    for &p in sizes {
        for arrivals in [Arrivals::Uniform, Arrivals::Skewed] {
            let mut random = Random::new(u64::from(p));
            let mut found = [(); Scheduler::ALL.len()].map(|()| (Samples::default(), 0u64));
            let start = Instant::now();
            loop {
                let instance = arrivals.instance(p, &mut random)?;
                let mut digests = Vec::new();
                for (nth, scheduler) in Scheduler::ALL.into_iter().enumerate() {
                    if interrupt::came() {
                        break;
                    }
                    let expected = slow[nth] * f64::from(p) * f64::from(p);
                    if expected > too_long.as_nanos() as f64 {
                        continue;
                    }
                    let (mut count, mut last) = (0u64, 0u64);
                    let clock = Instant::now();
                    scheduler.schedule(&instance, |transfer| {
                        count += 1;
                        last = transfer.round;
                    });
                    let ns = clock.elapsed().as_nanos() as f64;
                    std::hint::black_box(last);
                    found[nth].0.push(ns);
                    found[nth].1 += count;
                    if found[nth].0.len() == 1 {
                        digests.push(Digest::of(&instance, scheduler));
                    }
                }
                if digests.windows(2).any(|two| two[0] != two[1]) {
                    let text = format!("the algorithms made different schedules of {instance:?}");
                    return Err(Failure::Failed(text));
                }
                bar.show(begin.elapsed(), || format!("P = N = {p}, {}", arrivals.name()));
                if interrupt::came() || start.elapsed() >= each {
                    break;
                }
            }
            let mut rows = Vec::new();
            for (nth, (samples, transfers)) in found.iter().enumerate() {
                if samples.is_empty() {
                    continue;
                }
                let transfers = *transfers as f64 / samples.len() as f64;
                let ns_per_transfer = samples.median() / transfers;
                slow[nth] = slow[nth].max(ns_per_transfer);
                let scheduler = Scheduler::ALL[nth];
                let cells = f64::from(p) * f64::from(p);
                rows.push(Row {
                    algorithm: scheduler.name(),
                    arrivals: arrivals.name(),
                    p,
                    n: p,
                    median_ns: samples.median(),
                    min_ns: samples.min(),
                    transfers,
                    ns_per_transfer,
                    bytes_per_cell: scheduler.bytes(p as usize, p as usize) as f64 / cells,
                    samples: samples.len(),
                });
            }
            // If the receiver is gone, so is the program.
            drop(sender.send(Ok(rows)));
            if interrupt::came() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// How many instances there are rows of.
fn timed(rows: &[Row]) -> usize {
    let mut instances: Vec<_> = rows.iter().map(|row| (row.p, row.arrivals)).collect();
    instances.dedup();
    instances.len()
}

fn shown(out: &mut dyn Write, rows: &[Row], too_long: Duration) -> io::Result<()> {
    let mut all = table(
        [
            "arrivals",
            "P = N",
            "algorithm",
            "median",
            "transfer",
            "x fastest",
            "bits/cell",
            "samples",
        ],
        1,
    );
    for row in rows {
        let same = |other: &&Row| (other.arrivals, other.p) == (row.arrivals, row.p);
        let least = rows.iter().filter(same).map(|row| row.median_ns).fold(f64::INFINITY, f64::min);
        all.add_row([
            row.arrivals.to_string(),
            row.p.to_string(),
            row.algorithm.to_string(),
            time(row.median_ns),
            format!("{} ns", digits(row.ns_per_transfer)),
            digits(row.median_ns / least),
            digits(8.0 * row.bytes_per_cell),
            row.samples.to_string(),
        ]);
    }
    writeln!(out, "{}", all.trim_fmt())?;
    writeln!(
        out,
        "all algorithms made the same schedule of the first instance of each row; algorithms that would take more than {} s are left out",
        too_long.as_secs()
    )
}
