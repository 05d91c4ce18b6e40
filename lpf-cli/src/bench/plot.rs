//! Each pattern's time over its limit, with the range from the fastest to the slowest batch.

use std::path::Path;

use plotters::prelude::*;

use super::BenchRow;
use crate::failure::Result;
use crate::output::digits;
use crate::plot::{COLOURS, SIZE, axis, write};

/// Draws all rows: one column each.
pub(super) fn draw(path: &Path, rows: &[BenchRow]) -> Result<()> {
    write(path, |text| -> std::result::Result<(), DrawingAreaErrorKind<std::io::Error>> {
        let over = |row: &BenchRow, ns: f64| ns / row.limit_ns;
        let y = axis(
            rows.iter().flat_map(|row| [over(row, row.median_ns), over(row, row.min_ns), 1.0]),
        );
        let name = |at: &f64| match rows.get(at.round().max(0.0) as usize) {
            Some(row) if (at - at.round()).abs() < 0.01 => format!("{} p={}", row.pattern, row.p),
            _ => String::new(),
        };
        let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption("Time over the limit measured in the same run", ("sans-serif", 20))
            .margin(15)
            .x_label_area_size(150)
            .y_label_area_size(60)
            .build_cartesian_2d(-0.5..rows.len() as f64 - 0.5, y.clone().log_scale())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .x_labels(2 * rows.len())
            .x_label_formatter(&name)
            .x_label_style(("sans-serif", 13).into_font().transform(FontTransform::Rotate90))
            .y_desc("median / limit")
            .y_label_formatter(&|ratio| digits(*ratio))
            .draw()?;
        let line = [(-0.5, 1.0), (rows.len() as f64 - 0.5, 1.0)];
        chart.draw_series(LineSeries::new(line, BLACK))?;
        let colour = COLOURS[0];
        chart.draw_series(rows.iter().enumerate().map(|(at, row)| {
            let (at, top) = (at as f64, over(row, row.max_ns).min(y.end));
            PathElement::new([(at, over(row, row.min_ns)), (at, top)], colour.stroke_width(2))
        }))?;
        chart.draw_series(rows.iter().enumerate().map(|(at, row)| {
            Circle::new((at as f64, over(row, row.median_ns)), 4, colour.filled())
        }))?;
        area.present()
    })
}
