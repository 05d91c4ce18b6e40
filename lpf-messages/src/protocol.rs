//! The state of one process in the protocol.

use super::links::Rings;
use super::meeting::Meeting;
use super::superstep::Scratch;
use super::traffic::Traffic;
use super::watch::Watch;
use super::wire::Summary;

/// The engine apart from its network.
#[derive(Debug)]
pub(super) struct Protocol {
    pub(super) watch: Watch,
    pub(super) meeting: Meeting,
    pub(super) scratch: Scratch,
    /// What all processes reported of themselves at the last barrier.
    pub(super) all: Summary,
    pub(super) rings: Rings,
    pub(super) traffic: Traffic,
    /// The number of this context in the tags of its messages.
    pub(super) context: u32,
}
