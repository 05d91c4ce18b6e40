//! What process 0 and every member require of a section alike: each checks the other's words by the same bounds.

use lpf_messages::Rank;

/// What is wrong with what a peer said.
pub(crate) type Garbled = String;

/// The most sections that a process is in at the same time.
pub(crate) const MOST_SECTIONS: usize = 1024;

/// The most bytes that one process keeps on one board.
pub(crate) const MOST_WRITTEN: usize = 16 << 20;

/// What a record counts for.
pub(crate) fn weight(bytes: &[u8]) -> usize {
    bytes.len() + 64
}

/// What is wrong with a list of members that `from` names.
pub(crate) fn fault_of(members: &[Rank], from: Rank, size: Rank) -> Option<&'static str> {
    let mut seen = vec![false; size];
    for &rank in members {
        match seen.get_mut(rank) {
            None => return Some("with a member that does not exist"),
            Some(true) => return Some("with a member twice"),
            Some(seen) => *seen = true,
        }
    }
    (!members.contains(&from)).then_some("which it is not a member of")
}
