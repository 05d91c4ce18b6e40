//! Clairvoyant schedules on standard output.

use std::io::{self, Write};
use std::time::Instant;

use lpf::collectives::arrival_pattern::clairvoyant::{
    Digest, Instance, Scheduler, Timeline, Transfer, canonical,
};

use super::file::Fields;
use super::options::ScheduleClairvoyant;
use super::plot::{self, Bar};
use crate::failure::{Failure, Result};
use crate::output::{self, digits, plain, processes};

/// A schedule of no more processes and segments is shown whole, and drawn.
const SHOWN: (usize, u32) = (32, 64);

/// Transfers, of which there is one at least for each process and segment, times what is looked through for each: what is
/// more takes a minute and longer, in which nothing is to be seen.
const MOST: u128 = 1 << 39;

/// The most transfers of a plot that can be read.
const DRAWN: u64 = 20_000;

pub(super) fn run(options: &ScheduleClairvoyant) -> Result<()> {
    let scheduler = scheduler(options.algorithm.as_deref())?;
    let instance = read(options)?;
    if let Some(path) = &options.of.svg {
        crate::plot::check_plot(path)?;
    }
    let begin = Instant::now();
    scheduler.schedule(&instance, |transfer| {
        std::hint::black_box(transfer);
    });
    let took = begin.elapsed().as_nanos() as f64;
    let mut digest = Digest::default();
    // For people alone: it keeps a word for each process and segment.
    let mut timeline = (!options.of.json).then(|| Timeline::new(&instance));
    canonical(&instance, scheduler, |transfer| {
        digest.add(&transfer);
        timeline.iter_mut().for_each(|timeline| {
            timeline.begin(&transfer);
        });
    });
    match timeline {
        None => {
            let mut out = output::standard();
            json(&mut out, &instance, scheduler, &digest)?;
            out.flush()?;
        }
        Some(timeline) => {
            output::people(|out| shown(out, &instance, scheduler, &digest, (timeline.end(), took)))?
        }
    }
    match &options.of.svg {
        None => Ok(()),
        Some(path) if digest.count > DRAWN => Err(Failure::Usage(format!(
            "--svg {} would have {} transfers, and more than {DRAWN} cannot be distinguished",
            output::named(path.display()),
            digest.count
        ))),
        Some(path) => draw(path, &instance, scheduler),
    }
}

fn scheduler(name: Option<&str>) -> Result<Scheduler> {
    let Some(name) = name else { return Ok(Scheduler::Bits) };
    let found = Scheduler::ALL.into_iter().find(|one| one.name() == name);
    let names = Scheduler::ALL.map(Scheduler::name);
    found.ok_or_else(|| Failure::Usage(crate::misspelt::one_of("algorithm", name, &names)))
}

fn read(options: &ScheduleClairvoyant) -> Result<Instance> {
    let fields = Fields::read(&options.of.instance)?;
    let arrivals = fields.times("arrivals_ns")?;
    let (root, last) = (fields.number("root")?, (arrivals.len() as u64).saturating_sub(1));
    let root = usize::try_from(root).map_err(|_| {
        fields.wrong(&format!("the root is process {root}, but the last process is {last}"))
    })?;
    let n = fields.count("N")?;
    let (p, segments) = (arrivals.len() as u128, u128::from(n));
    let work = p * segments * (p + segments);
    if work > MOST {
        return Err(fields.wrong(&format!(
            "P N (P + N) is {work}; the most is {MOST} (2^39), which takes about a minute: take fewer \
             segments (N) or processes (P)"
        )));
    }
    let instance = Instance::new(n, root, fields.number("d_ns")?, arrivals);
    instance.map_err(|why| fields.wrong(&why.to_string()))
}

/// One object; the transfers are made again for each list of it, and none is kept.
fn json(
    out: &mut dyn Write,
    instance: &Instance,
    scheduler: Scheduler,
    digest: &Digest,
) -> Result<()> {
    let Digest { fnv1a, count, combines, last_round } = *digest;
    let (p, n, root) = (instance.processes(), instance.segments(), instance.root());
    let arrivals = serde_json::to_string(instance.arrivals())?;
    write!(
        out,
        "{{\"P\": {p}, \"N\": {n}, \"root\": {root}, \"d_ns\": {}, \"arrivals_ns\": {arrivals}, \"algorithm\": \"{}\", \
         \"count\": {count}, \"last_round\": {last_round}, \"fnv1a\": \"{fnv1a:016x}\", \"combines\": {combines}",
        instance.round_time(),
        scheduler.name()
    )?;
    list(
        out,
        "transfers",
        instance,
        scheduler,
        |out, Transfer { round, sender, receiver, segment, .. }| {
            write!(out, "[{round}, {sender}, {receiver}, {segment}]")
        },
    )?;
    list(out, "overwrite", instance, scheduler, |out, transfer| {
        write!(out, "{}", u8::from(transfer.overwrites))
    })?;
    writeln!(out, "}}")?;
    Ok(())
}

