//! The requests that wait for a sync, and where each was made.

use std::fmt::Write;

use super::{Place, Tracked};
use crate::Pid;
use crate::request::Way;

/// The most requests that a report names one by one.
const NAMED: usize = 8;

/// The requests that one process has pending, and those that are suspended while a library works.
#[derive(Debug, Default)]
pub struct Pending {
    /// Those of callers come before those of their libraries.
    all: Vec<Tracked>,
    /// Where the requests of each library begin, the innermost last.
    begins: Vec<usize>,
    /// Those of the last superstep: an error of theirs may be known late.
    last: Vec<Tracked>,
}

impl Pending {
    fn begin(&self) -> usize {
        self.begins.last().copied().unwrap_or(0)
    }

    /// The requests of this superstep.
    pub fn requests(&self) -> &[Tracked] {
        &self.all[self.begin()..]
    }

    /// Where the latest request of this superstep was made that `is_it` knows.
    pub fn latest(&self, is_it: impl Fn(&Tracked) -> bool) -> Option<Place> {
        let latest = self.requests().iter().rfind(|tracked| is_it(tracked));
        latest.map(|tracked| tracked.place.clone())
    }

    /// As [`latest`](Self::latest), of the last superstep.
    pub fn latest_before(&self, is_it: impl Fn(&Tracked) -> bool) -> Option<Place> {
        self.last.iter().rfind(|tracked| is_it(tracked)).map(|tracked| tracked.place.clone())
    }

    /// Adds a request of this superstep.
    pub fn push(&mut self, request: Tracked) {
        self.all.push(request);
    }

    /// The requests of this superstep are executed.
    pub fn clear(&mut self) {
        self.last = self.all.split_off(self.begin());
    }

    /// The pending requests wait until [`restore`](Self::restore).
    pub fn suspend(&mut self) {
        self.begins.push(self.all.len());
    }

    /// The requests suspended last are pending again; later ones are dropped.
    pub fn restore(&mut self) {
        self.all.truncate(self.begin());
        self.begins.pop();
    }

    /// Whether anything is suspended.
    pub fn is_suspended(&self) -> bool {
        !self.begins.is_empty()
    }

    /// A report on the requests that are dropped at process `owner`, because no sync followed them: one request a
    /// line.
    pub fn lost(&self, owner: Pid) -> Option<String> {
        let lost = self.requests();
        let requests = match lost.len() {
            0 => return None,
            1 => "1 request, which no sync followed".into(),
            lost => format!("{lost} requests, which no sync followed"),
        };
        let mut report = format!("process {owner} lost {requests}:");
        for Tracked { asked, place, .. } in lost.iter().take(NAMED) {
            let (name, to) = match asked.way {
                Way::Put => ("put", "to"),
                Way::Get => ("get", "from"),
            };
            let (bytes, other) = (asked.bytes, asked.other);
            // Writing to a string cannot fail.
            let _ = write!(report, "\n  {name} of {bytes} bytes {to} process {other} at {place}");
        }
        if lost.len() > NAMED {
            let _ = write!(report, "\n  and {} more", lost.len() - NAMED);
        }
        Some(report)
    }
}
