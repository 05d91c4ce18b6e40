//! The protocols under loom, which runs them through the orders of memory operations that the
//! memory model allows: `ci/loom.sh`.
//!
//! What runs is the production code on loom's atomics; the models only call it and look. A search
//! over all orders of three threads would take days, so it is bounded: a thread is stopped where it
//! could go on at most 3 or 4 times with two threads and once or twice with three (each model says;
//! `LOOM_MAX_PREEMPTIONS` raises all of them). Orders of *memory* are not bounded: a load may return
//! any value that the memory model lets it.
//!
//! Not modelled: `membarrier` (loom has no such thing; the fence that takes its place with more
//! processes than cores is), sequentially consistent accesses (loom takes them for acquire and
//! release, which can only make it find too much), and time.

pub(crate) mod futex;

#[cfg(test)]
mod barrier;
#[cfg(test)]
mod failure;
#[cfg(test)]
mod links;
#[cfg(test)]
mod section;

/// Explores `model` with at most `preemptions` of them.
#[cfg(test)]
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.max(Some(preemptions));
    // A wait is a loop of looks; beyond this it does not end.
    builder.max_branches = 5_000;
    builder.check(model);
}

/// Waits that look for ever: loom runs another thread between two looks.
#[cfg(test)]
const LOOKING: lpf_core::wait::Patience = lpf_core::wait::Patience { spins: u32::MAX, yields: 0 };

/// Waits that sleep after the first look, until they are woken.
#[cfg(test)]
const SLEEPING: lpf_core::wait::Patience = lpf_core::wait::Patience { spins: 0, yields: 0 };
