//! Every pattern's time against h g + l: points below the line 1.2 (h g + l) are compliant. A pattern above it is named.

use std::path::Path;

use plotters::prelude::*;

use super::{COMPLIANT, ComplyRow};
use crate::failure::Result;
use crate::plot::{COLOURS, Mark, SIZE, axis, legend, parts, ticks, time_label, write};

/// Pixels of the legend.
const LEGEND: u32 = 160;

/// Draws all rows.
pub(super) fn draw(path: &Path, machine: &str, rows: &[ComplyRow]) -> Result<()> {
    write(path, |text| -> std::result::Result<(), DrawingAreaErrorKind<std::io::Error>> {
        let model = |row: &ComplyRow| row.bound_ns / COMPLIANT;
        let x = axis(rows.iter().map(model));
        let y = axis(rows.iter().flat_map(|row| [row.median_ns, row.bound_ns]));
        let ends = [x.start, x.end];
        let named = [ticks(&x, 9), ticks(&y, 9)];
        let whole = (SIZE.0 + LEGEND, SIZE.1);
        let area = SVGBackend::with_string(text, whole).into_drawing_area();
        area.fill(&WHITE)?;
        let (chart, beside) = parts(&area, LEGEND);
        let mut chart = ChartBuilder::on(&chart)
            .caption(
                format!("Time of every pattern against h g + l: {}", machine),
                ("sans-serif", 20),
            )
            .margin(15)
            .x_label_area_size(45)
            .y_label_area_size(75)
            .build_cartesian_2d(
                x.log_scale().with_key_points(named[0].clone()),
                y.log_scale().with_key_points(named[1].clone()),
            )?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("h g + l, the time of the model")
            .y_desc("median of the measured time")
            .x_label_formatter(&time_label)
            .y_label_formatter(&time_label)
            .draw()?;
        chart.draw_series(LineSeries::new(ends.map(|x| (x, x)), BLACK.mix(0.4)))?;
        chart.draw_series(LineSeries::new(ends.map(|x| (x, COMPLIANT * x)), BLACK))?;
        let mut names = vec![(Mark::Line(BLACK), "1.2 (h g + l)".to_string())];
        let mut processes: Vec<_> = rows.iter().map(|row| row.p).collect();
        processes.dedup();
        for (p, colour) in processes.into_iter().zip(COLOURS.into_iter().cycle()) {
            let of_p = rows.iter().filter(|row| row.p == p);
            let points = of_p.map(|row| {
                // A pattern without a verdict is a ring.
                let style = if row.decided { colour.filled() } else { colour.stroke_width(1) };
                Circle::new((model(row), row.median_ns), 4, style)
            });
            chart.draw_series(points)?;
            names.push((Mark::Dot(colour), format!("p = {p}")));
        }
        if rows.iter().any(|row| !row.decided) {
            names.push((Mark::Ring, "ring: undecided".into()));
        }
        let offends = |row: &&ComplyRow| row.compliant == Some(false);
        chart.draw_series(rows.iter().filter(offends).map(|row| {
            let place = (model(row), row.median_ns);
            let name = Text::new(row.pattern.clone(), (8, -6), ("sans-serif", 13).into_font());
            EmptyElement::at(place) + name
        }))?;
        legend(&beside, names)?;
        area.present()
    })
}
