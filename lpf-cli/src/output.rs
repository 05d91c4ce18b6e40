//! Standard output and standard error, and rows on the former: JSON objects, CSV, or a table for people.
//!
//! Text for people has no control characters: a name must not steer the terminal. On a terminal its lines break at 80
//! columns; in a file each sentence is one line, so that a search finds it.
//!
//! All that this program writes there goes through [`Standard`], which keeps the first error: it decides the
//! exit status, though a caller may have dropped it.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

use comfy_table::{CellAlignment, ContentArrangement, Row, Table, TableComponent, presets};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Serialize;

use lpf::Pid;

static LOST: OnceLock<Errno> = OnceLock::new();

/// Why something was not written, other than that its reader has closed the pipe.
pub(crate) fn lost() -> Option<io::Error> {
    LOST.get().map(|&errno| errno.into())
}

/// One of the two standard streams, without a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standard {
    Output,
    Errors,
}

impl Write for Standard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The library's own streams take a descriptor that cannot be written for one that is closed, and
        // report nothing.
        let written = match self {
            Standard::Output => nix::unistd::write(io::stdout(), bytes),
            Standard::Errors => nix::unistd::write(io::stderr(), bytes),
        };
        match written {
            Ok(n) => Ok(n),
            Err(Errno::EINTR) => Err(ErrorKind::Interrupted.into()),
            // Another process that shares the stream has set it so.
            Err(Errno::EAGAIN) => {
                self.wait();
                Err(ErrorKind::Interrupted.into())
            }
            Err(errno) => {
                if errno != Errno::EPIPE {
                    LOST.get_or_init(|| errno);
                }
                Err(errno.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Standard {
    fn wait(self) {
        let (output, errors) = (io::stdout(), io::stderr());
        let stream = match self {
            Standard::Output => output.as_fd(),
            Standard::Errors => errors.as_fd(),
        };
        // A wait that ends early is one attempt more.
        let _ = poll(&mut [PollFd::new(stream, PollFlags::POLLOUT)], PollTimeout::NONE);
    }
}

/// Standard output, buffered: it is to be flushed at the end.
pub(crate) fn standard() -> BufWriter<Standard> {
    BufWriter::new(Standard::Output)
}

/// Writes a line to standard error, in one piece: other processes may write there, too.
pub(crate) fn say(text: impl Display) {
    let text = fitted(&format!("lpf: {text}\n"), io::stderr().is_terminal());
    // An error decides the exit status; there is nowhere left to report it.
    let _ = Standard::Errors.write_all(text.as_bytes());
}

/// Prints text for people to standard output.
pub(crate) fn people(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut text = Vec::new();
    print(&mut text)?;
    let text = fitted(&String::from_utf8_lossy(&text), io::stdout().is_terminal());
    Standard::Output.write_all(text.as_bytes())
}

/// A name or a text of the user's, for a sentence: without control characters, so on one line.
pub(crate) fn named(name: impl Display) -> String {
    without_controls(&name.to_string(), None)
}

fn without_controls(text: &str, but: Option<char>) -> String {
    let is_plain = |c: char| !c.is_control() || Some(c) == but;
    let shown = |c: char| if is_plain(c) { c.to_string() } else { c.escape_default().to_string() };
    text.chars().map(shown).collect()
}

fn fitted(text: &str, is_terminal: bool) -> String {
    let text = without_controls(text, Some('\n'));
    if is_terminal { folded(&text) } else { text }
}

/// Columns of a terminal.
pub(crate) const WIDTH: usize = 80;

/// Lines break at spaces. A path that is longer than a line stays whole.
fn folded(text: &str) -> String {
    let mut lines = Vec::new();
    for mut line in text.split('\n') {
        while let Some((end, next)) = line.char_indices().nth(WIDTH) {
            let indent = line.len() - line.trim_start().len();
            let fits = &line[..end + if next == ' ' { 1 } else { 0 }];
            let last = fits.rfind(' ').filter(|&at| at > indent);
            let Some(at) = last.or_else(|| line[end..].find(' ').map(|at| end + at)) else { break };
            lines.push(line[..at].trim_end());
            line = &line[at + 1..];
        }
        lines.push(line);
    }
    lines.join("\n")
}

/// A JSON object in a line for each row.
pub(crate) fn json<R: Serialize>(out: &mut dyn Write, rows: &[R]) -> io::Result<()> {
    for row in rows {
        serde_json::to_writer(&mut *out, row)?;
        writeln!(out)?;
    }
    Ok(())
}

/// A table with one line, under its header.
pub(crate) fn plain<T: Into<Row>>(header: T) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    table.set_style(TableComponent::HeaderLines, '-');
    table.set_style(TableComponent::MiddleHeaderIntersections, '-');
    table.set_content_arrangement(ContentArrangement::Disabled);
    // A table is as narrow as it can be: a terminal has 80 columns.
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 1));
    });
    table
}

