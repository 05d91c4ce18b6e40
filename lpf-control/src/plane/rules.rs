//! What process 0 and every member require of a section alike: each checks the other's words by the same bounds.

use std::ops::Range;

use lpf_core::Pid;
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

/// The processes of a section that are at a member of the job: all threads of a node, or one.
pub(crate) fn pids_of(members: &[Rank], rank: Rank) -> Range<Pid> {
    let Some(first) = members.iter().position(|&member| member == rank) else { return 0..0 };
    let others = members[first..].iter().take_while(|&&member| member == rank);
    first..first + others.count()
}

/// The members of the job that a section has, each once.
pub(crate) fn ranks_of(members: &[Rank]) -> impl Iterator<Item = (Rank, Pid)> + Clone {
    let first = |&pid: &Pid| pid == 0 || members[pid - 1] != members[pid];
    (0..members.len()).filter(first).map(|pid| (members[pid], pid))
}

/// What is wrong with a list of members that `from` names. Processes of one member are consecutive.
pub(crate) fn fault_of(members: &[Rank], from: Rank, size: Rank) -> Option<&'static str> {
    let mut seen = vec![false; size];
    for (rank, _) in ranks_of(members) {
        match seen.get_mut(rank) {
            None => return Some("with a member that does not exist"),
            Some(true) => return Some("with a member twice"),
            Some(seen) => *seen = true,
        }
    }
    (!members.contains(&from)).then_some("which it is not a member of")
}

/// As [`fault_of`], of the members of an order, which are processes of the job.
pub(crate) fn fault_of_order(members: &[Rank], from: Rank, size: Rank) -> Option<&'static str> {
    let is_once = ranks_of(members).count() == members.len();
    if is_once { fault_of(members, from, size) } else { Some("with a member twice") }
}
