//! T(h) between processes, from the rows of a recorded run: a figure, and a summary with the line h·g + l
//! that comes nearest to LPF's medians.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use lpf::Pid;
use plotters::prelude::*;

type Row = (String, Pid, String, usize, usize, f64);

/// The lines of a panel: backend and pattern in the rows, name, colour. Colours stay apart in print and for
/// most colour-blind readers (Okabe and Ito).
const LINES: [(&str, &str, &str, RGBColor); 4] = [
    ("tcp", "scattered", "LPF over TCP", RGBColor(0, 114, 178)),
    ("mpi", "scattered", "LPF over MPI", RGBColor(213, 94, 0)),
    ("bare-mpi", "naive", "MPI_Isend, MPI_Irecv, MPI_Waitall", RGBColor(0, 158, 115)),
    ("bare-mpi", "one-sided", "MPI_Put, MPI_Win_fence", RGBColor(204, 121, 167)),
];

/// The panels, by the size of a message in bytes.
const PANELS: [(usize, &str); 2] = [(8, "messages of 8 B"), (4096, "messages of 4 KiB")];

const ABOUT: &str = "\
Four hosts on one machine (`ci/hosts.sh`), 100 Mbit/s (12.5 MB/s) each, one process per host, Open MPI. Times
are process 0's, of one superstep; samples with few bytes are of many supersteps, without a pause. What takes
less than a millisecond tells of the scheduling of four processes on few cores more than of a network.

| pattern | |
|---|---|
| `sync` | an empty superstep; of `bare-mpi`, MPI_Barrier |
| `exchange` | 1 MiB to each other process; of `bare-mpi`, MPI_Alltoall and MPI_Barrier |
| `run`, `scattered` | puts whose places in the targets follow one another, or do not |
| `naive` | as `scattered`, each message with an MPI_Isend and an MPI_Irecv of its own, then MPI_Waitall |
| `one-sided` | as `scattered`, each message an MPI_Put, then MPI_Win_fence |
";

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The samples of one superstep.
struct Point {
    messages: usize,
    bytes: usize,
    /// Nanoseconds, from the shortest to the longest.
    times: Vec<f64>,
}

impl Point {
    fn h(&self) -> f64 {
        self.bytes as f64
    }

    fn median(&self) -> f64 {
        self.times[self.times.len() / 2]
    }

    fn min(&self) -> f64 {
        self.times[0]
    }

    fn max(&self) -> f64 {
        self.times[self.times.len() - 1]
    }

    fn ns_per_message(&self) -> f64 {
        self.median() / self.messages as f64
    }
}

/// A run's rows, by what was measured, in their order.
struct Run(Vec<(String, String, Point)>);

impl Run {
    fn read(path: &Path) -> Run {
        let mut rows = csv::Reader::from_path(path).expect("rows.csv is there");
        let (mut run, mut known) = (Vec::<(String, String, Point)>::new(), BTreeMap::new());
        for row in rows.deserialize() {
            let (backend, _, pattern, messages, bytes, ns): Row = row.expect("a row");
            let key = (backend.clone(), pattern.clone(), messages, bytes);
            let place = *known.entry(key).or_insert_with(|| {
                run.push((backend, pattern, Point { messages, bytes, times: Vec::new() }));
                run.len() - 1
            });
            run[place].2.times.push(ns);
        }
        for (.., point) in &mut run {
            point.times.sort_by(f64::total_cmp);
        }
        Run(run)
    }

    /// Of messages of one size, by h.
    fn line(&self, backend: &str, pattern: &str, message: usize) -> Vec<&Point> {
        let of_line = self.0.iter().filter(|(b, p, _)| b == backend && p == pattern);
        let points = of_line.map(|(.., point)| point);
        points.filter(|point| point.bytes == message * point.messages).collect()
    }

