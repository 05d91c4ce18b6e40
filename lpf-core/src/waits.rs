//! The check of waits: it distinguishes a wait that takes long from a wait that never ends.
//!
//! In an expected superstep a process waits for some others only. One of them may believe in another
//! root, skip the call, or leave. Then no process has failed, but no message is sent: all would wait for
//! ever. So every process publishes its state ([`Status`]), and a wait that lasts longer than
//! [`ASK_AFTER`] asks the processes it awaits ([`Suspicion::diagnose`]).
//!
//! # When a wait is hopeless
//! Everything a wait needs is a cumulative count at the awaited process: puts made, messages
//! released, landings offered, ends opened and closed, calls joined. If that count has reached the number needed, the
//! rest is under way, and the wait goes on in any case. If the count is short, the wait is hopeless if the awaited
//! process
//!
//! - has left the section;
//! - is in a full sync that the asker has not reached: it makes no put before the asker joins it;
//! - is in the same call of the same group with another stamp, or in a later one (this
//!   holds for messages, offers and joining only: releases, openings and closings may be made in any call);
//! - waits itself, and so on round to the asker, so that the asker waits for itself. A cycle counts when
//!   it is seen twice.
//!
//! The wait is also hopeless if the awaited message is queued at its sender as a landing that the asker has not offered.
//! So it is if the message is queued for an end that its receiver has opened and closed again.
//! In all other cases the wait goes on, above all if the awaited process computes: computing is never a failure.
//!
//! # Why there is no false alarm
//! The statuses of all processes are not a snapshot, and one may be old. But
//!
//! - Counts only grow, and are those of the same moment as the rest of the status or a later one. So
//!   a count that is short now was short when the status was published.
//! - *A status may be published late*, so that a fast wait need not publish anything. Until then
//!   its process passes for computing, which accuses no process.
//! - *A status may be withdrawn late*. If its process has left a full sync, the asker
//!   has reached that sync. If its wait has ended, the counts of the wait are reached.
//! - In a cycle the asker knows its own counts. So the process that waits for the asker is stuck,
//!   and its status and counts are of this wait. So the process that waits for that one
//!   is stuck, and so on round. A second look costs little, and finds a backend that is wrong here.
//!
//! # What a backend publishes
//! - [`Doing::FullSync`] and [`Doing::Left`] only once the process's puts have left and its releases
//!   are counted: a full sync, or leaving, that still waits for credit is [`Doing::Waiting`].
//! - Counts belong to a [`Stream`], not to the ring that others used before: both ends count the
//!   same openings and messages without a word between them. They go on when the link is closed and
//!   opened again, and are kept while the inbox lives; a stream that is not listed has counts of 0.
//! - `group` distinguishes the groups of a section, which number their calls separately.
//! - `doing` is one value, and so are group and call together: a reader sees all or nothing of a
//!   change. Counts are published with them (under one lock), or read after them; the asker's own
//!   are those of the moment of asking.

#[cfg(test)]
mod tests;

mod diagnose;

pub use diagnose::{Fault, Suspicion, last_of_chain};

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Pid;
use crate::arrivals::{Call, InboxSlot};
use crate::check::Place;

/// How long a process waits before it asks, and then between two questions.
pub const ASK_AFTER: Duration = Duration::from_millis(250);

/// A wait of this length has been published. The end of a time limit (`LPF_TIMEOUT`) is reported this much later. Then
/// the waits that had begun by its end are known, and no waiting process passes for a computing one.
///
/// In models of loom time stands still: there a time limit is over at once.
pub const KNOWN_AFTER: Duration = Duration::from_millis(if cfg!(loom) { 0 } else { 150 });

/// When a wait is published: well before others ask, well after what a superstep takes, and before a time limit ends.
pub fn publish_after(limit: Option<Duration>) -> Duration {
    const PUBLISH_AFTER: Duration = Duration::from_millis(100);
    limit.map_or(PUBLISH_AFTER, |limit| PUBLISH_AFTER.min(limit / 2))
}

