//! Expected arrivals: links, rings, credits, stamps.
//!
//! Both ends of every transfer of an arrival-aware algorithm know the schedule. So a process need
//! not wait for all others: it waits for the messages it expects. The vocabulary:
//!
//! - an *inbox* is memory of the runtime at every process, registered like a slot: a number of
//!   *rings*, each of W *cells* of one size;
//! - a *channel* is an ordered stream of messages from one process to one other; it ends in a ring
//!   of the receiver's inbox;
//! - a *link* is a pair of channels between two processes, one each way. Credits travel apart from
//!   messages.
//!
//! The rules are on the book's page *Channels and credits*; the arithmetic they need is here, once for all
//! backends: [`Outgoing`] and [`Incoming`].

mod call;
mod queue;

pub use call::{Call, CallNames, CallValues};
pub use queue::{Queue, Queued, Travel};

use std::fmt;

use crate::Pid;
use crate::error::Cause;

/// The most cells of a ring: one bit each in a word of held messages.
pub const MAX_WINDOW: u32 = 64;

/// The shape of an inbox, equal on every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InboxShape {
    /// Rings: channels that can end here at the same time.
    pub rings: usize,
    /// Cells of a ring, the window W: messages under way or unreleased; 1 to [`MAX_WINDOW`].
    pub window: u32,
    /// Bytes of a cell: the longest message that is not a landing.
    pub cell_bytes: usize,
}

impl InboxShape {
    /// A number that differs between shapes, for the comparison at the activating sync.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = 0x1b0f_u64;
        for word in [self.rings as u64, u64::from(self.window), self.cell_bytes as u64] {
            hash = (hash.rotate_left(7) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        hash >> 8
    }

    /// The longest part of a put in parts, with `lends_parts` as
    /// [`Engine::lends_parts`](crate::runtime::Engine::lends_parts).
    pub fn longest_part(&self, lends_parts: bool) -> usize {
        if lends_parts { usize::MAX } else { self.cell_bytes }
    }
}

/// A registered inbox; the same value on every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InboxSlot(u64);

impl InboxSlot {
    /// Inbox number `number` of a context; for backends.
    pub fn new(number: u32) -> Self {
        InboxSlot(u64::from(number))
    }

    /// Its number.
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

/// An open link of one process; a local name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link(u64);

impl Link {
    /// Link number `number` of generation `generation` of a process; for backends.
    pub fn new(number: u32, generation: u32) -> Self {
        Link(u64::from(number) | u64::from(generation) << 32)
    }

    /// Its place in the process's table of links.
    #[inline]
    pub fn number(self) -> usize {
        self.0 as u32 as usize
    }

    /// Which of the links that had this place.
    #[inline]
    pub fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {}", self.number())
    }
}

/// Messages that a sync waits for: `messages` more on `link` than were awaited before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expect {
    /// The link they come on.
    pub link: Link,
    /// How many; 0 waits for nothing.
    pub messages: u32,
}

impl Expect {
    /// One message.
    pub fn one(link: Link) -> Self {
        Expect { link, messages: 1 }
    }
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its first byte; null for an empty message.
    pub data: *const u8,
    /// Its length.
    pub bytes: usize,
    /// Whether it went to a landing and not through a cell.
    pub landed: bool,
    /// If so, the number of the offer it used.
    pub offer: u64,
}

/// The sender's side of one channel. Cumulative counts throughout: they never wrap in practice
/// (2^64 messages), and the next update repairs a lost one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outgoing {
    /// Puts accepted, queued ones included.
    pub made: u64,
    /// Puts that left.
    pub sent: u64,
    /// The peer's releases known here.
    pub released: u64,
    /// `made` at this process's last sync of any kind, and since then what a put in parts made beyond one.
    pub made_at_sync: u64,
}

