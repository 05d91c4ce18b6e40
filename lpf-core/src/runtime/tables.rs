//! What core keeps of one process.

use super::LocalState;
use super::links::LinkTable;

/// The tables of one process, which core keeps and an engine reads and fills.
#[derive(Debug)]
pub struct Tables {
    /// Requests, slots, capacities, checked mode.
    pub local: LocalState,
    /// Inboxes and links.
    pub links: LinkTable,
}
