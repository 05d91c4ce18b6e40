//! What a bare program between processes uses of a network.

use std::io::{self, IoSlice, IoSliceMut};

use lpf::{Cause, Context, Error, Lpf};

/// A message of many pieces.
pub(in crate::bench) struct Outgoing<'a> {
    pub(in crate::bench) to: usize,
    pub(in crate::bench) pieces: Vec<IoSlice<'a>>,
}

/// The places of one.
pub(in crate::bench) struct Incoming<'a> {
    pub(in crate::bench) from: usize,
    pub(in crate::bench) pieces: Vec<IoSliceMut<'a>>,
}

/// What a barrier's message has room for.
pub(in crate::bench) type Words = [u8; 16];

/// What the bare programs use of a network. Both calls return when all is done.
pub(in crate::bench) trait Network {
    /// 16 bytes to each other process, and from each: by process, the own entry is left alone.
    fn meet(&mut self, out: &[Words], into: &mut [Words]) -> io::Result<()>;

    /// All these messages at once.
    fn exchange(&mut self, out: Vec<Outgoing<'_>>, into: Vec<Incoming<'_>>) -> io::Result<()>;
}

/// The error of a bare program.
pub(in crate::bench) fn failed(error: io::Error) -> Error {
    let (what, reason) = ("a bare program".into(), error.to_string());
    Error::refused(Cause::Refused { what, reason })
}

/// The error of a connection that is used. If it has broken, a process has most probably died: the next superstep
/// reports which one, and how.
pub(in crate::bench) fn broken<L: Lpf>(ctx: &mut Context<'_, L>, error: io::Error) -> Error {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let kinds = [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof];
    let report = if kinds.contains(&error.kind()) { ctx.sync().err() } else { None };
    report.unwrap_or_else(|| failed(error))
}
