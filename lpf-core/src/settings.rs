//! The settings: every `LPF_…` variable, its value and where that came from.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use crate::Pid;
use crate::error::{Error, Result};
use crate::process::PerProcess;

mod exchange;
mod launched;
pub mod misspelt;

pub use exchange::Exchange;
pub use launched::{Launched, by_mpi_launcher};

/// Where a setting's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nothing was said.
    Default,
    /// The environment variable of its name.
    Environment,
    /// An argument of the program or a call.
    Argument,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Default => "default",
            Source::Environment => "environment",
            Source::Argument => "argument",
        })
    }
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value in force.
    pub value: T,
    /// Where it came from.
    pub source: Source,
}

impl<T> Setting<T> {
    /// Nothing was said.
    pub fn default_of(value: T) -> Self {
        Setting { value, source: Source::Default }
    }

    /// Said by an argument or a call.
    pub fn argument(value: T) -> Self {
        Setting { value, source: Source::Argument }
    }
}

/// Where threads may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pin {
    /// Wherever the system puts them.
    None,
    /// Neighbours on neighbouring cores.
    Compact,
    /// Neighbours as far apart as possible.
    Scatter,
    /// Compact if nothing else uses the cores, else none.
    Auto,
}

/// The settings of a user; all have defaults.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `LPF_PROCS`: the most processes that exec starts on threads. By default there is no limit, and the value is
    /// the number of cores that this process may use.
    pub procs: Setting<Pid>,
    /// `LPF_PIN`: none, compact, scatter or auto.
    pub pin: Setting<Pin>,
    /// `LPF_TOPOLOGY`: sizes of the barrier's levels, outermost first, as `2x2x2`.
    pub topology: Setting<Option<Vec<usize>>>,
    /// `LPF_CHECK`: 1 for the checked mode.
    pub check: Setting<bool>,
    /// `LPF_STRICT`: 1 ends the rounds of collectives in full syncs.
    pub strict: Setting<bool>,
    /// `LPF_TIMEOUT`: seconds until a superstep that does not end is fatal; off by default.
    pub timeout: Setting<Option<Duration>>,
    /// `LPF_PROBE`: seconds to measure g and l at the start of a section; off by default.
    pub probe: Setting<Option<Duration>>,
    /// `LPF_BACKEND`: which backend runs programs.
    pub backend: Setting<String>,
    /// `LPF_HYBRID`: the threads of this node; `None`: its share of the cores.
    pub hybrid: Setting<Option<Pid>>,
    /// `LPF_TABLE`: the folder of machine tables.
    pub table: Setting<Option<String>>,
    /// `LPF_EXCHANGE`: how processes exchange what they have for each other; `None`: the cheaper algorithm.
    pub exchange: Setting<Option<Exchange>>,
    /// `LPF_HEARTBEAT`: off where processes stop in a debugger.
    pub heartbeat: Setting<bool>,
    /// `LPF_SEAL_DATA`: whether data between processes is sealed if the job has a secret.
    pub seal_data: Setting<bool>,
    /// `LPF_MEET_TIMEOUT`: seconds that the processes of a job have to join each other; `None`: the default of the
    /// network.
    pub meet_timeout: Setting<Option<Duration>>,
}

/// Every variable that a part of LPF reads: those of [`Settings`], and behind them those by which
/// processes that a launcher started find each other.
pub const NAMES: [&str; 19] = [
    "LPF_PROCS",
    "LPF_BACKEND",
    "LPF_HYBRID",
    "LPF_PIN",
    "LPF_TOPOLOGY",
    "LPF_CHECK",
    "LPF_STRICT",
    "LPF_TIMEOUT",
    "LPF_PROBE",
    "LPF_TABLE",
    "LPF_EXCHANGE",
    "LPF_HEARTBEAT",
    "LPF_SEAL_DATA",
    "LPF_MEET_TIMEOUT",
    "LPF_MEET",
    "LPF_SECRET",
    "LPF_RANK",
    "LPF_SIZE",
    "LPF_JOB",
];