    fn table(&self) -> String {
        let mut text = String::from(
            "| backend | pattern | messages | bytes | median_us | min_us | max_us | samples | MB/s |\n\
             |---|---|---|---|---|---|---|---|---|\n",
        );
        for (backend, pattern, point) in &self.0 {
            let [median, min, max] = [point.median(), point.min(), point.max()].map(|ns| ns / 1e3);
            let Point { messages, bytes, times } = point;
            let samples = times.len();
            let rate =
                if *bytes > 0 { format!("{:.2}", point.h() / median) } else { String::new() };
            writeln!(
                text,
                "| {backend} | {pattern} | {messages} | {bytes} | {median:.1} | {min:.1} | {max:.1} | {samples} | {rate} |"
            )
            .expect("a string");
        }
        text
    }
}

/// h·g + l.
struct Fit {
    g: f64,
    l: f64,
}

impl Fit {
    fn at(&self, h: f64) -> f64 {
        h * self.g + self.l
    }

    /// Least squares of the relative deviations: each point counts alike, however long it takes. No l is
    /// below 0.
    fn of(points: &[(f64, f64)]) -> Fit {
        let sum = |term: fn(f64, f64) -> f64| points.iter().map(|&(h, t)| term(h, t)).sum::<f64>();
        let (hh, h1, one) =
            (sum(|h, t| (h / t).powi(2)), sum(|h, t| h / t / t), sum(|_, t| 1.0 / t / t));
        let (h, t) = (sum(|h, t| h / t), sum(|_, t| 1.0 / t));
        let determinant = hh * one - h1 * h1;
        let l = (hh * t - h1 * h) / determinant;
        if l < 0.0 {
            return Fit { g: h / hh, l: 0.0 };
        }
        Fit { g: (h * one - h1 * t) / determinant, l }
    }

    /// The largest, of any point.
    fn deviation(&self, points: &[(f64, f64)]) -> f64 {
        points.iter().map(|&(h, t)| (t / self.at(h) - 1.0).abs()).fold(0.0, f64::max)
    }
}

/// Which line comes nearest, and what a message costs at both ends.
fn fits(run: &Run) -> String {
    let mut text = String::from(
        "| | | g, ns/B | l, us | largest deviation from h·g + l | us a message, least h | largest h |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (bytes, panel) in PANELS {
        for (backend, pattern, name, _) in LINES {
            let points = run.line(backend, pattern, bytes);
            let medians: Vec<_> = points.iter().map(|point| (point.h(), point.median())).collect();
            let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
            let fit = Fit::of(&medians);
            writeln!(
                text,
                "| {panel} | {name} | {:.1} | {:.0} | {:.0} % | {:.2} | {:.2} |",
                fit.g,
                fit.l / 1e3,
                100.0 * fit.deviation(&medians),
                first.ns_per_message() / 1e3,
                last.ns_per_message() / 1e3
            )
            .expect("a string");
        }
    }
    text
}

fn byte_label(bytes: &f64) -> String {
    match *bytes {
        bytes if bytes < 1024.0 * 1024.0 => format!("{:.0} KiB", bytes / 1024.0),
        bytes => format!("{:.0} MiB", bytes / 1024.0 / 1024.0),
    }
}

fn time_label(ns: &f64) -> String {
    match *ns {
        ns if ns < 0.999e6 => format!("{:.0} us", ns / 1e3),
        ns if ns < 0.999e9 => format!("{:.0} ms", ns / 1e6),
        ns => format!("{:.0} s", ns / 1e9),
    }
}

