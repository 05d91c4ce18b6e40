//! A process inside an exchange, as its waits see it.

use super::super::links::{Links, Rings};
use lpf_core::arrivals::left_unread;
use lpf_core::error::Error;
use lpf_core::runtime::{LocalState, Medium, Purpose, Tables, Waiting, status_at};
use lpf_core::waits::{Status, Stream};
use lpf_core::{Call, Pid};

/// A process in a full sync, in a rehook or at the end of its section, as its waits see it.
pub(in super::super) struct InMeeting<'a> {
    pub(in super::super) local: &'a LocalState,
    pub(in super::super) links: Links<'a>,
    pub(in super::super) kind: Purpose,
    pub(in super::super) missing: Pid,
}

impl InMeeting<'_> {
    /// A process is subject to more requests than it has room for.
    pub(in super::super) fn overrun(&self, origin: Pid, count: usize) -> Error {
        let LocalState { pid, queue, .. } = self.local;
        let [target, origin] = [*pid, origin].map(|pid| self.local.known_as(pid));
        let cause = queue.overrun(target, origin, count + queue.used());
        let error = Error::fatal(origin, self.local.superstep, cause);
        // Only the origin knows where it made its requests: see `LocalState::with_place`.
        if self.local.is_checked() { error.in_checked_mode() } else { error }
    }

    /// This process has not awaited all messages that were sent to it.
    #[cold]
    pub(in super::super) fn left_unread(
        &self,
        left: u16,
        from: Option<Pid>,
        found: Option<(Stream, Option<Call>)>,
    ) -> Error {
        let local = self.local;
        let (from, to, call) = match found {
            Some((stream, call)) => (Some(stream.from), stream.to, call),
            None => (from.map(|from| local.known_as(from)), local.known_as(local.pid), None),
        };
        Error::fatal(to, local.superstep, left_unread(left.into(), from, call))
    }
}

impl Waiting for InMeeting<'_> {
    fn status(&self, medium: &impl Medium) -> Status {
        status_at(self.local, self.links.table, self.kind, medium)
    }

    fn missing(&self, _medium: &impl Medium) -> Pid {
        self.local.known_as(self.missing)
    }

    fn superstep(&self) -> u64 {
        self.local.superstep
    }
}

impl<'a> InMeeting<'a> {
    pub(in super::super) fn new(
        tables: &'a mut Tables,
        rings: &'a mut Rings,
        kind: Purpose,
    ) -> Self {
        let Tables { local, links: table } = tables;
        let missing = local.pid;
        InMeeting { local, links: Links { table, rings }, kind, missing }
    }
}
