//! Errors: their kind, the process where they began, and their cause.
//!
//! The contract knows four outcomes: success and three kinds of error. A *misuse* is found at the
//! call, changes nothing, and the section goes on. A *mitigable* error (memory, threads) changes
//! nothing either, and the call may be made again. A *fatal* error ends the section for every
//! process of it; each report names the process where it began, the superstep and the cause.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Pid;
use crate::check::Place;

/// The result of every primitive.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of an [`Error`], which determines what a caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// The call was wrong; it had no effect and the section goes on.
    Misuse,
    /// A resource was refused; the call had no effect and may be repeated.
    Mitigable,
    /// The section is over for this process: every later `sync`, `exec` and `rehook` on the
    /// context, and the call that started the section, return *fatal* too.
    Fatal,
    /// The program's own error (see [`Error::program`]). Leaving a section with it makes the
    /// section fatal for the others.
    Program,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Misuse => "misuse",
            Kind::Mitigable => "out of resources",
            Kind::Fatal => "fatal",
            Kind::Program => "program error",
        })
    }
}

/// The exact cause of an [`Error`]; sizes are bytes unless the text says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Cause {
    /// Memory was refused.
    #[error("out of memory: {bytes} bytes for {what} were refused")]
    OutOfMemory {
        /// The purpose of the memory.
        what: Cow<'static, str>,
        /// The size asked for; `usize::MAX` if the size itself overflows.
        bytes: usize,
    },
    /// The operating system refused a thread.
    #[error("the system refused thread {started} of {wanted}: {reason}")]
    NoThreads {
        /// Threads already running for this call.
        started: usize,
        /// Threads the call needs.
        wanted: usize,
        /// The system's own text.
        reason: String,
    },
    /// The operating system refused something else.
    #[error("the system refused {what}: {reason}")]
    Refused {
        /// What was asked for.
        what: Cow<'static, str>,
        /// The system's own text.
        reason: String,
    },
    /// More slots than reserved.
    #[error(
        "no slot is left of the {reserved} reserved ({}); use ctx.alloc, or resize and sync first (an area keeps its slot until deregistered, or dropped by all processes and a sync has returned)", reserved_by(*reserved, *libraries)
    )]
    SlotsUsedUp {
        /// Slots reserved at present.
        reserved: usize,
        /// Of these, those that libraries reserved.
        libraries: usize,
    },
    /// More requests queued than reserved.
    #[error(
        "no request is left of the {reserved} reserved ({}), the least that any process asked for (one to oneself counts twice); resize for more requests and sync first", reserved_by(*reserved, *libraries)
    )]
    RequestsUsedUp {
        /// Requests reserved at present (the minimum over the processes).
        reserved: usize,
        /// Of these, those that libraries reserved.
        libraries: usize,
    },
    /// More requests at their target than reserved there.
    #[error(
        "process {target} makes and is subject to {count} requests but has reserved {reserved} ({}); process {origin} sent it the most; resize for more", reserved_by(*reserved, *libraries)
    )]
    TargetOverrun {
        /// The process with too many requests.
        target: Pid,
        /// The process that made the most of them.
        origin: Pid,
        /// Requests it made or is subject to in this superstep.
        count: usize,
        /// Requests reserved at present.
        reserved: usize,
        /// Of these, those that libraries reserved.
        libraries: usize,
    },
    /// A process number that does not exist.
    #[error("process {pid} does not exist; the processes are 0 to {last}")]
    NoSuchProcess {
        /// The number given.
        pid: Pid,
        /// The last process.
        last: Pid,
    },
    /// A slot that is not registered (any more).
    #[error(
        "{slot} is not registered (never was, was deregistered, or all processes have dropped its area)"
    )]
    UnknownSlot {
        /// The slot's printed form.
        slot: String,
    },
    /// A global slot used before the sync that activates it.
    #[error("{slot} was registered in this superstep; it can be used after the next sync")]
    InactiveSlot {
        /// The slot's printed form.
        slot: String,
    },
    /// A local range outside its slot.
    #[error("{}", outside_here(slot, [*offset, *bytes, *len], *element))]
    OutOfRange {
        /// The slot's printed form.
        slot: String,
        /// First byte.
        offset: usize,
        /// Length of the range.
        bytes: usize,
        /// Length of the slot here.
        len: usize,
        /// Bytes of an element, in which the text counts: 1 if the call was made on bytes.
        element: usize,
    },
    /// A remote range outside its slot, found by the destination.
    #[error(
        "process {origin} named {slot} at process {target}: {}", outside_there([*offset, *bytes, *len], *element)
    )]
    RemoteOutOfRange {
        /// The process that made the request.
        origin: Pid,
        /// The process whose memory it named.
        target: Pid,
        /// The slot's printed form.
        slot: String,
        /// First byte.
        offset: usize,
        /// Length of the range.
        bytes: usize,
        /// Length of the slot at the target (0 if it is not registered).
        len: usize,
        /// Bytes of an element of the area, in which the text counts if the call was made on whole elements; 0 if the slot
        /// is not an area.
        element: usize,
    },
    /// A slot with requests pending was deregistered.
    #[error("{slot} has requests pending; sync before deregistering it")]
    SlotBusy {
        /// The slot's printed form.
        slot: String,
    },
    /// A slot that an open offer names was deregistered.
    #[error("{slot} is offered for a landing; await its message before deregistering it")]
    SlotOffered {
        /// The slot's printed form.
        slot: String,
    },
    /// A call on a link or an inbox that breaks their rules.
    #[error("{0}")]
    Link(String),
    /// A call of a collective, an arbiter or a monitor that breaks their rules.
    #[error("{0}")]
    Collective(String),
    /// A record for the board that does not fit it, or a board whose section has ended.
    #[error("{0}")]
    Board(String),
    /// A thread joined a team twice, came too late, or left it.
    #[error("{0}")]
    Team(String),
    /// Two processes do not agree on what they send each other: on the call, the length, or the number of messages.
    #[error("{0}")]
    Disagreement(String),
    /// Processes registered differently.
    #[error("{}", differently([*a, *b], *counts, *areas))]
    RegistrationsDiffer {
        /// One process.
        a: Pid,
        /// The other.
        b: Pid,
        /// Calls made by `a` and by `b`.
        counts: [u64; 2],
        /// The length in bytes of the area that each registered last.
        areas: [u64; 2],
    },
    /// The SPMD function of a process panicked.
    #[error("it panicked: {message}")]
    Panicked {
        /// The panic's text.
        message: String,
    },
    /// The SPMD function of a process returned an error.
    #[error("it left the section with an error: {message}")]
    Returned {
        /// The error's text.
        message: String,
    },
    /// The operating system's process ended or gave no sign of life any more, or a connection to it let something through
    /// that was altered.
    #[error("it was lost: {reason}")]
    Died {
        /// How that was seen.
        reason: String,
    },
    /// A process of the system forked, and the child uses what belongs to its parent.
    #[error(
        "the system's process {child} was forked from process {parent}, which goes on as this process of the section; a child can begin sections of its own"
    )]
    Forked {
        /// The system's number of the process that is in the section.
        parent: u32,
        /// The system's number of its child.
        child: u32,
    },
    /// A process left while others still synchronise.
    #[error(
        "it returned after {} while process {other} went on to sync {next}; all processes call sync equally often", counted(*own, "full sync")
    )]
    LeftEarly {
        /// Full syncs of the process that left.
        own: u64,
        /// A process that did not leave.
        other: Pid,
        /// The sync that `other` is in.
        next: u64,
    },
    /// A process called another collective primitive.
    #[error("it called {own} where process {other} called {theirs}; all processes call the same")]
    Mismatch {
        /// What the named process called.
        own: String,
        /// A process that called something else.
        other: Pid,
        /// What `other` called.
        theirs: String,
    },
    /// A process did not arrive at a superstep in time.
    #[error("it did not reach the superstep within {} s (LPF_TIMEOUT); it is {state}", limit.as_secs_f64())]
    Late {
        /// The bound.
        limit: Duration,
        /// The state of the process, as far as known.
        state: String,
    },
    /// A wait that can never end.
    #[error("{0}")]
    Deadlock(String),
    /// Bytes that no process of this protocol sends.
    #[error("{0}")]
    Protocol(String),
    /// The checked mode found a violation.
    #[error("checked mode: {0}")]
    Checked(String),
    /// A setting or argument that cannot be understood.
    #[error("{0}")]
    Setting(String),
    /// The program's own error.
    #[error("{0}")]
    Program(String),
}

