//! Rows, the table for people, and how often the choice is right.

use std::fmt;
use std::io::{self, Write};

use lpf::Pid;
use lpf::collectives::Collective;
use lpf::measure::stats::Samples;
use serde::Serialize;

use super::Cell;
use super::arrivals::Pattern;
use super::own::{AUTO, OWN, Seen, algorithms, looks_ahead};
use crate::bench::collectives::shapes::ELEMENT;
use crate::output::{self, digits, size, time};
use crate::remarks::Remarks;

/// A row of `--json` and `--csv`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) backend: &'static str,
    pub(super) p: Pid,
    pub(super) call: &'static str,
    pub(super) algorithm: String,
    /// Of the default choice: the algorithms that were used, the most frequent first, with the number of repetitions.
    pub(super) chosen: Option<String>,
    pub(super) pattern: &'static str,
    pub(super) max_delay_ms: f64,
    /// Relative prediction error of each arrival time: 0.1 allows 10 %.
    pub(super) prediction_error: f64,
    pub(super) elements: usize,
    pub(super) element_bytes: usize,
    pub(super) avg_elapsed_ns: f64,
    pub(super) run_time_ns: f64,
    pub(super) after_last_arrival_ns: f64,
    pub(super) bound_ns: Option<f64>,
    pub(super) schedule_ns: Option<f64>,
    pub(super) samples: usize,
    /// As text, with spaces: CSV has no lists.
    after_last_arrival_samples_ns: String,
    avg_elapsed_samples_ns: String,
    pub(super) remarks: Remarks,
    /// Whether the algorithm does not use predictions.
    #[serde(skip)]
    is_ordinary: bool,
    /// What algorithms are compared by, of each repetition.
    #[serde(skip)]
    compared_samples_ns: Vec<f64>,
}

impl Row {
    /// For remarks.
    pub(super) fn name(&self) -> String {
        let (bytes, delay) = (size(self.bytes()), time(self.delay_ns()));
        format!("{} of {bytes}, {}, {delay} (p = {})", self.call, self.pattern, self.p)
    }

    /// What the rows of its cell have in common.
    fn heading(&self) -> String {
        let mut text = format!("{} of {}, p = {}", self.call, size(self.bytes()), self.p);
        text = format!("{text}, pattern {}", self.pattern);
        if self.max_delay_ms > 0.0 {
            text = format!("{text}, delay {}", time(self.delay_ns()));
        }
        match self.error_percent() {
            0 => text,
            percent => format!("{text}, error {percent} %"),
        }
    }

    /// The algorithm in the table: of the default choice, which one that was most often, and the number of others.
    fn shown(&self) -> String {
        let Some(chosen) = &self.chosen else { return self.algorithm.clone() };
        let others = chosen.matches(", ").count();
        let most = chosen.split([' ', ',']).next().unwrap_or_default();
        match others {
            0 => format!("{} ({most})", self.algorithm),
            _ => format!("{} ({most} +{others})", self.algorithm),
        }
    }

    pub(super) fn delay_ns(&self) -> f64 {
        1e6 * self.max_delay_ms
    }

    /// What one process contributes.
    pub(super) fn bytes(&self) -> usize {
        self.elements * self.element_bytes
    }

    pub(super) fn error_percent(&self) -> u32 {
        (100.0 * self.prediction_error).round() as u32
    }

    /// The cell that it is of.
    pub(super) fn cell(&self) -> (Pid, &str, &str, u64, u32, usize) {
        let Row { p, call, pattern, elements, .. } = self;
        (*p, call, pattern, self.delay_ns() as u64, self.error_percent(), *elements)
    }

    /// What algorithms are compared by.
    fn compared_ns(&self) -> f64 {
        if self.call == Collective::Reduce.name() { self.run_time_ns } else { self.avg_elapsed_ns }
    }

