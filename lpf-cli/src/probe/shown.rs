//! The table of a probe for people: in seconds, and as Table 3 of the LPF paper prints it.

use std::io::{self, Write};

use lpf::host::Host;
use lpf::measure::plan::{Bound, WORDS};
use lpf::measure::{Measured, Plan, Word};

use super::ProbeRow;
use crate::output::{digits, processes, seconds, size, table, within};
use crate::remarks;

/// Prints the table: a line per word size.
pub(super) fn print(
    out: &mut dyn Write,
    host: &Host,
    plan: &Plan,
    rows: &[ProbeRow],
    measured: &Measured,
    was_interrupted: bool,
) -> io::Result<()> {
    let backend = rows.first().map_or("", |row| row.backend);
    writeln!(out, "{} ({}), {backend}, {}", host.name, host.cpu, processes(plan.p))?;
    let header = ["word w", "r (ns/byte)", "g (ns/byte)", "l (us)", "g (x r)", "l (words)"];
    let mut lines = table(header, 0);
    for row in rows {
        lines.add_row([
            size(row.word_bytes),
            digits(row.r_ns_per_byte),
            within(row.g_ns_per_byte, row.g_ci95, digits),
            within(row.l_ns / 1e3, row.l_ci95 / 1e3, digits),
            digits(row.g_over_r),
            digits(row.l_words),
        ]);
    }
    writeln!(out, "{}", lines.trim_fmt())?;
    writeln!(
        out,
        "+- is half of the 95 % interval; g (x r) = g / r and l (words) = l / (r w) have the same"
    )?;
    let combining = digits(measured.parameters.combine_ns_per_byte);
    writeln!(out, "combining two vectors (a sum of f64 in cache) takes {combining} ns/byte")?;
    writeln!(
        out,
        "n_max is the largest h with enough samples: the bytes that each process sends and receives in a superstep"
    )?;
    for (word, &n_max) in plan.words.iter().zip(&measured.largest) {
        let (w, n) = (size(word.bytes), size(n_max));
        let why = match why(word, n_max) {
            Some(why) => why.into(),
            None if was_interrupted => "the largest before the interrupt".into(),
            None => format!("the time allows no more of {}", size(word.largest)),
        };
        writeln!(out, "n_max for words of {w}: {n} per process ({why})")?;
    }
    for left_out in WORDS.iter().filter(|&&w| plan.words.iter().all(|word| word.bytes != w)) {
        let w = size(*left_out);
        writeln!(
            out,
            "words of {w} are left out: a few for each pair of processes do not fit the memory"
        )?;
    }
    if !measured.narrow && !was_interrupted {
        let time = seconds(plan.time);
        writeln!(
            out,
            "the time ({time}) was up before all intervals were narrow; give more with --seconds S"
        )?;
    }
    let name = |row: &ProbeRow| format!("words of {}", size(row.word_bytes));
    remarks::print(out, rows.iter().map(|row| (name(row), &row.remarks)))
}

/// What limits the largest h; `None` if the probe ended before it reached this limit.
fn why(word: &Word, n_max: usize) -> Option<&'static str> {
    match word.bound {
        _ if n_max < word.largest => None,
        Bound::Cache => Some("its superstep touches four times the last cache"),
        Bound::Memory => Some("an eighth of the memory, queues included"),
    }
}
