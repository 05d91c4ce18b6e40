//! T(h) by word size: the measured points with their intervals, the fit h·g + l, and the fit's
//! interval as a band.

use std::path::Path;

use lpf::Pid;
use lpf::machine::Row;
use lpf::measure::{Measured, Point};
use plotters::prelude::*;

use crate::failure::Result;
use crate::output::{digits, processes, size, time};
use crate::plot::{COLOURS, Mark, SIZE, axis, byte_label, legend, parts, ticks, time_label, write};

/// Pixels of the legend.
const LEGEND: u32 = 245;

/// Draws one probe of `machine`: its backend and its name.
pub(super) fn draw(path: &Path, machine: &str, p: Pid, measured: &Measured) -> Result<()> {
    write(path, |text| -> std::result::Result<(), DrawingAreaErrorKind<std::io::Error>> {
        let (rows, points) = (&measured.parameters.rows, &measured.points);
        let all = || points.iter().flatten().filter(|point| point.h_bytes > 0);
        let x = axis(all().map(|point| point.h_bytes as f64));
        let y = axis(all().flat_map(|point| [point.ns, point.ns + point.ci95]));
        let times = ticks(&y, 9);
        let whole = (SIZE.0 + LEGEND, SIZE.1);
        let area = SVGBackend::with_string(text, whole).into_drawing_area();
        area.fill(&WHITE)?;
        let (chart, beside) = parts(&area, LEGEND);
        let mut chart = ChartBuilder::on(&chart)
            .caption(
                format!("T(h) of a total exchange: {machine}, {}", processes(p)),
                ("sans-serif", 20),
            )
            .margin(15)
            .x_label_area_size(45)
            .y_label_area_size(75)
            .build_cartesian_2d(x.log_scale().base(16.0), y.log_scale().with_key_points(times))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("h, bytes that each process sends and receives")
            .y_desc("time")
            .x_label_formatter(&byte_label)
            .y_label_formatter(&time_label)
            .draw()?;
        let mut names = Vec::new();
        for ((row, points), colour) in rows.iter().zip(points).zip(COLOURS) {
            let range = fit_range(row, points);
            let band = range.iter().map(|&h| (h, upper(row, h)));
            let back = range.iter().rev().map(|&h| (h, lower(row, h)));
            let band: Vec<_> = band.chain(back).collect();
            chart.draw_series(std::iter::once(Polygon::new(band, colour.mix(0.15))))?;
            let label = format!(
                "{}: g = {} ns/B, l = {}",
                size(row.word_bytes),
                digits(row.g_ns_per_byte),
                time(row.l_ns)
            );
            names.push((Mark::Dot(colour), label));
            let line = range.iter().map(|&h| (h, row.g_ns_per_byte * h + row.l_ns));
            chart.draw_series(LineSeries::new(line, colour))?;
            let measured = || points.iter().filter(|point| point.h_bytes > 0);
            chart.draw_series(measured().map(|point| {
                let (h, low) = (point.h_bytes as f64, (point.ns - point.ci95).max(point.ns / 2.0));
                PathElement::new([(h, low), (h, point.ns + point.ci95)], colour.stroke_width(2))
            }))?;
            let place = |point: &Point| (point.h_bytes as f64, point.ns);
            chart.draw_series(
                measured().map(|point| Circle::new(place(point), 3, colour.filled())),
            )?;
        }
        names.push((Mark::Interval, "dot: median; bar: its 95 % interval".into()));
        names.push((Mark::Line(BLACK), "line: h g + l; band: its 95 % interval".into()));
        legend(&beside, names)?;
        area.present()
    })
}

/// Where a word size's fit is drawn: over its own points, evenly in the logarithm.
fn fit_range(row: &Row, points: &[Point]) -> Vec<f64> {
    const STEPS: i32 = 60;
    let h = || points.iter().map(|point| point.h_bytes).filter(|&h| h > 0);
    let low = h().min().unwrap_or(row.word_bytes) as f64;
    let high = h().max().unwrap_or(row.word_bytes) as f64;
    (0..=STEPS).map(|i| low * (high / low).powf(f64::from(i) / f64::from(STEPS))).collect()
}

fn upper(row: &Row, h: f64) -> f64 {
    (row.g_ns_per_byte + row.g_ci95) * h + row.l_ns + row.l_ci95
}

fn lower(row: &Row, h: f64) -> f64 {
    let line = row.g_ns_per_byte * h + row.l_ns;
    // The axis is logarithmic: an interval that reaches 0 is cut.
    (2.0 * line - upper(row, h)).max(line / 10.0)
}
