//! The first exchange of a full sync, which is also its barrier: each process learns for what purpose every other process
//! has arrived, and which requests the others have for it.
//!
//! Two algorithms have the same result. [`Direct`] sends a message to each other process: p - 1 messages of a process, and
//! at most twice that number if some do not fit a first part. [`Bruck`] takes 2⌈log₂ p⌉ steps for every pattern, each of one
//! message, or of two if it is longer than 4 KiB, and of one more for each chunk left over; its volume is larger by a factor
//! O(log p). All processes use the same algorithm: the one that was set, else the one that was measured as cheaper, else
//! [`exchange_for`] p.

mod bruck;
mod chunks;
mod direct;
mod room;
mod unread;
mod waiting;

use super::transport::Transport;
use super::watch::{Stop, Watch};
use super::wire::Summary;
use lpf_core::Pid;
use lpf_core::error::Result;
use lpf_core::settings::Exchange;

use bruck::Bruck;
use direct::Direct;
pub(super) use room::{Allowed, Refused, Room};
pub(super) use waiting::InMeeting;

/// Up to this number of processes the exchange is direct, unless `lpf probe` found Bruck's algorithm cheaper. The number
/// is cautious, because the crossing of the two depends on the network.
const MOST_DIRECT: usize = 16;

/// The algorithm for this number of processes, if no algorithm was set or measured.
pub fn exchange_for(processes: usize) -> Exchange {
    if processes <= MOST_DIRECT { Exchange::Direct } else { Exchange::Bruck }
}

#[derive(Debug)]
pub(super) enum Meeting {
    Direct(Direct),
    Bruck(Bruck),
}

impl Meeting {
    pub(super) fn new<T: Transport>(
        way: Exchange,
        net: &mut T,
        watch: &Watch,
        context: u32,
    ) -> std::result::Result<Self, Refused> {
        let mut meeting = match way {
            Exchange::Direct => Meeting::Direct(Direct::new(watch, context)?),
            Exchange::Bruck => Meeting::Bruck(Bruck::new(watch, context)?),
        };
        let posted = (0..2).try_for_each(|parity| match &mut meeting {
            Meeting::Direct(direct) => direct.post(net, &watch.members, parity),
            Meeting::Bruck(bruck) => bruck.post(net, watch, parity),
        });
        if let Err(broken) = posted {
            meeting.give_up(net, context);
            return Err(Refused::Network(broken));
        }
        Ok(meeting)
    }

    pub(super) fn way(&self) -> Exchange {
        match self {
            Meeting::Direct(_) => Exchange::Direct,
            Meeting::Bruck(_) => Exchange::Bruck,
        }
    }

    /// Messages sent so far.
    pub(super) fn sent(&self) -> u64 {
        match self {
            Meeting::Direct(direct) => direct.sent,
            Meeting::Bruck(bruck) => bruck.sent,
        }
    }

    /// A message up to this length costs the same whatever its length, so that longer requests may travel in it, too.
    pub(super) fn eager(&self) -> usize {
        match self {
            Meeting::Direct(direct) => direct.eager,
            // Each byte travels ⌈log₂ p⌉ times.
            Meeting::Bruck(_) => 0,
        }
    }

    /// Sends this process's units, which are in `room`, and its summary, and waits for those of all other processes. Their
    /// summaries are merged into `all`. `allowed` is what the others may send to this process.
    #[inline]
    pub(super) fn meet<T: Transport>(
        &mut self,
        net: &mut T,
        watch: &mut Watch,
        what: &mut InMeeting<'_>,
        room: &mut Room,
        all: &mut Summary,
        allowed: Allowed<'_>,
    ) -> Result<()> {
        match self {
            Meeting::Direct(direct) => direct.meet(net, watch, what, room, all, allowed),
            Meeting::Bruck(bruck) => bruck.meet(net, watch, what, room, all, allowed),
        }
    }

    /// The units that process `from` has for this one.
    #[inline]
    pub(super) fn units<'a>(&'a self, from: Pid, room: &'a Room) -> &'a [u8] {
        match self {
            Meeting::Direct(direct) => direct.units(from, room),
            Meeting::Bruck(bruck) => bruck.units(from, room),
        }
    }

    /// Whether this process's messages have left.
    #[inline]
    pub(super) fn have_left<T: Transport>(
        &mut self,
        net: &mut T,
    ) -> std::result::Result<bool, Stop> {
        match self {
            Meeting::Direct(direct) => direct.have_left(net),
            Meeting::Bruck(bruck) => bruck.have_left(net),
        }
    }

    /// Ends a meeting whose messages were used and have left.
    #[inline]
    pub(super) fn finish<T: Transport>(
        &mut self,
        net: &mut T,
        watch: &Watch,
        superstep: u64,
    ) -> Result<()> {
        let posted = match self {
            Meeting::Direct(_) => Ok(()),
            Meeting::Bruck(bruck) => bruck.finish(net, watch),
        };
        posted.map_err(|broken| watch.broken(net.control(), superstep, broken))
    }

    /// Cancels all sends and receives. False if the network may still write to its memory.
    pub(super) fn close<T: Transport>(&mut self, net: &mut T) -> bool {
        match self {
            Meeting::Direct(direct) => direct.close(net),
            Meeting::Bruck(bruck) => bruck.close(net),
        }
    }

    /// Ends a meeting at which no other process will arrive. Messages that still arrive for it are dropped.
    #[cold]
    pub(super) fn give_up<T: Transport>(&mut self, net: &mut T, context: u32) {
        if !self.close(net) {
            self.keep();
        }
        net.forget(context);
    }

    /// A process that has not taken what this process sent to it.
    pub(super) fn leaves_to(&self) -> Option<Pid> {
        match self {
            Meeting::Direct(direct) => direct.leaves_to(),
            Meeting::Bruck(bruck) => bruck.leaves_to(),
        }
    }

    /// Leaks its memory.
    pub(super) fn keep(&mut self) {
        match self {
            Meeting::Direct(direct) => direct.keep(),
            Meeting::Bruck(bruck) => bruck.keep(),
        }
    }
}