/// Medians, bars from the shortest to the longest sample, and LPF's lines h·g + l.
fn draw(run: &Run) -> Result<String, DrawingAreaErrorKind<std::io::Error>> {
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, (1200, 560)).into_drawing_area();
    area.fill(&WHITE)?;
    for ((bytes, panel), area) in PANELS.into_iter().zip(area.split_evenly((1, PANELS.len()))) {
        let lines = LINES.map(|(backend, pattern, ..)| run.line(backend, pattern, bytes));
        let all = || lines.iter().flatten();
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let h = least(&mut all().map(|point| point.h()))..most(&mut all().map(|point| point.h()));
        let x = h.start / 1.5..h.end * 1.5;
        // Above, there is room for the names of the lines.
        let y = least(&mut all().map(|point| point.min())) / 2.0
            ..most(&mut all().map(|point| point.max())) * 8.0;
        let mut chart = ChartBuilder::on(&area)
            .caption(format!("T(h), {panel}"), ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(45)
            .y_label_area_size(70)
            .build_cartesian_2d(x.log_scale().base(4.0), y.log_scale())?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("h, bytes that each process sends and receives")
            .y_desc("time")
            .x_label_formatter(&byte_label)
            .y_label_formatter(&time_label)
            .draw()?;
        for ((backend, _, name, colour), points) in LINES.into_iter().zip(&lines) {
            let medians: Vec<_> = points.iter().map(|point| (point.h(), point.median())).collect();
            if backend != "bare-mpi" {
                let fit = Fit::of(&medians);
                let steps = (0..=60).map(|nth| f64::from(nth) / 60.0);
                let hs = steps.map(|share| h.start * (h.end / h.start).powf(share));
                let line = DashedLineSeries::new(hs.map(|h| (h, fit.at(h))), 6, 4, colour.into());
                let name =
                    format!("{name}: h g + l, g = {:.0} ns/B, l = {:.0} us", fit.g, fit.l / 1e3);
                chart.draw_series(line)?.label(name).legend(move |(x, y)| {
                    let pieces = [0, 10].map(|at| [(x + at, y), (x + at + 6, y)]);
                    let [left, right] = pieces.map(|piece| PathElement::new(piece, colour));
                    EmptyElement::at((0, 0)) + left + right
                });
            } else {
                chart.draw_series(LineSeries::new(medians.iter().copied(), colour.mix(0.4)))?;
            }
            chart.draw_series(points.iter().map(|point| {
                let bar = [(point.h(), point.min()), (point.h(), point.max())];
                PathElement::new(bar, colour.stroke_width(2))
            }))?;
            chart
                .draw_series(medians.iter().map(|&at| Circle::new(at, 3, colour.filled())))?
                .label(name)
                .legend(move |(x, y)| Circle::new((x + 8, y), 3, colour.filled()));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .border_style(BLACK)
            .background_style(WHITE)
            .draw()?;
    }
    area.present()?;
    drop(area);
    Ok(text)
}

/// Of the latest run of `benches/runs` that is named for a cluster.
pub(crate) fn make() {
    let runs = std::fs::read_dir(folder("benches/runs")).expect("benches/runs");
    let runs = runs.map(|entry| entry.expect("a folder").path());
    let of_cluster = runs.filter(|path| path.to_string_lossy().ends_with("-cluster"));
    let latest = of_cluster.max().expect("a run of a cluster");
    let run = Run::read(&latest.join("rows.csv"));
    let fits = fits(&run);
    println!("\n{fits}");
    let summary = format!("{ABOUT}\n{fits}\n{}", run.table());
    std::fs::write(latest.join("summary.md"), summary).expect("a file");
    let figure = draw(&run).expect("a figure");
    std::fs::write(latest.join("figure.svg"), &figure).expect("a file");
    std::fs::write(folder("docs/src/figures/between-processes.svg"), figure).expect("a file");
}

#[test]
fn a_line_is_found_in_its_own_points() {
    let line = Fit { g: 3.0, l: 500.0 };
    let points = [10.0, 100.0, 1000.0, 10_000.0].map(|h| (h, line.at(h)));
    let fit = Fit::of(&points);
    assert!((fit.g - line.g).abs() < 1e-9 && (fit.l - line.l).abs() < 1e-6, "{} {}", fit.g, fit.l);
    assert!(fit.deviation(&points) < 1e-9);
    let through_none = Fit::of(&[(10.0, 1.0), (100.0, 30.0), (1000.0, 500.0)]);
    assert_eq!(through_none.l, 0.0);
}
