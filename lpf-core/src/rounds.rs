//! The round driver: a schedule in, supersteps out.
//!
//! An algorithm on expected arrivals is, at each process, a list of sends and receives. Written once
//! for all collectives, [`run`] carries it out in one of two ways that give the same bits, because
//! receivers combine in the order of their list, never in the order of arrival:
//!
//! - *relaxed*: one step after the other; a send leaves as credits allow, a receive waits for its
//!   message alone;
//! - *strict* (`LPF_STRICT=1`): in rounds, each a superstep of its own: the puts of the round, a
//!   barrier, then its receives. So a superstep carries exactly what it expects, and all processes
//!   run the same number of them.
//!
//! A strict round may carry a send later than its place in the list. That is no loss: the source of
//! a put is untouched until the flush, and the flush comes after the list.
//!
//! Who transfers when: [`supersteps`] numbers the rounds of a schedule that has none of its own
//! (ring, SLT, PRR). A process's round advances with each receive: round(receive) is one more than
//! the larger of the round of the receive before it at this process and the round of its send; the
//! message travels in the superstep before. Rounds in which nobody transfers are left out.

use crate::Pid;
use crate::arrivals::{Arrival, Expect, Link};
use crate::attr::{PutAttr, SyncAttr};
use crate::error::Result;
use crate::lpf::Lpf;
use crate::raw::Raw;
use crate::slot::Slot;

/// What a process does in one step of a schedule.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Sends a message.
    Send {
        /// On this link.
        link: Link,
        /// To its other end.
        to: Pid,
        /// From this slot.
        slot: Slot,
        /// From this byte of it.
        offset: usize,
        /// This many bytes.
        bytes: usize,
        /// Into the area that the peer offers, not through a cell.
        landing: bool,
        /// In this superstep, if strict.
        superstep: u64,
    },
    /// Receives a message.
    Receive {
        /// On this link.
        link: Link,
        /// In this superstep, if strict.
        superstep: u64,
    },
}

/// What ends a strict round.
pub trait Barrier<L: Lpf> {
    /// Waits for all who take part.
    ///
    /// # Errors
    /// *Fatal* where the section failed.
    fn wait(&mut self, raw: &mut Raw<'_, L>) -> Result<()>;
}

/// A full sync: where the whole context takes part.
#[derive(Clone, Copy, Debug)]
pub struct FullSync;

impl<L: Lpf> Barrier<L> for FullSync {
    fn wait(&mut self, raw: &mut Raw<'_, L>) -> Result<()> {
        raw.sync(SyncAttr::Default)
    }
}

impl<L: Lpf, F: FnMut(&mut Raw<'_, L>) -> Result<()>> Barrier<L> for F {
    fn wait(&mut self, raw: &mut Raw<'_, L>) -> Result<()> {
        self(raw)
    }
}

/// Carries out this process's `steps`, then flushes. `total` is the number of supersteps of the
/// whole schedule, the same on every process. `received(step, arrival)` is called for every
/// receive, in the order of the list; the message is readable during the call.
///
/// # Errors
/// *Fatal* where the section failed; what `received` returns.
///
/// # Safety
/// Until it returns, the sources of the sends are written by nobody but `received`, and by that
/// only before their place in the list.
pub unsafe fn run<L: Lpf>(
    raw: &mut Raw<'_, L>,
    steps: &[Step],
    total: u64,
    barrier: &mut impl Barrier<L>,
    mut received: impl FnMut(usize, Arrival) -> Result<()>,
) -> Result<()> {
    if raw.strict() {
        // SAFETY: the caller's promise, and the flush below.
        unsafe { run_strict(raw, steps, total, barrier, &mut received)? };
    } else {
        for (number, step) in steps.iter().enumerate() {
            // SAFETY: the caller's promise, and the flush below.
            unsafe { send(raw, step)? };
            receive(raw, number, step, &mut received)?;
        }
    }
    raw.sync(SyncAttr::Flush)
}

/// # Safety
/// As [`run`], until the flush after it.
unsafe fn run_strict<L: Lpf>(
    raw: &mut Raw<'_, L>,
    steps: &[Step],
    total: u64,
    barrier: &mut impl Barrier<L>,
    received: &mut impl FnMut(usize, Arrival) -> Result<()>,
) -> Result<()> {
    for round in 0..total {
        let now = |step: &Step| match step {
            Step::Send { superstep, .. } | Step::Receive { superstep, .. } => *superstep == round,
        };
        for step in steps.iter().filter(|step| now(step)) {
            // SAFETY: the caller's promise.
            unsafe { send(raw, step)? };
        }
        barrier.wait(raw)?;
        for (number, step) in steps.iter().enumerate().filter(|(_, step)| now(step)) {
            receive(raw, number, step, received)?;
        }
    }
    Ok(())
}

/// # Safety
/// The source is not written until the next flush.
unsafe fn send<L: Lpf>(raw: &mut Raw<'_, L>, step: &Step) -> Result<()> {
    let &Step::Send { link, to, slot, offset, bytes, landing, .. } = step else {
        return Ok(());
    };
    let attr = if landing { PutAttr::Landing(link) } else { PutAttr::Channel(link) };
    // SAFETY: the caller's promise.
    unsafe { raw.put_on(attr, to, slot, offset, bytes) }
}

fn receive<L: Lpf>(
    raw: &mut Raw<'_, L>,
    number: usize,
    step: &Step,
    received: &mut impl FnMut(usize, Arrival) -> Result<()>,
) -> Result<()> {
    let &Step::Receive { link, .. } = step else {
        return Ok(());
    };
    raw.sync(SyncAttr::Expected(&[Expect::one(link)]))?;
    let nth = raw.awaited(link)? - 1;
    let arrival = raw.arrival(link, nth)?;
    received(number, arrival)?;
    raw.release(link, nth)
}

/// A step of a schedule before its links are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// To this process.
    Send(Pid),
    /// From this process.
    Receive(Pid),
}

