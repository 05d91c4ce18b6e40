//! Each pattern's time over its reference, with the range from the fastest to the slowest batch.

use std::path::Path;

use plotters::prelude::*;

use super::BenchRow;
use crate::failure::Result;
use crate::output::digits;
use crate::plot::{COLOURS, SIZE, axis, ticks, write};

/// Draws all rows, the first on top.
pub(super) fn draw(path: &Path, rows: &[BenchRow]) -> Result<()> {
    write(path, |text| -> std::result::Result<(), DrawingAreaErrorKind<std::io::Error>> {
        let over = |row: &BenchRow, ns: f64| ns / row.limit_ns;
        let medians_and_best = |row: &BenchRow| [over(row, row.median_ns), over(row, row.min_ns)];
        let x = axis(rows.iter().flat_map(medians_and_best).chain([1.0]));
        let (end, height) = (x.end, rows.len() as f64);
        let ratios = ticks(&x, 9);
        let place = |nth: usize| height - 1.0 - nth as f64;
        let name = |at: &f64| {
            let nth = (height - 1.0 - at).round().max(0.0) as usize;
            match rows.get(nth) {
                Some(row) if (at - place(nth)).abs() < 0.01 => {
                    format!("{}, p = {}", row.pattern, row.p)
                }
                _ => String::new(),
            }
        };
        let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption("Time over the reference measured in the same run", ("sans-serif", 20))
            .margin(15)
            .x_label_area_size(45)
            .y_label_area_size(170)
            .build_cartesian_2d(x.log_scale().with_key_points(ratios), -0.5..height - 0.5)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("median and range of the batches, divided by the reference's median")
            .x_label_formatter(&|ratio| digits(*ratio))
            .y_labels(2 * rows.len())
            .y_label_formatter(&name)
            .draw()?;
        chart.draw_series(LineSeries::new([(1.0, -0.5), (1.0, height - 0.5)], BLACK))?;
        let colour = COLOURS[0];
        chart.draw_series(rows.iter().enumerate().map(|(nth, row)| {
            let slowest = over(row, row.max_ns).min(end);
            let range = [(over(row, row.min_ns), place(nth)), (slowest, place(nth))];
            PathElement::new(range, colour.stroke_width(2))
        }))?;
        chart.draw_series(rows.iter().enumerate().map(|(nth, row)| {
            Circle::new((over(row, row.median_ns), place(nth)), 4, colour.filled())
        }))?;
        area.present()
    })
}