fn read<T>(
    name: &'static str,
    default: T,
    parse: impl FnOnce(&str) -> Option<T>,
    expected: &str,
) -> Result<Setting<T>> {
    let mut wrong = Vec::new();
    let setting = noted(&mut wrong, name, default, parse, expected);
    wrong.pop().map_or(Ok(setting), |(_, error)| Err(error))
}

/// Reads a setting. One that cannot be understood is added to the list, and has its default.
fn noted<T>(
    wrong: &mut Vec<(&'static str, Error)>,
    name: &'static str,
    default: T,
    parse: impl FnOnce(&str) -> Option<T>,
    expected: &str,
) -> Setting<T> {
    debug_assert!(NAMES.contains(&name), "{name} is missing in the list of settings");
    let is = match std::env::var(name) {
        Err(std::env::VarError::NotPresent) => return Setting::default_of(default),
        Ok(text) => match parse(text.trim()) {
            Some(value) => return Setting { value, source: Source::Environment },
            None => format!("\"{text}\""),
        },
        Err(_) => "not text".into(),
    };
    wrong.push((name, Error::setting(format!("{name} is {is}; it has to be {expected}"))));
    Setting::default_of(default)
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "1" | "on" | "yes" | "true" => Some(true),
        "0" | "off" | "no" | "false" => Some(false),
        _ => None,
    }
}

fn seconds(text: &str) -> Option<Option<Duration>> {
    if text == "off" {
        return Some(None);
    }
    let seconds: f64 = text.parse().ok()?;
    let time = (seconds != 0.0).then_some(seconds);
    (0.0..1e9).contains(&seconds).then(|| time.map(Duration::from_secs_f64))
}

/// `2x2x2`: sizes of levels, outermost first.
fn levels(text: &str) -> Option<Option<Vec<usize>>> {
    let sizes: Option<Vec<usize>> =
        text.split('x').map(|size| size.parse().ok().filter(|&n| n > 0 && n <= 1024)).collect();
    sizes.filter(|sizes| sizes.len() <= 8).map(Some)
}

/// The shortest secret of a job, in bytes: a process that hears a handshake can try guesses.
const SHORTEST_SECRET: usize = 16;

/// Whether text may be the secret of a job (`LPF_SECRET`).
///
/// # Errors
/// The text of an error if it is too short; it does not contain the secret.
pub fn check_secret(secret: &str) -> std::result::Result<(), String> {
    match secret.len() {
        SHORTEST_SECRET.. => Ok(()),
        bytes => Err(format!(
            "the secret (LPF_SECRET) has {bytes} bytes; it needs at least {SHORTEST_SECRET} (lpf secret prints one)"
        )),
    }
}

/// What an address of process 0 has to be: see [`addresses`].
pub const ADDRESS: &str =
    "host:port with a port from 1 to 65535, or several such, separated by commas";

/// The parts of an address as `LPF_MEET` has it: [`ADDRESS`]. `None` if any part is of another form.
pub fn addresses(text: &str) -> Option<Vec<&str>> {
    // At port 0, process 0 would listen where no other process looks for it.
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_one = |address: &str| match address.parse::<SocketAddr>() {
        Ok(address) => address.port() > 0,
        Err(_) => address.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && !host.contains([':', '/']) && is_port(port)
        }),
    };
    text.split(',').map(str::trim).map(|part| is_one(part).then_some(part)).collect()
}

/// The most processes a machine may have.
pub const MAX_PROCS: Pid = 1 << 16;

impl Settings {
    /// The settings of this environment.
    ///
    /// # Errors
    /// *Misuse* for a value that cannot be understood; the text says what it has to be.
    pub fn from_environment() -> Result<Self> {
        let (settings, wrong) = Self::understood();
        wrong.into_iter().next().map_or(Ok(settings), |(_, error)| Err(error))
    }

