//! A figure for each call, number of processes, length, pattern and error: time against delay, or with one delay the
//! time of each algorithm.

use std::path::Path;

use lpf::Pid;

use super::own::{AUTO, OWN};
use super::rows::Row;
use crate::bench::figure::{self, Axis, Figure, Lines, Look, Panel, Series, Times};
use crate::failure::Result;
use crate::output::{size, time};

/// What a figure is of: the call, processes, pattern, error and length.
type Key<'r> = (&'r str, Pid, &'r str, u32, usize);

fn key(row: &Row) -> Key<'_> {
    (row.call, row.p, row.pattern, row.error_percent(), row.bytes())
}

/// Draws all figures.
pub(super) fn draw(path: &Path, rows: &[Row]) -> Result<()> {
    let mut keys: Vec<Key<'_>> = Vec::new();
    for row in rows {
        if !keys.contains(&key(row)) {
            keys.push(key(row));
        }
    }
    let figures = keys.into_iter().map(|one| {
        let here: Vec<&Row> = rows.iter().filter(|row| key(row) == one).collect();
        figure(one, &here)
    });
    figure::draw(path, &figures.collect::<Vec<_>>())
}

const AFTER: &str = "time after the last arrival";
const ELAPSED: &str = "mean time in the call";

fn figure((call, p, pattern, error, bytes): Key<'_>, rows: &[&Row]) -> Figure {
    let mut name = format!("{call}-p{p}-{pattern}-{}", size(bytes).replace(' ', ""));
    let mut title = format!("{call} of {}, {p} processes, pattern {pattern}", size(bytes));
    if error > 0 {
        name = format!("{name}-error{error}");
        title = format!("{title}, error {error} %");
    }
    let mut delays: Vec<f64> = rows.iter().map(|row| row.delay_ns()).collect();
    delays.sort_by(f64::total_cmp);
    delays.dedup();
    let panels = match delays[..] {
        [delay] => vec![Panel::Times(times((title, delay), rows))],
        _ => {
            let of = [AFTER, ELAPSED].map(|what| Panel::Lines(lines(&title, what, rows)));
            of.into()
        }
    };
    Figure { name, panels }
}

fn label(row: &Row) -> String {
    if row.algorithm == OWN { format!("{}'s own", row.backend) } else { row.algorithm.clone() }
}

fn times((title, delay): (String, f64), rows: &[&Row]) -> Times {
    let one = |row: &&Row| {
        let values = [row.after_last_arrival_ns, row.avg_elapsed_ns];
        (label(row), Look::of(&row.algorithm), values)
    };
    Times {
        title,
        x: match delay > 0.0 {
            true => format!("median time, delay {}", time(delay)),
            false => "median time".into(),
        },
        rows: rows.iter().map(one).collect(),
        names: ["after the last arrival", "in the call, mean"],
        bound: rows.iter().find_map(|row| row.bound_ns).filter(|&bound| bound > 0.0),
    }
}

fn lines(title: &str, what: &'static str, rows: &[&Row]) -> Lines {
    let of = |row: &Row| if what == AFTER { row.after_last_arrival_ns } else { row.avg_elapsed_ns };
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.algorithm.as_str()) {
            names.push(&row.algorithm);
        }
    }
    // On top of the others.
    names.sort_by_key(|&name| name == AUTO);
    let mut series: Vec<Series> = names
        .into_iter()
        .map(|name| {
            let line = || rows.iter().filter(move |row| row.algorithm == name);
            let points = line().map(|row| (row.delay_ns(), of(row))).collect();
            let label = line().next().map_or(String::new(), |row| label(row));
            Series { label, look: Look::of(name), points, pale: Vec::new() }
        })
        .collect();
    if what == AFTER {
        let bounds = rows.iter().filter_map(|row| Some((row.delay_ns(), row.bound_ns?)));
        let mut points: Vec<(f64, f64)> = bounds.filter(|&(_, bound)| bound > 0.0).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup();
        let label = "bound".to_string();
        series.push(Series { label, look: Look::BOUND, points, pale: Vec::new() });
    }
    Lines { title: title.into(), x: Axis::Time("delay"), y: what, series, note: "" }
}