    /// Whether it is within 5 % or 300 ns of another: by how much it is later on the same arrivals, in the middle of
    /// all repetitions. What one algorithm takes differs more from one repetition to the next.
    fn is_near(&self, other: &Row) -> bool {
        let mut later = Samples::default();
        let both = self.compared_samples_ns.iter().zip(&other.compared_samples_ns);
        later.extend(both.map(|(own, other)| own - other));
        later.is_empty() || later.median() <= (0.05 * other.compared_ns()).max(300.0)
    }
}

/// Which of a repetition's times algorithms are compared by.
fn compared(call: Collective) -> usize {
    usize::from(call == Collective::Reduce)
}

/// What one repetition comes to: elapsed, run and after the last arrival, ns.
fn times(seen: &Seen, call: Collective) -> [f64; 3] {
    let Seen { arrived_ns, done_ns, .. } = seen;
    let each = arrived_ns.iter().zip(done_ns).map(|(&arrived, &done)| done.saturating_sub(arrived));
    let elapsed = each.sum::<u64>() as f64 / arrived_ns.len().max(1) as f64;
    let first = arrived_ns.iter().min().copied().unwrap_or(0);
    let last = arrived_ns.iter().max().copied().unwrap_or(0);
    let end = match call {
        Collective::Reduce => done_ns.first().copied(),
        _ => done_ns.iter().max().copied(),
    };
    let end = end.unwrap_or(0);
    [elapsed, end.saturating_sub(first) as f64, end.saturating_sub(last) as f64]
}

/// The algorithms that the default choice used, the most frequent first, with the number of repetitions of each.
fn chosen(all: &[Seen]) -> Option<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for name in all.iter().filter_map(|seen| seen.used.as_deref()) {
        match counts.iter_mut().find(|(of, _)| *of == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let each: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    (!each.is_empty()).then(|| each.join(", "))
}

/// All rows: of a cell its algorithms, and MPI's own.
pub(super) fn of(
    backend: &'static str,
    rival: Option<&'static str>,
    cells: &[Cell],
    bound: impl Fn(&Cell) -> f64,
    common: &[String],
) -> Vec<Row> {
    let mut rows = Vec::new();
    for cell in cells {
        let call = cell.shape.collective();
        let all = algorithms(call);
        let own = cell.own.iter().map(|(name, seen)| (backend, name.as_str(), seen));
        let mpi = rival.filter(|_| !cell.mpi.is_empty()).map(|rival| (rival, OWN, &cell.mpi));
        for (backend, name, seen) in own.chain(mpi) {
            let ahead = all.iter().any(|(of, one)| of == name && looks_ahead(*one));
            let times: Vec<[f64; 3]> = seen.iter().map(|seen| times(seen, call)).collect();
            let median = |nth: usize| {
                let mut samples = Samples::default();
                samples.extend(times.iter().map(|times| times[nth]));
                samples.median()
            };
            let mut planned = Samples::default();
            // A schedule that was kept takes nothing.
            let made = seen.iter().map(|seen| seen.planned_ns as f64).filter(|&ns| ns > 0.0);
            planned.extend(made);
            let list = |nth: usize| {
                let all = times.iter().map(|times| format!("{:.0}", times[nth]));
                all.collect::<Vec<_>>().join(" ")
            };
            rows.push(Row {
                backend,
                p: cell.p(),
                call: call.name(),
                algorithm: name.into(),
                chosen: chosen(seen),
                pattern: cell.pattern.name(),
                max_delay_ms: cell.delay_ns as f64 / 1e6,
                prediction_error: f64::from(cell.percent) / 100.0,
                elements: cell.shape.elements,
                element_bytes: ELEMENT,
                avg_elapsed_ns: median(0),
                run_time_ns: median(1),
                after_last_arrival_ns: median(2),
                bound_ns: (name != OWN || backend == "mpi").then(|| bound(cell)),
                schedule_ns: ahead.then(|| if planned.is_empty() { 0.0 } else { planned.median() }),
                samples: seen.len(),
                after_last_arrival_samples_ns: list(2),
                avg_elapsed_samples_ns: list(0),
                remarks: common.iter().cloned().collect(),
                is_ordinary: !ahead && name != OWN,
                compared_samples_ns: times.iter().map(|times| times[compared(call)]).collect(),
            });
        }
    }
    rows
}

/// A line for each row, in groups of one cell, in each of which the best is marked: 80 columns at the most.
pub(super) fn table(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    let header = ["algorithm", "", "elapsed", "run", "after last", "/bound", "schedule"];
    let mut table = output::table(header, 2);
    let mut headings: Vec<(usize, String)> = Vec::new();
    for (nth, row) in rows.iter().enumerate() {
        if nth == 0 || rows[nth - 1].cell() != row.cell() {
            headings.push((nth, row.heading()));
        }
        let best = best(rows, row).map_or(0.0, Row::compared_ns);
        let mark = if row.compared_ns() <= best && row.algorithm != OWN { "*" } else { "" };
        let ratio = row
            .bound_ns
            .filter(|bound| *bound > 0.0)
            .map(|bound| row.after_last_arrival_ns / bound);
        table.add_row([
            row.shown(),
            mark.into(),
            time(row.avg_elapsed_ns),
            time(row.run_time_ns),
            time(row.after_last_arrival_ns),
            ratio.map_or(String::new(), digits),
            row.schedule_ns.map_or(String::new(), time),
        ]);
    }
    write!(out, "{}", output::grouped(&table, &headings))?;
    writeln!(
        out,
        "*: the best of LPF's, by run time in a reduce, by elapsed time in an allreduce\n\
         auto (NAME +n): the default choice was NAME most often, and n other algorithms"
    )
}

/// Ours in a row's cell that were named.
fn others<'a>(rows: &'a [Row], of: &Row) -> impl Iterator<Item = &'a Row> {
    let cell = of.cell();
    rows.iter()
        .filter(move |row| row.cell() == cell && row.algorithm != AUTO && row.algorithm != OWN)
}

