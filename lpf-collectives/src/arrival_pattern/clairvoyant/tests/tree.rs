//! Listings 3 to 8, corrected: a segment tree over the processes' columns of segments.
//!
//! Its leaves are the columns of who may send, in the circular order of availability; a node above is the union of
//! its two. The union of all but one tells which segments somebody else can send, a walk down finds who. Where the
//! paper doubles the leaves so that the order can begin anywhere, the walk here begins at the head and goes round.
//!
//! It is the tests' oracle and not a [`Scheduler`](super::super::Scheduler), because
//! [`Bits`](super::super::Scheduler::Bits) is faster at every size and needs half the memory: medians of 38 us to 29 us
//! at P = N = 16, 240 ms to 47 ms at P = N = 1000, and 801 ms to 79 ms at P = 10,000, N = 100 (random arrivals, optimised,
//! one core of an AMD EPYC).

use super::super::window::Window;
use super::super::{Instance, Transfer};

struct Tree {
    /// Words of a column.
    words: usize,
    /// How many leaves there is room for, a power of two; leaf i is node `leaves + i`, the root node 1.
    leaves: usize,
    nodes: Vec<u64>,
    /// Of [`all_but`](Self::all_but).
    union: Vec<u64>,
}

impl Tree {
    fn new(processes: usize, words: usize) -> Self {
        let leaves = processes.next_power_of_two();
        Tree { words, leaves, nodes: vec![0; 2 * leaves * words], union: vec![0; words] }
    }

    fn leaf_mut(&mut self, place: usize) -> &mut [u64] {
        let at = (self.leaves + place) * self.words;
        &mut self.nodes[at..at + self.words]
    }

    fn has(&self, node: usize, segment: usize) -> bool {
        self.nodes[node * self.words + segment / 64] >> (segment % 64) & 1 == 1
    }

    /// A node is the union of the two below it.
    fn unite(&mut self, node: usize) {
        let (above, below) = self.nodes.split_at_mut(2 * node * self.words);
        let (left, right) = below[..2 * self.words].split_at(self.words);
        let both = left.iter().zip(right);
        let node = &mut above[node * self.words..][..self.words];
        node.iter_mut().zip(both).for_each(|(node, (left, right))| *node = left | right);
    }

    fn rebuild(&mut self) {
        (1..self.leaves).rev().for_each(|node| self.unite(node));
    }

    /// A leaf has changed.
    fn update(&mut self, place: usize) {
        let mut node = (self.leaves + place) / 2;
        while node > 0 {
            self.unite(node);
            node /= 2;
        }
    }

    /// A leaf has lost a segment.
    fn update_segment(&mut self, place: usize, segment: usize) {
        let mut node = (self.leaves + place) / 2;
        let (word, bit) = (segment / 64, 1u64 << (segment % 64));
        while node > 0 && !self.has(2 * node, segment) && !self.has(2 * node + 1, segment) {
            self.nodes[node * self.words + word] &= !bit;
            node /= 2;
        }
    }

    /// What anybody but this one can send (Listing 3).
    fn all_but(&mut self, place: usize) -> &[u64] {
        self.union.fill(0);
        let mut node = self.leaves + place;
        while node > 1 {
            let sibling = &self.nodes[(node ^ 1) * self.words..][..self.words];
            self.union.iter_mut().zip(sibling).for_each(|(union, more)| *union |= more);
            node /= 2;
        }
        &self.union
    }

    /// The first leaf below a node that has the segment (Listing 4).
    fn leftmost(&self, mut node: usize, segment: usize) -> usize {
        while node < self.leaves {
            node = 2 * node + usize::from(!self.has(2 * node, segment));
        }
        node - self.leaves
    }

    /// The first leaf behind this one that has it (Listing 5).
    fn leftmost_behind(&self, place: usize, segment: usize) -> Option<usize> {
        let mut node = self.leaves + place;
        while node > 1 {
            if node.is_multiple_of(2) && self.has(node + 1, segment) {
                return Some(self.leftmost(node + 1, segment));
            }
            node /= 2;
        }
        None
    }

    /// The first leaf from the head on, round the circle, that has the segment; not the receiver's, and there is
    /// another one.
    fn sender(&self, head: usize, receiver: usize, segment: usize) -> usize {
        let behind = |place| {
            self.leftmost_behind(place, segment).unwrap_or_else(|| self.leftmost(1, segment))
        };
        let first = if self.has(self.leaves + head, segment) { head } else { behind(head) };
        if first == receiver { behind(first) } else { first }
    }
}

pub(super) fn schedule(instance: &Instance, each: &mut dyn FnMut(Transfer)) {
    let (p, n) = (instance.processes(), instance.segments() as usize);
    let words = n.div_ceil(64);
    let mut window = Window::new(instance);
    // What processes hold, whether they have sent in this round or not; segments that came in it left out.
    let mut held = instance.column().repeat(p);
    let mut left = vec![n; p];
    let mut received: Vec<(usize, usize)> = Vec::with_capacity(p);
    let mut senders: Vec<usize> = Vec::with_capacity(p);
    let mut members = Vec::with_capacity(p);
    let mut tree = Tree::new(p, words);
    while window.advance() {
        members.clear();
        members.extend(window.members());
        for &place in &members {
            tree.leaf_mut(place).copy_from_slice(&held[place * words..][..words]);
        }
        tree.rebuild();
        let sink = window.sink();
        for receiver in window.receivers() {
            let union = tree.all_but(receiver);
            let own = &held[receiver * words..][..words];
            let both = union.iter().zip(own);
            let wanted =
                both.map(|(union, own)| if receiver == sink { *union } else { union & own });
            let found = wanted.enumerate().find(|(_, word)| *word != 0);
            let Some((word, bits)) = found else { continue };
            let segment = 64 * word + bits.trailing_zeros() as usize;
            let sender = tree.sender(window.head, receiver, segment);
            let bit = 1 << (segment % 64);
            let overwrites = held[receiver * words + word] & bit == 0;
            each(window.transfer(sender, receiver, segment, overwrites));
            for place in [sender, receiver] {
                held[place * words + word] &= !bit;
            }
            tree.leaf_mut(sender).fill(0);
            tree.update(sender);
            tree.leaf_mut(receiver)[word] &= !bit;
            tree.update_segment(receiver, segment);
            left[sender] -= 1;
            left[receiver] += usize::from(overwrites);
            received.push((receiver, segment));
            senders.push(sender);
        }
        for (place, segment) in received.drain(..) {
            held[place * words + segment / 64] |= 1 << (segment % 64);
        }
        for place in senders.drain(..) {
            if left[place] == 0 {
                tree.leaf_mut(place).fill(0);
                window.complete(place);
            }
        }
    }
}