impl Outgoing {
    /// Whether the next queued put has a free cell.
    #[inline]
    pub fn may_send(&self, window: u32) -> bool {
        // If the peer reports more releases than there were sends, the difference wraps to a large number: no credit. Then
        // `check_released` gives the error.
        self.sent < self.made && self.sent.wrapping_sub(self.released) < u64::from(window)
    }

    /// The peer has released no more than was sent.
    ///
    /// # Errors
    /// *Protocol*: it has reported more.
    #[inline]
    pub fn check_released(&self, peer: Pid) -> std::result::Result<(), Cause> {
        if self.released <= self.sent {
            return Ok(());
        }
        let (released, sent) = (self.released, self.sent);
        Err(Cause::Protocol(format!(
            "process {peer} reports {released} messages of a link as released, of which {sent} were sent"
        )))
    }

    /// Whether one more put may be made in this superstep: at most `window` of them.
    #[inline]
    pub fn may_make(&self, window: u32) -> bool {
        self.made - self.made_at_sync < u64::from(window)
    }

    /// Makes one more put of `bytes` bytes on a link, behind `queued` ones that have not left: one message,
    /// or one for each part.
    ///
    /// # Errors
    /// Why it cannot be made: too long for a cell, too many since the last sync of any kind, too many without credit.
    #[inline]
    pub fn make(
        &mut self,
        link: Link,
        bytes: usize,
        travel: Travel,
        (shape, longest_part): (InboxShape, usize),
        queued: usize,
    ) -> std::result::Result<(), Cause> {
        let is_too_long = match travel {
            Travel::Cell => bytes > shape.cell_bytes,
            Travel::Parts(part) => part > longest_part || part == 0 && bytes > 0,
            Travel::Landing => false,
        };
        let is_behind_too_many = queued >= 2 * shape.window as usize;
        if is_too_long || is_behind_too_many || !self.may_make(shape.window) {
            return Err(self.refusal(link, bytes, is_too_long, shape, queued));
        }
        let messages = Queued::messages(bytes, travel);
        self.made += messages;
        self.made_at_sync += messages - 1;
        Ok(())
    }

    #[cold]
    fn refusal(
        &self,
        link: Link,
        bytes: usize,
        is_too_long: bool,
        InboxShape { window, cell_bytes, .. }: InboxShape,
        queued: usize,
    ) -> Cause {
        Cause::Link(match is_too_long {
            true => format!(
                "a message of {bytes} bytes does not fit the cells of {link}, which have {cell_bytes}; send it in parts that do, or as a landing"
            ),
            false if !self.may_make(window) => {
                format!("more than {window} puts on {link} without a sync, expect or flush")
            }
            false => format!("{queued} puts on {link} wait for credit; flush first"),
        })
    }

    /// Whether everything made has left.
    #[inline]
    pub fn is_flushed(&self) -> bool {
        self.sent == self.made
    }
}

/// Why a ring cannot go to the link of process `next`: its owner never awaited `left` messages of the link
/// before.
#[cold]
pub fn never_awaited(left: u64, inbox: usize, ring: usize, next: Pid) -> Cause {
    let messages = if left == 1 { "message" } else { "messages" };
    Cause::Disagreement(format!(
        "it never awaited {left} {messages} that came into ring {ring} of inbox {inbox} before process {next}'s link"
    ))
}

/// Why a link cannot be closed: its owner never awaited a message of process `from`, sent in `call` if
/// that is known, that has arrived.
#[cold]
pub fn not_awaited(from: Pid, call: Option<Call>) -> Cause {
    let sent = sent_in(call);
    Cause::Disagreement(format!(
        "it gives up a link on which a message of process {from}{sent} has arrived that it never awaited: the two do \
         not agree on what they send each other"
    ))
}