/// The superstep of every action of every process (`programs[process][step]`), and their number.
/// Messages between two processes are received in the order they are sent. `None` where the
/// schedule cannot be carried out: a receive without a send, or a cycle. O(n · p) time for n
/// actions.
pub fn supersteps(programs: &[Vec<Action>]) -> Option<(Vec<Vec<u64>>, u64)> {
    let processes = programs.len();
    let mut result: Vec<Vec<u64>> = programs.iter().map(|program| vec![0; program.len()]).collect();
    let mut next = vec![0usize; processes];
    let mut round = vec![0u64; processes];
    // Sends that were made and not received, by pair, with their rounds and places.
    let mut made: std::collections::BTreeMap<(usize, usize), std::collections::VecDeque<_>> =
        std::collections::BTreeMap::new();
    loop {
        let mut advanced = false;
        for process in 0..processes {
            while let Some(&action) = programs[process].get(next[process]) {
                let step = next[process];
                match action {
                    Action::Send(to) => {
                        let queue = made.entry((process, to as usize)).or_default();
                        queue.push_back((round[process], step));
                    }
                    Action::Receive(from) => {
                        let queue = made.get_mut(&(from as usize, process));
                        let Some((sent, at)) = queue.and_then(|queue| queue.pop_front()) else {
                            break;
                        };
                        round[process] = 1 + round[process].max(sent);
                        result[process][step] = round[process] - 1;
                        result[from as usize][at] = round[process] - 1;
                    }
                }
                next[process] += 1;
                advanced = true;
            }
        }
        if !advanced {
            break;
        }
    }
    let complete = (0..processes).all(|process| next[process] == programs[process].len());
    if !complete || made.values().any(|queue| !queue.is_empty()) {
        return None;
    }
    Some(without_empty(result))
}

/// Leaves out supersteps in which nobody transfers.
fn without_empty(mut result: Vec<Vec<u64>>) -> (Vec<Vec<u64>>, u64) {
    let mut used: Vec<u64> = result.iter().flatten().copied().collect();
    used.sort_unstable();
    used.dedup();
    for superstep in result.iter_mut().flatten() {
        *superstep = used.partition_point(|&u| u < *superstep) as u64;
    }
    (result, used.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Action::{Receive, Send};

    #[test]
    fn a_chain_takes_a_superstep_a_link() {
        let programs = [vec![Receive(1)], vec![Receive(2), Send(0)], vec![Send(1)]];
        let (steps, total) = supersteps(&programs).unwrap();
        assert_eq!(steps, [vec![1], vec![0, 1], vec![0]]);
        assert_eq!(total, 2);
    }

    #[test]
    fn a_ring_of_sends_before_receives_is_no_cycle() {
        let programs: Vec<_> =
            (0..4).map(|s: Pid| vec![Send((s + 1) % 4), Receive((s + 3) % 4)]).collect();
        let (steps, total) = supersteps(&programs).unwrap();
        assert!(steps.iter().all(|s| s == &[0, 0]));
        assert_eq!(total, 1);
    }

    #[test]
    fn receives_before_sends_all_around_are_a_cycle() {
        let programs: Vec<_> =
            (0..4).map(|s: Pid| vec![Receive((s + 3) % 4), Send((s + 1) % 4)]).collect();
        assert_eq!(supersteps(&programs), None);
    }

    #[test]
    fn a_message_that_nobody_receives_is_no_schedule() {
        assert_eq!(supersteps(&[vec![Send(1)], vec![]]), None);
    }

    #[test]
    fn a_busy_receiver_takes_one_message_a_superstep() {
        let programs = [vec![Receive(1), Receive(2)], vec![Send(0)], vec![Send(0)]];
        let (steps, total) = supersteps(&programs).unwrap();
        assert_eq!(steps, [vec![0, 1], vec![0], vec![1]]);
        assert_eq!(total, 2);
    }
}
