//! `lpf schedule` as a user meets it: examples, plots, bad instances.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// A folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("lpf-schedule-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }

    /// Runs `lpf schedule KIND` on an instance.
    fn run(&self, kind: &str, instance: &str, more: &[&str]) -> Output {
        let file = self.path("instance.json");
        fs::write(&file, instance).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_lpf"));
        command.args(["schedule", kind, "--instance", &file]).args(more);
        command.stdin(Stdio::null()).output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn object(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stderr, b"", "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Examples of a file of lpf-collectives, under a name.
fn published(text: &str, list: &str) -> Vec<Value> {
    let examples: Value = serde_json::from_str(text).unwrap();
    examples[list].as_array().unwrap().clone()
}

#[test]
fn clairvoyant_schedules_are_the_published_ones() {
    let folder = Folder::new("clairvoyant");
    let text = include_str!("../../lpf-collectives/tests/published/clairvoyant.json");
    for example in published(text, "instances") {
        let found = object(&folder.run("clairvoyant", &example.to_string(), &["--json"]));
        for field in
            ["P", "N", "root", "d_ns", "arrivals_ns", "count", "last_round", "fnv1a", "combines"]
        {
            assert_eq!(found[field], example[field], "{} {field}", example["name"]);
        }
        for field in
            ["transfers", "overwrite"].into_iter().filter(|field| !example[*field].is_null())
        {
            assert_eq!(found[field], example[field], "{} {field}", example["name"]);
        }
    }
}

#[test]
fn programs_along_a_chain_are_the_published_ones() {
    let folder = Folder::new("chain");
    let text = include_str!("../../lpf-collectives/tests/published/sorted.json");
    // Starting a program for each takes longer than all of them.
    for example in published(text, "cases").into_iter().step_by(7) {
        let kind = example["alg"].as_str().unwrap();
        let found = object(&folder.run(kind, &example.to_string(), &["--json"]));
        for field in ["P", "tau", "arrivals", "id_to_rank", "pre_steps_by_id", "programs"] {
            assert_eq!(found[field], example[field], "{kind} {} {field}", example["pattern"]);
        }
    }
}

#[test]
fn schedules_are_drawn() {
    let folder = Folder::new("drawn");
    let clairvoyant = json!({"P": 3, "N": 2, "root": 1, "d_ns": 5, "arrivals_ns": [0, 7, 20]});
    let prr = json!({"P": 3, "tau": 5, "arrivals": [0, 7, 20]});
    for (kind, instance) in [("clairvoyant", clairvoyant), ("prr", prr)] {
        let file = folder.path("plot.svg");
        let output = folder.run(kind, &instance.to_string(), &["--svg", &file]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let plot = fs::read_to_string(&file).unwrap();
        assert!(plot.starts_with("<svg") && plot.contains("the last arrival"), "{plot}");
        let other = folder.run(kind, &instance.to_string(), &["--svg", "/nowhere/plot.svg"]);
        assert_eq!(other.status.code(), Some(2));
    }
}

#[test]
fn what_is_no_instance_is_refused_in_a_sentence() {
    let folder = Folder::new("refused");
    let good = json!({"P": 2, "N": 1, "root": 0, "d_ns": 1, "arrivals_ns": [0, 1], "tau": 1, "arrivals": [0, 1]});
    let with = |field: &str, value: Value| {
        let mut changed = good.clone();
        changed[field] = value;
        changed.to_string()
    };
    let mut less = good.clone();
    less.as_object_mut().unwrap().remove("root");
    let cases = [
        ("clairvoyant", with("P", json!(0)), "P is 0; it has to be from 1 to"),
        ("clairvoyant", with("N", json!(0)), "N is 0; it has to be from 1 to"),
        ("clairvoyant", with("P", json!(3)), "arrivals_ns has 2 times for P = 3 processes"),
        ("clairvoyant", with("root", json!(2)), "the root is process 2, but the last process is 1"),
        ("clairvoyant", with("d_ns", json!(0)), "a round takes 0 ns"),
        ("clairvoyant", with("d_ns", json!(1.5)), "d_ns is 1.5; it has to be a whole number"),
        (
            "clairvoyant",
            good.to_string().replace("\"d_ns\":1", "\"d_ns\":5e3"),
            "d_ns is 5000.0; it has to be a whole number from 0 to below 2^64, written with digits only",
        ),
        ("prr", with("tau", json!(2.0)), "written with digits only"),
        ("clairvoyant", with("arrivals_ns", json!([0, -1])), "arrivals_ns[1] is -1; it has to be"),
        ("clairvoyant", with("arrivals_ns", json!([0, 1u64 << 63])), "process 1 arrives at"),
        ("clairvoyant", with("arrivals_ns", json!(7)), "arrivals_ns is not a list of numbers"),
        ("clairvoyant", less.to_string(), "it has no root"),
        ("clairvoyant", "[1, 2]".into(), "is not a JSON object"),
        ("clairvoyant", "{".into(), "is not JSON: "),
        ("clairvoyant", "{}".into(), "it has no P; it is empty"),
        ("clairvoyant", " \n".into(), "is empty; it has to hold one JSON object"),
        ("prr", with("P", json!(0)), "P is 0; it has to be from 1 to"),
        ("slt", with("tau", json!(0)), "tau is 0"),
        ("ring", with("tau", json!(u64::MAX)), "tau is 18446744073709551615"),
        ("linear", with("arrivals", json!([0, u64::MAX])), "arrivals[1] is 18446744073709551615"),
        ("prr", with("arrivals", json!([0])), "arrivals has 1 times for P = 2 processes"),
    ];
    for (kind, instance, expected) in cases {
        let output = folder.run(kind, &instance, &["--json"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{instance}: {said}");
        assert!(said.contains(expected), "{instance}: {said}");
        assert_eq!((said.lines().count(), output.stdout.len()), (1, 0), "{said}");
    }
    let missing = Command::new(env!("CARGO_BIN_EXE_lpf"))
        .args(["schedule", "prr", "--instance", &folder.path("nowhere.json")])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn the_bench_of_schedulers_has_a_row_for_each() {
    let output = Command::new(env!("CARGO_BIN_EXE_lpf"))
        .args(["schedule", "bench", "-p", "4,8", "--seconds", "0.2", "--json"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2 * 2 * 2, "{text}");
    for row in rows {
        for field in
            ["P", "N", "median_ns", "min_ns", "transfers", "ns_per_transfer", "bytes_per_cell"]
        {
            assert!(row[field].as_f64().unwrap() > 0.0, "{field}: {row}");
        }
        assert!(row["arrivals"] == "uniform" || row["arrivals"] == "skewed", "{row}");
        assert!(row["algorithm"].is_string(), "{row}");
    }
}

#[test]
fn a_quick_bench_of_schedulers_leaves_out_what_takes_more_than_a_second() {
    for (quick, most) in [(&["--quick"][..], "1 s"), (&[], "10 s")] {
        let output = Command::new(env!("CARGO_BIN_EXE_lpf"))
            .args(["schedule", "bench", "-p", "4", "--seconds", "0.1"])
            .args(quick)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let last = format!("algorithms that would take more than {most} are left out\n");
        assert!(output.status.success() && text.ends_with(&last), "{text}");
    }
}

#[test]
fn a_schedule_without_transfers_has_no_time_per_transfer() {
    let folder = Folder::new("alone");
    let alone = json!({"P": 1, "N": 3, "root": 0, "d_ns": 5, "arrivals_ns": [7]}).to_string();
    let output = folder.run("clairvoyant", &alone, &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("no transfer: process 0 has all segments"), "{text}");
    assert!(!text.contains("per transfer") && !text.contains("last transfer"), "{text}");
    let pair = json!({"P": 2, "N": 3, "root": 0, "d_ns": 5, "arrivals_ns": [7, 7]}).to_string();
    let output = folder.run("clairvoyant", &pair, &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(" transfers, of which") && text.contains("ns per transfer"), "{text}");
}
