//! Processes as rows over time: arrivals, transfers, the last arrival.

use std::path::Path;

use lpf::Pid;
use plotters::prelude::*;

use crate::failure::Result;
use crate::plot::{COLOURS, Mark, legend, parts, write};

/// Pixels of the legend.
const LEGEND: u32 = 170;

/// One transfer.
pub(super) struct Bar {
    pub(super) from: Pid,
    pub(super) to: Pid,
    pub(super) segment: u32,
    pub(super) time: (f64, f64),
    /// Whether the receiver stores what comes; else it combines.
    pub(super) stored: bool,
}

/// What times are in.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Nanoseconds,
    Plain,
}

impl Unit {
    fn axis(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "time",
            Unit::Plain => "time, in the unit of the instance",
        }
    }

    fn label(self, time: f64) -> String {
        match self {
            Unit::Nanoseconds => crate::output::time(time),
            Unit::Plain => format!("{time}"),
        }
    }
}

/// With more processes than this numbers of segments would cover each other.
const NAMED: usize = 24;

/// Draws a schedule: in each row above the line what the process receives, below it what it sends.
pub(super) fn draw(
    path: &Path,
    caption: &str,
    unit: Unit,
    arrivals: &[f64],
    bars: &[Bar],
) -> Result<()> {
    let p = arrivals.len();
    let last = arrivals.iter().copied().fold(0.0, f64::max);
    let end = bars.iter().map(|bar| bar.time.1).fold(last, f64::max);
    let begin = arrivals.iter().copied().fold(end, f64::min);
    let room = ((end - begin) * 0.02).max(0.5);
    let right = end + room;
    let size = (1200, (120 + 30 * p as u32).clamp(300, 2000));
    write(path, |text| -> std::result::Result<(), DrawingAreaErrorKind<std::io::Error>> {
        let area = SVGBackend::with_string(text, size).into_drawing_area();
        area.fill(&WHITE)?;
        let (chart, beside) = parts(&area, LEGEND);
        let mut chart = ChartBuilder::on(&chart)
            .caption(caption, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(75)
            .build_cartesian_2d(begin - room..right, p as f64 - 0.5..-0.5)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_desc(unit.axis())
            .y_desc("process: above its line it receives, below it sends")
            .x_label_formatter(&|time| unit.label(*time))
            .y_labels(p.min(40))
            .y_label_formatter(&|row| {
                if row.fract() == 0.0 { format!("p{row}") } else { String::new() }
            })
            .draw()?;
        let (arrives, combines, stores, late) = (COLOURS[2], COLOURS[0], COLOURS[1], COLOURS[3]);
        for row in 0..p {
            let line = [(begin - room, row as f64), (right, row as f64)];
            chart.draw_series([PathElement::new(line, BLACK.mix(0.15))])?;
        }
        for (colour, stored) in [(combines, false), (stores, true)] {
            let of = || bars.iter().filter(move |bar| bar.stored == stored);
            let boxes = of().flat_map(|bar| {
                let (from, to) = (bar.from as f64, bar.to as f64);
                let received = [(bar.time.0, to - 0.38), (bar.time.1, to)];
                let sent = [(bar.time.0, from), (bar.time.1, from + 0.38)];
                [
                    Rectangle::new(received, colour.mix(0.55).filled()),
                    Rectangle::new(received, WHITE.stroke_width(1)),
                    Rectangle::new(sent, colour.mix(0.2).filled()),
                    Rectangle::new(sent, WHITE.stroke_width(1)),
                ]
            });
            chart.draw_series(boxes)?;
        }
        if p <= NAMED && bars.len() <= 40 * p {
            let style = ("sans-serif", 9).into_font();
            chart.draw_series(bars.iter().flat_map(|bar| {
                let middle = (bar.time.0 + bar.time.1) / 2.0;
                let text =
                    |row: f64| Text::new(bar.segment.to_string(), (middle, row), style.clone());
                [text(bar.to as f64 - 0.34), text(bar.from as f64 + 0.06)]
            }))?;
        }
        let marks = arrivals
            .iter()
            .enumerate()
            .map(|(row, &time)| TriangleMarker::new((time, row as f64), 6, arrives.filled()));
        chart.draw_series(marks)?;
        let line = [(last, -0.5), (last, p as f64 - 0.5)];
        chart.draw_series([PathElement::new(line, late.stroke_width(2))])?;
        let names = [
            (Mark::Box(combines), "receiver combines"),
            (Mark::Box(stores), "receiver stores"),
            (Mark::Triangle(arrives), "arrives"),
            (Mark::Line(late), "the last arrival"),
        ];
        legend(&beside, names.map(|(mark, name)| (mark, name.into())))?;
        area.present()
    })
}
