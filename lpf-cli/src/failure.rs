//! How a command can end other than well.

use std::io;

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
    /// Nobody reads the output any more, which is no error; status 0.
    ClosedPipe,
}

/// The status of a check that came to no verdict.
pub(crate) const UNDECIDED: u8 = 3;

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl From<lpf::Error> for Failure {
    fn from(error: lpf::Error) -> Self {
        match error.cause() {
            lpf::error::Cause::Setting(text) => Failure::Usage(text.clone()),
            _ => Failure::Failed(error.to_string()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Failed(format!("the output cannot be written: {error}")),
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
        io::Error::from(error).into()
    }
}