/// The messages of one process to one other: a direction of a link, under the name that both ends
/// know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stream {
    /// The sender.
    pub from: Pid,
    /// The receiver.
    pub to: Pid,
    /// The inbox's number.
    pub inbox: usize,
    /// The ring of the receiver's inbox in which the messages end.
    pub ring: usize,
}

impl Stream {
    /// The stream from `from` into ring `ring` of `inbox` at `to`.
    pub fn new(from: Pid, to: Pid, inbox: InboxSlot, ring: usize) -> Self {
        Stream { from, to, inbox: inbox.number(), ring }
    }

    /// What stands for a process's calls of a group that consult the board. It carries no messages.
    fn of_calls(pid: Pid, group: u64) -> Self {
        Stream { from: pid, to: pid, inbox: group as usize, ring: u32::MAX as usize }
    }
}

/// The counts of a process on a stream, as its sender and as its receiver. A process that is only one of them leaves the
/// other side unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The sender's side.
    pub sent: SenderCounts,
    /// The receiver's side.
    pub received: ReceiverCounts,
}

/// The counts of a sender on a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderCounts {
    /// Puts made, queued ones included.
    pub made: u64,
    /// Landings that left.
    pub landed: u64,
    /// The first queued put that waits for an offer.
    pub queued: Option<QueuedLanding>,
    /// The message, counted from 1, that is first in the queue and waits for the ring.
    pub barred: Option<u64>,
    /// Times it opened its end.
    pub opened: u64,
    /// Times it closed its end.
    pub closed: u64,
}

/// The counts of a receiver on a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverCounts {
    /// Messages released (the prefix), reported or not.
    pub released: u64,
    /// Landings offered.
    pub offered: u64,
    /// Times it opened its end.
    pub opened: u64,
    /// Times it closed its end.
    pub closed: u64,
    /// The sender that still has the ring that it opened last, and the number of its opening: that sender has
    /// not closed.
    pub held_by: Option<(Pid, u64)>,
}

/// A put that cannot leave before the receiver has offered memory for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedLanding {
    /// Its number among the messages of the stream, from 1.
    pub message: u64,
    /// Its number among the landings of the stream, from 1: the offers it needs.
    pub landing: u64,
}

/// Which count a wait needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum What {
    /// Puts made by the sender: the asker expects messages.
    Messages,
    /// Messages released by the receiver: the asker flushes and has no credit.
    Releases,
    /// Landings offered by the receiver: the asker flushes and has no memory to write to.
    Offers,
    /// The receiver's opening of its end: the asker flushes and has no ring to write to.
    Opening,
    /// The closing of the ring's last link by its sender: the asker flushes and is next.
    Closing,
    /// The process's part in the asker's call: the asker [consults](Consult) the board. `need` is the call's
    /// number, `have` how many calls of its group that consult the board the asker has made, this one included.
    Joining,
    /// An answer on the board by a process's helper thread, which answers in any state of its process. It has no
    /// count, so it accuses no process.
    Answer,
}

/// One count that a process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    /// Which count.
    pub what: What,
    /// Of which stream.
    pub stream: Stream,
    /// The count so far.
    pub have: u64,
    /// The count that is needed.
    pub need: u64,
}

impl Want {
    /// The process that has to act.
    pub fn awaited(&self) -> Pid {
        match self.what {
            What::Messages | What::Closing | What::Joining | What::Answer => self.stream.from,
            What::Releases | What::Offers | What::Opening => self.stream.to,
        }
    }

    /// Whether this is the same want at another time. `need` only grows over a stream's life, so
    /// equal needs mean the same wait.
    fn is_still(&self, other: &Want) -> bool {
        (self.what, self.stream, self.need) == (other.what, other.stream, other.need)
    }
}

/// A wait for a record of the board, which no message announces. See [`Runtime::consult`](crate::Runtime::consult).
#[derive(Clone, Copy)]
pub struct Consult<'a> {
    /// The process whose helper thread writes the record.
    pub from: Pid,
    /// Members of the call that was entered last that have not arrived at it, according to the board. Empty if the record
    /// waits for no member.
    pub absent: &'a dyn Fn() -> Vec<Pid>,
    /// The longest sleep between two looks.
    pub look_every: Duration,
}

