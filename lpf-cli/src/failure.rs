//! How a command can end other than well.

use std::io;

use serde_json::error::Category;

/// What became of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments or the environment cannot be used: one sentence and what to do; status 2.
    Usage(String),
    /// It was tried and failed; status 1.
    Failed(String),
    /// The output already says what is wrong; status 1.
    Said,
    /// This status, and what there is to say is said: that of a program that was run, or
    /// [`UNDECIDED`].
    Ended(u8),
    /// Something was not written to a standard stream: status 0 if its reader has closed the pipe, else 1,
    /// as [`lost`](crate::output::lost) tells.
    Output,
}

/// The status of a check that came to no verdict.
pub(crate) const UNDECIDED: u8 = 3;

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl From<lpf::Error> for Failure {
    fn from(error: lpf::Error) -> Self {
        match error.cause() {
            lpf::error::Cause::Setting(text) => Failure::Usage(crate::output::named(text)),
            _ => Failure::Failed(error.to_string()),
        }
    }
}

/// Of writing to a standard stream. What that does not know of is an error of its own.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let is_closed = error.kind() == io::ErrorKind::BrokenPipe;
        match is_closed || crate::output::lost().is_some() {
            true => Failure::Output,
            false => Failure::Failed(error.to_string()),
        }
    }
}

impl From<csv::Error> for Failure {
    fn from(error: csv::Error) -> Self {
        match error.into_kind() {
            csv::ErrorKind::Io(error) => error.into(),
            other => Failure::Failed(format!("a row cannot be written as CSV: {other:?}")),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        match error.classify() {
            Category::Io => io::Error::from(error).into(),
            _ => Failure::Failed(format!("a line of JSON cannot be used: {error}")),
        }
    }
}
