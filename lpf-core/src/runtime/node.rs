//! The processes that share memory, and how the processes of a section are spread over nodes.

use std::ops::Range;
use std::sync::Arc;

use crate::Pid;

/// Processes of a section that share memory, with consecutive numbers: all of them, or those of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The lowest of them.
    pub first: Pid,
    /// How many there are.
    pub processes: Pid,
}

impl Node {
    /// Of a section whose processes all share memory.
    pub fn of_all(processes: Pid) -> Self {
        Node { first: 0, processes }
    }

    /// Their numbers.
    #[inline]
    pub fn pids(self) -> Range<Pid> {
        self.first..self.first + self.processes
    }

    /// Whether a process is one of them.
    #[inline]
    pub fn has(self, pid: Pid) -> bool {
        pid.wrapping_sub(self.first) < self.processes
    }

    /// The number of one of these processes among them, counted from 0.
    #[inline]
    pub fn seat(self, pid: Pid) -> usize {
        debug_assert!(self.has(pid), "process {pid} is on another node");
        pid - self.first
    }
}

/// The nodes of a section. Its processes are numbered node by node. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// The first process of each node, and behind them the number of all processes.
    firsts: Arc<[Pid]>,
    most: Pid,
}

impl Nodes {
    /// Nodes with these numbers of processes.
    ///
    /// # Panics
    /// If a node has no process.
    pub fn new(sizes: &[Pid]) -> Self {
        assert!(sizes.iter().all(|&size| size > 0), "each node has a process");
        let mut next = 0;
        let mut firsts = Vec::with_capacity(sizes.len() + 1);
        firsts.push(0);
        firsts.extend(sizes.iter().map(|size| {
            next += size;
            next
        }));
        Nodes { firsts: firsts.into(), most: sizes.iter().copied().max().unwrap_or(0) }
    }

    /// How many nodes there are.
    #[inline]
    pub fn count(&self) -> usize {
        self.firsts.len() - 1
    }

    /// The processes of all nodes.
    #[inline]
    pub fn processes(&self) -> Pid {
        self.firsts[self.count()]
    }

    /// The processes of one node.
    #[inline]
    pub fn node(&self, number: usize) -> Node {
        let first = self.firsts[number];
        Node { first, processes: self.firsts[number + 1] - first }
    }

    /// The node of a process.
    #[inline]
    pub fn of(&self, pid: Pid) -> usize {
        self.firsts.partition_point(|&first| first <= pid) - 1
    }

    /// The processes of the largest node.
    #[inline]
    pub fn most(&self) -> Pid {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_is_on_its_node() {
        let nodes = Nodes::new(&[3, 1, 2]);
        assert_eq!((nodes.count(), nodes.processes(), nodes.most()), (3, 6, 3));
        let of: Vec<usize> = (0..6).map(|pid| nodes.of(pid)).collect();
        assert_eq!(of, [0, 0, 0, 1, 2, 2]);
        for pid in 0..6 {
            let node = nodes.node(nodes.of(pid));
            assert!(node.has(pid) && node.pids().nth(node.seat(pid)) == Some(pid));
        }
        assert!(!nodes.node(1).has(2) && !nodes.node(1).has(4));
    }
}
