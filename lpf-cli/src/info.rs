//! `lpf info`: the machine, the backends, the tables and every setting with its source.

use std::fmt::Debug;
use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use lpf::host::Host;
use lpf::machine::Row;
use lpf::settings::misspelt::{unknown, verdict};
use lpf::settings::{Launched, Setting, Settings, Source, by_mpi_launcher, cores};
use lpf::tables::{Found, Store, Table};
use serde::Serialize;

use crate::failure::Result;
use crate::output::{self, digits, size, table, time, within};
use crate::started;

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
    /// Why no program can run here: what the settings and the launcher say does not fit.
    backend_problem: Option<String>,
    table_path: Option<String>,
    /// Why the file of tables is not used.
    table_problem: Option<String>,
    tables: Vec<TableShown>,
    settings: Vec<SettingShown>,
    /// Variables that begin with `LPF_` and are no setting.
    unknown_settings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct TableShown {
    backend: String,
    p: lpf::Pid,
    quick: bool,
    measured_unix_s: u64,
    g_ns_per_byte: Vec<(usize, f64)>,
    /// Half of the 95 % interval.
    g_ci95: Vec<(usize, f64)>,
    l_ns: Vec<(usize, f64)>,
    l_ci95: Vec<(usize, f64)>,
}

#[derive(Clone, Debug, Serialize)]
struct SettingShown {
    name: &'static str,
    value: String,
    source: String,
    /// Why its value is not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Info {
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(options: &Info) -> Result<()> {
    let (settings, wrong) = Settings::understood();
    let shown = gather(settings, &wrong);
    if options.json {
        let mut out = output::standard();
        serde_json::to_writer(&mut out, &shown)?;
        writeln!(out)?;
        out.flush()?;
    } else {
        output::people(|out| print(out, &shown))?;
    }
    // For a program, the first one is the error.
    wrong.into_iter().next().map_or(Ok(()), |(_, error)| Err(error.into()))
}

fn gather(settings: Settings, wrong: &[(&'static str, lpf::Error)]) -> Shown {
    let host = Host::this();
    let (backend, backend_problem) = match chosen(&settings) {
        Ok(backend) => (backend, None),
        Err(error) => (one("LPF_BACKEND", settings.backend.clone(), Clone::clone), Some(error)),
    };
    let store = Store::this();
    let (tables, table_problem) = match &store {
        Err(error) => (Vec::new(), Some(error.to_string())),
        Ok(store) => match store.load() {
            Found::Nothing => (Vec::new(), None),
            Found::Unusable(reason) => (Vec::new(), Some(reason)),
            Found::Tables(tables) => (tables, None),
        },
    };
    let mut settings = [settings_shown(settings, backend), place_in_a_job()].concat();
    for (name, error) in wrong {
        let of_name = settings.iter_mut().filter(|setting| setting.name == *name);
        of_name.for_each(|setting| setting.refuse(error));
    }
    Shown {
        host: host.name,
        cpu: host.cpu,
        cores: cores(),
        memory_bytes: host.memory_bytes,
        last_cache_bytes: host.last_cache_bytes,
        topology: lpf::threads::topology().to_string().trim_end().to_string(),
        backends: lpf::BACKENDS,
        backend_problem: backend_problem.map(|error| error.reason()),
        table_path: store.ok().map(|store| store.path().display().to_string()),
        table_problem,
        tables: tables.iter().map(TableShown::new).collect(),
        settings,
        unknown_settings: unknown(),
    }
}

impl SettingShown {
    fn new(name: &'static str, value: String, source: impl ToString) -> Self {
        SettingShown { name, value, source: source.to_string(), problem: None }
    }

    /// The value cannot be understood.
    fn refuse(&mut self, error: &lpf::Error) {
        let text = std::env::var_os(self.name).unwrap_or_default();
        self.value = text.to_string_lossy().into_owned();
        self.source = Source::Environment.to_string();
        self.problem = Some(error.reason());
    }
}

impl TableShown {
    fn new(table: &Table) -> Self {
        let by_word = |value: fn(&Row) -> f64| {
            table.parameters.rows.iter().map(|row| (row.word_bytes, value(row))).collect()
        };
        TableShown {
            backend: table.backend.clone(),
            p: table.parameters.p,
            quick: table.quick,
            measured_unix_s: table.measured_unix_s,
            g_ns_per_byte: by_word(|row| row.g_ns_per_byte),
            g_ci95: by_word(|row| row.g_ci95),
            l_ns: by_word(|row| row.l_ns),
            l_ci95: by_word(|row| row.l_ci95),
        }
    }
}

/// The backend that [`lpf::run`] would use, and what has decided that.
fn chosen(settings: &Settings) -> lpf::Result<SettingShown> {
    let value = lpf::chosen(settings)?.to_owned();
    let source = match (&*value, settings.backend.source) {
        (_, Source::Default) if Launched::from_environment()?.is_some() => "LPF_MEET".into(),
        ("mpi", Source::Default) => LAUNCHER.into(),
        (_, source) => source.to_string(),
    };
    Ok(SettingShown::new("LPF_BACKEND", value, source))
}

/// What has numbered the processes, where `LPF_RANK` and `LPF_SIZE` have not.
const LAUNCHER: &str = "MPI's or Slurm's launcher";

/// The variables of a job, as they stand: also where they make none together.
fn place_in_a_job() -> Vec<SettingShown> {
    let said = |name| std::env::var(name).ok().filter(|value: &String| !value.trim().is_empty());
    let shown = |name, default: &str| match said(name) {
        Some(value) => SettingShown::new(name, value, Source::Environment),
        None => SettingShown::new(name, default.into(), Source::Default),
    };
    let [mut rank, mut size] = ["LPF_RANK", "LPF_SIZE"].map(|name| shown(name, "none"));
    let are_free = said("LPF_RANK").is_none() && said("LPF_SIZE").is_none();
    if let Some((its_rank, its_size)) = by_mpi_launcher().filter(|_| are_free) {
        (rank.value, rank.source) = (its_rank.to_string(), LAUNCHER.into());
        (size.value, size.source) = (its_size.to_string(), LAUNCHER.into());
    }
    let mut secret = shown("LPF_SECRET", "none");
    if said("LPF_SECRET").is_some() {
        secret.value = "not shown".into();
    }
    let (meet, job) = (shown("LPF_MEET", "none"), shown("LPF_JOB", "0"));
    vec![rank, size, meet, secret, job]
}

/// Every setting: taken apart completely, so that a new one cannot be forgotten here.
fn settings_shown(settings: Settings, backend_shown: SettingShown) -> Vec<SettingShown> {
    let Settings {
        procs,
        pin,
        topology,
        check,
        strict,
        timeout,
        probe,
        backend: _,
        table,
        exchange,
        heartbeat,
        seal_data,
        meet_timeout,
    } = settings;
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
        backend_shown,
        one("LPF_PIN", pin, |pin| lower(pin)),
        one("LPF_TOPOLOGY", topology, levels),
        one("LPF_CHECK", check, |on| on_off(*on)),
        one("LPF_STRICT", strict, |on| on_off(*on)),
        one("LPF_TIMEOUT", timeout, duration),
        one("LPF_PROBE", probe, duration),
        one("LPF_TABLE", table, |folder| match folder {
            Some(folder) => folder.clone(),
            None => "the user's data folder".into(),
        }),
        one("LPF_EXCHANGE", exchange, |way| match way {
            Some(way) => lower(way),
            None => "auto".into(),
        }),
        one("LPF_HEARTBEAT", heartbeat, |on| on_off(*on)),
        one("LPF_SEAL_DATA", seal_data.clone(), |on| match seal_data.source {
            Source::Default => "on; under lpf run off".into(),
            _ => on_off(*on),
        }),
        one("LPF_MEET_TIMEOUT", meet_timeout, |time| match time {
            Some(_) => duration(time),
            None => "30 s over TCP, 60 s on MPI".into(),
        }),
    ]
}

fn one<T>(name: &'static str, setting: Setting<T>, show: impl Fn(&T) -> String) -> SettingShown {
    SettingShown::new(name, show(&setting.value), setting.source)
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
    if let Some(problem) = &shown.backend_problem {
        writeln!(out, "no program runs here: {problem}")?;
    }
    let probe = started::command("probe");
    match (&shown.table_path, &shown.table_problem) {
        (Some(path), None) if shown.tables.is_empty() => {
            writeln!(out, "tables: none in {path}; {probe} makes one")?;
        }
        (Some(path), None) => writeln!(out, "tables in {path}:")?,
        (Some(path), Some(problem)) => writeln!(
            out,
            "tables: {path} is not used: {problem}; g and l are a guess until {probe} replaces it, or LPF_TABLE names another folder"
        )?,
        (None, problem) => writeln!(out, "tables: none ({})", problem.as_deref().unwrap_or(""))?,
    }
    if !shown.tables.is_empty() {
        writeln!(out, "{}", tables(&shown.tables).trim_fmt())?;
    }
    let mut all = table(["setting", "value", "from"], 3);
    for setting in &shown.settings {
        let SettingShown { name, value, source, problem } = setting;
        // The name is in the column before.
        let is = problem.as_deref().map(|text| text.trim_start_matches(&format!("{name} is ")));
        all.add_row([name, &*output::named(is.unwrap_or(value)), source]);
    }
    for name in &shown.unknown_settings {
        all.add_row([&*output::named(name), &verdict(name), "environment"]);
    }
    writeln!(out, "{}", all.trim_fmt())
}

fn tables(tables: &[TableShown]) -> comfy_table::Table {
    let mut all = table(["backend", "p", "words", "g (ns/byte)", "l", "measured"], 1);
    for table in tables {
        let words = table.g_ns_per_byte.iter().map(|(word, _)| size(*word));
        let g = table.g_ns_per_byte.iter().zip(&table.g_ci95);
        let g = g.map(|((_, g), (_, half))| within(*g, *half, digits));
        let l = table.l_ns.iter().zip(&table.l_ci95);
        let l = l.map(|((_, l), (_, half))| within(*l, *half, time));
        let quick = if table.quick { "\nquick" } else { "" };
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