impl Cause {
    /// Whether a sync finds it, when the call that was wrong has returned: only checked mode has
    /// noted where that was.
    fn is_found_late(&self) -> bool {
        use Cause::{RegistrationsDiffer, RemoteOutOfRange, TargetOverrun};
        matches!(self, RemoteOutOfRange { .. } | TargetOverrun { .. } | RegistrationsDiffer { .. })
    }
}

/// How much of the reserved room is the user's, if not all of it.
fn reserved_by(reserved: usize, libraries: usize) -> String {
    match libraries {
        0 => "by ctx.resize".into(),
        _ => {
            let own = reserved.saturating_sub(libraries);
            format!(
                "{own} by ctx.resize, {libraries} by ctx.alloc and libraries such as the collectives"
            )
        }
    }
}

/// A number of things: "1 call", "2 calls".
pub fn counted(count: u64, thing: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{ending}")
}

/// Counts tell something only where they differ, and so do lengths.
fn differently([a, b]: [Pid; 2], counts: [u64; 2], areas: [u64; 2]) -> String {
    let lengths = areas.map(|bytes| counted(bytes, "byte"));
    let at_equal_counts = match lengths {
        [of_a, of_b] if of_a != of_b => format!(
            ", or areas of another length: the last area has {of_a} at process {a} and {of_b} at process {b}"
        ),
        _ => ", or areas of another length".into(),
    };
    let what = "global slots (by ctx.alloc, ctx.area or a library such as the collectives)";
    registered_differently(what, [a, b], counts, &at_equal_counts)
}

