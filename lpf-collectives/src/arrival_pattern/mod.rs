//! Reductions that know who arrives first.

pub mod chain;
pub mod clairvoyant;
