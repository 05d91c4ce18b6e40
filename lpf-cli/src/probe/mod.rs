//! `lpf probe`: r, g and l of this machine, shown and saved.

mod plot;
mod shown;

use std::io::{self, Write};

use lpf::Pid;
use lpf::host::Host;
use lpf::machine::Row;
use lpf::measure::{Measured, Plan, Progress, measure_threads};
use lpf::tables::{Saved, Store, Table};
use lpf::threads::Config;
use serde::Serialize;

use crate::args::Measuring;
use crate::failure::Result;
use crate::output;
use crate::progress::Bar;

/// A row of `--json` and `--csv`; intervals are half widths at 95 %.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ProbeRow {
    pub(crate) backend: &'static str,
    pub(crate) p: Pid,
    pub(crate) word_bytes: usize,
    pub(crate) r_ns_per_byte: f64,
    pub(crate) g_ns_per_byte: f64,
    pub(crate) g_ci95: f64,
    pub(crate) l_ns: f64,
    pub(crate) l_ci95: f64,
    pub(crate) g_over_r: f64,
    pub(crate) l_words: f64,
    pub(crate) samples: u64,
    pub(crate) host: String,
}

impl ProbeRow {
    fn new(backend: &'static str, p: Pid, host: &str, row: &Row) -> Self {
        ProbeRow {
            backend,
            p,
            word_bytes: row.word_bytes,
            r_ns_per_byte: row.r_ns_per_byte,
            g_ns_per_byte: row.g_ns_per_byte,
            g_ci95: row.g_ci95,
            l_ns: row.l_ns,
            l_ci95: row.l_ci95,
            g_over_r: row.g_ns_per_byte / row.r_ns_per_byte,
            l_words: row.l_ns / (row.r_ns_per_byte * row.word_bytes as f64),
            samples: row.samples,
            host: host.into(),
        }
    }
}

/// Sizes of h per word that only a plot needs.
const POINTS: usize = 7;

pub(crate) fn run(options: &Measuring) -> Result<()> {
    let backend = options.check()?;
    warn_if_not_to_be_saved();
    let host = Host::this();
    let mut all = Vec::new();
    for (nth, p) in options.processes()?.into_iter().enumerate() {
        let mut plan = Plan::for_host(&host, p, options.time(5, 60), options.quick);
        plan.points = if options.svg.is_some() { POINTS } else { 0 };
        let measured = measure(&plan)?;
        let kept = save(backend, options.quick, &measured);
        if let Some(path) = &options.svg {
            plot::draw(&numbered(path, nth), p, &measured)?;
        }
        let rows = measured.parameters.rows.iter();
        let rows: Vec<_> = rows.map(|row| ProbeRow::new(backend, p, &host.name, row)).collect();
        if options.is_for_programs() {
            eprintln!("{kept}");
            all.extend(rows);
        } else {
            let mut out = io::stdout().lock();
            shown::table(&mut out, &host, &plan, &rows, measured.narrow)?;
            writeln!(out, "{kept}")?;
        }
    }
    output::rows(options, &all, |_| Ok(()))
}

/// Measures with a bar that shows g and l as far as they are known.
pub(crate) fn measure(plan: &Plan) -> Result<Measured> {
    let bar = Bar::new(&format!("probe p = {}", plan.p), plan.time);
    let watch = |progress: &Progress| bar.show(progress.elapsed, || estimate(&progress.rows));
    Ok(measure_threads(&Config::from_environment()?, plan, &watch)?)
}

fn estimate(rows: &[Row]) -> String {
    let one = |row: &Row| {
        let (word, g) = (output::size(row.word_bytes), output::digits(row.g_ns_per_byte));
        format!("{word}: g {g} ns/B, l {}", output::time(row.l_ns))
    };
    rows.iter().map(one).collect::<Vec<_>>().join(" | ")
}

/// Says before the measurement that its table cannot be saved.
fn warn_if_not_to_be_saved() {
    if let Ok(store) = Store::this()
        && let Err(error) = store.check_writable()
    {
        let path = store.path().display();
        eprintln!(
            "lpf: {path} cannot be written ({error}), so the table will only be shown; LPF_TABLE names another folder"
        );
    }
}

/// Saves the table; what became of it, for people. A folder that cannot be written costs nothing
/// but the table.
fn save(backend: &str, quick: bool, measured: &Measured) -> String {
    let table = Table::now(backend, quick, measured.parameters.clone());
    let store = match Store::this() {
        Ok(store) => store,
        Err(error) => return format!("not saved: {error}; LPF_TABLE names a folder for tables"),
    };
    let path = store.path().display();
    match store.save(table) {
        Ok(Saved::Replaced) => format!("saved in {path}; programs use it from now on"),
        Ok(Saved::KeptBetter) => {
            format!("not saved: {path} has a better table, measured longer or on a quieter machine")
        }
        // Why was said before the measurement.
        Err(_) => format!("not saved in {path}"),
    }
}

/// The file for the nth number of processes: `a.svg`, `a-2.svg`, …
fn numbered(path: &std::path::Path, nth: usize) -> std::path::PathBuf {
    match nth {
        0 => path.to_path_buf(),
        _ => {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            path.with_file_name(format!("{stem}-{}.svg", nth + 1))
        }
    }
}