/// That two processes have registered `what` differently. If they made equally many calls, these were in another order
/// `or_else` something else is different.
pub(crate) fn registered_differently(
    what: &str,
    [a, b]: [Pid; 2],
    counts: [u64; 2],
    or_else: &str,
) -> String {
    let how = match counts[0] == counts[1] {
        true => format!("in another order{or_else}"),
        false => {
            let calls = counted(counts[1], "call");
            format!("{} and {calls} since the section began", counts[0])
        }
    };
    format!(
        "process {a} and process {b} registered or deregistered {what} differently since the last sync ({how}); all processes make the same calls in the same order"
    )
}

fn outside_here(slot: &str, sizes: [usize; 3], element: usize) -> String {
    let (range, has) = in_elements(sizes, element);
    format!("{range} outside {slot}, which has {has}")
}

fn outside_there(sizes: [usize; 3], element: usize) -> String {
    let (range, has) = in_elements(sizes, element);
    format!("{range} outside its {has} there")
}

/// A range of a slot and the length of the slot, in elements if the range has whole ones.
fn in_elements([offset, bytes, len]: [usize; 3], element: usize) -> (String, String) {
    // `usize::MAX` stands for a range that ends before it begins.
    let is_whole = |size: usize| size == usize::MAX || size.is_multiple_of(element);
    if element <= 1 || ![offset, bytes, len].into_iter().all(is_whole) {
        return (range(offset, bytes, "byte"), counted(len as u64, "byte"));
    }
    let elements = if bytes == usize::MAX { bytes } else { bytes / element };
    let has = counted((len / element) as u64, "element");
    (range(offset / element, elements, "element"), format!("{has} of {element} bytes"))
}

