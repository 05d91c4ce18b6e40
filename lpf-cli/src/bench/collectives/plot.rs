//! Time against size, a panel for each collective and number of processes: every algorithm (paler: in full
//! supersteps), MPI's own and the bound.

use std::path::Path;

use lpf::collectives::Mode;
use plotters::prelude::*;

use super::rows::{CHOSEN, Row};
use crate::failure::Result;
use crate::plot::{axis, byte_label, time_label, write};

/// Colours of Okabe and Ito's, enough for all algorithms of a collective.
pub(in crate::bench) const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(150, 140, 30),
];
/// Of a panel, in pixels.
const PANEL: (u32, u32) = (560, 380);

/// Draws all panels, a row for each collective.
pub(super) fn draw(path: &Path, rows: &[Row]) -> Result<()> {
    let mut collectives: Vec<_> = rows.iter().map(|row| row.collective).collect();
    let mut processes: Vec<_> = rows.iter().map(|row| row.p).collect();
    let mut seen = Vec::new();
    collectives.retain(|name| {
        !seen.contains(name) && {
            seen.push(*name);
            true
        }
    });
    processes.sort_unstable();
    processes.dedup();
    let (across, down) = (processes.len(), collectives.len());
    write(path, |text| -> std::result::Result<(), Failed> {
        let size = (PANEL.0 * across as u32, PANEL.1 * down as u32);
        let area = SVGBackend::with_string(text, size).into_drawing_area();
        area.fill(&WHITE)?;
        let panels = area.split_evenly((down, across));
        let of = |name: &'static str| processes.iter().map(move |&p| (name, p));
        for ((name, p), panel) in collectives.iter().copied().flat_map(of).zip(&panels) {
            let here: Vec<&Row> =
                rows.iter().filter(|row| row.collective == name && row.p == p).collect();
            if !here.is_empty() {
                draw_panel(panel, &format!("{name}, p = {p}"), &here)?;
            }
        }
        area.present()
    })
}

type Failed = DrawingAreaErrorKind<std::io::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw_panel(area: &Area<'_>, title: &str, rows: &[&Row]) -> std::result::Result<(), Failed> {
    let bytes = |row: &Row| (row.elements * row.element_bytes) as f64;
    let x = axis(rows.iter().map(|row| bytes(row)));
    let y = axis(rows.iter().flat_map(|row| [row.median_ns, row.bound_ns.unwrap_or(0.0)]));
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 17))
        .margin(10)
        .x_label_area_size(38)
        .y_label_area_size(62)
        .build_cartesian_2d(x.log_scale(), y.log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("bytes that one process contributes in all")
        .x_label_formatter(&byte_label)
        .y_label_formatter(&time_label)
        .draw()?;
    let in_full = |row: &Row| row.mode == Some(Mode::Full.name());
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if row.algorithm != CHOSEN && !names.contains(&row.algorithm) {
            names.push(row.algorithm);
        }
    }
    for (nth, &name) in names.iter().enumerate() {
        let line = || rows.iter().filter(move |row| row.algorithm == name && !in_full(row));
        let full = || rows.iter().filter(move |row| row.algorithm == name && in_full(row));
        let points = line().map(|row| (bytes(row), row.median_ns));
        let (colour, label) = match name {
            "own" => (BLACK, format!("{}'s own", line().next().map_or("", |row| row.backend))),
            _ => (COLOURS[nth % COLOURS.len()], name.to_string()),
        };
        add(&mut chart, points.collect(), colour.stroke_width(2), &label)?;
        // Paler, and not named again.
        let points = full().map(|row| (bytes(row), row.median_ns));
        chart.draw_series(LineSeries::new(points, thin(colour)))?;
    }
    let mut bound: Vec<_> =
        rows.iter().filter_map(|row| Some((bytes(row), row.bound_ns?))).collect();
    bound.dedup();
    add(&mut chart, bound, RGBColor(150, 150, 150).stroke_width(1), "bound")?;
    // A line of no points, for its name.
    add(&mut chart, Vec::new(), thin(COLOURS[0]), "thin: in full supersteps")?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .border_style(BLACK)
        .background_style(WHITE.mix(0.8))
        .draw()?;
    Ok(())
}

/// The line of an algorithm in full supersteps.
fn thin(colour: RGBColor) -> ShapeStyle {
    colour.mix(0.35).stroke_width(1)
}

type Log = LogCoord<f64>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Log, Log>>;

fn add(
    chart: &mut Chart<'_, '_>,
    points: Vec<(f64, f64)>,
    style: ShapeStyle,
    label: &str,
) -> std::result::Result<(), Failed> {
    chart.draw_series(points.iter().map(|&point| Circle::new(point, 2, style.color.filled())))?;
    let series = chart.draw_series(LineSeries::new(points, style))?;
    series.label(label).legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    Ok(())
}
