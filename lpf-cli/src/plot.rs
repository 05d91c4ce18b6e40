//! What all plots share: an SVG file, logarithmic axes, plain colours that print well.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use plotters::prelude::RGBColor;

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
    fn labels_have_no_digits_that_say_nothing() {
        let labels = [0.0, 1.0, 10_000.0, 2_500_000.0, 100.0, 1e9].map(|ns| time_label(&ns));
        assert_eq!(labels, ["0", "1 ns", "10 us", "2.5 ms", "100 ns", "1 s"]);
        assert_eq!([byte_label(&8.0), byte_label(&65536.0)], ["8 B", "64 KiB"]);
    }
}