/// The fastest of them.
fn best<'a>(rows: &'a [Row], of: &Row) -> Option<&'a Row> {
    others(rows, of).min_by(|a, b| a.compared_ns().total_cmp(&b.compared_ns()))
}

/// How often the choice is as good as the best algorithm, and where all come together as the best ordinary one.
pub(super) struct Share {
    good: usize,
    all: usize,
    balanced_good: usize,
    balanced: usize,
}

impl Share {
    pub(super) fn of(rows: &[Row]) -> Self {
        let mut share = Share { good: 0, all: 0, balanced_good: 0, balanced: 0 };
        for row in rows.iter().filter(|row| row.algorithm == AUTO) {
            let others = || others(rows, row);
            let ordinary = || others().filter(|one| one.is_ordinary);
            share.all += usize::from(others().next().is_some());
            share.good +=
                usize::from(others().next().is_some() && others().all(|one| row.is_near(one)));
            if row.pattern == Pattern::None.name() && ordinary().next().is_some() {
                share.balanced += 1;
                share.balanced_good += usize::from(ordinary().all(|one| row.is_near(one)));
            }
        }
        share
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Share { good, all, balanced_good, balanced } = self;
        if *all == 0 {
            return f.write_str("auto was not compared with another algorithm");
        }
        write!(f, "auto is within 5 % or 300 ns of the best algorithm in {good} of {all} cells")?;
        if *balanced > 0 {
            let text = "if all arrive at once, of the best arrival-unaware algorithm in";
            write!(f, "; {text} {balanced_good} of {balanced}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_from_arrivals_to_returns() {
        let arrived_ns = vec![10, 110, 30];
        let seen = Seen { arrived_ns, done_ns: vec![140, 150, 60], planned_ns: 0, used: None };
        assert_eq!(times(&seen, Collective::Reduce), [200.0 / 3.0, 130.0, 30.0]);
        assert_eq!(times(&seen, Collective::Allreduce), [200.0 / 3.0, 140.0, 40.0]);
        assert_eq!(chosen(std::slice::from_ref(&seen)), None);
        let used = |name: &str| Seen { used: Some(name.into()), ..seen.clone() };
        let all = [used("ring"), used("slt"), used("slt")];
        assert_eq!(chosen(&all).as_deref(), Some("slt 2, ring 1"));
    }
}