/// A range as people write it; the typed layer gives one that ends before it begins the greatest
/// length there is.
fn range(offset: usize, len: usize, unit: &str) -> String {
    match offset.checked_add(len) {
        Some(end) => format!("{unit}s {offset}..{end} lie"),
        None => format!("a range from {unit} {offset} that ends before it begins lies"),
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Report {
    kind: Kind,
    process: Option<Pid>,
    superstep: Option<u64>,
    cause: Cause,
    /// The call that was wrong, where it is known.
    place: Option<Place>,
    /// Found in checked mode, so that advice to turn it on is of no use.
    checked: bool,
}

/// An error with its kind, the process and superstep where it began, and the cause.
///
/// One pointer wide, so that `Result<()>` of `put` travels in a register. Cloning shares the
/// report: every process of a failed section holds the same one.
#[derive(Clone)]
pub struct Error(Arc<Report>);

impl Error {
    #[cold]
    fn new(kind: Kind, process: Option<Pid>, superstep: Option<u64>, cause: Cause) -> Self {
        Error(Arc::new(Report { kind, process, superstep, cause, place: None, checked: false }))
    }

    /// A wrong call at `process` in `superstep`.
    #[cold]
    pub fn misuse(process: Pid, superstep: u64, cause: Cause) -> Self {
        Self::new(Kind::Misuse, Some(process), Some(superstep), cause)
    }

    /// A refused resource at `process` in `superstep`.
    #[cold]
    pub fn mitigable(process: Pid, superstep: u64, cause: Cause) -> Self {
        Self::new(Kind::Mitigable, Some(process), Some(superstep), cause)
    }

    /// The end of a section that began at `process` in `superstep`.
    #[cold]
    pub fn fatal(process: Pid, superstep: u64, cause: Cause) -> Self {
        Self::new(Kind::Fatal, Some(process), Some(superstep), cause)
    }

    /// An error outside any section: a refused resource before a process exists.
    #[cold]
    pub fn refused(cause: Cause) -> Self {
        Self::new(Kind::Mitigable, None, None, cause)
    }

    /// A setting or argument that cannot be used.
    #[cold]
    pub fn setting(text: impl fmt::Display) -> Self {
        Self::new(Kind::Misuse, None, None, Cause::Setting(text.to_string()))
    }

    /// The program's own error, to leave an SPMD function with `?` or `return Err(..)`.
    #[cold]
    pub fn program(text: impl fmt::Display) -> Self {
        Self::new(Kind::Program, None, None, Cause::Program(text.to_string()))
    }

    /// The kind, which determines what a caller can do about it.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The process where it began, if it began in one.
    pub fn process(&self) -> Option<Pid> {
        self.0.process
    }

    /// The superstep where it began, counted in full syncs from 0, if it began in one.
    pub fn superstep(&self) -> Option<u64> {
        self.0.superstep
    }

    /// The exact cause.
    pub fn cause(&self) -> &Cause {
        &self.0.cause
    }

    /// Whether this is the same report as `other`, and not one that says the same.
    pub(crate) fn is(&self, other: &Error) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// This error with the place of the call that was wrong.
    #[cold]
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        Arc::make_mut(&mut self.0).place = Some(place);
        self
    }

    /// This error with the place of the call that was wrong, if it is known.
    #[cold]
    #[must_use]
    pub fn at_known(self, place: Option<Place>) -> Self {
        match place {
            Some(place) => self.at(place),
            None => self,
        }
    }

    /// This error; if it is about a range, its text counts in elements of `bytes` bytes.
    #[cold]
    #[must_use]
    pub(crate) fn in_elements(mut self, bytes: usize) -> Self {
        if let Cause::OutOfRange { element, .. } = &mut Arc::make_mut(&mut self.0).cause {
            *element = bytes;
        }
        self
    }

    /// This error, found in checked mode: its text does not advise to turn that on.
    #[cold]
    #[must_use]
    pub fn in_checked_mode(mut self) -> Self {
        Arc::make_mut(&mut self.0).checked = true;
        self
    }

    /// The text without kind, process and superstep: the cause, and the place of the call or how to
    /// find it.
    pub fn reason(&self) -> String {
        let Report { cause, place, checked, .. } = &*self.0;
        match place {
            Some(place) => format!("{cause} (called at {place})"),
            None if cause.is_found_late() && !checked => {
                format!("{cause} (run with LPF_CHECK=1 to see where)")
            }
            None => cause.to_string(),
        }
    }

    /// Whether this is [`Kind::Fatal`].
    pub fn is_fatal(&self) -> bool {
        self.0.kind == Kind::Fatal
    }

    /// Whether this is [`Kind::Mitigable`].
    pub fn is_mitigable(&self) -> bool {
        self.0.kind == Kind::Mitigable
    }

    /// Whether this is [`Kind::Misuse`].
    pub fn is_misuse(&self) -> bool {
        self.0.kind == Kind::Misuse
    }
}

/// Between processes an error travels whole: the other side can match on the same cause.
impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        Report::deserialize(from).map(|report| Error(Arc::new(report)))
    }
}

/// For backends: a call that is refused knows its source location, in any mode.
pub trait AtCaller {
    /// Adds the source location of the caller to the error, unless it is fatal.
    #[track_caller]
    #[must_use]
    fn at_caller(self) -> Self;
}

