//! What all plots share: an SVG file, logarithmic axes, plain colours that print well.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::failure::{Failure, Result};
use crate::output;

/// Colours that stay apart in print and for most colour-blind readers (Okabe and Ito).
pub(crate) const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];

/// The size of a plot in pixels.
pub(crate) const SIZE: (u32, u32) = (900, 600);

/// Draws into `path` by way of a string, so that an error leaves no half of a new file.
pub(crate) fn write<E: Display>(
    path: &Path,
    draw: impl FnOnce(&mut String) -> std::result::Result<(), E>,
) -> Result<()> {
    let mut text = String::new();
    draw(&mut text).map_err(|error| Failure::Failed(format!("the plot failed: {error}")))?;
    let is_new = !path.exists();
    std::fs::write(path, text).map_err(|error| {
        if is_new {
            let _ = std::fs::remove_file(path);
        }
        let path = crate::output::named(path.display());
        Failure::Failed(format!("the plot {path} cannot be written: {error}; name another file"))
    })
}

/// A logarithmic axis that holds all positive values, with room at both ends.
pub(crate) fn axis(values: impl Iterator<Item = f64>) -> Range<f64> {
    let positive = values.filter(|v| v.is_finite() && *v > 0.0);
    let (low, high) =
        positive.fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    if low > high { 1.0..10.0 } else { low / 2.0..high * 2.0 }
}

/// Values to be named at a logarithmic axis, at most this many: 1, 2 and 5 of each decade, or the decades, or some of
/// them.
pub(crate) fn ticks(range: &Range<f64>, most: usize) -> Vec<f64> {
    let powers = |step: usize| {
        let ends = [range.start, range.end].map(|end| end.log10().floor() as i32);
        (ends[0]..=ends[1]).filter(move |power| power.rem_euclid(step as i32) == 0)
    };
    let of = |step: usize, digits: &'static [f64]| -> Vec<f64> {
        let all =
            powers(step).flat_map(|power| digits.iter().map(move |of| of * 10f64.powi(power)));
        all.filter(|tick| range.contains(tick)).collect()
    };
    let fine = of(1, &[1.0, 2.0, 5.0]);
    if fine.len() <= most {
        return fine;
    }
    let coarser = (1..).map(|step| of(step, &[1.0]));
    coarser.into_iter().find(|ticks| ticks.len() <= most).unwrap_or_default()
}

/// What stands before a name in a legend.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    Dot(RGBColor),
    Ring,
    Line(RGBColor),
    Interval,
    Box(RGBColor),
    Triangle(RGBColor),
}

/// An area of the file whose coordinates are pixels.
type Pixels<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Parts an area: that of the chart, and that of the legend at its right, where it covers nothing.
pub(crate) fn parts<'a>(area: &Pixels<'a>, legend: u32) -> (Pixels<'a>, Pixels<'a>) {
    area.split_horizontally(area.dim_in_pixel().0 - legend)
}

/// Draws a legend from the top down.
pub(crate) fn legend(
    area: &Pixels<'_>,
    entries: impl IntoIterator<Item = (Mark, String)>,
) -> std::result::Result<(), DrawingAreaErrorKind<std::io::Error>> {
    for (nth, (mark, name)) in entries.into_iter().enumerate() {
        let y = 55 + 18 * nth as i32;
        let line =
            |ends: [(i32, i32); 2], style: ShapeStyle| area.draw(&PathElement::new(ends, style));
        match mark {
            Mark::Dot(colour) => area.draw(&Circle::new((8, y), 4, colour.filled()))?,
            Mark::Ring => area.draw(&Circle::new((8, y), 4, BLACK.stroke_width(1)))?,
            Mark::Line(colour) => line([(0, y), (16, y)], colour.stroke_width(2))?,
            Mark::Interval => line([(8, y - 5), (8, y + 5)], BLACK.stroke_width(2))?,
            Mark::Box(colour) => {
                area.draw(&Rectangle::new([(1, y - 4), (15, y + 4)], colour.filled()))?;
            }
            Mark::Triangle(colour) => {
                area.draw(&TriangleMarker::new((8, y), 5, colour.filled()))?
            }
        }
        let style = ("sans-serif", 13).into_font().color(&BLACK);
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(name, (24, y), style))?;
    }
    Ok(())
}

/// 1 B, 64 KiB or 2 MiB under an axis.
pub(crate) fn byte_label(bytes: &f64) -> String {
    crate::output::size(bytes.round() as usize)
}

/// 1 ns, 2.5 us or 30 ms beside an axis.
pub(crate) fn time_label(ns: &f64) -> String {
    if *ns == 0.0 {
        return "0".into();
    }
    let text = crate::output::time(*ns);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            let number = number.trim_end_matches('0').trim_end_matches('.');
            format!("{number} {unit}")
        }
        _ => text,
    }
}

/// That a plot can be written there.
pub(crate) fn check_plot(path: &Path) -> Result<()> {
    check_name(path)?;
    let fresh = !path.exists();
    let open = OpenOptions::new().create(true).append(true).open(path);
    open.and_then(|mut file| file.flush()).map_err(|error| {
        let path = output::named(path.display());
        Failure::Usage(format!("--svg {path} cannot be written ({error}); name another file"))
    })?;
    if fresh {
        drop(std::fs::remove_file(path));
    }
    Ok(())
}

/// A plot is SVG under every name, so a name like a.png would mislead.
fn check_name(path: &Path) -> Result<()> {
    const OTHERS: [&str; 8] = ["png", "jpg", "jpeg", "gif", "webp", "pdf", "eps", "ps"];
    let extension = path.extension().map(|name| name.to_string_lossy().to_lowercase());
    match extension.filter(|name| OTHERS.contains(&&**name)) {
        None => Ok(()),
        Some(name) => Err(Failure::Usage(format!(
            "--svg {} would be an SVG file with the name of a {name}; name {}",
            output::named(path.display()),
            output::named(path.with_extension("svg").display())
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_some_labels_and_not_too_many() {
        assert_eq!(ticks(&(150.0..900.0), 9), [200.0, 500.0]);
        assert_eq!(ticks(&(90.0..6000.0), 9), [100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0]);
        assert_eq!(ticks(&(90.0..6000.0), 5), [100.0, 1000.0]);
        assert_eq!(ticks(&(5.0..2e6), 9), [10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
        assert_eq!(ticks(&(5.0..2e6), 5), [100.0, 1e4, 1e6]);
        assert_eq!(ticks(&(0.1..1.0), 9).len(), 3);
    }

    #[test]
    fn labels_have_no_digits_that_say_nothing() {
        let labels = [0.0, 1.0, 10_000.0, 2_500_000.0, 100.0, 1e9].map(|ns| time_label(&ns));
        assert_eq!(labels, ["0", "1 ns", "10 us", "2.5 ms", "100 ns", "1 s"]);
        assert_eq!([byte_label(&8.0), byte_label(&65536.0)], ["8 B", "64 KiB"]);
    }
}