/// Why a section cannot end, or an inbox go: its process never awaited `left` messages, of process `from` if
/// that is known, the first of which was sent in `call` if that is known.
#[cold]
pub fn left_unread(left: u64, from: Option<Pid>, call: Option<Call>) -> Cause {
    let messages = if left == 1 { "message" } else { "messages" };
    let from = from.map_or(String::new(), |from| format!(" of process {from}"));
    let sent = sent_in(call);
    Cause::Disagreement(format!(
        "it never awaited {left} {messages}{from}{sent}: the two do not agree on what they send each other (one of \
         them has left out a call, or called it with another root or length)"
    ))
}

/// Of which call a message is, as its stamp has it.
fn sent_in(call: Option<Call>) -> String {
    call.map_or(String::new(), |call| format!(" (sent in {call})"))
}

/// The receiver's side of one channel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Incoming {
    /// Messages that a sync waits for or has waited for.
    pub awaited: u64,
    /// Of these, seen to have arrived.
    pub seen: u64,
    /// Of these, reported to the owner: the wait for them is over.
    pub finished: u64,
    /// The prefix of messages that their owner no longer needs.
    pub released: u64,
    /// The value of `released` that was last sent to the peer.
    pub reported: u64,
    /// Bit i: message `released + i` is released out of turn.
    done: u64,
    /// Bit i: message `released + i` has a holder, who alone releases it.
    held: u64,
}

impl Incoming {
    /// Whether a wait for `messages` may begin, as far as it concerns this link. First every message without a holder
    /// is released; then no more than the window may be unreleased.
    ///
    /// # Errors
    /// Why not.
    #[inline]
    pub fn may_await(
        &self,
        link: Link,
        messages: &[Expect],
        window: u32,
    ) -> std::result::Result<(), Cause> {
        let more = messages.iter().filter(|other| other.link == link);
        let more: u64 = more.map(|other| u64::from(other.messages)).sum();
        let unreleased = match self.held {
            0 => self.awaited - self.finished,
            _ => {
                let mut after = *self;
                after.release_unheld();
                after.unreleased()
            }
        };
        if unreleased + more > u64::from(window) {
            let text = format!("more than {window} unreleased messages on {link}");
            return Err(Cause::Link(text));
        }
        Ok(())
    }

    /// Releases message `nth` (counted from 0). False if it is not unreleased.
    #[inline]
    pub fn release(&mut self, nth: u64) -> bool {
        if nth < self.released || nth >= self.finished {
            return false;
        }
        let bit = 1u64 << (nth - self.released);
        if (self.done | self.held) & bit != 0 {
            return false;
        }
        self.finish(bit);
        true
    }

    #[inline]
    fn finish(&mut self, bits: u64) {
        self.done |= bits;
        let prefix = self.done.trailing_ones();
        self.done = self.done.checked_shr(prefix).unwrap_or(0);
        self.held = self.held.checked_shr(prefix).unwrap_or(0);
        self.released += u64::from(prefix);
    }

    /// Gives message `nth` a holder. False if it is not readable or has one.
    #[inline]
    pub fn hold(&mut self, nth: u64) -> bool {
        if !self.is_readable(nth) {
            return false;
        }
        let bit = 1 << (nth - self.released);
        let free = self.held & bit == 0;
        self.held |= bit;
        free
    }

    /// Releases message `nth` for its holder. False if it has none.
    #[inline]
    pub fn release_held(&mut self, nth: u64) -> bool {
        let bit = 1u64.checked_shl((nth.wrapping_sub(self.released)).min(64) as u32).unwrap_or(0);
        if self.held & bit == 0 {
            return false;
        }
        self.held &= !bit;
        self.finish(bit);
        true
    }

    /// Releases every message of a finished wait that has no holder, as every sync does first. Messages that are awaited
    /// and have not arrived stay awaited.
    #[inline]
    pub fn release_unheld(&mut self) {
        let finished = self.finished - self.released;
        if finished > 0 {
            let all = u64::MAX >> (64 - finished);
            self.finish(all & !self.held);
        }
    }

    /// Whether message `nth` has been reported to its owner and is not released.
    #[inline]
    pub fn is_readable(&self, nth: u64) -> bool {
        (self.released..self.finished).contains(&nth) && self.done >> (nth - self.released) & 1 == 0
    }

