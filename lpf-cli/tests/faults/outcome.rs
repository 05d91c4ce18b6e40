//! What goes wrong, where, and what the survivors have to say of it.

use std::time::Duration;

use lpf::Pid;
use lpf_conformance::allowed;

pub(crate) const SIZE: Pid = 4;
/// Who goes wrong.
pub(crate) const GUILTY: Pid = 2;

/// Others know of a death after this, of a silent process after the second.
const DEATH: Duration = Duration::from_secs(1);
const SILENCE: Duration = Duration::from_secs(3);

/// What a process does to itself, and what its job's last line says of it.
pub(crate) const FAULTS: &[(&str, &str)] = &[
    ("kill", "was ended by SIGKILL"),
    ("stop", "was stopped"),
    ("exit0", ""),
    ("exit7", "ended with status 7"),
    ("panic", ""),
    ("memory", "was ended by SIGABRT"),
];

const PLACES: &[&str] = &["hook", "register", "put", "sync", "resize", "expected", "allreduce"];

/// Where a fault may strike. Outside of a hook a panic is an exit.
pub(crate) fn places_of(fault: &str) -> impl Iterator<Item = &'static str> {
    PLACES.iter().copied().filter(move |place| (fault, *place) != ("panic", "hook"))
}

/// Who lives on. Who panics does, as the others do.
pub(crate) fn survivors_of(fault: &str) -> impl Iterator<Item = Pid> {
    (0..SIZE).filter(move |&rank| fault == "panic" || rank != GUILTY)
}

/// What a survivor says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) rank: Pid,
    pub(crate) waited: Duration,
    pub(crate) error: String,
}

impl Outcome {
    pub(crate) fn line(&self) -> String {
        format!("survivor {} {} {}", self.rank, self.waited.as_millis(), self.error)
    }

    fn read(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("survivor ")?.splitn(3, ' ');
        let (rank, waited) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Outcome { rank, waited: Duration::from_millis(waited), error: words.next()?.into() })
    }
}

/// What the survivors have said, in the order of their numbers.
pub(crate) fn outcomes(said: &str) -> Vec<Outcome> {
    let mut outcomes: Vec<_> = said.lines().filter_map(Outcome::read).collect();
    outcomes.sort_unstable_by_key(|outcome| outcome.rank);
    outcomes
}

/// How long the last of them waited, in milliseconds, and what was said: for a table.
pub(crate) fn row(backend: &str, fault: &str, place: &str, outcomes: &[Outcome]) -> String {
    let longest = outcomes.iter().map(|outcome| outcome.waited.as_millis()).max();
    let (longest, said) = (longest.unwrap_or_default(), &outcomes[0].error);
    format!("row,{backend},{fault},{place},{longest},{said}")
}

/// What there is to complain about in what the survivors of a fault said.
pub(crate) fn judge(outcomes: &[Outcome], fault: &str) -> Result<(), String> {
    let bound = if fault == "stop" { SILENCE } else { DEATH };
    let ranks: Vec<_> = outcomes.iter().map(|outcome| outcome.rank).collect();
    if ranks != survivors_of(fault).collect::<Vec<_>>() {
        return Err(format!("these survived: {ranks:?}"));
    }
    for Outcome { rank, waited, error } in outcomes {
        if !error.starts_with(&format!("fatal: process {GUILTY}, superstep ")) {
            return Err(format!("process {rank} got: {error}"));
        }
        if *waited > allowed(bound) {
            return Err(format!("process {rank} waited {waited:?}"));
        }
    }
    Ok(())
}