fn list(
    out: &mut dyn Write,
    name: &str,
    instance: &Instance,
    scheduler: Scheduler,
    one: impl Fn(&mut dyn Write, Transfer) -> io::Result<()>,
) -> io::Result<()> {
    write!(out, ", \"{name}\": [")?;
    let mut done = Ok(());
    let mut separator = "";
    canonical(instance, scheduler, |transfer| {
        if done.is_ok() {
            done = out.write_all(separator.as_bytes()).and_then(|()| one(out, transfer));
            separator = ", ";
        }
    });
    done.and_then(|()| out.write_all(b"]"))
}

fn shown(
    out: &mut dyn Write,
    instance: &Instance,
    scheduler: Scheduler,
    digest: &Digest,
    (end, took): (u64, f64),
) -> io::Result<()> {
    let (p, n) = (instance.processes(), instance.segments());
    let segments = if n == 1 { "segment" } else { "segments" };
    writeln!(out, "{}, {n} {segments} to process {}", processes(p), instance.root())?;
    if p <= SHOWN.0 && n <= SHOWN.1 {
        let mut header = vec![String::new()];
        header.extend((0..p).map(|process| format!("p{process}")));
        let mut cells = vec![vec![String::new(); p]; n as usize];
        canonical(instance, scheduler, |transfer| {
            let cell = &mut cells[transfer.segment as usize][transfer.sender];
            let between = if cell.is_empty() { "" } else { "," };
            *cell = format!("{cell}{between}{}>{}", transfer.round, transfer.receiver);
        });
        let mut table = plain(header);
        for (segment, row) in cells.into_iter().enumerate() {
            let mut line = vec![format!("s{segment}")];
            line.extend(row);
            table.add_row(line);
        }
        let table = table.trim_fmt();
        if table.lines().all(|line| line.len() <= output::WIDTH) {
            writeln!(out, "{table}")?;
            writeln!(out, "k>r: the process sends the segment in round k to process r")?;
        } else {
            writeln!(
                out,
                "the table has more than 80 columns: --json lists the transfers, --svg draws them"
            )?;
        }
    }
    let last = instance.arrivals().iter().max().copied().unwrap_or(0);
    let Digest { fnv1a, count, combines, last_round } = *digest;
    if count == 0 {
        writeln!(
            out,
            "no transfer: process {} has all segments; FNV-1a {fnv1a:016x}",
            instance.root()
        )?;
    } else {
        writeln!(
            out,
            "{count} transfers, of which {combines} combine and {} overwrite, in rounds 0 to {last_round}; FNV-1a {fnv1a:016x}",
            count - combines
        )?;
        let after = end.saturating_sub(last) as f64;
        writeln!(out, "the last transfer ends {} after the last arrival", output::time(after))?;
    }
    let (name, time) = (scheduler.name(), output::time(took));
    match count {
        0 => writeln!(out, "made by {name} in {time}")?,
        _ => {
            let each = digits(took / count as f64);
            writeln!(out, "made by {name} in {time}, {each} ns per transfer")?;
        }
    }
    Ok(())
}

fn draw(path: &std::path::Path, instance: &Instance, scheduler: Scheduler) -> Result<()> {
    let mut bars = Vec::new();
    let mut timeline = Timeline::new(instance);
    scheduler.schedule(instance, |transfer| {
        let begin = timeline.begin(&transfer);
        let end = begin.saturating_add(instance.round_time());
        let Transfer { sender, receiver, segment, overwrites, .. } = transfer;
        let time = (begin as f64, end as f64);
        bars.push(Bar { from: sender, to: receiver, segment, time, stored: overwrites });
    });
    let arrivals: Vec<f64> = instance.arrivals().iter().map(|&time| time as f64).collect();
    let caption = format!(
        "Clairvoyant reduction to process {}, {}, {} segments",
        instance.root(),
        processes(instance.processes()),
        instance.segments()
    );
    plot::draw(path, &caption, plot::Unit::Nanoseconds, &arrivals, &bars)
}
