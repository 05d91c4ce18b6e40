//! Time against size, a figure for each collective and number of processes: every algorithm, MPI's own and the bound.

use std::path::Path;

use lpf::Pid;
use lpf::collectives::Mode;

use super::rows::{CHOSEN, Row};
use crate::bench::figure::{self, Axis, Figure, Lines, Look, Panel, Series};
use crate::failure::Result;

/// Draws all figures.
pub(super) fn draw(path: &Path, rows: &[Row]) -> Result<()> {
    let mut all: Vec<(&str, Pid)> = Vec::new();
    for row in rows {
        if !all.contains(&(row.collective, row.p)) {
            all.push((row.collective, row.p));
        }
    }
    let figures = all.into_iter().map(|(name, p)| {
        let here = rows.iter().filter(|row| row.collective == name && row.p == p);
        figure(name, p, &here.collect::<Vec<_>>())
    });
    figure::draw(path, &figures.collect::<Vec<_>>())
}

fn figure(name: &str, p: Pid, rows: &[&Row]) -> Figure {
    let bytes = |row: &Row| (row.elements * row.element_bytes) as f64;
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if row.algorithm != CHOSEN && !names.contains(&row.algorithm) {
            names.push(row.algorithm);
        }
    }
    let of = |name: &str, in_full: bool| -> Vec<(f64, f64)> {
        let is =
            |row: &&&Row| row.algorithm == name && (row.mode == Some(Mode::Full.name())) == in_full;
        rows.iter().filter(is).map(|row| (bytes(row), row.median_ns)).collect()
    };
    let mut series: Vec<Series> = names
        .into_iter()
        .map(|name| {
            let backend =
                rows.iter().find(|row| row.algorithm == name).map_or("", |row| row.backend);
            let label = if name == "own" { format!("{backend}'s own") } else { name.to_string() };
            let (points, pale) = (of(name, false), of(name, true));
            Series { label, look: Look::of(name), points, pale }
        })
        .collect();
    let mut bound: Vec<_> =
        rows.iter().filter_map(|row| Some((bytes(row), row.bound_ns?))).collect();
    bound.dedup();
    let (label, look, pale) = ("bound".into(), Look::BOUND, Vec::new());
    series.push(Series { label, look, points: bound, pale });
    let backend = rows.iter().find(|row| row.algorithm == CHOSEN).map_or("", |row| row.backend);
    let lines = Lines {
        title: format!("{name}, {p} processes, {backend}"),
        x: Axis::Bytes("contribution of one process"),
        y: "median time",
        series,
        note: "thin: in full supersteps",
    };
    Figure { name: format!("{name}-p{p}"), panels: vec![Panel::Lines(lines)] }
}
