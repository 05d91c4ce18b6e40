//! The program as a user meets it: rows, exit status, bad input, closed pipes, tables in every
//! state.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

/// A folder for tables of its own, and the right to measure: measurements beside each other would
/// only make each other slow.
struct Place {
    folder: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Place {
    fn new(name: &str) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = std::env::temp_dir().join(format!("lpf-cli-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).unwrap();
        Place { folder, _alone: alone }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lpf"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LPF_")) {
            command.env_remove(name);
        }
        command.args(arguments).env("LPF_TABLE", &self.folder).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Instances for `lpf schedule`: of a chain, and of Clairvoyant.
    fn instances(&self) -> [String; 2] {
        let chain = r#"{"P": 3, "tau": 2, "arrivals": [0, 1, 2]}"#;
        let clairvoyant = r#"{"P": 3, "N": 2, "root": 1, "d_ns": 5, "arrivals_ns": [0, 7, 20]}"#;
        [("chain.json", chain), ("clairvoyant.json", clairvoyant)].map(|(name, text)| {
            let path = self.folder.join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        })
    }

    /// The file of tables, as `info` names it.
    fn table(&self) -> PathBuf {
        let info = self.run(&["info", "--json"]);
        let shown: Value = serde_json::from_slice(&info.stdout).unwrap();
        PathBuf::from(shown["table_path"].as_str().unwrap())
    }

    fn files(&self) -> Vec<String> {
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        fs::read_dir(&self.folder).unwrap().map(|entry| name(entry.unwrap())).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Every line is an object with exactly these fields, in this order.
fn rows(output: &Output, fields: &[&str]) -> Vec<Value> {
    let text = stdout(output);
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!rows.is_empty(), "{}", stderr(output));
    for (line, row) in text.lines().zip(&rows) {
        let mut places: Vec<usize> = Vec::new();
        for field in fields {
            places.push(line.find(&format!("\"{field}\":")).unwrap_or_else(|| panic!("{line}")));
        }
        assert!(places.is_sorted(), "order of {line}");
        assert_eq!(row.as_object().unwrap().len(), fields.len(), "{line}");
    }
    rows
}

const PROBE: [&str; 14] = [
    "backend",
    "p",
    "word_bytes",
    "r_ns_per_byte",
    "g_ns_per_byte",
    "g_ci95",
    "l_ns",
    "l_ci95",
    "g_over_r",
    "l_words",
    "n_max_bytes",
    "samples",
    "host",
    "remarks",
];
const COMPLY: [&str; 10] = [
    "backend",
    "p",
    "pattern",
    "h_bytes",
    "median_ns",
    "bound_ns",
    "ratio",
    "compliant",
    "decided",
    "remarks",
];
const BENCH: [&str; 15] = [
    "backend",
    "p",
    "pattern",
    "bytes",
    "median_ns",
    "min_ns",
    "max_ns",
    "limit",
    "limit_ns",
    "samples",
    "messages_meta",
    "messages_data",
    "messages_barrier",
    "exchange",
    "remarks",
];

const COLLECTIVES: [&str; 16] = [
    "backend",
    "p",
    "collective",
    "algorithm",
    "chosen",
    "mode",
    "elements",
    "element_bytes",
    "median_ns",
    "min_ns",
    "best_ns",
    "bound_ns",
    "predicted_ns",
    "origin",
    "samples",
    "remarks",
];
const COST: [&str; 12] = [
    "backend",
    "p",
    "collective",
    "algorithm",
    "elements",
    "element_bytes",
    "supersteps",
    "h_bytes",
    "messages",
    "predicted_ns",
    "chosen",
    "origin",
];

const REDUCE: [&str; 19] = [
    "backend",
    "p",
    "call",
    "algorithm",
    "chosen",
    "pattern",
    "max_delay_ms",
    "prediction_error",
    "elements",
    "element_bytes",
    "avg_elapsed_ns",
    "run_time_ns",
    "after_last_arrival_ns",
    "bound_ns",
    "schedule_ns",
    "samples",
    "after_last_arrival_samples_ns",
    "avg_elapsed_samples_ns",
    "remarks",
];

const QUICK_PROBE: [&str; 6] = ["probe", "--quick", "--seconds", "0.2", "-p", "2"];

fn with<'a>(arguments: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [arguments, more].concat()
}

#[test]
fn a_probe_prints_its_rows_saves_them_and_info_shows_them() {
    let place = Place::new("probe");
    let output = place.run(&with(&QUICK_PROBE, &["--json"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows = rows(&output, &PROBE);
    let words: Vec<_> = rows.iter().map(|row| row["word_bytes"].as_u64().unwrap()).collect();
    assert_eq!(words, [8, 64, 1024, 1 << 20]);
    for row in &rows {
        assert!(row["remarks"].as_str().unwrap().contains("a quick probe (--quick, or"), "{row}");
        for field in &PROBE[3..12] {
            assert!(row[*field].as_f64().unwrap() > 0.0, "{field} in {row}");
        }
        assert_eq!((row["backend"].as_str(), row["p"].as_u64()), (Some("threads"), Some(2)));
    }
    assert!(stderr(&output).contains("saved in"));

    let info = place.run(&["info", "--json"]);
    let shown: Value = serde_json::from_slice(&info.stdout).unwrap();
    assert_eq!(shown["tables"][0]["p"], 2);
    assert_eq!(shown["tables"][0]["quick"], true);
    assert_eq!(shown["table_problem"], Value::Null);
    let text = stdout(&place.run(&["info"]));
    for expected in ["backends built in: threads", "LPF_TABLE", "environment", "LPF_PIN"] {
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_probe_for_people_has_the_papers_lines_and_says_where_it_saved() {
    let place = Place::new("people");
    let plot = place.folder.join("a.svg");
    let plot = plot.to_str().unwrap();
    let output = place.run(&with(&QUICK_PROBE, &["--svg", plot]));
    let text = stdout(&output);
    for line in
        ["word w", "r (ns/byte)", "g (ns/byte)", "l (us)", "g (x r)", "l (words)", "n_max is"]
    {
        assert!(text.contains(line), "no {line} in {text}");
    }
    assert!(text.contains("saved in"), "{text}");
    // A quick probe ends before a line of progress is due.
    let is_warning = |line: &str| line.starts_with("lpf: warning: in this table ");
    assert!(stderr(&output).lines().all(is_warning), "{}", stderr(&output));
    let svg = fs::read_to_string(plot).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("T(h) of a total exchange"));
    assert!(svg.matches("<circle").count() >= 4 * 3, "points for each word size");
}

#[test]
fn csv_has_one_header_also_for_several_numbers_of_processes() {
    let place = Place::new("csv");
    let output = place.run(&["probe", "--quick", "--seconds", "0.1", "-p", "1,2", "--csv"]);
    let text = stdout(&output);
    assert_eq!(text.lines().next(), Some(&*PROBE.join(",")), "{}", stderr(&output));
    assert_eq!(text.lines().count(), 1 + 2 * 4);
    assert_eq!(stderr(&output).matches("saved in").count(), 2);
}

#[test]
fn a_bench_prints_its_rows_also_with_more_processes_than_cores() {
    let place = Place::new("bench");
    let cores = std::thread::available_parallelism().unwrap().get();
    let p = format!("2,{}", cores + 1);
    let base = ["bench", "--quick", "--seconds", "0.1", "--pattern", "sync,put8,put-call,exec"];
    let output = place.run(&with(&base, &["-p", &p, "--json"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows = rows(&output, &BENCH);
    assert_eq!(rows.len(), 8);
    for row in &rows {
        let number = |field: &str| row[field].as_f64().unwrap();
        assert!(0.0 < number("min_ns") && number("min_ns") <= number("median_ns"), "{row}");
        assert!(number("median_ns") <= number("max_ns") && number("limit_ns") > 0.0, "{row}");
        assert!(number("samples") >= 1.0 && !row["limit"].as_str().unwrap().is_empty(), "{row}");
    }
    let patterns: Vec<_> = rows.iter().map(|row| row["pattern"].as_str().unwrap()).collect();
    assert_eq!(patterns[..4], ["sync", "sync", "put8", "put8"]);
    for row in &rows {
        let below = row["median_ns"].as_f64() < row["limit_ns"].as_f64();
        assert_eq!(row["remarks"].as_str().unwrap().contains("ratio below 1"), below, "{row}");
    }
}

#[test]
fn comply_measures_only_the_patterns_named() {
    let place = Place::new("named");
    let base = ["comply", "--quick", "--seconds", "0.5", "-p", "2", "--json"];
    let names = ["--pattern", "random-8B,empty", "--pattern", "oneself-get-8B"];
    let output = place.run(&with(&base, &names));
    let rows = rows(&output, &COMPLY);
    let patterns: Vec<_> = rows.iter().map(|row| row["pattern"].as_str().unwrap()).collect();
    assert_eq!(patterns, ["empty", "random-8B", "oneself-get-8B"]);
}

#[test]
fn a_misspelt_setting_is_said_by_every_command_and_listed_by_info() {
    let place = Place::new("misspelt");
    let commands: [&[&str]; 5] = [
        &["info"],
        &["probe", "--quick", "--seconds", "0.1", "-p", "1"],
        &["comply", "--quick", "--seconds", "0.1", "-p", "1", "--pattern", "empty"],
        &["bench", "--quick", "--seconds", "0.1", "--pattern", "sync", "-p", "1"],
        &[
            "bench",
            "--quick",
            "--seconds",
            "0.1",
            "--pattern",
            "sync",
            "--backend",
            "tcp",
            "-p",
            "1",
        ],
    ];
    for arguments in commands {
        let mut command = place.command(arguments);
        let output = command.env("LPF_PINN", "none").env("LPF_HEARTBEAT", "on").output().unwrap();
        let said = stderr(&output);
        let sentence = "lpf: LPF_PINN is not a setting; did you mean LPF_PIN? (";
        assert_eq!(said.matches(sentence).count(), 1, "{arguments:?}: {said}");
        assert!(!said.contains("LPF_HEARTBEAT"), "another part knows it: {said}");
    }
    let mut command = place.command(&["info", "--json"]);
    let info = command.env("LPF_PINN", "none").output().unwrap();
    let shown: Value = serde_json::from_slice(&info.stdout).unwrap();
    assert_eq!(shown["unknown_settings"], serde_json::json!(["LPF_PINN"]));
    let text = stdout(&place.command(&["info"]).env("LPF_PINN", "none").output().unwrap());
    let listed =
        |line: &str| line.trim().starts_with("LPF_PINN ") && line.contains("not a setting; did");
    assert!(text.lines().any(listed), "{text}");
}

#[test]
fn info_says_each_thing_once_and_hints_can_be_pasted() {
    let place = Place::new("once");
    let typed = env!("CARGO_BIN_EXE_lpf");
    for (package, expected) in [("lpf-cli", "cargo run --release --"), ("another", typed)] {
        let mut command = place.command(&["info"]);
        let text = stdout(&command.env("CARGO_PKG_NAME", package).output().unwrap());
        assert!(text.contains(&format!("; {expected} probe makes one")), "{text}");
        for once in ["cache ", "memory "] {
            let lines = text.lines().filter(|line| line.contains(once) && line.contains("B"));
            assert_eq!(lines.count(), 1, "{once} in {text}");
        }
    }
}

/// Value and source of a setting, as `lpf info` shows it under these variables.
fn shown(place: &Place, variables: &[(&str, &str)], name: &str) -> (String, String) {
    let output = place.command(&["info", "--json"]).envs(variables.iter().copied()).output();
    let shown: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let settings = shown["settings"].as_array().unwrap();
    let of_name = settings.iter().find(|setting| setting["name"] == name).unwrap();
    let [value, source] = ["value", "source"].map(|field| of_name[field].as_str().unwrap().into());
    (value, source)
}

#[test]
fn info_shows_a_processs_place_in_its_job_and_the_backend_that_follows_from_it() {
    let place = Place::new("in-a-job");
    let secret = "correct horse battery staple";
    let job: &[(&str, &str)] = &[
        ("LPF_RANK", "1"),
        ("LPF_SIZE", "3"),
        ("LPF_MEET", "node3:4711"),
        ("LPF_SECRET", secret),
        ("LPF_JOB", "7"),
        ("LPF_MEET_TIMEOUT", "2.5"),
    ];
    let expected = [
        ("LPF_RANK", "1"),
        ("LPF_SIZE", "3"),
        ("LPF_MEET", "node3:4711"),
        ("LPF_SECRET", "not shown"),
        ("LPF_JOB", "7"),
        ("LPF_MEET_TIMEOUT", "2.5 s"),
    ];
    for (name, value) in expected {
        assert_eq!(shown(&place, job, name), (value.into(), "environment".into()), "{name}");
    }
    let text = stdout(&place.command(&["info"]).envs(job.iter().copied()).output().unwrap());
    assert!(!text.contains(secret), "{text}");
    assert_eq!(shown(&place, job, "LPF_BACKEND"), ("tcp".into(), "LPF_MEET".into()));
    let launcher: &[(&str, &str)] =
        &[("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("LPF_MEET", "localhost:4711")];
    let by_launcher = |value: &str| (value.to_owned(), "MPI's or Slurm's launcher".to_owned());
    assert_eq!(shown(&place, launcher, "LPF_RANK"), by_launcher("0"));
    assert_eq!(shown(&place, launcher, "LPF_SIZE"), by_launcher("2"));
    assert_eq!(shown(&place, launcher, "LPF_BACKEND"), ("tcp".into(), "LPF_MEET".into()));
    let alone = |name| shown(&place, &[], name);
    assert_eq!(alone("LPF_BACKEND"), ("threads".into(), "default".into()));
    assert_eq!(alone("LPF_MEET"), ("none".into(), "default".into()));
    assert_eq!(alone("LPF_JOB"), ("0".into(), "default".into()));
}

#[test]
fn info_says_what_does_not_fit_in_a_job() {
    let place = Place::new("unfit");
    let output = place.command(&["info"]).env("LPF_RANK", "1").output().unwrap();
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("no program runs here: LPF_SIZE and LPF_MEET are missing: a job"),
        "{text}"
    );
    #[cfg(not(feature = "mpi"))]
    {
        let output = place.command(&["info"]).env("LPF_BACKEND", "mpi").output().unwrap();
        assert!(stdout(&output).contains("is built with --features mpi"), "{}", stdout(&output));
    }
}

#[test]
fn info_shows_what_it_can_beside_settings_that_are_wrong() {
    let place = Place::new("wrong");
    let wrong = |format: &[&str]| {
        let mut command = place.command(&with(&["info"], format));
        command.env("LPF_PROCS", "3").env("LPF_PIN", "sideways").env("LPF_EXCHANGE", "ring");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = "lpf: LPF_PIN is \"sideways\"; it has to be none, compact, scatter or auto\n";
        assert_eq!(stderr(&output), said);
        stdout(&output)
    };
    let text = wrong(&[]);
    assert!(text.contains("backends built in: ") && text.contains("probe makes one"), "{text}");
    for line in [
        "LPF_PROCS 3 environment",
        "LPF_PIN \"sideways\"; it has to be none, compact, scatter or auto environment",
        "LPF_EXCHANGE \"ring\"; it has to be auto, direct or bruck environment",
        "LPF_STRICT off default",
    ] {
        let is_line = |text: &str| text.split_whitespace().eq(line.split_whitespace());
        assert!(text.lines().any(is_line), "no {line}: {text}");
    }
    let shown: Value = serde_json::from_str(&wrong(&["--json"])).unwrap();
    let settings = shown["settings"].as_array().unwrap();
    let is_wrong = |setting: &&Value| setting["problem"] != Value::Null;
    let values = settings.iter().filter(is_wrong).map(|setting| &setting["value"]);
    assert_eq!(values.collect::<Vec<_>>(), ["sideways", "ring"]);
}

#[test]
fn every_pattern_of_the_bench_runs_beside_its_limit() {
    let place = Place::new("patterns");
    let plot = place.folder.join("b.svg");
    let base = ["bench", "--quick", "--seconds", "0.1", "-p", "2", "--csv"];
    let output = place.run(&with(&base, &["--svg", plot.to_str().unwrap()]));
    let text = stdout(&output);
    assert_eq!(text.lines().next(), Some(&*BENCH.join(",")));
    let names = "sync put8 get8 exchange-1000x8 exchange-256x4096 bulk-64MiB put-call exec";
    for name in names.split(' ') {
        let of_pattern = text.lines().filter(|line| line.contains(&format!(",{name},")));
        assert_eq!(of_pattern.count(), 1, "{name} in {text}");
    }
    assert!(fs::read_to_string(plot).unwrap().contains("exchange-1000x8, p = 2"));
}

/// The lines before the one that begins with `end`, none of which is longer than a terminal is wide.
fn table_of_80_columns<'a>(text: &'a str, end: &str) -> Vec<&'a str> {
    assert!(text.lines().any(|line| line.starts_with(end)), "no {end}: {text}");
    let table: Vec<_> = text.lines().take_while(|line| !line.starts_with(end)).collect();
    for line in &table {
        assert!(line.chars().count() <= 80 && *line == line.trim_end(), "{line}");
    }
    table
}

#[test]
fn tables_of_the_benches_fit_80_columns() {
    let place = Place::new("tables");
    let patterns = "sync,put8,exchange-256x4096,bulk-64MiB,put-call,exec";
    let bench = ["bench", "--quick", "--seconds", "0.1", "-p", "2", "--pattern", patterns];
    let text = stdout(&place.run(&bench));
    let table = table_of_80_columns(&text, "the references:");
    assert_eq!(table.len(), 2 + 6, "{text}");
    // Each row names its reference, and each reference that a row names is there.
    for nth in 1.. {
        let named = table.iter().filter(|line| line.contains(&format!("({nth})"))).count();
        let explained = text.lines().filter(|line| line.starts_with(&format!("({nth}) "))).count();
        assert_eq!(explained, usize::from(named > 0), "{nth} in {text}");
        if named == 0 {
            assert!(nth > 1, "{text}");
            break;
        }
    }
    let reduce = ["bench", "reduce", "--seconds", "0.1", "-p", "3", "--call", "reduce"];
    let more = ["--size", "1000000", "--pattern", "one-late,none", "--delay", "2", "--error", "50"];
    let text = stdout(&place.run(&with(&reduce, &more)));
    let table = table_of_80_columns(&text, "*: the best");
    let heading = "reduce of 977 KiB, p = 3, pattern one-late, delay 2.00 ms, error 50 %";
    assert_eq!(table.iter().filter(|line| **line == heading).count(), 1, "{text}");
    assert_eq!(table.iter().filter(|line| line.starts_with("auto (")).count(), 2, "{text}");
    let collectives = ["bench", "collectives", "--quick", "--seconds", "0.1", "-p", "3"];
    let more = ["--collective", "reduce,alltoall", "--size", "8,1000000,10000000"];
    let text = stdout(&place.run(&with(&collectives, &more)));
    let table = table_of_80_columns(&text, "time: ");
    assert_eq!(table.iter().filter(|line| line.contains("9.54 MiB")).count(), 2, "{text}");
}

/// Of one collective and length: the algorithms both ways, the choice, and MPI's own where MPI is built in.
fn check_collectives(rows: &[Value], backend: &str, algorithms: &[&str]) {
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or("none").to_owned();
    let names: Vec<_> =
        rows.iter().map(|row| (text(row, "algorithm"), text(row, "mode"))).collect();
    let both = algorithms.iter().flat_map(|&name| [(name, "expected"), (name, "full")]);
    let own = cfg!(feature = "mpi").then_some(("own", "none"));
    let wanted = both.chain([("chosen", "expected")]).chain(own);
    let wanted: Vec<_> = wanted.map(|(name, mode)| (name.to_owned(), mode.to_owned())).collect();
    assert_eq!(names, wanted);
    for row in rows {
        let number = |field: &str| row[field].as_f64().unwrap();
        assert!(0.0 < number("min_ns") && number("min_ns") <= number("median_ns"), "{row}");
        assert!(number("samples") >= 1.0, "{row}");
        assert_eq!(row["element_bytes"], 8);
        assert_eq!(row["best_ns"].as_f64() > Some(0.0), row["algorithm"] == "chosen", "{row}");
        let chosen = row["chosen"].as_str();
        let is_known = chosen.is_some_and(|name| algorithms.contains(&name));
        assert_eq!(is_known, row["algorithm"] == "chosen", "{row}");
        assert_eq!(chosen.is_some(), is_known, "{row}");
        if row["algorithm"] == "own" {
            assert!(["openmpi", "mpich"].contains(&row["backend"].as_str().unwrap()), "{row}");
            assert!(row["mode"].is_null() && row["predicted_ns"].is_null(), "{row}");
            // It does not go through sockets.
            assert_eq!(row["bound_ns"].is_null(), backend == "tcp", "{row}");
            assert!(row["origin"].is_null(), "{row}");
        } else {
            assert_eq!(row["backend"], backend);
            assert!(number("predicted_ns") > 0.0 && number("bound_ns") > 0.0, "{row}");
            assert_eq!(row["origin"], "guess", "{row}");
        }
        let below = row["median_ns"].as_f64() < row["bound_ns"].as_f64();
        let says_so = row["remarks"].as_str().unwrap().contains("less than its bound");
        assert_eq!(says_so, below, "{row}");
    }
}

#[test]
fn bench_collectives_times_every_algorithm_of_every_collective() {
    let place = Place::new("collectives");
    let plot = place.folder.join("d.svg");
    let base = ["bench", "collectives", "--quick", "--seconds", "0.1", "-p", "2", "--json"];
    let more = ["--size", "4096,8", "--svg", plot.to_str().unwrap()];
    let output = place.run(&with(&base, &more));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found = rows(&output, &COLLECTIVES);
    let names =
        "broadcast reduce allreduce reduce-scatter scan exscan gather scatter allgather alltoall";
    for name in names.split(' ') {
        let of_name: Vec<_> = found.iter().filter(|row| row["collective"] == name).collect();
        let elements: Vec<_> = of_name.iter().map(|row| row["elements"].as_u64()).collect();
        // Where each process has a block, there is an element for each.
        let blocks = ["reduce-scatter", "scatter", "alltoall"].contains(&name);
        let first = if blocks { Some(2) } else { Some(1) };
        let half = of_name.len() / 2;
        assert!(elements[..half].iter().all(|&n| n == first), "{name}: {elements:?}");
        assert!(elements[half..].iter().all(|&n| n == Some(512)), "{name}: {elements:?}");
    }
    let is_short = |row: &&Value| row["collective"] == "allreduce" && row["elements"] == 1;
    let of_8: Vec<_> = found.iter().filter(is_short).cloned().collect();
    check_collectives(&of_8, "threads", &["doubling", "ring", "rabenseifner", "transpose"]);
    assert!(stderr(&output).contains("of the best algorithm in "), "{}", stderr(&output));
    // Of several figures each has a file of its own.
    assert!(!plot.exists() && stderr(&output).contains("10 figures, from "), "{}", stderr(&output));
    for name in names.split(' ') {
        let svg = fs::read_to_string(place.folder.join(format!("d-{name}-p2.svg"))).unwrap();
        let title = format!("{name}, 2 processes, threads");
        for text in
            [&*title, "median time", "contribution of one process", "thin: in full supersteps"]
        {
            assert!(svg.contains(text), "{name}: no {text}");
        }
        assert_eq!(svg.contains("rabenseifner"), ["reduce", "allreduce"].contains(&name), "{name}");
    }
}

#[test]
fn bench_collectives_for_people_says_how_often_the_choice_is_right() {
    let place = Place::new("share");
    let base = ["bench", "collectives", "--quick", "--seconds", "0.1", "--size", "64"];
    let cores = std::thread::available_parallelism().unwrap().get();
    let p = format!("2,{}", cores + 1);
    let output = place.run(&with(&base, &["--collective", "scan,broadcast", "-p", &p]));
    let text = stdout(&output);
    let table = table_of_80_columns(&text, "time: ");
    assert_eq!(table.iter().filter(|line| line.contains("64 B")).count(), 4, "{text}");
    for group in ["scan, p = 2", "broadcast, p = 2"] {
        assert_eq!(table.iter().filter(|line| **line == group).count(), 1, "{text}");
    }
    assert!(text.contains("g and l are a guess, because there is no table of threads here: "));
    assert!(text.contains("the choice is within 10 % or 300 ns of the best algorithm in "));
    assert!(text.contains(" of 4 cells ("), "{text}");
    assert_eq!(text.contains("build with --features mpi"), !cfg!(feature = "mpi"), "{text}");
    let csv = place.run(&with(&base, &["--collective", "scan", "-p", "2", "--csv"]));
    assert_eq!(stdout(&csv).lines().next(), Some(&*COLLECTIVES.join(",")));
}

#[test]
fn bench_collectives_goes_between_processes_too() {
    let place = Place::new("tcp-collectives");
    let base = ["bench", "collectives", "--quick", "--seconds", "0.1", "-p", "2", "--json"];
    let more = ["--backend", "tcp", "--collective", "alltoall", "--size", "1024"];
    let output = place.run(&with(&base, &more));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    check_collectives(&rows(&output, &COLLECTIVES), "tcp", &["direct", "bruck"]);
    let in_job = place.run(&in_a_job("2", &with(&base[..5], &more[2..])));
    assert!(stdout(&in_job).contains("of the best algorithm"), "{}", stderr(&in_job));
}

/// Of reductions of processes that arrive at different times: what every algorithm took, and what that says.
fn check_reduce(rows: &[Value], backend: &str) {
    for row in rows.iter().filter(|row| row["backend"] == backend) {
        let number = |field: &str| row[field].as_f64().unwrap_or_else(|| panic!("{field}: {row}"));
        assert!(
            number("run_time_ns") >= number("after_last_arrival_ns") && number("bound_ns") > 0.0,
            "{row}"
        );
        assert!(number("avg_elapsed_ns") > 0.0 && number("samples") > 0.0, "{row}");
        let samples = row["after_last_arrival_samples_ns"].as_str().unwrap().split(' ').count();
        assert_eq!(samples as u64, row["samples"].as_u64().unwrap(), "{row}");
    }
    // A process that is late on purpose makes a run long. On a busy machine the others may be late, too: not all runs are.
    let of_late = rows.iter().filter(|row| row["pattern"] == "one-late");
    let is_long = |row: &Value| {
        row["run_time_ns"].as_f64().unwrap() >= 5e5 * row["max_delay_ms"].as_f64().unwrap()
    };
    assert!(of_late.clone().count() == 0 || of_late.clone().any(is_long), "{rows:?}");
}

#[test]
fn bench_reduce_times_every_algorithm_of_processes_that_are_late() {
    let place = Place::new("reduce");
    let base = ["bench", "reduce", "--seconds", "0.1", "-p", "3", "--size", "4096", "--json"];
    let output = place.run(&with(&base, &["--delay", "5", "--error", "0,50"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows = rows(&output, &REDUCE);
    check_reduce(&rows, "threads");
    let of = |call: &str, pattern: &str, percent: u64| -> Vec<String> {
        let named = rows.iter().filter(|row| {
            row["call"] == call
                && row["pattern"] == pattern
                && row["prediction_error"] == percent as f64 / 100.0
        });
        let named = named.filter(|row| row["backend"] == "threads");
        named.map(|row| row["algorithm"].as_str().unwrap().to_owned()).collect()
    };
    for row in &rows {
        let known = |one: &str| {
            let (name, count) = one.rsplit_once(' ').unwrap();
            count.parse::<u32>().unwrap() > 0 && !name.is_empty() && name != "auto"
        };
        let is_known = row["chosen"].as_str().is_some_and(|chosen| chosen.split(", ").all(known));
        assert_eq!(is_known, row["algorithm"] == "auto", "{row}");
    }
    let reduce = [
        "direct",
        "transpose",
        "square",
        "binomial",
        "rabenseifner",
        "radix-k",
        "ring",
        "clairvoyant",
        "binomial-stat",
        "fibonacci-stat",
        "tree-predicted",
        "tree-dyn",
        "non-commut-tree-dyn",
        "auto",
    ];
    let allreduce = [
        "doubling",
        "ring",
        "rabenseifner",
        "transpose",
        "linear",
        "chain-ring",
        "slt",
        "prr",
        "clairvoyant",
        "auto",
    ];
    for pattern in ["none", "one-late", "random"] {
        for percent in [0, 50] {
            assert_eq!(of("reduce", pattern, percent), reduce);
            assert_eq!(of("allreduce", pattern, percent), allreduce);
        }
    }
    assert!(stderr(&output).contains("of the best algorithm in"), "{}", stderr(&output));
}

#[test]
fn bench_reduce_takes_a_recorded_trace_draws_and_goes_between_processes() {
    let place = Place::new("reduce-trace");
    let file = |name: &str, text: &str| {
        let path = place.folder.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = file("good.json", "[[0, 2000000], [3000000, 0]]");
    let plot = place.folder.join("late.svg");
    let base = ["bench", "reduce", "--seconds", "0.1", "-p", "2", "--size", "800"];
    let more = ["--backend", "tcp", "--algorithm", "prr,auto,tree-dyn", "--trace", &good];
    let output = place.run(&with(&with(&base, &more), &["--svg", plot.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for word in ["tree-dyn", "prr", "auto", "trace", "of the best algorithm in"] {
        assert!(stdout(&output).contains(word), "{word}: {}", stdout(&output));
    }
    for (call, algorithm) in [("reduce", "tree-dyn"), ("allreduce", "prr")] {
        let path = place.folder.join(format!("late-{call}-p2-trace-800B.svg"));
        let plot = fs::read_to_string(&path).unwrap();
        let title = format!("{call} of 800 B, 2 processes, pattern trace");
        for text in [&*title, "after the last arrival", algorithm, "auto", "median time"] {
            assert!(plot.contains(text), "{call}: no {text} in {plot}");
        }
        assert!(!plot.contains("\ndelay\n"), "{call}: an axis of delays: {plot}");
    }
    // One figure has the name that was asked for; with several delays, time is shown against delay.
    let one = place.folder.join("one.svg");
    let one = one.to_str().unwrap();
    let lines = ["--call", "reduce", "--pattern", "one-late", "--delay", "1,2", "--svg", one];
    let output = place.run(&with(&with(&base, &lines), &["--algorithm", "auto,binomial"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let plot = fs::read_to_string(one).unwrap();
    for text in ["time after the last arrival", "mean time in the call", "\ndelay\n", "2 ms"] {
        assert!(plot.contains(text), "no {text} in {plot}");
    }
    for (name, text, expected) in [
        ("none.json", "[]", "no repetition"),
        ("short.json", "[[0, 1], [1]]", "row 1 has 1 times for 2 processes"),
        ("late.json", "[[0, 3600000000001]]", "the most is an hour"),
        ("empty.json", "\n", "is empty; it has to hold a list of lists"),
        ("minus.json", "[[0, 1], [0, -1]]", "[1][1] is -1; it has to be a whole number"),
        ("half.json", "[[0.5, 0]]", "[0][0] is 0.5; it has to be a whole number"),
        ("times.json", "[0, 1]", "is not a list of lists of whole numbers"),
        ("text.json", "late", "is not a list of lists of whole numbers"),
    ] {
        let output = place.run(&with(&base, &["--trace", &file(name, text)]));
        check_refused(&output, expected, name);
    }
    check_refused(
        &place.run(&with(&base, &["--trace", "/no/such"])),
        "name another file",
        "no file",
    );
}

#[test]
fn cost_says_what_each_algorithm_takes_and_where_g_and_l_come_from() {
    let place = Place::new("cost");
    let base = ["cost", "allreduce", "-n", "1000", "-p", "64"];
    let text = stdout(&place.run(&base));
    assert!(text.starts_with("allreduce among 64 processes, 1000 elements (8000 B) each\n"));
    assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
    assert_eq!(text.matches("chosen").count(), 1, "{text}");
    assert!(
        text.contains("g and l are a guess, because there is no table of threads here: "),
        "{text}"
    );
    let found = rows(&place.run(&with(&base, &["--json"])), &COST);
    let names: Vec<_> = found.iter().map(|row| row["algorithm"].as_str().unwrap()).collect();
    assert_eq!(names, ["doubling", "ring", "rabenseifner", "transpose"]);
    let numbers = |row: &Value| ["supersteps", "h_bytes", "messages"].map(|f| row[f].as_f64());
    assert_eq!(numbers(&found[0]), [Some(6.0), Some(48_000.0), Some(6.0)]);
    // 125 lines among 64 processes: two for the busiest.
    assert_eq!(numbers(&found[3]), [Some(2.0), Some(16_128.0), Some(126.0)]);
    let of_one = ["cost", "allreduce", "-n", "1", "--element", "4096", "-p", "64", "--json"];
    let of_one = rows(&place.run(&of_one), &COST);
    assert_eq!(numbers(&of_one[3]), [Some(2.0), Some(516_096.0), Some(126.0)]);
    let time = |row: &Value| row["predicted_ns"].as_f64().unwrap();
    let least = found.iter().map(time).fold(f64::INFINITY, f64::min);
    for row in &found {
        assert_eq!(row["chosen"], time(row) == least, "{row}");
        assert_eq!(row["origin"], "guess", "{row}");
    }
    // With the g and l of a guess two phases cost 2 % less.
    let near = stdout(&place.run(&["cost", "broadcast", "-n", "800", "-p", "4"]));
    let direct = near.lines().find(|line| line.contains("direct")).unwrap();
    assert!(direct.ends_with("chosen"), "{near}");
    assert!(
        near.contains(
            "\nchosen for its fewer supersteps, among those within 5 % of the smallest\n"
        )
    );

    place.run(&QUICK_PROBE);
    for (p, origin) in [("2", "measured"), ("64", "extrapolated")] {
        let text = stdout(&place.run(&["cost", "scan", "-p", p]));
        assert!(text.contains(&format!("g and l are {origin}")), "{text}");
        assert!(text.contains("2 processes"), "{text}");
    }
    // Another machine's file is as good.
    let mut foreign: Value =
        serde_json::from_str(&fs::read_to_string(place.table()).unwrap()).unwrap();
    foreign["host"] = "elsewhere".into();
    foreign["tables"][0]["backend"] = "mpi".into();
    let file = place.folder.join("theirs");
    fs::write(&file, foreign.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let theirs = rows(&place.run(&["cost", "scan", "-p", "2", "--table", file, "--json"]), &COST);
    assert_eq!((&theirs[0]["backend"], &theirs[0]["origin"]), (&"mpi".into(), &"measured".into()));
    let wrong = place.run(&["cost", "scan", "--table", file, "--backend", "tcp"]);
    check_refused(&wrong, "has no table of tcp; it has those of mpi", "--table");
}

#[test]
fn cost_says_whose_elements_they_are_and_rounds_up_to_blocks() {
    let place = Place::new("elements");
    let text = stdout(&place.run(&["cost", "broadcast", "-n", "1e6", "-p", "4"]));
    let head = "broadcast among 4 processes, 1000000 elements (7.63 MiB) at the root\n";
    assert!(text.starts_with(head), "{text}");
    let alltoall = ["cost", "alltoall", "-n", "1_001", "-p", "4"];
    let text = stdout(&place.run(&alltoall));
    assert!(
        text.starts_with("alltoall among 4 processes, 1004 elements (8032 B) each\n"),
        "{text}"
    );
    assert!(
        text.ends_with("1001 elements are rounded up to 1004: the same number for each process\n")
    );
    let found = rows(&place.run(&with(&alltoall, &["--json"])), &COST);
    assert!(found.iter().all(|row| row["elements"] == 1004), "{found:?}");
    let text = stdout(&place.run(&["cost", "scan", "--backend", "mpi"]));
    let advises = text.contains("built with it: cargo build --release --bin lpf --features mpi");
    assert_eq!(advises, !cfg!(feature = "mpi"), "{text}");
}

#[test]
fn comply_prints_its_rows_and_its_status_is_the_verdict() {
    let place = Place::new("comply");
    let plot = place.folder.join("c.svg");
    let base = ["comply", "--quick", "--seconds", "2", "-p", "2", "--json"];
    let output = place.run(&with(&base, &["--svg", plot.to_str().unwrap()]));
    let rows = rows(&output, &COMPLY);
    for row in &rows {
        let number = |field: &str| row[field].as_f64().unwrap();
        let kept = number("median_ns") <= number("bound_ns");
        let verdict = if row["decided"] == true { Value::Bool(kept) } else { Value::Null };
        assert_eq!(row["compliant"], verdict, "{row}");
        let ratio = 1.2 * number("median_ns") / number("bound_ns");
        assert!((ratio - number("ratio")).abs() < 1e-9 * ratio.max(1.0), "{row}");
    }
    let decided = rows.iter().filter(|row| row["decided"] == true).count();
    let status = match () {
        () if rows.iter().any(|row| row["compliant"] == false) => 1,
        () if 2 * decided >= rows.len() => 0,
        () => 3,
    };
    assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
    assert_eq!(stderr(&output).contains("or worse only"), decided < rows.len());
    let kinds = "total-exchange-1B total-exchange-get-1048576B one-line-written-by-all-8B \
                 hot-spot-in-8B hot-spot-out-get-4096B overlapping-8B random-8B mixed-8B \
                 oneself-8B one-idle-8B h-sweep-8B empty";
    for kind in kinds.split_whitespace() {
        assert!(rows.iter().any(|row| row["pattern"] == kind), "no {kind}");
    }
    assert!(fs::read_to_string(plot).unwrap().contains("1.2 (h g + l)"));
}

#[test]
fn wrong_arguments_and_settings_give_one_sentence_and_status_2() {
    let place = Place::new("wrong");
    let cases: &[(&[&str], &str)] = &[
        (&["probe", "-p", "0"], "from 1 to"),
        (&["probe", "-p", "-3"], "-3"),
        (&["probe", "-p", "many"], "number of processes"),
        (&["probe", "-p", "99999999999"], "from 1 to"),
        (&["comply", "--seconds", "0"], "seconds above 0"),
        (&["comply", "--seconds", "nan"], "seconds above 0"),
        (&["bench", "--pattern", "put8", "-p", "1"], "at least two processes"),
        (&["bench", "--json", "--csv"], "exclude each other"),
        (&["probe", "--svg", "/no/such/folder/a.svg"], "name another file"),
        (&["probe", "--backend", "ibverbs"], "not built into this program"),
        (&["probe", "--backend", "pigeons"], "is not a backend"),
        (&["comply", "--backend", "pigeons"], "is not a backend"),
        (&["bench", "--backend", "tcp", "--pattern", "exec"], "on threads only"),
        (&["measure"], "measure is a part of probe, comply and bench"),
        (&["bench", "collectives", "-p", "1"], "give -p 2 or more"),
        (&["bench", "reduce", "-p", "1,2", "--backend", "tcp"], "give -p 2 or more"),
        (&["bench", "collectives", "--size", "0"], "number of bytes from 1"),
        (&["bench", "collectives", "--size", "1e10"], "number of bytes from 1"),
        (&["bench", "collectives", "--svg", "a.png"], "name of a png; name a.svg"),
        (&["cost", "gather_v"], "counts as its even form here: name gather"),
        (&["cost", "gather", "-n", "1e12", "--element", "1e9"], "exceed the largest number"),
        (&["bench", "collectives", "--json", "--csv"], "exclude each other"),
        (&["bench", "collectives", "--svg", "/no/such/folder/a.svg"], "name another file"),
        (&["bench", "--json", "collectives"], "has to follow"),
        (
            &["bench", "--json", "colectives"],
            "nothing called colectives; did you mean collectives?",
        ),
        (&["bench", "put"], "did you mean --pattern put8?"),
        (&["probe", "--backend", "thread"], "did you mean threads?"),
        (&["bench", "reduce", "--pattern", "trace"], "add --trace FILE"),
        (&["bench", "reduce", "--pattern", "none", "--trace", "a.json"], "--pattern trace"),
        (&["bench", "reduce", "--delay", "-1"], "milliseconds from 0"),
        (&["bench", "reduce", "--error", "101"], "percent from 0 to 100"),
        (&["bench", "reduce", "--svg", "a.png"], "name of a png; name a.svg"),
        (&["bench", "everything"], "bench has nothing called everything"),
        (&["cost"], "COLLECTIVE is missing"),
        (&["cost", "scan", "-p", "0"], "from 1 to"),
        (&["cost", "scan", "--backend", "pigeons"], "there are threads, tcp and mpi"),
        (&["cost", "scan", "--table", "/no/such/file"], "name a file that lpf probe has saved"),
        (&["cost", "scan", "--table", "/"], "it is a folder; name a file"),
        (&["probe", "--frobnicate"], "there is no argument --frobnicate"),
        (&["probe", "extra"], "extra"),
        (&["frobnicate"], "there is no command frobnicate"),
        (&[], "a command is missing"),
    ];
    for (arguments, expected) in cases {
        check_refused(&place.run(arguments), expected, &format!("{arguments:?}"));
    }
    #[cfg(not(feature = "mpi"))]
    for command in ["probe", "comply", "bench"] {
        let output = place.run(&[command, "--backend", "mpi"]);
        check_refused(&output, "not built into this program", command);
        check_refused(&output, "is built with --features mpi", command);
    }
    let settings = [
        ("LPF_PIN", "sideways", "none, compact, scatter or auto"),
        ("LPF_PROCS", "0", "a number of processes from 1 to 65536"),
        ("LPF_TOPOLOGY", "2xx", "1 to 8 sizes of levels from 1 to 1024, outermost first"),
        ("LPF_CHECK", "perhaps", "0 or 1"),
        ("LPF_STRICT", "2", "0 or 1"),
        ("LPF_TIMEOUT", "soon", "a number of seconds from 0 (0 means off) to below 1e9, or off"),
        ("LPF_PROBE", "-1", "a number of seconds from 0 (0 means off) to below 1e9, or off"),
        ("LPF_PROBE", "", "a number of seconds from 0 (0 means off) to below 1e9, or off"),
        ("LPF_TABLE", "", "the name of a folder"),
        ("LPF_EXCHANGE", "ring", "auto, direct or bruck"),
        ("LPF_HEARTBEAT", "slow", "on or off"),
        ("LPF_SEAL_DATA", "key", "0 or 1"),
        ("LPF_MEET_TIMEOUT", "off", "a number of seconds above 0"),
    ];
    for (name, value, expected) in settings {
        let output = place.command(&["probe", "--quick"]).env(name, value).output().unwrap();
        check_refused(&output, &format!("{name} is \"{value}\"; it has to be {expected}"), name);
    }
    let output = place.command(&["probe"]).env("LPF_BACKEND", "hybrid").output().unwrap();
    check_refused(&output, "backend \"hybrid\" (LPF_BACKEND, --backend) is not built", "hybrid");
}

/// A job of `n` processes of this program, as a user starts it.
fn in_a_job<'a>(n: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    with(&["run", "-n", n, "--", env!("CARGO_BIN_EXE_lpf")], arguments)
}

#[test]
fn between_processes_a_probe_starts_them_and_saves_a_table_that_programs_use() {
    let place = Place::new("tcp-probe");
    let base = ["probe", "--quick", "--seconds", "1", "-p", "2", "--json"];
    let probed = rows(&place.run(&with(&base, &["--backend", "tcp"])), &PROBE);
    assert_eq!(probed.len(), 4);
    assert!(probed.iter().all(|row| row["backend"] == "tcp" && row["p"] == 2), "{probed:?}");
    let table: Value = serde_json::from_str(&fs::read_to_string(place.table()).unwrap()).unwrap();
    assert_eq!(table["tables"][0]["backend"], "tcp");
    assert_eq!(table["tables"][0]["parameters"]["growth"], "message-passing");
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "a_program_on_tcp", "--ignored", "--nocapture"]);
    let said = stdout(&program.env("LPF_TABLE", &place.folder).output().unwrap());
    assert!(said.contains("l is Extrapolated"), "{said}");
}

#[test]
fn a_probe_of_many_processes_saves_the_cheaper_way_to_exchange() {
    let place = Place::new("exchange");
    let arguments = ["probe", "--backend", "tcp", "--quick", "--seconds", "0.2", "-p", "8"];
    let output = place.run(&arguments);
    let said = stdout(&output);
    assert!(said.contains("an empty superstep takes "), "{said}{}", stderr(&output));
    let table: Value = serde_json::from_str(&fs::read_to_string(place.table()).unwrap()).unwrap();
    let way = table["tables"][0]["exchange"].as_str().unwrap();
    assert!(["direct", "bruck"].contains(&way), "{way}");
    assert!(said.contains(&format!("programs will use {way}")), "{said}");
}

/// One process of a job of one, which says where its g and l come from.
#[test]
#[ignore = "another test runs it, in a process of its own"]
fn a_program_on_tcp() {
    let meeting = lpf::control::rendezvous::Meeting::new("127.0.0.1:4000", 0, 1);
    let mut member = lpf::Member::new(meeting).unwrap();
    let told = member.hook(|ctx| {
        println!("l is {:?}", ctx.probe().origin());
        Ok(())
    });
    told.unwrap();
}

#[test]
fn in_a_job_process_0_prints_and_a_p_beyond_it_is_refused_once() {
    let place = Place::new("job");
    let base = ["comply", "--quick", "--seconds", "0.5", "--pattern", "empty,random-8B", "--json"];
    let found = rows(&place.run(&in_a_job("2", &base)), &COMPLY);
    let of_tcp = |row: &Value| row["backend"] == "tcp" && row["p"] == 2;
    assert!(found.len() == 2 && found.iter().all(of_tcp), "{found:?}");
    let cases: [(&[&str], &str); 3] = [
        (&["probe", "-p", "3"], "-p 3 cannot be measured in this job of 2 processes"),
        (&["bench", "--backend", "threads"], "one of a job of 2"),
        (&["bench", "--pattern", "snyc"], "did you mean sync?"),
    ];
    for (arguments, expected) in cases {
        let output = place.run(&in_a_job("2", arguments));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(said.matches(expected).count(), 1, "{said}");
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn between_processes_bench_counts_messages_of_both_ways_to_exchange() {
    let place = Place::new("tcp-bench");
    let base = ["bench", "--backend", "tcp", "--quick", "--seconds", "0.1", "-p", "2,3", "--json"];
    let arguments = with(&base, &["--pattern", "sync,get8,exchange-1000x8"]);
    for (way, sync) in [("direct", [1, 2]), ("bruck", [2, 4])] {
        let mut command = place.command(&arguments);
        let found = rows(&command.env("LPF_EXCHANGE", way).output().unwrap(), &BENCH);
        assert_eq!(found.len(), 6);
        for row in &found {
            let says_why =
                row["remarks"].as_str().unwrap().contains("a get takes two consecutive messages");
            assert_eq!(says_why, row["pattern"] == "get8", "{row}");
            let p = row["p"].as_u64().unwrap() as usize;
            assert_eq!((&row["backend"], &row["exchange"]), (&"tcp".into(), &way.into()), "{row}");
            assert!(row["limit_ns"].as_f64().unwrap() > 0.0, "{row}");
            assert_eq!(row["messages_barrier"], 0, "{row}");
            if row["pattern"] == "sync" {
                assert_eq!(
                    (&row["messages_meta"], &row["messages_data"]),
                    (&sync[p - 2].into(), &0.into())
                );
            }
        }
    }
    let threads = place.run(&[
        "bench",
        "--quick",
        "--seconds",
        "0.1",
        "-p",
        "2",
        "--pattern",
        "sync",
        "--json",
    ]);
    let row = &rows(&threads, &BENCH)[0];
    assert!(row["messages_meta"].is_null() && row["exchange"].is_null(), "{row}");
}

#[test]
fn a_misspelt_pattern_is_refused_with_the_one_meant_and_a_list() {
    let place = Place::new("pattern");
    let cases: &[(&[&str], &str)] = &[
        (&["bench", "--pattern", "snyc"], "\"snyc\"; did you mean sync? There are:\n  sync\n"),
        (
            &["comply", "--pattern", "empty,random8B"],
            "did you mean random-8B? There are:\n  empty\n",
        ),
        (
            &["bench", "collectives", "--collective", "scan,all_reduce"],
            "\"all_reduce\"; did you mean allreduce? There are:\n  broadcast\n",
        ),
        (&["bench", "reduce", "--call", "scan"], "no call \"scan\"; there are:\n  reduce\n"),
        (
            &["bench", "reduce", "--pattern", "one_late"],
            "did you mean one-late? There are:\n  none\n",
        ),
        (&["bench", "reduce", "--algorithm", "pr"], "did you mean prr? There are:\n  direct\n"),
        (&["cost", "reducescatter"], "did you mean reduce-scatter? There are:\n  broadcast\n"),
    ];
    for (arguments, expected) in cases {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

#[test]
fn checked_mode_has_no_part_in_what_is_measured_and_that_is_said() {
    let place = Place::new("checked");
    let commands: [&[&str]; 3] = [
        &["probe", "--quick", "--seconds", "0.1", "-p", "1"],
        &["comply", "--quick", "--seconds", "0.1", "-p", "1", "--pattern", "empty"],
        &["bench", "--quick", "--seconds", "0.1", "--pattern", "sync", "-p", "2"],
    ];
    for arguments in commands {
        for (value, times) in [("1", 1), ("0", 0)] {
            let output = place.command(arguments).env("LPF_CHECK", value).output().unwrap();
            let said = stdout(&output);
            assert_eq!(said.matches("LPF_CHECK=1 has no effect here").count(), times, "{said}");
        }
    }
}

#[test]
fn a_number_of_processes_named_twice_is_measured_once_and_one_alone_says_what_it_lacks() {
    let place = Place::new("twice");
    let base = ["bench", "--quick", "--seconds", "0.1", "--json", "-p", "1,2,1"];
    let output = place.run(&with(&base, &["--pattern", "sync,put8,exec"]));
    let rows = rows(&output, &BENCH);
    let left_out = |row: &Value| row["remarks"].as_str().unwrap().contains("left out: put8, exec");
    let found: Vec<_> =
        rows.iter().map(|row| (row["p"].as_u64().unwrap(), left_out(row))).collect();
    assert_eq!(found, [(1, true), (2, false), (2, false), (2, false)]);
    let output = place.run(&["probe", "--quick", "--seconds", "0.1", "-p", "1,1"]);
    let text = stdout(&output);
    assert_eq!(text.matches(", 1 process\n").count(), 1, "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_plot_that_cannot_be_written_costs_neither_the_rows_nor_the_table() {
    let place = Place::new("full");
    let output = place.run(&with(&QUICK_PROBE, &["--svg", "/dev/full"]));
    let (text, said) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(text.contains("g (ns/byte)") && text.contains("saved in"), "{text}");
    assert!(said.contains("/dev/full"), "{said}");
}

#[test]
fn an_interval_is_shown_by_info_too() {
    let place = Place::new("interval");
    place.run(&QUICK_PROBE);
    assert!(stdout(&place.run(&["info"])).contains(" +- "));
    let info = place.run(&["info", "--json"]);
    let shown: Value = serde_json::from_slice(&info.stdout).unwrap();
    assert_eq!(shown["tables"][0]["g_ci95"].as_array().unwrap().len(), 4);
}

fn check_refused(output: &Output, expected: &str, what: &str) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{what}: {said}");
    assert!(said.contains(expected), "{what}: {said}");
    assert_eq!(said.lines().count(), 1, "{what}: {said}");
    assert_eq!(stdout(output), "", "{what}");
}

#[test]
fn every_commands_help_shows_examples() {
    let place = Place::new("help");
    let commands: [&[&str]; 8] = [
        &[],
        &["probe"],
        &["comply"],
        &["bench"],
        &["bench", "collectives"],
        &["bench", "reduce"],
        &["cost"],
        &["info"],
    ];
    for command in commands {
        let output = place.run(&with(command, &["--help"]));
        assert_eq!(output.status.code(), Some(0));
        let text = stdout(&output);
        assert!(text.contains("Examples:\n  "), "{command:?}");
    }
}

#[test]
fn help_has_every_field_of_a_row() {
    let place = Place::new("fields");
    let commands = [
        ("cost", "allreduce --json"),
        ("probe", "--json --quick --seconds 0.1 -p 2"),
        ("comply", "--pattern empty --json --quick --seconds 0.1 -p 2"),
        ("bench", "--pattern sync --json --quick --seconds 0.1 -p 2"),
        ("bench collectives", "--collective gather --size 8 --json --quick --seconds 0.1 -p 2"),
        ("bench reduce", "--call reduce --size 8 --json --quick --seconds 0.1 -p 2"),
        ("schedule bench", "--json --seconds 0.1 -p 2"),
    ];
    for (command, arguments) in commands {
        let command: Vec<&str> = command.split(' ').collect();
        let help = stdout(&place.run(&with(&command, &["--help"])));
        let (_, fields) = help.split_once("ows of --json").expect("the help lists the fields");
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let output = place.run(&with(&command, &arguments));
        let rows = stdout(&output);
        let row = rows.lines().next().unwrap_or_else(|| panic!("{command:?}: {}", stderr(&output)));
        let row: Value = serde_json::from_str(row).unwrap();
        let is_named = |field: &str| {
            let mut words = fields.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.any(|word| word == field)
        };
        for (field, _) in row.as_object().unwrap() {
            assert!(is_named(field), "{command:?} --help does not have {field}");
        }
    }
}

/// A file on which nothing can be written.
fn full() -> fs::File {
    fs::File::options().write(true).open("/dev/full").unwrap()
}

#[test]
fn output_that_is_not_written_is_an_error_of_every_command() {
    let place = Place::new("lost");
    let [chain, clairvoyant] = &place.instances();
    const SHORT: [&str; 5] = ["--quick", "--seconds", "0.1", "-p", "1"];
    let mut commands: Vec<Vec<&str>> = [
        "--help",
        "--version",
        "run --help",
        "bench collectives --help",
        "secret",
        "completions bash",
        "completions zsh",
        "info",
        "info --json",
        "cost scan",
        "cost scan --json",
        "schedule bench -p 2 --seconds 0.1",
        "schedule bench -p 2 --seconds 0.1 --json",
        "run -n 2 --tag echo text",
    ]
    .map(|line| line.split(' ').collect())
    .into();
    for form in [&[][..], &["--json"]] {
        commands.push([&["schedule", "ring", "--instance", chain], form].concat());
        commands.push([&["schedule", "clairvoyant", "--instance", clairvoyant], form].concat());
    }
    for form in [&[][..], &["--json"], &["--csv"]] {
        commands.push([&["bench", "--pattern", "sync"], &SHORT[..], form].concat());
    }
    commands.push([&["probe"], &SHORT[..]].concat());
    commands.push([&["comply", "--pattern", "empty", "--csv"], &SHORT[..]].concat());
    for arguments in commands {
        let output = place.command(&arguments).stdout(full()).output().unwrap();
        let said = stderr(&output);
        assert!(matches!(output.status.code(), Some(1 | 3)), "{arguments:?}: {said}");
        let why = "lpf: the output cannot be written: No space left on device (os error 28)\n";
        assert!(said.ends_with(why), "{arguments:?}: {said}");
        assert_eq!(said.matches("cannot be written").count(), 1, "{arguments:?}: {said}");
    }
}

#[test]
fn a_file_that_is_not_written_is_an_error_of_every_command_that_writes_one() {
    let place = Place::new("files");
    let [chain, clairvoyant] = &place.instances();
    const SHORT: [&str; 5] = ["--quick", "--seconds", "0.1", "-p", "2"];
    let commands = [
        vec!["schedule", "slt", "--instance", chain],
        vec!["schedule", "clairvoyant", "--instance", clairvoyant, "--json"],
        [&["bench", "--pattern", "sync", "--csv"], &SHORT[..]].concat(),
        [&["comply", "--pattern", "empty"], &SHORT[..]].concat(),
        [&["bench", "collectives", "--collective", "scan", "--size", "8"], &SHORT[..]].concat(),
        [&["bench", "reduce", "--pattern", "none", "--call", "reduce", "--size", "8"], &SHORT[..]]
            .concat(),
    ];
    for arguments in commands {
        let output = place.run(&with(&arguments, &["--svg", "/dev/full"]));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        let why = "lpf: the plot /dev/full cannot be written: No space left on device";
        assert!(said.contains(why), "{arguments:?}: {said}");
        assert!(!stdout(&output).is_empty(), "{arguments:?}");
    }
    #[cfg(unix)]
    {
        let folder = place.folder.join("man1");
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink("/dev/full", folder.join("lpf-info.1")).unwrap();
        let output = place.run(&["man", folder.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("No space left on device"), "{}", stderr(&output));
    }
}

#[test]
fn control_characters_of_names_and_files_are_shown_in_errors() {
    let place = Place::new("controls");
    let instance = place.folder.join("a.json");
    fs::write(&instance, "{\"P\\u001b[2J\\n\": 1}").unwrap();
    let instance = instance.to_str().unwrap();
    let wild = "/no/\u{1b}[2J\nsuch";
    let cases: [(&[&str], &str); 8] = [
        (&["cost", "scan", "--table", wild], r"--table /no/\u{1b}[2J\nsuch cannot"),
        (&["cost", "scan", "--backend", wild], r#""/no/\u{1b}[2J\nsuch" is not a backend"#),
        (&["probe", "--svg", wild], r"--svg /no/\u{1b}[2J\nsuch cannot"),
        (&["probe", "--backend", wild], r"\u{1b}[2J\nsuch"),
        (&["probe", wild], r"\u{1b}[2J\nsuch"),
        (&["schedule", "ring", "--instance", wild], r"--instance /no/\u{1b}[2J\nsuch cannot"),
        (&["schedule", "ring", "--instance", instance], r"it has P\u{1b}[2J\n"),
        (&["bench", "reduce", "--trace", wild], r"--trace /no/\u{1b}[2J\nsuch cannot"),
    ];
    for (arguments, expected) in cases {
        check_refused(&place.run(arguments), expected, &format!("{arguments:?}"));
    }
}

#[test]
fn a_descriptor_that_takes_nothing_is_an_error_too() {
    let place = Place::new("read-only");
    let null = fs::File::open("/dev/null").unwrap();
    let output = place.command(&["--version"]).stdout(null).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot be written: Bad file descriptor"), "{output:?}");
    // What is said on standard error, too.
    let output = place.command(&["run", "-n", "2", "true"]).stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let output = place.command(&["run", "-n", "1", "true"]).stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "nothing was said");
    let tagged = ["run", "-n", "1", "--tag", "sh", "-c", "echo text >&2"];
    let output = place.command(&tagged).stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn output_to_a_pipe_that_another_program_has_made_non_blocking_is_all_there() {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    let place = Place::new("non-blocking");
    let (mut reader, writer) = std::io::pipe().unwrap();
    // SAFETY: plain numbers; the descriptor is this test's.
    assert_eq!(unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) }, 0);
    let mut command = place.command(&["run", "-n", "1", "--tag", "seq", "100000"]);
    let mut child = command.stdout(writer).spawn().unwrap();
    drop(command);
    std::thread::sleep(Duration::from_millis(300));
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(text.lines().count(), 100_000);
}

#[test]
fn a_probe_without_proc_keeps_the_table_that_is_there() {
    use std::os::unix::process::CommandExt;
    let place = Place::new("without-proc");
    const PROBE: [&str; 6] = ["probe", "--quick", "--seconds", "0.1", "-p", "1"];
    assert!(place.run(&PROBE).status.success());
    let (path, before) = (place.table(), fs::read(place.table()).unwrap());
    let mut command = place.command(&PROBE);
    // SAFETY: system calls on constants alone. The file systems of this process become its own, and an empty
    // one hides /proc.
    unsafe {
        command.pre_exec(|| {
            let own = libc::CLONE_NEWNS;
            let is_own = libc::unshare(own) == 0 || libc::unshare(own | libc::CLONE_NEWUSER) == 0;
            let (none, proc) = (c"none".as_ptr(), c"/proc".as_ptr());
            let private = libc::MS_REC | libc::MS_PRIVATE;
            let mount =
                |of, at, kind, flags| libc::mount(of, at, kind, flags, std::ptr::null()) == 0;
            let is_hidden = is_own
                && mount(none, c"/".as_ptr(), std::ptr::null(), private)
                && mount(none, proc, c"tmpfs".as_ptr(), 0);
            if is_hidden { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        })
    };
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("left out: neither root nor user namespaces are to be had here: {error}");
            return;
        }
    };
    let said = stderr(&output);
    // AddressSanitizer's own search for leaks, after the end, fails without /proc, where its options are, too.
    assert!(cfg!(asan) || output.status.code() == Some(1), "{said}");
    assert!(said.contains(": the processor of this machine is unknown"), "{said}");
    assert_eq!(fs::read(path).unwrap(), before);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let place = Place::new("pipe");
    let commands: [&[&str]; 5] = [
        &["info"],
        &["--help"],
        &["cost", "scan"],
        &["probe", "--quick", "--seconds", "0.1", "-p", "1"],
        &["bench", "--quick", "--seconds", "0.1", "--pattern", "sync", "-p", "1", "--csv"],
    ];
    for arguments in commands {
        let mut child =
            place.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(stderr(&output), "", "{arguments:?}");
    }
}

#[test]
fn a_damaged_or_foreign_table_is_named_by_info_and_replaced_by_probe() {
    let place = Place::new("damaged");
    let table = place.table();
    place.run(&QUICK_PROBE);
    let good = fs::read_to_string(&table).unwrap();
    let mut foreign: Value = serde_json::from_str(&good).unwrap();
    foreign["host"] = "elsewhere".into();
    for (text, reason) in [
        ("{ \"format\": 1, ", "damaged: it ends in the middle, in line 1"),
        ("", "damaged: it is empty"),
        (&foreign.to_string(), "another machine"),
    ] {
        fs::write(&table, text).unwrap();
        let info = place.run(&["info"]);
        assert_eq!(info.status.code(), Some(0));
        assert!(stdout(&info).contains("is not used: it "), "{}", stdout(&info));
        assert!(stdout(&info).contains(reason), "{}", stdout(&info));
        assert!(stdout(&info).contains("g and l are a guess until"), "{}", stdout(&info));
        let probe = place.run(&with(&QUICK_PROBE, &["--json"]));
        assert_eq!(probe.status.code(), Some(0), "{}", stderr(&probe));
        let now: Value = serde_json::from_str(&fs::read_to_string(&table).unwrap()).unwrap();
        assert_ne!(now["host"], "elsewhere");
        assert_eq!(now["tables"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn a_table_that_cannot_be_written_is_an_error_and_its_rows_are_printed() {
    let place = Place::new("unwritable");
    let file = place.folder.join("file");
    fs::write(&file, "not a folder").unwrap();
    let cannot_be_made = format!("the folder {}/a cannot be made: ", file.display());
    let cases: [(&[&str], PathBuf, &str); 2] =
        [(&["--json"], file.join("a"), &cannot_be_made), (&[], file.clone(), "is not a folder; ")];
    for (format, folder, why) in cases {
        let mut command = place.command(&with(&QUICK_PROBE, format));
        let output = command.env("LPF_TABLE", &folder).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        match format {
            [] => assert!(stdout(&output).contains("g (ns/byte)"), "{}", stdout(&output)),
            _ => assert_eq!(rows(&output, &PROBE).len(), 4),
        }
        let said = stderr(&output);
        assert_eq!(said.matches("cannot be written").count(), 1, "{said}");
        let last = said.lines().last().unwrap();
        assert!(last.starts_with("lpf: the table is not saved in "), "{said}");
        assert!(last.contains(why) && last.contains("; set LPF_TABLE to another folder"), "{said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "not a folder");
    }
}

#[test]
fn a_quick_probe_does_not_replace_a_better_table() {
    let place = Place::new("better");
    let table = place.table();
    place.run(&QUICK_PROBE);
    let better = fs::read_to_string(&table).unwrap().replace("\"quick\": true", "\"quick\": false");
    fs::write(&table, &better).unwrap();
    let output = place.run(&QUICK_PROBE);
    assert!(stdout(&output).contains("has a better table"), "{}", stdout(&output));
    assert_eq!(fs::read_to_string(&table).unwrap(), better);
}

#[test]
fn completions_are_for_the_shell_that_is_named() {
    let place = Place::new("completions");
    for (shell, beginning) in [("bash", "_lpf() {"), ("zsh", "#compdef lpf"), ("fish", "# Print")] {
        let output = place.run(&["completions", shell]);
        let script = stdout(&output);
        assert!(script.starts_with(beginning), "{shell}: {}", &script[..80]);
        assert!(script.contains("comply") && !script.contains("shepherd"), "{shell}");
    }
    check_refused(&place.run(&["completions", "dos"]), "dos", "completions dos");
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let place = Place::new("man");
    let folder = place.folder.join("a/man1");
    assert!(place.run(&["man", folder.to_str().unwrap()]).status.success());
    let page = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert!(page("lpf.1").contains("probe") && page("lpf-run.1").contains("SIGTERM"));
    assert!(!folder.join("lpf-shepherd.1").exists(), "a hidden command has no page");
    let output = place.run(&["man", "/dev/null/x"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("/dev/null/x"), "{}", stderr(&output));
}

/// The signals that end a measurement.
#[cfg(unix)]
const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// A shell that runs the tests in the background has them ignore the interrupt, and nohup the hang-up; children inherit
/// that.
#[cfg(unix)]
fn heeds_interrupts(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    // SAFETY: signal is safe between fork and exec.
    unsafe {
        command.pre_exec(|| {
            for signal in ENDING {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
}

/// A command whose standard error is a terminal: it draws its bar there, which shows when something was measured.
#[cfg(unix)]
struct Watched {
    child: Child,
    screen: fs::File,
    shown: Vec<u8>,
    stdout: std::thread::JoinHandle<Vec<u8>>,
}

#[cfg(unix)]
impl Watched {
    fn start(mut command: Command) -> Self {
        use std::io::Read;
        use std::os::fd::{FromRawFd, OwnedFd};
        use std::os::unix::process::CommandExt;
        let (mut ours, mut its) = (-1, -1);
        let size = libc::winsize { ws_row: 24, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
        let none = std::ptr::null_mut;
        // SAFETY: the call writes two descriptors and reads a size, which live as long as it; it may be given no name
        // and no attributes. The descriptors are open, and nothing else owns them.
        let [screen, terminal] = unsafe {
            assert_eq!(libc::openpty(&mut ours, &mut its, none(), std::ptr::null(), &size), 0);
            [ours, its].map(|descriptor| {
                libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
                OwnedFd::from_raw_fd(descriptor)
            })
        };
        command.env("TERM", "xterm").stdout(Stdio::piped()).stderr(terminal);
        heeds_interrupts(&mut command);
        // As a terminal does, an interrupt goes to the group: jobs receive it, too.
        let mut child = command.process_group(0).spawn().unwrap();
        let mut output = child.stdout.take().unwrap();
        let stdout = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            output.read_to_end(&mut bytes).unwrap();
            bytes
        });
        Watched { child, screen: screen.into(), shown: Vec::new(), stdout }
    }

    /// More of what it shows; false at the end, which a terminal reports as an error.
    fn read(&mut self) -> bool {
        use std::io::Read;
        let mut bytes = [0; 4096];
        let read = self.screen.read(&mut bytes).unwrap_or(0);
        self.shown.extend(&bytes[..read]);
        read > 0
    }

    /// Waits until it shows this.
    fn wait_for(&mut self, marker: &str) {
        while !self.shown.windows(marker.len()).any(|shown| shown == marker.as_bytes()) {
            assert!(self.read(), "no {marker}: {}", String::from_utf8_lossy(&self.shown));
        }
    }

    fn interrupt(&self) {
        // SAFETY: kill takes two numbers; the group is that of the child, which has not been waited for.
        assert_eq!(unsafe { libc::kill(-(self.child.id() as i32), libc::SIGINT) }, 0);
    }

    /// Waits until the process reads its signals itself (proc(5)).
    fn wait_until_it_heeds(&mut self) {
        let status = format!("/proc/{}/status", self.child.id());
        let blocks = |line: &str| {
            let mask = u64::from_str_radix(line.strip_prefix("SigBlk:")?.trim(), 16).ok()?;
            Some(mask & (1 << (libc::SIGINT - 1)) != 0)
        };
        while !fs::read_to_string(&status).unwrap().lines().find_map(blocks).unwrap() {
            assert!(self.child.try_wait().unwrap().is_none(), "it has ended");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn end(mut self) -> Output {
        while self.read() {}
        let (status, stdout) = (self.child.wait().unwrap(), self.stdout.join().unwrap());
        Output { status, stdout, stderr: self.shown }
    }
}

/// What a command prints that is interrupted when it shows the marker: its status is that of a shell's.
#[cfg(unix)]
fn interrupted_at(marker: &str, command: Command) -> Output {
    let mut watched = Watched::start(command);
    watched.wait_for(marker);
    watched.interrupt();
    let output = watched.end();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("lpf: interrupted; printing what was measured"), "{said}");
    output
}

/// The same of a command that has measured something when it shows the marker: it prints rows.
#[cfg(unix)]
fn interrupted_with_rows(marker: &str, command: Command) -> Output {
    let output = interrupted_at(marker, command);
    let text = stdout(&output);
    let is_row = |line: &str| serde_json::from_str::<Value>(line).is_ok();
    assert!(!text.is_empty() && text.lines().all(is_row), "{text}{}", stderr(&output));
    output
}

#[cfg(unix)]
#[test]
fn ctrl_c_in_a_probe_leaves_the_old_table_whole() {
    use std::os::unix::process::ExitStatusExt;
    let place = Place::new("interrupt");
    let table = place.table();
    place.run(&QUICK_PROBE);
    let before = fs::read_to_string(&table).unwrap();
    let files = place.files();
    for wait in [50, 700] {
        let mut command = place.command(&["probe", "-p", "2", "--seconds", "60"]);
        command.stdout(Stdio::null());
        heeds_interrupts(&mut command);
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        assert!(child.try_wait().unwrap().is_none(), "it was still measuring");
        interrupt(&child);
        let status = child.wait().unwrap();
        // The first may come before the command heeds it.
        assert!(status.code() == Some(130) || status.signal() == Some(libc::SIGINT), "{status}");
        check_whole(&table, &before);
        assert_eq!(place.files(), files, "nothing else is left");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_in_a_measurement_prints_the_rows_that_there_are() {
    let place = Place::new("rows");
    let scan = "bench collectives --collective scan --size 8 -p 2 --seconds 60";
    let reduce = "bench reduce --call reduce --pattern none --size 8 -p 2 --seconds 60";
    // A comply measures g and l in the first two fifths of its time.
    let cases = [
        ("probe -p 2 --seconds 60", ": g "),
        ("probe -p 2 --seconds 60 --backend tcp", ": g "),
        ("comply -p 2 --seconds 20", "worst so far: "),
        ("bench -p 2 --seconds 60", " times the reference"),
        ("bench -p 2 --seconds 60 --backend tcp", " times the reference"),
        (scan, "p = 2: "),
        (reduce, " repetitions"),
        ("schedule bench -p 4,8 --seconds 60", "P = N = 4, uniform"),
    ];
    for (line, marker) in cases {
        let arguments: Vec<&str> = line.split(' ').chain(["--json"]).collect();
        let output = interrupted_with_rows(marker, place.command(&arguments));
        let (found, said) = (stdout(&output), stderr(&output));
        match arguments[0] {
            "probe" => assert!(said.contains("the table is not saved"), "{line}: {said}"),
            "schedule" => assert!(said.contains("interrupted after 1 of 4 instances"), "{said}"),
            _ => assert!(found.contains("interrupted, when "), "{line}: {found}"),
        }
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_before_there_is_a_row_ends_a_long_delay_and_is_said() {
    let place = Place::new("no-rows");
    let late = ["bench", "reduce", "--pattern", "one-late", "--delay", "3600000", "-p", "2"];
    for backend in ["threads", "tcp"] {
        let one = ["--call", "reduce", "--algorithm", "binomial", "--backend", backend];
        let output = interrupted_at("one-late", place.command(&with(&late, &one)));
        let said = stderr(&output);
        assert!(said.contains("nothing was measured before the interrupt"), "{said}");
        assert_eq!(stdout(&output), "");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_before_there_is_a_job_starts_none() {
    let place = Place::new("no-job");
    for command in ["probe", "comply"] {
        let arguments = [command, "--backend", "tcp", "-p", "2", "--seconds", "20", "--json"];
        let mut watched = Watched::start(place.command(&arguments));
        watched.wait_until_it_heeds();
        watched.interrupt();
        let output = watched.end();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(130), "{command}: {said}");
        assert!(said.contains("lpf: interrupted; "), "{command}: {said}");
        assert!(said.contains("nothing was measured before the interrupt"), "{command}: {said}");
        assert_eq!(stdout(&output), "", "{command}");
    }
}

#[cfg(unix)]
#[test]
fn a_signal_to_a_measuring_command_alone_reaches_its_job() {
    let place = Place::new("alone");
    let arguments = ["probe", "--backend", "tcp", "-p", "2", "--seconds", "60", "--json"];
    for signal in ENDING {
        let mut watched = Watched::start(place.command(&arguments));
        watched.wait_for(": g ");
        // SAFETY: kill takes two numbers; the child has not been waited for.
        assert_eq!(unsafe { libc::kill(watched.child.id() as libc::pid_t, signal) }, 0);
        let output = watched.end();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(128 + signal), "{said}");
        assert!(said.contains("interrupted, so the table is not saved"), "{said}");
        rows(&output, &PROBE);
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_probe_does_not_ask_for_more_time() {
    let place = Place::new("more-time");
    let mut watched = Watched::start(place.command(&["probe", "-p", "2", "--seconds", "60"]));
    watched.wait_for(": g ");
    // SAFETY: kill takes two numbers; the child has not been waited for.
    assert_eq!(unsafe { libc::kill(watched.child.id() as libc::pid_t, libc::SIGINT) }, 0);
    let text = stdout(&watched.end());
    assert!(text.contains("interrupted, so the table is not saved"), "{text}");
    assert!(!text.contains("--seconds") && !text.contains("time allows"), "{text}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_does_not_wait_for_a_schedule_that_takes_minutes() {
    let place = Place::new("minutes");
    // The prediction for so many more processes is far too low for the first algorithm.
    let arguments = ["schedule", "bench", "-p", "4,1024", "--seconds", "0.2", "--json"];
    let output = interrupted_with_rows("P = N = 4, skewed", place.command(&arguments));
    assert!(stderr(&output).contains("interrupted after 2 of 4 instances"), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn a_sentence_breaks_at_80_columns_on_a_terminal() {
    let place = Place::new("columns");
    let output = Watched::start(place.command(&["probe", "-p", "0"])).end();
    let said = stderr(&output);
    assert!(said.lines().count() > 1 && said.contains("-p <N> is \"0\"; "), "{said}");
    let path = env!("CARGO_BIN_EXE_lpf");
    let fits = |line: &str| line.trim_end().chars().count() <= 80.max(path.len());
    assert!(said.lines().all(fits), "{said}");
}

#[cfg(unix)]
#[test]
fn bench_reduce_prints_what_was_measured_when_its_job_is_killed() {
    let one = ["--call", "reduce", "--pattern", "none", "--algorithm", "binomial"];
    check_the_rows_of_a_killed_job("reduce", &one, " repetitions", &REDUCE);
}

#[cfg(unix)]
#[test]
fn bench_collectives_prints_what_was_measured_when_its_job_is_killed() {
    check_the_rows_of_a_killed_job(
        "collectives",
        &["--collective", "scan"],
        "p = 2: ",
        &COLLECTIVES,
    );
}

/// A bench of one cell on two processes, of which one is killed when there is a row.
#[cfg(unix)]
fn check_the_rows_of_a_killed_job(bench: &str, one: &[&str], marker: &str, fields: &[&str]) {
    let place = Place::new(&format!("killed-{bench}"));
    let arguments = ["bench", bench, "--backend", "tcp", "-p", "2", "--size", "800"];
    let arguments = with(&with(&arguments, one), &["--seconds", "90", "--json"]);
    let mut watched = Watched::start(place.command(&arguments));
    watched.wait_for(marker);
    // The last one is process 1: process 0 has the order, and says why it could not do it.
    let victim = descendants(watched.child.id()).into_iter().rfind(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|&byte| byte == 0).skip(1).collect();
        words == [&b"measure"[..], b""]
    });
    let victim = victim.expect("a process of the job") as libc::pid_t;
    // SAFETY: it was started for this test, and waits for the end of its job.
    assert_eq!(unsafe { libc::kill(victim, libc::SIGKILL) }, 0);
    let output = watched.end();
    // Sentences break in lines here.
    let said = stderr(&output).replace("\r\n", " ");
    assert_eq!(output.status.code(), Some(1), "{said}");
    let (_, last) = said.rsplit_once("lpf: ").unwrap_or_default();
    assert!(last.starts_with("fatal: process 1, superstep "), "{said}");
    assert!(last.contains(": it was lost: "), "{said}");
    let is_said =
        |row: &Value| row["remarks"].as_str().unwrap().contains("ended by a failure, when 1 of 1");
    let found = rows(&output, fields);
    assert!(found.iter().all(is_said), "{found:?}");
}

/// The processes that one has started, and those that they have, and so on.
#[cfg(unix)]
fn descendants(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().map(|child| child.parse().unwrap());
    children.flat_map(|child| [vec![child], descendants(child)].concat()).collect()
}

#[cfg(unix)]
fn interrupt(child: &Child) {
    // SAFETY: the child was started by this test and has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) }, 0);
}

fn check_whole(table: &Path, before: &str) {
    assert_eq!(fs::read_to_string(table).unwrap(), before);
}
