//! Collectives of Lightweight Parallel Foundations, written once against the trait.
//!
//! An algorithm is written once, for one member of a group, as a schedule: sends, receives and copies in rounds
//! (`algorithms`). A schedule is carried out on expected arrivals (`run`). Its cost has one definition
//! ([`cost`]). All members choose the algorithm that is cheapest by the machine's g and l. See [`Collectives`].

mod algorithms;
pub mod arbiter;
pub mod arrival_pattern;
mod blocks;
mod calls;
mod choices;
mod collectives;
pub mod cost;
mod group;
mod hash;
mod helper;
mod kinds;
mod memory;
mod misuse;
pub mod monitor;
mod operators;
mod preferences;
mod run;
mod schedule;
mod schedule_cache;
mod scratch;
mod shared;
mod signature;
#[cfg(test)]
mod simulate;
mod staging;
mod values;
mod ways;
mod workspace;

pub use calls::{RawCall, RawOperator};
pub use collectives::{Collectives, Needs, Settings};
pub use kinds::{Algorithm, Collective};
pub use memory::{Source, Target};
// For the vectors of the conformance suite.
#[doc(hidden)]
pub use memory::{View, sealed};
pub use operators::{
    And, At, AtValue, Max, MaxAt, Min, MinAt, Operator, Or, Pair, Product, Sum, Xor,
    combine_ns_per_byte,
};
pub use preferences::{Mode, Preferences};
pub use shared::Place;
pub use ways::{
    Allgather, Allreduce, AllreduceByArrival, Alltoall, Broadcast, Gather, Reduce, ReduceByArrival,
    ReduceScatter, Scan,
};
