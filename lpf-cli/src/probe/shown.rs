//! The table of a probe for people: in seconds, and as Table 3 of the LPF paper prints it.

use std::io::{self, Write};

use comfy_table::{CellAlignment, Table};
use lpf::host::Host;
use lpf::measure::Plan;
use lpf::measure::plan::WORDS;

use super::ProbeRow;
use crate::output::{digits, plain, seconds, size};

/// Prints the table: a column per word size.
pub(super) fn table(
    out: &mut dyn Write,
    host: &Host,
    plan: &Plan,
    rows: &[ProbeRow],
    narrow: bool,
) -> io::Result<()> {
    let backend = rows.first().map_or("", |row| row.backend);
    writeln!(out, "{} ({}), {backend}, {} processes", host.name, host.cpu, plan.p)?;
    let mut table = plain(cells("word w", rows, |row| size(row.word_bytes)));
    line(&mut table, "r (ns/byte)", rows, |row| digits(row.r_ns_per_byte));
    line(&mut table, "g (ns/byte)", rows, |row| within(row.g_ns_per_byte, row.g_ci95));
    line(&mut table, "l (us)", rows, |row| within(row.l_ns / 1e3, row.l_ci95 / 1e3));
    line(&mut table, "g (x r)", rows, |row| within(row.g_over_r, row.g_ci95 / row.r_ns_per_byte));
    line(&mut table, "l (words)", rows, |row| {
        within(row.l_words, row.l_ci95 / (row.r_ns_per_byte * row.word_bytes as f64))
    });
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out, "{table}")?;
    writeln!(out, "+- is half of the 95 % interval; l (words) = l / (r w)")?;
    for word in &plan.words {
        let (w, n) = (size(word.bytes), size(word.largest));
        writeln!(out, "n_max for words of {w}: {n} per process ({})", word.bound)?;
    }
    for left_out in WORDS.iter().filter(|&&w| plan.words.iter().all(|word| word.bytes != w)) {
        let w = size(*left_out);
        writeln!(out, "words of {w} are left out: some for each pair do not fit the memory")?;
    }
    if !narrow {
        let time = seconds(plan.time);
        writeln!(
            out,
            "the time ({time}) was up before all intervals were narrow; --seconds S gives more"
        )?;
    }
    Ok(())
}

fn line(table: &mut Table, name: &str, rows: &[ProbeRow], value: impl Fn(&ProbeRow) -> String) {
    table.add_row(cells(name, rows, value));
}

fn cells(name: &str, rows: &[ProbeRow], value: impl Fn(&ProbeRow) -> String) -> Vec<String> {
    std::iter::once(name.to_string()).chain(rows.iter().map(value)).collect()
}

fn within(value: f64, half: f64) -> String {
    format!("{} +- {}", digits(value), digits(half))
}
