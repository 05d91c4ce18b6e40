//! The memory of supersteps.

use serde::{Deserialize, Serialize};

use super::super::meeting::{Meeting, Room};
use super::super::transport::Transport;
use super::answers::Answers;
use super::long::Long;
use lpf_core::check::{Registration, SharedChecks, Tracked};
use lpf_core::error::Result;
use lpf_core::request::List;
use lpf_core::runtime::LocalState;

/// The memory of a superstep, all of which was reserved before.
#[derive(Debug)]
pub(in super::super) struct Scratch {
    pub(in super::super) room: Room,
    pub(super) answers: Answers,
    pub(super) long: Long,
    /// By target, the requests of this superstep.
    pub(super) lists: Vec<Lists>,
    /// In checked mode, by process, the lists that it has sent in this superstep.
    pub(super) told: Vec<Told>,
    /// Larger rooms, which are used from the end of the next full sync on.
    next: Option<(Room, Answers, Long)>,
}

/// The requests for one target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lists {
    pub(super) puts: List,
    pub(super) gets: List,
    /// Bytes of the gets that arrive with an answer.
    pub(super) short_in: usize,
    /// Whether the bytes of any request travel in a message of their own.
    pub(super) is_long: bool,
}

// SAFETY: the lists point into the queue of the same process, which is sent together with them.
unsafe impl Send for Lists {}

impl Lists {
    pub(super) const EMPTY: Lists =
        Lists { puts: List::EMPTY, gets: List::EMPTY, short_in: 0, is_long: false };
}

impl Scratch {
    /// Without room for requests.
    ///
    /// # Errors
    /// The bytes that were refused.
    pub(in super::super) fn new(
        local: &LocalState,
        meeting: &Meeting,
    ) -> std::result::Result<Self, usize> {
        let nprocs = local.nprocs;
        let mut lists = Vec::new();
        let bytes = nprocs.saturating_mul(size_of::<Lists>());
        lists.try_reserve_exact(nprocs).map_err(|_| bytes)?;
        lists.resize(nprocs, Lists::EMPTY);
        let (room, answers, long) = Self::rooms(local, meeting, 0)?;
        Ok(Scratch { room, answers, long, lists, told: Vec::new(), next: None })
    }

    fn rooms(
        local: &LocalState,
        meeting: &Meeting,
        requests: usize,
    ) -> std::result::Result<(Room, Answers, Long), usize> {
        let (nprocs, eager) = (local.nprocs, meeting.eager());
        let room = Room::new(meeting.way(), nprocs, eager, requests)?;
        Ok((room, Answers::new(nprocs, eager, requests)?, Long::new(nprocs, requests)?))
    }

    pub(in super::super) fn apply(&mut self) {
        if let Some((room, answers, long)) = self.next.take() {
            (self.room, self.answers, self.long) = (room, answers, long);
        }
    }

    /// Cancels everything in flight. Returns false if the network may still touch users' memory.
    pub(in super::super) fn close<T: Transport>(&mut self, net: &mut T) -> bool {
        self.answers.close(net) & self.long.close(net)
    }

    /// Leaks its memory.
    pub(in super::super) fn keep(&mut self) {
        lpf_core::leaked::leak(std::mem::take(&mut self.room));
        lpf_core::leaked::leak(std::mem::take(&mut self.answers));
    }
}

/// A larger capacity for requests, whose rooms are reserved first.
pub(in super::super) struct Larger<'a> {
    pub(in super::super) meeting: &'a Meeting,
    pub(in super::super) scratch: &'a mut Scratch,
}

impl lpf_core::runtime::Room for Larger<'_> {
    fn for_requests(
        &mut self,
        local: &mut LocalState,
        requests: usize,
        reserve: impl FnOnce(&mut LocalState) -> Result<()>,
    ) -> Result<()> {
        let rooms = Scratch::rooms(local, self.meeting, requests);
        let rooms = rooms.map_err(|bytes| local.refused("messages", bytes))?;
        reserve(local)?;
        self.scratch.next = Some(rooms);
        Ok(())
    }
}

/// In checked mode, what a process reports of its superstep. A node reports it for each of its processes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) requests: Vec<Tracked>,
    pub(super) calls: Vec<Registration>,
}

impl Told {
    pub(super) fn of(checks: &SharedChecks) -> Self {
        let checks = checks.lock();
        Told {
            requests: checks.pending.requests().to_vec(),
            calls: checks.registry.calls().to_vec(),
        }
    }
}