    /// Messages awaited and not released as a prefix: they hold cells.
    pub fn unreleased(&self) -> u64 {
        self.awaited - self.released
    }

    /// Whether a credit has to be sent by itself: when half a window is unreported. Also at once, when the
    /// owner waits for a message for which the peer may lack credit (a count above reported + W).
    #[inline]
    pub fn must_report(&self, window: u32, waits_for: u64) -> bool {
        let unreported = self.released - self.reported;
        unreported > 0
            && (2 * unreported >= u64::from(window)
                || waits_for > self.reported + u64::from(window))
    }

    /// Whether everything released is reported.
    #[inline]
    pub fn is_reported(&self) -> bool {
        self.reported == self.released
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_released_out_of_order_free_cells_as_a_prefix() {
        let mut incoming = Incoming { awaited: 4, seen: 4, finished: 4, ..Default::default() };
        assert!(incoming.release(2));
        assert_eq!(incoming.released, 0);
        assert!(incoming.release(0));
        assert_eq!(incoming.released, 1);
        assert!(!incoming.is_readable(2));
        assert!(incoming.is_readable(1));
        assert!(incoming.release(1));
        assert_eq!(incoming.released, 3);
        assert!(!incoming.release(1), "released twice");
        assert!(!incoming.release(4), "never awaited");
        assert!(incoming.release(3));
        assert_eq!(incoming.released, 4);
    }

    #[test]
    fn a_sync_releases_all_but_the_held() {
        let mut incoming = Incoming { awaited: 64, seen: 64, finished: 64, ..Default::default() };
        assert!(incoming.hold(1) && incoming.hold(63));
        assert!(!incoming.release(1), "only its holder may");
        incoming.release_unheld();
        assert_eq!(incoming.released, 1);
        assert!(incoming.is_readable(1) && !incoming.is_readable(2));
        assert!(incoming.release_held(1));
        assert_eq!(incoming.released, 63);
        assert!(!incoming.release_held(1));
        assert!(incoming.release_held(63));
        assert_eq!(incoming.unreleased(), 0);
    }

    #[test]
    fn what_is_awaited_and_has_not_come_stays_awaited() {
        let mut incoming = Incoming { awaited: 3, seen: 2, finished: 1, ..Default::default() };
        incoming.release_unheld();
        assert_eq!((incoming.released, incoming.unreleased()), (1, 2));
        assert!(!incoming.is_readable(1) && !incoming.release(1));
    }

    #[test]
    fn a_full_window_can_be_released_backwards() {
        let mut incoming = Incoming { awaited: 64, seen: 64, finished: 64, ..Default::default() };
        for nth in (0..64).rev() {
            assert!(incoming.release(nth));
        }
        assert_eq!(incoming.released, 64);
    }

    #[test]
    fn a_credit_goes_at_half_a_window_and_at_once_when_its_owner_depends_on_it() {
        let incoming =
            Incoming { awaited: 1, seen: 1, finished: 1, released: 1, ..Default::default() };
        assert!(!incoming.must_report(4, 2));
        assert!(incoming.must_report(4, 5));
        assert!(incoming.must_report(2, 2));
    }

    #[test]
    fn a_window_bounds_what_is_under_way_and_what_is_made_in_one_superstep() {
        let mut out = Outgoing { made: 3, sent: 2, released: 0, made_at_sync: 0 };
        assert!(!out.may_send(2));
        out.released = 3;
        assert!(!out.may_send(2), "more than was sent");
        let text = out.check_released(7).expect_err("a wrong report").to_string();
        assert_eq!(
            text,
            "process 7 reports 3 messages of a link as released, of which 2 were sent"
        );
        out.released = 1;
        assert_eq!(out.check_released(7), Ok(()));
        assert!(out.may_send(2));
        assert!(!out.may_make(3));
    }
}