/// A table with numbers to the right and names (the first `names` columns) to the left.
pub(crate) fn table<const N: usize>(header: [&str; N], names: usize) -> Table {
    let mut table = plain(header);
    for column in table.column_iter_mut().skip(names) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A table whose rows are in groups: before some rows, by number, a line with what its group has in common.
pub(crate) fn grouped(table: &Table, headings: &[(usize, String)]) -> String {
    let (mut text, mut headings) = (String::new(), headings.iter().peekable());
    for (nth, line) in table.trim_fmt().lines().enumerate() {
        // Behind the header and the line under it.
        if let Some((_, heading)) = headings.next_if(|(row, _)| row + 2 == nth) {
            text = format!("{text}{heading}\n");
        }
        text = format!("{text}{line}\n");
    }
    text
}

/// Nanoseconds in the unit that leaves three digits.
pub(crate) fn time(ns: f64) -> String {
    match ns {
        _ if ns < 1e3 => format!("{} ns", digits(ns)),
        _ if ns < 1e6 => format!("{} us", digits(ns / 1e3)),
        _ if ns < 1e9 => format!("{} ms", digits(ns / 1e6)),
        _ => format!("{} s", digits(ns / 1e9)),
    }
}

/// Bytes in the largest unit of which there are some: exactly, or with three digits. Up to 10,000 bytes are written as
/// bytes if that is exact and a unit is not.
pub(crate) fn size(bytes: usize) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(power, _)| bytes >> power > 0) {
        Some((power, unit)) if bytes.is_multiple_of(1 << power) => {
            format!("{} {unit}", bytes >> power)
        }
        Some((power, unit)) if bytes > 10_000 => {
            format!("{} {unit}", digits(bytes as f64 / (1u64 << power) as f64))
        }
        _ => format!("{bytes} B"),
    }
}

/// A number with three significant digits, and all digits before the point.
pub(crate) fn digits(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return format!("{value}");
    }
    let magnitude = value.abs().log10().floor() as i32;
    format!("{value:.*}", (2 - magnitude).clamp(0, 6) as usize)
}

/// A value and half of its 95 % interval. Half an interval as wide as the value, or wider, is no
/// measure of anything; it also stands for no interval, where there are too few samples for one.
pub(crate) fn within(value: f64, half: f64, show: impl Fn(f64) -> String) -> String {
    match is_unknown(value, half) {
        true => format!("{} +- >=100 %", show(value)),
        // Rounded up: less is known rather than more.
        false => format!("{} +- {} %", show(value), (100.0 * half / value).ceil()),
    }
}

/// Whether half of an interval is as wide as the value.
fn is_unknown(value: f64, half: f64) -> bool {
    /// Medians from which the fallback is made differ a little from the value.
    const ALL: f64 = 0.99;
    half.is_nan() || half >= ALL * value
}

/// So many processes.
pub(crate) fn processes(p: Pid) -> String {
    format!("{p} process{}", if p == 1 { "" } else { "es" })
}

/// A time for people.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{} s", digits(time.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(digits(0.012345), "0.0123");
        assert_eq!(digits(1.2345), "1.23");
        assert_eq!(digits(123456.7), "123457");
        assert_eq!(digits(0.0), "0");
        assert_eq!(time(1234.5), "1.23 us");
        assert_eq!(size(128 << 20), "128 MiB");
        assert_eq!(size(4096), "4 KiB");
        assert_eq!(size(100), "100 B");
        assert_eq!(size(8000), "8000 B");
        assert_eq!(size(1_000_000), "977 KiB");
        assert_eq!(size(10_000_000), "9.54 MiB");
    }

    #[test]
    fn sentences_break_at_80_columns_and_a_long_name_stays_whole() {
        let words = "word ".repeat(40);
        let text = folded(&format!("{}\n  short\n", words.trim_end()));
        assert!(text.lines().all(|line| line.len() <= 80 && line == line.trim_end()), "{text}");
        assert_eq!(text.split_whitespace().count(), 41);
        assert!(text.ends_with("word\n  short\n"), "{text}");
        let (full, path) = (format!("{} b", "a".repeat(80)), "/x".repeat(50));
        assert_eq!(folded(&full), full.replace(' ', "\n"));
        assert_eq!(folded(&path), path);
        assert_eq!(
            folded(&format!("the file {path} is empty")),
            format!("the file\n{path}\nis empty")
        );
    }

    #[test]
    fn control_characters_are_shown_and_steer_nothing() {
        assert_eq!(named("a\u{1b}[2Jb\nc\u{85}d é"), "a\\u{1b}[2Jb\\nc\\u{85}d é");
        assert_eq!(fitted("two\nlines\r\n", false), "two\nlines\\r\n");
    }

    #[test]
    fn a_group_of_rows_has_a_heading() {
        let mut table = table(["name", "n"], 1);
        for row in [["a", "1"], ["b", "22"], ["c", "3"]] {
            table.add_row(row);
        }
        let text = grouped(&table, &[(0, "first".into()), (2, "second".into())]);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(lines[2..], ["first", "a      1", "b     22", "second", "c      3"]);
    }

    #[test]
    fn an_interval_as_wide_as_its_value_is_not_shown_as_if_it_were_measured() {
        assert_eq!(within(9.02, 0.31, digits), "9.02 +- 4 %");
        assert_eq!(within(9.02, 9.02, digits), "9.02 +- >=100 %");
        assert_eq!(within(9.0, 8.97, digits), "9.00 +- >=100 %");
        assert_eq!(within(900.0, 2000.0, time), "900 ns +- >=100 %");
        assert_eq!(processes(1), "1 process");
        assert_eq!(processes(2), "2 processes");
    }
}
