//! Time against delay, a panel for each call and length: every algorithm, MPI's own and the bound.

use std::path::Path;

use plotters::prelude::*;

use super::own::OWN;
use super::rows::Row;
use crate::bench::collectives::plot::COLOURS;
use crate::failure::Result;
use crate::plot::{axis, time_label, write};

/// Of a panel, in pixels.
const PANEL: (u32, u32) = (620, 420);

type Failed = DrawingAreaErrorKind<std::io::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// What a panel is of: the call, processes, pattern, error and length.
type Panel<'r> = (&'r str, u32, &'r str, u32, usize);

fn panel(row: &Row) -> Panel<'_> {
    (row.call, row.p, row.pattern, row.error_percent(), row.bytes())
}

/// Two panels beside each other: the time after the last arrival, and the mean elapsed time.
pub(super) fn draw(path: &Path, rows: &[Row]) -> Result<()> {
    let mut panels: Vec<Panel<'_>> = rows.iter().map(panel).collect();
    panels.dedup();
    let mut seen = Vec::new();
    panels.retain(|one| {
        !seen.contains(one) && {
            seen.push(*one);
            true
        }
    });
    write(path, |text| -> std::result::Result<(), Failed> {
        let size = (2 * PANEL.0, PANEL.1 * panels.len() as u32);
        let area = SVGBackend::with_string(text, size).into_drawing_area();
        area.fill(&WHITE)?;
        let areas = area.split_evenly((panels.len(), 2));
        for (nth, one) in panels.iter().enumerate() {
            let here: Vec<&Row> = rows.iter().filter(|row| panel(row) == *one).collect();
            let (call, p, pattern, error, bytes) = *one;
            let error = if error > 0 { format!(", error {error} %") } else { String::new() };
            let bytes = crate::output::size(bytes);
            let title =
                |what: &str| format!("{call} of {bytes}, p = {p}, {pattern}{error}: {what}");
            draw_panel(&areas[2 * nth], &title("after the last arrival"), &here, |row| {
                row.after_last_arrival_ns
            })?;
            draw_panel(&areas[2 * nth + 1], &title("elapsed"), &here, |row| row.avg_elapsed_ns)?;
        }
        area.present()
    })
}

fn draw_panel(
    area: &Area<'_>,
    title: &str,
    rows: &[&Row],
    of: fn(&Row) -> f64,
) -> std::result::Result<(), Failed> {
    let most = rows.iter().map(|row| row.delay_ns()).fold(1.0, f64::max);
    let y = axis(rows.iter().flat_map(|row| [of(row), row.bound_ns.unwrap_or(0.0)]));
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 15))
        .margin(10)
        .x_label_area_size(38)
        .y_label_area_size(62)
        .build_cartesian_2d(0.0..most * 1.05, y.log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("delay")
        .x_label_formatter(&time_label)
        .y_label_formatter(&time_label)
        .draw()?;
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.algorithm.as_str()) {
            names.push(&row.algorithm);
        }
    }
    for (nth, &name) in names.iter().enumerate() {
        let line = rows.iter().filter(|row| row.algorithm == name);
        let points: Vec<(f64, f64)> = line.map(|row| (row.delay_ns(), of(row))).collect();
        let (style, label) = match name {
            OWN => (BLACK.stroke_width(1), "MPI's own".to_string()),
            "auto" => (BLACK.stroke_width(3), "auto".to_string()),
            _ => (COLOURS[nth % COLOURS.len()].stroke_width(2), name.to_string()),
        };
        let dots = points.iter().map(|&point| Circle::new(point, 3, style.color.filled()));
        chart.draw_series(dots)?;
        let series = chart.draw_series(LineSeries::new(points, style))?;
        series.label(label).legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .border_style(BLACK)
        .background_style(WHITE.mix(0.8))
        .draw()?;
    Ok(())
}