impl std::fmt::Debug for Consult<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consult").field("from", &self.from).finish_non_exhaustive()
    }
}

impl Consult<'_> {
    /// What the process that `status` is of waits for in call `call`.
    pub fn wants(&self, call: Call, status: &Status) -> Vec<Want> {
        let made = status.joined(call.group).calls;
        let wants = (self.absent)().into_iter().map(|absent| {
            let stream = Stream::of_calls(absent, call.group);
            Want { what: What::Joining, stream, have: made, need: u64::from(call.number) }
        });
        let wants: Vec<Want> = wants.filter(|want| want.need > 0).collect();
        if !wants.is_empty() {
            return wants;
        }
        let stream = Stream::of_calls(self.from, call.group);
        vec![Want { what: What::Answer, stream, have: 0, need: 1 }]
    }
}

/// The activity of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Doing {
    /// Running the program, in a call or outside.
    #[default]
    Computing,
    /// Waiting in the full sync that ends this superstep.
    FullSync(u64),
    /// Waiting in an expected sync, or for the credit of a flush: for all of these.
    Waiting(Vec<Want>),
    /// It has left the section.
    Left,
}

/// The calls of a group in which a process has consulted the board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// The number of the last one.
    pub last: u64,
    /// How many there were.
    pub calls: u64,
}

/// The published state of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its activity.
    pub doing: Doing,
    /// Full syncs completed: the superstep it is in. Of other processes' only for the text.
    pub superstep: u64,
    /// The group that `call` is a call of.
    pub group: u64,
    /// The call it is in; number 0 outside of calls.
    pub call: Call,
    /// The source location of that call.
    pub place: Option<Place>,
    /// The values of that call, if it waits and they are known.
    pub values: String,
    /// Its counts, by stream: a process can have two with each other one.
    pub counts: BTreeMap<Stream, Counts>,
    /// Its calls that consult the board, by group.
    pub joined: Vec<(u64, Joined)>,
}

impl Status {
    /// Enters a call, whose values are not known.
    pub fn enter(&mut self, call: Call) {
        (self.group, self.call, self.place) = (call.group, call, call.place.map(Place::from));
    }

    /// Notes that its process takes part in `call`, in which it consults the board. To be noted before it
    /// does anything after the call.
    pub fn join(&mut self, call: Call) {
        let last = u64::from(call.number);
        match self.joined.iter_mut().find(|(group, _)| *group == call.group) {
            _ if last == 0 => {}
            Some((_, joined)) if joined.last == last => {}
            Some((_, joined)) => *joined = Joined { last, calls: joined.calls + 1 },
            None => self.joined.push((call.group, Joined { last, calls: 1 })),
        }
    }

    /// Its calls of a group that have consulted the board.
    fn joined(&self, group: u64) -> Joined {
        let found = self.joined.iter().find(|(of, _)| *of == group);
        found.map(|(_, joined)| *joined).unwrap_or_default()
    }

    /// Its counts on a stream.
    pub fn on(&self, stream: Stream) -> Counts {
        self.counts.get(&stream).copied().unwrap_or_default()
    }

    /// Its counts on a stream, to be changed.
    pub fn on_mut(&mut self, stream: Stream) -> &mut Counts {
        self.counts.entry(stream).or_default()
    }

    /// The count that `want` is about, at the process it awaits.
    fn count(&self, want: &Want) -> u64 {
        let counts = self.on(want.stream);
        match want.what {
            What::Messages => counts.sent.made,
            What::Releases => counts.received.released,
            What::Offers => counts.received.offered,
            What::Opening => counts.received.opened,
            What::Closing => counts.sent.closed,
            What::Joining => {
                let Joined { last, calls } = self.joined(want.stream.inbox as u64);
                // A process in a later call was in this one, too, if it has made more of them than the asker.
                match last == want.need || last > want.need && calls > want.have {
                    true => want.need,
                    false => last.min(want.need.saturating_sub(1)),
                }
            }
            What::Answer => u64::MAX,
        }
    }

    fn wants(&self) -> &[Want] {
        match &self.doing {
            Doing::Waiting(wants) => wants,
            _ => &[],
        }
    }
}
