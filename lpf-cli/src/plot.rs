//! What all plots share: an SVG file, logarithmic axes, plain colours that print well.

use std::fmt::Display;
use std::path::Path;

use plotters::prelude::RGBColor;

use crate::failure::{Failure, Result};

/// Colours that stay apart in print and for most colour-blind readers (Okabe and Ito).
pub(crate) const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];

/// The size of a plot in pixels.
pub(crate) const SIZE: (u32, u32) = (900, 600);

/// Draws into `path` by way of a string and a file beside it, so that an error leaves no half of a file, and what
/// was there before.
pub(crate) fn write<E: Display>(
    path: &Path,
    draw: impl FnOnce(&mut String) -> std::result::Result<(), E>,
) -> Result<()> {
    let mut text = String::new();
    draw(&mut text).map_err(|error| Failure::Failed(format!("the plot failed: {error}")))?;
    replace(path, &text).map_err(|error| {
        Failure::Failed(format!("the plot {} cannot be written: {error}", path.display()))
    })
}

fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    // A pipe or a device is no file to put another in the place of.
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return std::fs::write(path, text);
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let written = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// A logarithmic axis that holds all positive values, with room at both ends.
pub(crate) fn axis(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let positive = values.filter(|v| v.is_finite() && *v > 0.0);
    let (low, high) =
        positive.fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    if low > high { 1.0..10.0 } else { low / 2.0..high * 2.0 }
}

/// 1 B, 64 KiB or 2 MiB under an axis.
pub(crate) fn byte_label(bytes: &f64) -> String {
    crate::output::size(bytes.round() as usize)
}

/// 1 ns, 2 us or 3 ms beside an axis.
pub(crate) fn time_label(ns: &f64) -> String {
    crate::output::time(*ns)
}
