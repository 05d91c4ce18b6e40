//! Reductions that know who arrives first.

pub mod chain;
pub mod clairvoyant;
mod estimates;
pub mod pairing;
pub(crate) mod predict;
pub mod trees;

pub use estimates::Estimates;