impl<T> AtCaller for Result<T> {
    #[inline]
    #[track_caller]
    fn at_caller(self) -> Self {
        match self {
            Err(error) if !error.is_fatal() => Err(error.at(Place::caller())),
            result => result,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &*self.0;
        if report.kind == Kind::Program {
            return report.cause.fmt(f);
        }
        write!(f, "{}: ", report.kind)?;
        if let Some(process) = report.process {
            write!(f, "process {process}")?;
            if let Some(superstep) = report.superstep {
                write!(f, ", superstep {superstep}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.reason())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In one piece, as `main` prints it: other processes write to the same terminal.
        f.write_str(&self.to_string())
    }
}

impl std::error::Error for Error {}

/// So that `?` works where what was handed over comes back with the error: `ctx.send(&mut channel, part, ..)?`.
impl<T> From<(Error, T)> for Error {
    fn from((error, _): (Error, T)) -> Self {
        error
    }
}

/// So that `?` works in an SPMD function where the standard library reports an error.
macro_rules! from_an_error_of_std {
    ($($error:ty),*) => {
        $(
            /// The text becomes that of [`Error::program`].
            impl From<$error> for Error {
                #[cold]
                fn from(error: $error) -> Self {
                    Error::program(error)
                }
            }
        )*
    };
}

from_an_error_of_std!(
    std::io::Error,
    std::num::ParseIntError,
    std::num::ParseFloatError,
    std::str::Utf8Error
);

/// An [`Error`] in the box stays what it is. Any other one becomes [`Error::program`], with its text and those of its
/// sources.
impl From<Box<dyn std::error::Error + Send + Sync>> for Error {
    #[cold]
    fn from(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        let error = match error.downcast::<Error>() {
            Ok(own) => return *own,
            Err(error) => error,
        };
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            let cause = error.to_string();
            // Many errors have the text of their source in their own.
            if !text.ends_with(&cause) {
                text = format!("{text}: {cause}");
            }
            source = error.source();
        }
        Error::program(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_std_keeps_its_text() {
        fn number(text: &[u8]) -> Result<f64> {
            Ok(std::str::from_utf8(text)?.parse::<f64>()?)
        }
        assert_eq!(number(b"1.5").unwrap(), 1.5);
        assert_eq!(number(b"x").unwrap_err().to_string(), "invalid float literal");
        assert!(number(&[0xff]).unwrap_err().to_string().starts_with("invalid utf-8"));
    }

    #[test]
    fn an_error_in_a_box_keeps_its_texts_and_an_own_one_its_kind() {
        #[derive(Debug, thiserror::Error)]
        #[error("line 3 of the matrix")]
        struct Line(#[source] std::num::ParseIntError);
        let boxed: Box<dyn std::error::Error + Send + Sync> =
            Box::new(Line("x".parse::<u32>().unwrap_err()));
        let error = Error::from(boxed);
        assert_eq!(error.to_string(), "line 3 of the matrix: invalid digit found in string");
        assert_eq!(error.kind(), Kind::Program);
        let boxed: Box<dyn std::error::Error + Send + Sync> = "no matrix".into();
        assert_eq!(Error::from(boxed).to_string(), "no matrix");
        let own = Error::fatal(3, 17, Cause::Program("it ends".into()));
        let boxed: Box<dyn std::error::Error + Send + Sync> = Box::new(own.clone());
        assert!(Error::from(boxed).is(&own));
    }

    #[test]
    fn a_result_without_value_is_one_pointer_wide() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn a_fatal_error_names_process_superstep_and_cause() {
        let error = Error::fatal(3, 17, Cause::Panicked { message: "index 9 of 4".into() });
        assert_eq!(error.to_string(), "fatal: process 3, superstep 17: it panicked: index 9 of 4");
        assert!(error.is_fatal());
    }

    #[test]
    fn an_error_that_travelled_is_the_same() {
        let cause = Cause::OutOfMemory { what: "an inbox".into(), bytes: 7 };
        let place = Place { file: "program.rs".into(), line: 3, column: 5 };
        let error = Error::fatal(3, 17, cause.clone()).at(place);
        let bytes = postcard::to_stdvec(&error).unwrap();
        let read: Error = postcard::from_bytes(&bytes).unwrap();
        assert_eq!((read.kind(), read.process()), (Kind::Fatal, Some(3)));
        assert_eq!((read.superstep(), read.cause()), (Some(17), &cause));
        assert_eq!(read.to_string(), error.to_string());
    }

    #[test]
    fn an_error_of_room_names_the_call_that_reserves_it_and_what_libraries_took() {
        let slots = Cause::SlotsUsedUp { reserved: 2, libraries: 0 }.to_string();
        assert!(slots.contains("the 2 reserved (by ctx.resize); use ctx.alloc, "), "{slots}");
        let requests = Cause::RequestsUsedUp { reserved: 8, libraries: 6 }.to_string();
        let room = "the 8 reserved (2 by ctx.resize, 6 by ctx.alloc and libraries such as the collectives), the least";
        assert!(requests.contains(room), "{requests}");
    }

    #[test]
    fn a_range_is_told_in_the_elements_of_its_call() {
        let cause = |offset, bytes, element| {
            let slot = "local slot 1".into();
            Cause::OutOfRange { slot, offset, bytes, len: 32, element }.to_string()
        };
        let elements = "elements 2..5 lie outside local slot 1, which has 4 elements of 8 bytes";
        assert_eq!(cause(16, 24, 8), elements);
        assert_eq!(cause(16, 24, 1), "bytes 16..40 lie outside local slot 1, which has 32 bytes");
        let backwards = "a range from element 3 that ends before it begins lies outside";
        assert!(cause(24, usize::MAX, 8).starts_with(backwards), "{}", cause(24, usize::MAX, 8));
        assert!(cause(0, 8, 0).starts_with("bytes 0..8 lie"), "elements of no bytes");
        assert!(cause(4, 8, 8).starts_with("bytes 4..12 lie"), "half an element");
        let remote = |element| {
            let (slot, [offset, bytes, len]) = ("global slot 0".into(), [16, 24, 32]);
            let (origin, target) = (1, 0);
            Cause::RemoteOutOfRange { origin, target, slot, offset, bytes, len, element }
                .to_string()
        };
        let said = "process 1 named global slot 0 at process 0: ";
        assert_eq!(
            remote(8),
            format!("{said}elements 2..5 lie outside its 4 elements of 8 bytes there")
        );
        assert_eq!(remote(0), format!("{said}bytes 16..40 lie outside its 32 bytes there"));
    }

    #[test]
    fn registrations_that_differ_are_told_with_what_differs() {
        let said =
            |counts, areas| Cause::RegistrationsDiffer { a: 0, b: 2, counts, areas }.to_string();
        assert!(
            said([2, 3], [8, 16]).contains("(2 and 3 calls since the section began);"),
            "{}",
            said([2, 3], [8, 16])
        );
        assert!(said([2, 2], [8, 8]).contains("(in another order, or areas of another length);"));
        let lengths =
            "of another length: the last area has 8 bytes at process 0 and 1 byte at process 2);";
        assert!(said([2, 2], [8, 1]).contains(lengths), "{}", said([2, 2], [8, 1]));
    }

    #[test]
    fn one_thing_is_not_many() {
        let early = |own| Cause::LeftEarly { own, other: 1, next: own + 1 }.to_string();
        assert!(early(1).starts_with("it returned after 1 full sync while process 1 "));
        assert!(early(0).starts_with("it returned after 0 full syncs while "));
    }

    #[test]
    fn an_error_names_the_call_or_says_how_to_find_it() {
        let cause =
            Cause::TargetOverrun { target: 1, origin: 0, count: 3, reserved: 2, libraries: 0 };
        let late = Error::fatal(0, 4, cause);
        assert!(late.to_string().ends_with(" (run with LPF_CHECK=1 to see where)"), "{late}");
        let place = Place { file: "program.rs".into(), line: 3, column: 5 };
        let placed = late.clone().at(place);
        assert!(placed.to_string().ends_with(" for more (called at program.rs:3:5)"), "{placed}");
        assert!(!late.to_string().contains("program.rs"), "a clone has a place of its own");
        let checked = late.in_checked_mode();
        assert!(checked.to_string().ends_with(" for more"), "{checked}");
    }

    #[test]
    fn the_programs_own_error_prints_as_the_program_wrote_it() {
        assert_eq!(Error::program("matrix is empty").to_string(), "matrix is empty");
    }
}
