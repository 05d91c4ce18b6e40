//! `lpf cost`: what each algorithm of a collective costs by h g + l, and which one is chosen.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use lpf::Pid;
use lpf::collectives::Collective;
use lpf::collectives::cost::Vector;
use lpf::machine::{Growth, Machine, Origin, Parameters};
use lpf::settings::Settings;
use lpf::tables::{self, Table};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::output::{self, digits, json, processes, size, table, time};
use crate::started;
use crate::uncertainty::caveat;
use crate::values::{bytes, collective, elements, size as processes_of_job};

/// A row of `--json`.
#[derive(Clone, Debug, Serialize)]
struct Row {
    backend: String,
    p: Pid,
    collective: &'static str,
    algorithm: &'static str,
    /// What one process contributes in all.
    elements: usize,
    element_bytes: usize,
    supersteps: f64,
    /// Of the busiest process, in all supersteps.
    h_bytes: f64,
    messages: f64,
    predicted_ns: f64,
    chosen: bool,
    origin: Origin,
}

/// g and l, and where they come from.
struct Source {
    backend: String,
    machine: Machine,
    sentence: String,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Cost {
    /// Which collective: broadcast, reduce, allreduce, reduce-scatter, scan, exscan, gather, scatter, allgather
    /// or alltoall
    #[arg(value_name = "COLLECTIVE")]
    collective: String,

    /// Elements that one process contributes in all; in a broadcast and a scatter the root
    #[arg(short, value_name = "ELEMENTS", default_value = "1", value_parser = elements)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) n: usize,

    /// Bytes of an element
    #[arg(long, value_name = "BYTES", default_value = "8", value_parser = bytes)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) element: usize,

    /// Number of processes (default: LPF_PROCS, else the cores)
    #[arg(short, value_name = "N", value_parser = processes_of_job, allow_negative_numbers = true)]
    pub(crate) p: Option<Pid>,

    /// A file of tables that lpf probe has saved, here or on another machine (default: this one's)
    ///
    /// It is a file, such as HOST.json in the folder LPF_TABLE. lpf info shows where this machine's is.
    #[arg(long, value_name = "FILE")]
    pub(crate) table: Option<PathBuf>,

    /// Backend: threads, tcp, mpi (default: LPF_BACKEND, else the one that the table is of)
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,

    /// Print one JSON object per algorithm and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

impl Cost {
    /// Which one.
    pub(crate) fn collective(&self) -> Result<Collective> {
        collective(&self.collective)
    }
}

pub(crate) fn run(options: &Cost) -> Result<()> {
    let collective = options.collective()?;
    let settings = Settings::from_environment()?;
    let p = options.p.unwrap_or(settings.procs.value);
    let source = source(options, &settings, p)?;
    let n = whole_blocks(collective, p, options.n);
    let bytes = n.checked_mul(options.element).and_then(|bytes| bytes.checked_mul(p));
    if bytes.is_none() {
        let text = "the bytes of all processes together exceed the largest number: give a smaller -n, --element or -p";
        return Err(Failure::Usage(text.into()));
    }
    let rows = rows(collective, (n, options.element), p, &source);
    if options.json {
        let mut out = output::standard();
        json(&mut out, &rows)?;
        return Ok(out.flush()?);
    }
    let printed = output::people(|out| {
        shown(out, collective, &rows, &source)?;
        if n == options.n {
            return Ok(());
        }
        let given = options.n;
        writeln!(out, "{given} elements are rounded up to {n}: the same number for each process")
    });
    Ok(printed?)
}

/// So many elements, rounded up to as many for each process where each gets another part: the collectives
/// refuse others.
pub(crate) fn whole_blocks(collective: Collective, p: usize, elements: usize) -> usize {
    match collective {
        Collective::ReduceScatter | Collective::Scatter | Collective::Alltoall => {
            elements.next_multiple_of(p)
        }
        _ => elements,
    }
}

fn rows(
    collective: Collective,
    (elements, element): (usize, usize),
    p: Pid,
    source: &Source,
) -> Vec<Row> {
    let (members, v) = (p, Vector { bytes: elements * element, element });
    let chosen = collective.cheapest(&source.machine, members, v).name;
    let all = collective.algorithms(members, v).into_iter();
    all.map(|one| Row {
        backend: source.backend.clone(),
        p,
        collective: collective.name(),
        algorithm: one.name,
        elements,
        element_bytes: element,
        supersteps: one.supersteps.count,
        h_bytes: one.supersteps.h_bytes,
        messages: one.supersteps.messages,
        predicted_ns: 1e9 * one.supersteps.seconds(&source.machine, p),
        chosen: one.name == chosen,
        origin: source.machine.origin(),
    })
    .collect()
}

fn source(options: &Cost, settings: &Settings, p: Pid) -> Result<Source> {
    let named = options.backend.as_deref();
    if let Some(path) = &options.table {
        return of_file(path, named, p);
    }
    let backend = match named {
        Some(name) => known(name)?,
        None => lpf::chosen(settings)?.into(),
    };
    Ok(of_backend(backend, p))
}

fn of_backend(backend: String, p: Pid) -> Source {
    match tables::table(&backend, p) {
        Some(table) => of_table(table, "this machine's table", p),
        None => guess(backend, p),
    }
}

/// Where the g and l of a backend come from, in a sentence.
pub(crate) fn origin(backend: &str, p: Pid) -> String {
    of_backend(backend.into(), p).sentence
}

/// A backend whose costs can be told: that it is not built in does not matter here.
fn known(name: &str) -> Result<String> {
    match name {
        "threads" | "tcp" | "mpi" => Ok(name.into()),
        _ => Err(Failure::Usage(format!(
            "\"{}\" is not a backend that lpf probe measures; there are threads, tcp and mpi",
            output::named(name)
        ))),
    }
}

fn of_file(path: &Path, named: Option<&str>, p: Pid) -> Result<Source> {
    let shown = output::named(path.display());
    let all = tables::read(path).map_err(|reason| {
        Failure::Usage(format!(
            "--table {shown} cannot be used: {reason}; name a file that lpf probe has saved (lpf info lists them)"
        ))
    })?;
    let mut backends: Vec<String> = all.iter().map(|table| table.backend.clone()).collect();
    backends.dedup();
    let first = || backends.first().cloned().unwrap_or_default();
    let backend = named.map_or_else(first, str::to_owned);
    let found = tables::nearest(all, &backend, p).ok_or_else(|| {
        Failure::Usage(match backends.is_empty() {
            true => format!("--table {shown} has no tables; name a file that lpf probe has saved"),
            false => format!(
                "--table {shown} has no table of {backend}; it has those of {}",
                backends.join(", ")
            ),
        })
    })?;
    Ok(of_table(found, &shown, p))
}

fn of_table(table: Table, place: &str, p: Pid) -> Source {
    let Table { backend, quick, parameters, .. } = table;
    let caveat =
        caveat(&parameters.rows).map_or(String::new(), |text| format!(". In this table {text}"));
    let measured = processes(parameters.p);
    let machine = Machine::new(p, p, p, Arc::new(parameters));
    let by = if quick { " by a quick probe" } else { "" };
    let sentence = match machine.origin() {
        Origin::Measured => {
            format!("g and l are measured{by}: {place}, {backend}, {measured}{caveat}")
        }
        Origin::Extrapolated => format!(
            "g and l are extrapolated from those of {measured}, which are measured{by}: {place}, {backend}{caveat}"
        ),
        Origin::Guess => format!("g and l are a guess of {place}, {backend}"),
    };
    Source { backend, machine, sentence }
}

fn guess(backend: String, p: Pid) -> Source {
    let growth = if backend == "threads" { Growth::SharedMemory } else { Growth::MessagePassing };
    let machine = Machine::new(p, p, p, Arc::new(Parameters::guess(growth)));
    let probe = started::command(&format!("probe --backend {backend}"));
    let how = match lpf::backend(&backend) {
        Ok(_) => "",
        Err(_) => {
            ", of an lpf that is built with it: cargo build --release --bin lpf --features mpi"
        }
    };
    let sentence = format!(
        "g and l are a guess, because there is no table of {backend} here: {probe} makes one{how}"
    );
    Source { backend, machine, sentence }
}

fn shown(
    out: &mut dyn Write,
    collective: Collective,
    rows: &[Row],
    source: &Source,
) -> io::Result<()> {
    if let Some(Row { p, elements, element_bytes, .. }) = rows.first() {
        let bytes = size(elements.saturating_mul(*element_bytes));
        let name = collective.name();
        let plural = if *elements == 1 { "" } else { "s" };
        let whose = match collective {
            Collective::Broadcast | Collective::Scatter => "at the root",
            _ => "each",
        };
        let what = format!("{elements} element{plural} ({bytes}) {whose}");
        writeln!(out, "{name} among {}, {what}", processes(*p))?;
    }
    let header = ["algorithm", "supersteps", "h (bytes)", "messages", "predicted", ""];
    let mut all = table(header, 1);
    if let Some(column) = all.column_mut(5) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for row in rows {
        let mark = if row.chosen { "chosen" } else { "" };
        all.add_row([
            row.algorithm.to_string(),
            whole(row.supersteps),
            whole(row.h_bytes),
            whole(row.messages),
            time(row.predicted_ns),
            mark.to_string(),
        ]);
    }
    writeln!(out, "{}", all.trim_fmt())?;
    let least = rows.iter().map(|row| row.predicted_ns).fold(f64::INFINITY, f64::min);
    if rows.iter().any(|row| row.chosen && row.predicted_ns > least) {
        writeln!(out, "chosen for its fewer supersteps, among those within 5 % of the smallest")?;
    }
    writeln!(out, "{}", source.sentence)
}

/// A number that most often is a whole one.
fn whole(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { digits(value) }
}
