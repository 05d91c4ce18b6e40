//! Reductions that use the times at which members arrive.

pub mod chain;
pub mod clairvoyant;
mod estimates;
pub mod pairing;
pub(crate) mod predict;
pub mod trees;

pub use estimates::Estimates;
