//! `lpf info`: the machine, the backends, the tables and every setting with its source.

use std::fmt::Debug;
use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lpf::host::Host;
use lpf::settings::{Setting, Settings, cores};
use lpf::tables::{Found, Store, Table};
use serde::Serialize;

use crate::args::Info;
use crate::failure::Result;
use crate::output::{digits, size, table, time};

/// The object of `--json`.
#[derive(Debug, Serialize)]
struct Shown {
    host: String,
    cpu: String,
    /// Cores that this program may use.
    cores: usize,
    memory_bytes: usize,
    last_cache_bytes: usize,
    topology: String,
    backends: &'static [&'static str],
    table_path: Option<String>,
    /// Why the file of tables is not used.
    table_problem: Option<String>,
    tables: Vec<TableShown>,
    settings: Vec<SettingShown>,
}

#[derive(Debug, Serialize)]
struct TableShown {
    backend: String,
    p: lpf::Pid,
    quick: bool,
    measured_unix_s: u64,
    g_ns_per_byte: Vec<(usize, f64)>,
    l_ns: Vec<(usize, f64)>,
}

#[derive(Debug, Serialize)]
struct SettingShown {
    name: &'static str,
    value: String,
    source: String,
}

pub(crate) fn run(options: &Info) -> Result<()> {
    let shown = gather()?;
    let mut out = io::stdout().lock();
    if options.json {
        serde_json::to_writer(&mut out, &shown)?;
        writeln!(out)?;
    } else {
        print(&mut out, &shown)?;
    }
    Ok(out.flush()?)
}

fn gather() -> Result<Shown> {
    let settings = Settings::from_environment()?;
    let host = Host::this();
    let store = Store::this();
    let (tables, table_problem) = match &store {
        Err(error) => (Vec::new(), Some(error.to_string())),
        Ok(store) => match store.load() {
            Found::Nothing => (Vec::new(), None),
            Found::Unusable(reason) => (Vec::new(), Some(reason)),
            Found::Tables(tables) => (tables, None),
        },
    };
    Ok(Shown {
        host: host.name,
        cpu: host.cpu,
        cores: cores(),
        memory_bytes: host.memory_bytes,
        last_cache_bytes: host.last_cache_bytes,
        topology: lpf::threads::topology().to_string().trim_end().to_string(),
        backends: lpf::BACKENDS,
        table_path: store.ok().map(|store| store.path().display().to_string()),
        table_problem,
        tables: tables.iter().map(TableShown::new).collect(),
        settings: settings_shown(settings),
    })
}

impl TableShown {
    fn new(table: &Table) -> Self {
        let rows = &table.parameters.rows;
        TableShown {
            backend: table.backend.clone(),
            p: table.parameters.p,
            quick: table.quick,
            measured_unix_s: table.measured_unix_s,
            g_ns_per_byte: rows.iter().map(|row| (row.word_bytes, row.g_ns_per_byte)).collect(),
            l_ns: rows.iter().map(|row| (row.word_bytes, row.l_ns)).collect(),
        }
    }
}

/// Every setting: taken apart completely, so that a new one cannot be forgotten here.
fn settings_shown(settings: Settings) -> Vec<SettingShown> {
    let Settings { procs, pin, topology, check, strict, timeout, probe, backend, copy, table } =
        settings;
    let duration = |time: &Option<Duration>| match time {
        Some(time) => format!("{} s", time.as_secs_f64()),
        None => "off".into(),
    };
    let levels = |levels: &Option<Vec<usize>>| match levels {
        Some(levels) => levels.iter().map(ToString::to_string).collect::<Vec<_>>().join("x"),
        None => "the machine's".into(),
    };
    let lower = |value: &dyn Debug| format!("{value:?}").to_lowercase();
    vec![
        one("LPF_PROCS", procs, |n| n.to_string()),
        one("LPF_BACKEND", backend, Clone::clone),
        one("LPF_PIN", pin, |pin| lower(pin)),
        one("LPF_TOPOLOGY", topology, levels),
        one("LPF_CHECK", check, |on| on_off(*on)),
        one("LPF_STRICT", strict, |on| on_off(*on)),
        one("LPF_TIMEOUT", timeout, duration),
        one("LPF_PROBE", probe, duration),
        one("LPF_COPY", copy, Clone::clone),
        one("LPF_TABLE", table, |folder| match folder {
            Some(folder) => folder.clone(),
            None => "the user's data folder".into(),
        }),
    ]
}

fn one<T>(name: &'static str, setting: Setting<T>, show: impl Fn(&T) -> String) -> SettingShown {
    SettingShown { name, value: show(&setting.value), source: setting.source.to_string() }
}

fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.into()
}

fn print(out: &mut dyn Write, shown: &Shown) -> io::Result<()> {
    writeln!(out, "host: {}", shown.host)?;
    writeln!(out, "{}", shown.topology)?;
    writeln!(
        out,
        "last cache {}, usable memory {}",
        size(shown.last_cache_bytes),
        size(shown.memory_bytes)
    )?;
    writeln!(out, "backends built in: {}", shown.backends.join(", "))?;
    match (&shown.table_path, &shown.table_problem) {
        (Some(path), None) if shown.tables.is_empty() => {
            writeln!(out, "tables: none in {path}; lpf probe makes one")?;
        }
        (Some(path), None) => writeln!(out, "tables in {path}:")?,
        (Some(path), Some(problem)) => writeln!(out, "tables: {path} is not used: {problem}")?,
        (None, problem) => writeln!(out, "tables: none ({})", problem.as_deref().unwrap_or(""))?,
    }
    if !shown.tables.is_empty() {
        writeln!(out, "{}", tables(&shown.tables))?;
    }
    let mut all = table(["setting", "value", "from"], 3);
    for setting in &shown.settings {
        all.add_row([setting.name, &setting.value, &setting.source]);
    }
    writeln!(out, "{all}")
}

fn tables(tables: &[TableShown]) -> comfy_table::Table {
    let mut all = table(["backend", "p", "words", "g (ns/byte)", "l", "measured"], 1);
    for table in tables {
        let words = table.g_ns_per_byte.iter().map(|(word, _)| size(*word));
        let g = table.g_ns_per_byte.iter().map(|(_, g)| digits(*g));
        let l = table.l_ns.iter().map(|(_, l)| time(*l));
        let quick = if table.quick { ", --quick" } else { "" };
        all.add_row([
            table.backend.clone(),
            table.p.to_string(),
            words.collect::<Vec<_>>().join("\n"),
            g.collect::<Vec<_>>().join("\n"),
            l.collect::<Vec<_>>().join("\n"),
            format!("{}{quick}", ago(table.measured_unix_s)),
        ]);
    }
    all
}

/// How long ago, in the largest unit that fits.
fn ago(unix_s: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let units = [(86_400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds")];
    let age = now.saturating_sub(unix_s);
    let (unit, name) = units.into_iter().find(|(unit, _)| age >= 2 * unit).unwrap_or(units[3]);
    format!("{} {name} ago", age / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_given_in_the_largest_unit_that_fits() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert_eq!(ago(now - 150), "2 minutes ago");
        assert_eq!(ago(now - 3 * 86_400), "3 days ago");
        assert_eq!(ago(now), "0 seconds ago");
    }
}
