//! Figures of the commands that compare algorithms: one panel with its legend beside it, readable at a width of 8 cm.
//! An algorithm has one colour and one marker in all figures.

use std::ops::Range;
use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::failure::Result;
use crate::output;
use crate::plot::{ticks, write};

pub(super) type Failed = DrawingAreaErrorKind<std::io::Error>;
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Of a panel, in pixels, and of the legend at its right. A long legend makes it higher.
const PANEL: (u32, u32) = (660, 430);
const LEGEND: u32 = 205;
/// Pixels of an 8 cm wide figure shrink to half: letters stay above 6 points.
const TITLE: i32 = 20;
const TEXT: i32 = 17;
/// Between two lines of the legend.
const LINE: i32 = 23;

/// Colours that stay apart in print and for most colour-blind readers (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(150, 140, 30),
];
const GREY: RGBColor = RGBColor(120, 120, 120);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Marker {
    Circle,
    Square,
    Diamond,
    Up,
    Down,
    Cross,
}

/// Of all algorithms the number of a colour, and the marker. Those of one collective share few colours.
const ALGORITHMS: [(&str, usize, Marker); 21] = [
    ("direct", 0, Marker::Circle),
    ("transpose", 1, Marker::Square),
    ("square", 2, Marker::Diamond),
    ("binomial", 3, Marker::Up),
    ("rabenseifner", 4, Marker::Down),
    ("radix-k", 5, Marker::Cross),
    ("ring", 6, Marker::Circle),
    ("doubling", 0, Marker::Square),
    ("two-phase", 6, Marker::Diamond),
    ("bruck", 4, Marker::Cross),
    ("tree", 1, Marker::Up),
    ("clairvoyant", 0, Marker::Cross),
    ("binomial-stat", 3, Marker::Square),
    ("fibonacci-stat", 5, Marker::Diamond),
    ("tree-predicted", 2, Marker::Up),
    ("tree-dyn", 1, Marker::Down),
    ("non-commut-tree-dyn", 6, Marker::Square),
    ("linear", 3, Marker::Cross),
    ("chain-ring", 5, Marker::Circle),
    ("slt", 2, Marker::Circle),
    ("prr", 3, Marker::Diamond),
];

/// The look of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    colour: RGBColor,
    marker: Option<Marker>,
    width: u32,
}

impl Look {
    /// A bound, which is no algorithm.
    pub(super) const BOUND: Look = Look { colour: GREY, marker: None, width: 1 };

    /// Of an algorithm, of `auto`, or of MPI's own (`own`).
    pub(super) fn of(name: &str) -> Self {
        match ALGORITHMS.iter().find(|(of, ..)| *of == name) {
            Some(&(_, colour, marker)) => {
                Look { colour: COLOURS[colour], marker: Some(marker), width: 2 }
            }
            None if name == "own" => Look { colour: BLACK, marker: Some(Marker::Cross), width: 1 },
            None => Look { colour: BLACK, marker: Some(Marker::Circle), width: 3 },
        }
    }

    fn line(self) -> ShapeStyle {
        self.colour.stroke_width(self.width)
    }

    /// Its line where that is not the one to look at.
    fn pale(self) -> ShapeStyle {
        self.colour.mix(0.4).stroke_width(1)
    }
}

/// A line of a panel, and its name in the legend.
pub(super) struct Series {
    pub(super) label: String,
    pub(super) look: Look,
    pub(super) points: Vec<(f64, f64)>,
    /// A second line of it, thin and pale, if it has one.
    pub(super) pale: Vec<(f64, f64)>,
}

/// A panel of lines over an axis.
pub(super) struct Lines {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: &'static str,
    pub(super) series: Vec<Series>,
    /// A sentence under the legend.
    pub(super) note: &'static str,
}