    /// The settings of this environment, and the name of each variable whose value cannot be understood, with its error:
    /// such a setting has its default. For a program that lists settings.
    pub fn understood() -> (Self, Vec<(&'static str, Error)>) {
        let mut wrong = Vec::new();
        let settings = Settings {
            procs: noted(
                &mut wrong,
                "LPF_PROCS",
                cores(),
                |text| text.parse().ok().filter(|&n| n > 0 && n <= MAX_PROCS),
                "a number of processes from 1 to 65536",
            ),
            pin: noted(
                &mut wrong,
                "LPF_PIN",
                Pin::Auto,
                |text| match text {
                    "none" => Some(Pin::None),
                    "compact" => Some(Pin::Compact),
                    "scatter" => Some(Pin::Scatter),
                    "auto" => Some(Pin::Auto),
                    _ => None,
                },
                "none, compact, scatter or auto",
            ),
            topology: noted(
                &mut wrong,
                "LPF_TOPOLOGY",
                None,
                levels,
                "1 to 8 sizes of levels from 1 to 1024, outermost first, as 2x2x2",
            ),
            check: noted(&mut wrong, "LPF_CHECK", false, flag, "0 or 1"),
            strict: noted(&mut wrong, "LPF_STRICT", false, flag, "0 or 1"),
            timeout: noted(
                &mut wrong,
                "LPF_TIMEOUT",
                None,
                seconds,
                "a number of seconds from 0 (0 means off) to below 1e9, or off",
            ),
            probe: noted(
                &mut wrong,
                "LPF_PROBE",
                None,
                seconds,
                "a number of seconds from 0 (0 means off) to below 1e9, or off",
            ),
            backend: noted(
                &mut wrong,
                "LPF_BACKEND",
                "threads".into(),
                |text| (!text.is_empty()).then(|| text.into()),
                "threads, tcp, mpi, hybrid, hybrid:tcp or hybrid:mpi",
            ),
            hybrid: noted(
                &mut wrong,
                "LPF_HYBRID",
                None,
                |text| text.parse().ok().filter(|&n| n > 0 && n <= MAX_PROCS).map(Some),
                "a number of threads from 1 to 65536",
            ),
            table: noted(
                &mut wrong,
                "LPF_TABLE",
                None,
                |text| (!text.is_empty()).then(|| Some(text.into())),
                "the name of a folder",
            ),
            exchange: noted(
                &mut wrong,
                "LPF_EXCHANGE",
                None,
                |text| match text {
                    "auto" => Some(None),
                    "direct" => Some(Some(Exchange::Direct)),
                    "bruck" => Some(Some(Exchange::Bruck)),
                    _ => None,
                },
                "auto, direct or bruck",
            ),
            heartbeat: noted(&mut wrong, "LPF_HEARTBEAT", true, flag, "on or off"),
            seal_data: noted(&mut wrong, "LPF_SEAL_DATA", true, flag, "0 or 1"),
            meet_timeout: noted(
                &mut wrong,
                "LPF_MEET_TIMEOUT",
                None,
                // Who is missing has to be told at some time: there is no off.
                |text| seconds(text).filter(Option::is_some),
                "a number of seconds above 0 and below 1e9",
            ),
        };
        (settings, wrong)
    }
}

/// The cores this process may use; at least 1. Read once, before any thread is pinned.
pub fn cores() -> usize {
    static CORES: PerProcess<usize> =
        PerProcess::inherited(|| std::thread::available_parallelism().map_or(1, usize::from));
    *CORES.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_seconds_are_off() {
        for off in ["off", "0", "0.0"] {
            assert_eq!(seconds(off), Some(None), "{off}");
        }
        assert_eq!(seconds("0.5"), Some(Some(Duration::from_millis(500))));
        for wrong in ["", "-1", "1e9", "nan", "inf", "soon"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
