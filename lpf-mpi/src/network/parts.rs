//! Long messages between processes of one host: through their ring, in parts.
//!
//! The sender says that there is one, the receiver that it has a place for it; then parts go as the ring has
//! room, in every look of the sender, and each goes to its place in a look of the receiver. Two copies
//! in caches, one beside the other, take as long as one from process to process, and longer where processes
//! outnumber cores: `lpf bench --backend mpi --pattern bulk-64MiB` has MPI's own beside it.

use std::time::Instant;

use lpf_messages::{Outcome, Rank};

use super::super::bodies::in_buffer;
use super::super::frames::{self, Frame, PART_HEADER};
use super::super::matching::{Operation, Stage};
use super::super::pieces::scatter;
use super::Network;

/// A longer message that may wait in its sender's memory goes in parts.
pub(super) const LONGEST_AT_ONCE: usize = 64 << 10;
/// The longest part: with its header and the ring's word as many lines as make eight to a ring, so that its
/// receiver says of each that it has taken it (a tenth of a ring).
const PART: usize = (32 << 10) - 128;
/// Parts of a message in one look.
const A_LOOK: usize = 2;

impl Network {
    /// Tells the receiver of a message of so many bytes that there is one.
    pub(super) fn offer(&mut self, place: u32, bytes: usize) {
        let send = self.matching.operations.ticket(place);
        let operation = &mut self.matching.operations[place];
        (operation.stage, operation.bytes) = (Stage::Offered, bytes);
        let frame = frames::offered(operation.tag, bytes, send);
        let to = operation.peer;
        self.say(to, &frame);
    }

    /// A receive has met a message that was offered.
    pub(super) fn want(&mut self, place: u32, bytes: usize, send: u64) {
        let receive = self.matching.operations.ticket(place);
        let operation = &mut self.matching.operations[place];
        (operation.stage, operation.bytes) = (Stage::Moving, bytes);
        (operation.other, operation.given) = (Some(send), Default::default());
        let from = operation.peer;
        self.in_parts += 1;
        self.say(from, &frames::wanted(send, receive));
    }

    /// Nobody receives a message that was offered.
    pub(super) fn refuse(&mut self, from: Rank, send: u64) {
        self.say(from, &frames::unwanted(send));
    }

    fn say(&mut self, to: Rank, frame: &[u8]) {
        if let Some(near) = &mut self.near {
            // SAFETY: no pieces.
            unsafe { near.send(to, frame, &[], frame.len()) };
        }
    }

    /// A message that was offered is wanted.
    fn wanted(&mut self, by: Rank, send: u64, receive: u64) {
        let Some(place) = self.matching.operations.find(send) else { return };
        let operation = &mut self.matching.operations[place];
        if operation.stage != Stage::Offered || operation.peer != by {
            return;
        }
        operation.stage = Stage::Moving;
        (operation.other, operation.given) = (Some(receive), Default::default());
        self.in_parts += 1;
        self.give_parts(place);
        if self.matching.operations[place].stage == Stage::Moving {
            self.unfinished.push(place);
        }
    }

    /// A message that was offered is not wanted, or no more.
    fn unwanted(&mut self, by: Rank, send: u64) {
        let Some(place) = self.matching.operations.find(send) else { return };
        let operation = &mut self.matching.operations[place];
        let goes = operation.stage == Stage::Moving && operation.other.is_some();
        if operation.sends && operation.peer == by && (goes || operation.stage == Stage::Offered) {
            operation.given.bytes = operation.bytes;
            self.finish(place);
        }
    }

    /// Gives up what goes in parts.
    #[cold]
    pub(super) fn part_with(&mut self, place: u32) {
        let operation = &mut self.matching.operations[place];
        let (sends, peer, other) = (operation.sends, operation.peer, operation.other.take());
        operation.packed.take().into_iter().for_each(|buffer| self.buffers.give_back(buffer));
        let Some(other) = other else { return };
        self.in_parts -= 1;
        self.unfinished.retain(|unfinished| *unfinished != place);
        if !sends {
            self.refuse(peer, other);
        }
    }

    /// Lets parts go for which there is room.
    pub(super) fn give_parts(&mut self, place: u32) {
        let Network { near: Some(near), matching, parts, moved, .. } = self else { return };
        *moved = Instant::now();
        let operation = &mut matching.operations[place];
        let Operation { peer, bytes, pieces, packed, given, other, .. } = operation;
        let header = frames::part_header(other.unwrap_or(0));
        let packed = packed.as_mut().map(|buffer| in_buffer(buffer, *bytes));
        let pieces = packed.as_ref().map_or(&pieces[..], |packed| packed);
        let longest = PART.min(near.longest() - PART_HEADER);
        for _ in 0..A_LOOK {
            let here = longest.min(*bytes - given.bytes);
            parts.clear();
            parts.extend(given.next(pieces, here));
            // SAFETY: the pieces are valid by the promise of who sends, until its ticket is finished or
            // cancelled.
            if here == 0 || !unsafe { near.send_now(*peer, &header, parts, PART_HEADER + here) } {
                break;
            }
            given.add(pieces, here);
        }
        if given.bytes == *bytes {
            self.finish(place);
        }
    }

    /// A part has come, and goes to its place. False where it is none of this protocol.
    fn part(&mut self, from: Rank, receive: u64, bytes: &[u8]) -> bool {
        let Network { matching, parts, moved, .. } = self;
        // Who has cancelled its receive wants none.
        let Some(place) = matching.operations.find(receive) else { return true };
        let operation = &mut matching.operations[place];
        let Operation { sends, peer, stage, other, bytes: all, pieces, given, .. } = operation;
        let comes = !*sends && *peer == from && *stage == Stage::Moving && other.is_some();
        if !comes || bytes.len() > *all - given.bytes {
            return false;
        }
        *moved = Instant::now();
        parts.clear();
        parts.extend(given.next(pieces, bytes.len()));
        // SAFETY: a receive that is neither finished nor cancelled: its pieces are valid by its caller's promise,
        // and `parts` are so many bytes of them as the part has, which is no longer than what is missing.
        unsafe { scatter(bytes.as_ptr(), bytes.len(), parts) };
        given.add(pieces, bytes.len());
        if given.bytes == *all {
            self.finish(place);
        }
        true
    }

    /// Takes a frame about parts, of so many bytes, that is the next one of a process.
    pub(super) fn take_of_parts(&mut self, from: Rank, length: usize) -> Outcome<bool> {
        // A part lies in the ring until it is copied.
        let Some(mut near) = self.near.take() else { return Ok(false) };
        let frame = near.next(Some(from)).and_then(|(_, bytes)| Frame::read(bytes));
        let mut answer = None;
        let is_right = match frame {
            Some(Frame::Part { receive, bytes }) => self.part(from, receive, bytes),
            Some(Frame::Wanted { send, receive }) => {
                answer = Some((send, Some(receive)));
                true
            }
            Some(Frame::Unwanted { send }) => {
                answer = Some((send, None));
                true
            }
            _ => false,
        };
        near.taken(from, length);
        self.near = Some(near);
        match answer {
            Some((send, Some(receive))) => self.wanted(from, send, receive),
            Some((send, None)) => self.unwanted(from, send),
            None => {}
        }
        if !is_right {
            self.break_off(from, format!("process {from} sent parts of no message"));
        }
        Ok(true)
    }
}