/// What is under a panel.
#[derive(Clone, Copy)]
pub(super) enum Axis {
    /// Bytes, to powers of two.
    Bytes(&'static str),
    /// Nanoseconds from zero.
    Time(&'static str),
}

/// The algorithms below each other, and a time of each.
pub(super) struct Times {
    pub(super) title: String,
    pub(super) x: String,
    /// Name and look; the time that is compared, and another one, ns.
    pub(super) rows: Vec<(String, Look, [f64; 2])>,
    /// What the two times are.
    pub(super) names: [&'static str; 2],
    /// A line across.
    pub(super) bound: Option<f64>,
}

/// One panel of a figure.
pub(super) enum Panel {
    Lines(Lines),
    Times(Times),
}

impl Panel {
    /// Pixels of its title and its legend.
    fn height(&self) -> u32 {
        let lines = match self {
            Panel::Lines(lines) => lines.series.len() + usize::from(!lines.note.is_empty()),
            Panel::Times(times) => {
                times.rows.len() + usize::from(times.bound.is_some()) + times.names.len()
            }
        };
        (TITLE + 14 + LINE * (lines as i32 + 1)) as u32
    }

    /// All that is on its axis of times.
    fn times(&self) -> Vec<f64> {
        match self {
            Panel::Lines(Lines { series, .. }) => {
                let all = series.iter().flat_map(|one| one.points.iter().chain(&one.pale));
                all.map(|point| point.1).collect()
            }
            Panel::Times(Times { rows, bound, .. }) => {
                rows.iter().flat_map(|(_, _, values)| *values).chain(*bound).collect()
            }
        }
    }
}

/// A figure: its panels below each other, with one scale of times, and its part of a file's name.
pub(super) struct Figure {
    pub(super) name: String,
    pub(super) panels: Vec<Panel>,
}

/// The file of a figure: if there are several, `a.svg` becomes `a-NAME.svg`.
fn file(path: &Path, name: &str, several: bool) -> PathBuf {
    if !several {
        return path.to_path_buf();
    }
    let stem = path.file_stem().map_or("figure".into(), |stem| stem.to_string_lossy());
    let end = path.extension().map_or("svg".into(), |end| end.to_string_lossy());
    path.with_file_name(format!("{stem}-{name}.{end}"))
}

/// Draws each figure into a file of its own, and says their names if they are several.
pub(super) fn draw(path: &Path, figures: &[Figure]) -> Result<()> {
    let several = figures.len() > 1;
    for figure in figures {
        write(&file(path, &figure.name, several), |text| -> std::result::Result<(), Failed> {
            let height = figure.panels.iter().map(Panel::height).fold(PANEL.1, u32::max);
            let size = (PANEL.0, height * figure.panels.len() as u32);
            let whole = SVGBackend::with_string(text, size).into_drawing_area();
            whole.fill(&WHITE)?;
            let areas = whole.split_evenly((figure.panels.len(), 1));
            let times = crate::plot::axis(figure.panels.iter().flat_map(Panel::times));
            for (panel, area) in figure.panels.iter().zip(areas) {
                match panel {
                    Panel::Lines(lines) => draw_lines(&whole, &area, lines, &times)?,
                    Panel::Times(rows) => draw_times(&whole, &area, rows, &times)?,
                }
            }
            whole.present()
        })?;
    }
    if several {
        let [first, last] = [&figures[0], &figures[figures.len() - 1]]
            .map(|figure| output::named(file(path, &figure.name, true).display()));
        output::say(format!("{} figures, from {first} to {last}", figures.len()));
    }
    Ok(())
}

fn text(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&BLACK)
}

/// A marker at a pixel.
fn mark(
    area: &Area<'_>,
    (x, y): (i32, i32),
    marker: Marker,
    colour: RGBColor,
) -> std::result::Result<(), Failed> {
    let (full, thick) = (colour.filled(), colour.stroke_width(2));
    let corners: &[(i32, i32)] = match marker {
        Marker::Circle => return area.draw(&Circle::new((x, y), 5, full)),
        Marker::Cross => {
            let line = |dx: i32| PathElement::new(vec![(x - dx, y - 5), (x + dx, y + 5)], thick);
            area.draw(&line(5))?;
            return area.draw(&line(-5));
        }
        Marker::Square => &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
        Marker::Diamond => &[(0, -6), (6, 0), (0, 6), (-6, 0)],
        Marker::Up => &[(0, -6), (5, 4), (-5, 4)],
        Marker::Down => &[(0, 6), (5, -4), (-5, -4)],
    };
    let corners: Vec<(i32, i32)> = corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    area.draw(&Polygon::new(corners, full))
}

/// The area of a panel under its title: that of the chart, and that of the legend.
fn parts<'a>(area: &Area<'a>, title: &str) -> std::result::Result<(Area<'a>, Area<'a>), Failed> {
    area.draw(&Text::new(title.to_string(), (12, 10), text(TITLE)))?;
    let (_, below) = area.split_vertically(TITLE + 14);
    Ok(below.split_horizontally(PANEL.0 - LEGEND))
}

/// Names from the top down; a name without a look is a remark.
fn legend(area: &Area<'_>, names: &[(String, Option<Look>)]) -> std::result::Result<(), Failed> {
    for (nth, (name, look)) in names.iter().enumerate() {
        let y = 16 + LINE * nth as i32;
        if let Some(look) = look {
            area.draw(&PathElement::new(vec![(4, y), (30, y)], look.line()))?;
            if let Some(of) = look.marker {
                mark(area, (17, y), of, look.colour)?;
            }
        }
        let style = text(if look.is_some() { TEXT } else { TEXT - 2 });
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        let x = if look.is_some() { 36 } else { 4 };
        area.draw(&Text::new(name.clone(), (x, y), style))?;
    }
    Ok(())
}

/// Draws a panel; `whole` is the area of all panels, whose pixels are those of the file, and `y` the scale of all.
fn draw_lines(
    whole: &Area<'_>,
    area: &Area<'_>,
    lines: &Lines,
    y: &Range<f64>,
) -> std::result::Result<(), Failed> {
    let (chart, beside) = parts(area, &lines.title)?;
    let all = || lines.series.iter().flat_map(|series| series.points.iter().chain(&series.pale));
    let y_ticks = ticks(y, 9);
    let mut builder = ChartBuilder::on(&chart);
    builder.margin(8).margin_right(4).x_label_area_size(50).y_label_area_size(82);
    macro_rules! drawn {
        ($x:expr, $left:expr, $name:expr, $label:expr) => {{
            let mut chart = builder.build_cartesian_2d($x, y.clone().log_scale())?;
            chart
                .configure_mesh()
                .light_line_style(TRANSPARENT)
                .bold_line_style(BLACK.mix(0.15))
                .disable_y_mesh()
                .x_labels(6)
                .y_labels(0)
                .label_style(text(TEXT - 1))
                .axis_desc_style(text(TEXT))
                .x_desc($name)
                .y_desc(lines.y)
                .x_label_formatter(&$label)
                .y_label_formatter(&|_| String::new())
                .draw()?;
            let ends = chart.plotting_area().get_pixel_range().0;
            for tick in y_ticks {
                let (left, at) = (ends.start, chart.backend_coord(&($left, tick)).1);
                whole.draw(&PathElement::new([(left, at), (ends.end, at)], BLACK.mix(0.15)))?;
                let label = text(TEXT - 1).pos(Pos::new(HPos::Right, VPos::Center));
                whole.draw(&Text::new(crate::plot::time_label(&tick), (left - 8, at), label))?;
            }
            for Series { look, points, pale, .. } in &lines.series {
                chart.draw_series(LineSeries::new(pale.iter().copied(), look.pale()))?;
                chart.draw_series(LineSeries::new(points.iter().copied(), look.line()))?;
                if let Some(of) = look.marker {
                    for at in points {
                        mark(whole, chart.backend_coord(at), of, look.colour)?;
                    }
                }
            }
        }};
    }
    match lines.x {
        Axis::Bytes(name) => {
            let x = crate::plot::axis(all().map(|point| point.0));
            let left = x.start;
            drawn!(x.log_scale().base(2.0), left, name, crate::plot::byte_label);
        }
        Axis::Time(name) => {
            let most = all().map(|point| point.0).fold(1.0, f64::max);
            drawn!(0.0..most * 1.05, 0.0, name, crate::plot::time_label);
        }
    }
    let named = lines.series.iter().map(|series| (series.label.clone(), Some(series.look)));
    let note = (!lines.note.is_empty()).then(|| (lines.note.to_string(), None));
    legend(&beside, &named.chain(note).collect::<Vec<_>>())
}

/// As [`draw_lines`].
fn draw_times(
    whole: &Area<'_>,
    area: &Area<'_>,
    times: &Times,
    x: &Range<f64>,
) -> std::result::Result<(), Failed> {
    let (chart, beside) = parts(area, &times.title)?;
    let (x_ticks, height) = (ticks(x, 6), times.rows.len() as f64);
    let mut chart = ChartBuilder::on(&chart)
        .margin(8)
        .x_label_area_size(50)
        .y_label_area_size(6)
        .build_cartesian_2d(x.clone().log_scale(), -0.5..height - 0.5)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.15))
        .disable_mesh()
        .x_labels(0)
        .y_labels(0)
        .axis_desc_style(text(TEXT))
        .x_desc(times.x.as_str())
        .x_label_formatter(&|_| String::new())
        .draw()?;
    let ends = chart.plotting_area().get_pixel_range().1;
    for tick in x_ticks {
        let at = chart.backend_coord(&(tick, 0.0)).0;
        whole.draw(&PathElement::new([(at, ends.start), (at, ends.end)], BLACK.mix(0.15)))?;
        let label = text(TEXT - 1).pos(Pos::new(HPos::Center, VPos::Top));
        whole.draw(&Text::new(crate::plot::time_label(&tick), (at, ends.end + 6), label))?;
    }
    let at = |nth: usize| height - 1.0 - nth as f64;
    if let Some(bound) = times.bound {
        let across = [(bound, -0.5), (bound, height - 0.5)];
        chart.draw_series(LineSeries::new(across, Look::BOUND.line()))?;
    }
    for (nth, (_, look, [compared, other])) in times.rows.iter().enumerate() {
        let ends = [(*compared, at(nth)), (*other, at(nth))];
        chart.draw_series(LineSeries::new(ends, look.pale()))?;
        let ring = Circle::new(chart.backend_coord(&ends[1]), 4, look.colour.stroke_width(2));
        whole.draw(&ring)?;
        let of = look.marker.unwrap_or(Marker::Circle);
        mark(whole, chart.backend_coord(&ends[0]), of, look.colour)?;
    }
    let named = times.rows.iter().map(|(name, look, _)| (name.clone(), Some(*look)));
    let bound = times.bound.map(|_| ("bound".to_string(), Some(Look::BOUND)));
    let names = times.names.iter().zip(["filled: ", "ring: "]);
    let names = names.map(|(name, mark)| (format!("{mark}{name}"), None));
    legend(&beside, &named.chain(bound).chain(names).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use lpf::collectives::Collective;

    use super::*;

    #[test]
    fn every_algorithm_has_a_look_of_its_own() {
        let has_look = |name: &str| ALGORITHMS.iter().any(|(of, ..)| *of == name);
        for collective in Collective::ALL {
            for one in collective.algorithms(4, 1 << 10) {
                assert!(has_look(one.name), "{} has no look", one.name);
            }
        }
        for call in [Collective::Reduce, Collective::Allreduce] {
            for (name, _) in super::super::reduce::algorithms(call) {
                assert!(name == "auto" || has_look(&name), "{name} has no look");
            }
        }
        let names = ALGORITHMS.iter().map(|(name, ..)| *name).chain(["auto", "own"]);
        let all: Vec<String> = names.map(|name| format!("{:?}", Look::of(name))).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{all:?}");
    }

    #[test]
    fn several_figures_have_files_beside_the_one_that_was_named() {
        let named = |path: &str, several| file(Path::new(path), "scan-p2", several);
        assert_eq!(named("plots/a.svg", false), Path::new("plots/a.svg"));
        assert_eq!(named("plots/a.svg", true), Path::new("plots/a-scan-p2.svg"));
        assert_eq!(named("a", true), Path::new("a-scan-p2.svg"));
    }
}
