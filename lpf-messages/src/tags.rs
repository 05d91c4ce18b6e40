//! The channels of a context's messages: what kind, and which of its kind.

use super::contexts::Contexts;
use super::control::SectionId;
use super::transport::Tag;

const NUMBERS: u32 = 1 << 20;

fn tag(context: u32, kind: u32, number: u32) -> Tag {
    debug_assert!(number < NUMBERS && kind < 16);
    Tag { context, channel: kind * NUMBERS + number }
}

/// First parts of meetings of this parity.
pub(super) fn meeting(context: u32, parity: usize) -> Tag {
    tag(context, 0, parity as u32)
}

/// Steps of a Bruck exchange: first parts, and what follows them.
pub(super) fn step(context: u32, part: usize, rest: bool) -> Tag {
    tag(context, 8, 2 * part as u32 + u32::from(rest))
}

/// What found no room on its way.
pub(super) fn leftover(context: u32) -> Tag {
    tag(context, 9, 0)
}

/// What follows a first part.
pub(super) fn meeting_rest(context: u32) -> Tag {
    tag(context, 1, 0)
}

/// Answers: which bytes of a write to send, and the bytes of short gets.
pub(super) fn answer(context: u32) -> Tag {
    tag(context, 2, 0)
}

/// Data of puts and gets.
pub(super) fn data(context: u32) -> Tag {
    tag(context, 3, 0)
}

/// What travels in checked mode.
pub(super) fn checks(context: u32) -> Tag {
    tag(context, 4, 0)
}

/// What process 0 of a hook tells, before the section has a number. What was told of another one, and not
/// heard because that failed, is not taken for it.
pub(super) fn hook(section: SectionId) -> Tag {
    tag(Contexts::NONE, 10, (section.0 % u64::from(NUMBERS)) as u32)
}

/// Grants, reports, offers of all links with a process.
pub(super) fn link_control(context: u32) -> Tag {
    tag(context, 5, 0)
}

/// Cells that end in a ring of the receiver.
pub(super) fn cells(context: u32, ring: usize) -> Tag {
    tag(context, 6, ring as u32)
}

/// Landings that belong to a ring of the receiver.
pub(super) fn landings(context: u32, ring: usize) -> Tag {
    tag(context, 7, ring as u32)
}

/// Rings that a context may have in all its inboxes.
pub(super) const RINGS: usize = NUMBERS as usize;
