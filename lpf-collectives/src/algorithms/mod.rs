//! The algorithms: what each member does, as schedules.
//!
//! Every function writes the schedule of one member of a group. Algorithms that combine keep the order of
//! the members' numbers unless they say that they need a commutative operator; where they may, they put
//! the operands together in an order that saves a round or a copy, always the same one.

mod allgather;
mod alltoall;
mod broadcast;
pub(crate) mod by_arrival;
pub(crate) mod by_way;
mod gather;
mod halving;
mod member;
mod radix;
mod reduce;
mod reduce_scatter;
mod scan;
mod vector;

pub(crate) use allgather::*;
pub(crate) use alltoall::*;
pub(crate) use broadcast::*;
pub(crate) use gather::*;
pub(crate) use halving::*;
pub(crate) use member::*;
pub(crate) use radix::*;
pub(crate) use reduce::*;
pub(crate) use reduce_scatter::*;
pub(crate) use scan::*;
pub(crate) use vector::Piece;
pub use vector::Vector;

#[cfg(test)]
mod tests;
