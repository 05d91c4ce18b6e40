//! A member of a group, and its distances to the others.

/// Whose schedule it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its place in the group.
    pub(crate) me: usize,
    /// How many there are.
    pub(crate) members: usize,
}

impl Member {
    /// The member `distance` further on, around.
    pub(super) fn after(self, distance: usize) -> usize {
        (self.me + distance) % self.members
    }

    pub(super) fn before(self, distance: usize) -> usize {
        (self.me + self.members - distance % self.members) % self.members
    }

    /// All others, from the next one on.
    pub(super) fn others(self) -> impl Iterator<Item = usize> {
        (1..self.members).map(move |distance| self.after(distance))
    }

    /// All others from the one before it backwards to the first, then from the one behind it on: the order
    /// in which operands are added to its own on either side.
    pub(super) fn outwards(self) -> impl Iterator<Item = usize> {
        (0..self.me).rev().chain(self.me + 1..self.members)
    }
}

/// ⌈log2 n⌉.
pub(crate) fn log2_up(n: usize) -> u32 {
    n.next_power_of_two().trailing_zeros()
}

/// Distances 1, 2, 4, … below `members`.
pub(crate) fn doublings(members: usize) -> impl Iterator<Item = usize> {
    (0..log2_up(members)).map(|k| 1 << k)
}

/// The members of a side of the square that a group is laid out in.
pub(crate) fn side(members: usize) -> usize {
    let root = members.isqrt();
    if root * root < members { root + 1 } else { root.max(1) }
}
