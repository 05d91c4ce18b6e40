//! The check of a schedule, independent of the algorithm that made it.

use std::fmt;

use super::{Instance, Transfer};

/// A mistake in a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake(String);

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mistake {}

/// Checks transfers in canonical order:
/// - Each process's value of each segment reaches the root exactly once.
/// - No process sends or receives twice in a round, or takes part in a round that is not for it.
/// - No process sends a value that it does not hold, or that arrives in the same round.
///
/// # Errors
/// The first mistake.
pub fn check(instance: &Instance, transfers: &[Transfer]) -> Result<(), Mistake> {
    let (p, n) = (instance.processes(), instance.segments() as usize);
    let mut clock = Clock::new(instance);
    // How many contributions the value has that a process holds of a segment; 0: it holds none.
    let mut held = vec![1u32; p * n];
    for round in transfers.chunk_by(|one, next| one.round == next.round) {
        let (mut sent, mut received) = (vec![None; p], vec![false; p]);
        clock.go_to(round[0].round, &held);
        for (nth, transfer) in round.iter().enumerate() {
            let fail = |what: &str| Err(Mistake(format!("{transfer:?}: {what}")));
            let Transfer { sender, receiver, segment, .. } = *transfer;
            let (from, to) = (sender, receiver);
            if from >= p || to >= p || segment as usize >= n || from == to {
                return fail("there is no such process or segment, or it sends to itself");
            }
            if nth > 0 && round[nth - 1] >= *transfer {
                return fail("it is out of order");
            }
            if sent[from].replace(segment).is_some() {
                return fail("its sender sends twice in the round");
            }
            if std::mem::replace(&mut received[to], true) {
                return fail("its receiver receives twice in the round");
            }
            if !clock.group[from] || !clock.group[to] {
                return fail("one of the two takes no part in the round");
            }
            if held[from * n + segment as usize] == 0 {
                return fail("its sender holds no value of the segment");
            }
            if transfer.overwrites != (held[to * n + segment as usize] == 0) {
                return fail("it combines with a stale value, or overwrites a good one");
            }
        }
        let before = held.clone();
        for transfer in round {
            let (from, to) = (transfer.sender, transfer.receiver);
            if sent[to] == Some(transfer.segment) {
                let what = "its receiver sends the same segment in the round";
                return Err(Mistake(format!("{transfer:?}: {what}")));
            }
            held[to * n + transfer.segment as usize] +=
                before[from * n + transfer.segment as usize];
            held[from * n + transfer.segment as usize] = 0;
        }
    }
    for (place, count) in held.iter().enumerate() {
        let (process, segment) = (place / n, place % n);
        let wanted = if process == instance.root() { p as u32 } else { 0 };
        if *count != wanted {
            let text = format!(
                "at the end process {process} holds {count} of {p} contributions to segment {segment}, not {wanted}"
            );
            return Err(Mistake(text));
        }
    }
    Ok(())
}

/// Who takes part in which round, by the definition.
struct Clock<'a> {
    instance: &'a Instance,
    /// When each process is available next.
    available: Vec<u128>,
    round: u64,
    group: Vec<bool>,
}

impl<'a> Clock<'a> {
    fn new(instance: &'a Instance) -> Self {
        let available = instance.arrivals().iter().map(|&time| u128::from(time)).collect();
        let mut clock = Clock { instance, available, round: 0, group: Vec::new() };
        clock.find(&vec![true; instance.processes()]);
        clock
    }

    /// Passes rounds until this one; what processes hold is known of its beginning, and nothing was sent in those
    /// between.
    fn go_to(&mut self, round: u64, held: &[u32]) {
        let n = self.instance.segments() as usize;
        let holds: Vec<bool> =
            held.chunks(n.max(1)).map(|held| held.iter().any(|&c| c > 0)).collect();
        let d = u128::from(self.instance.round_time());
        while self.round < round {
            let others = |clock: &Self| {
                let later = |i: &usize| holds[*i] && !clock.group[*i];
                (0..holds.len()).filter(later).map(|i| clock.available[i]).min()
            };
            let members: Vec<usize> = (0..holds.len()).filter(|&i| self.group[i]).collect();
            // Of one that is alone many rounds are passed at once.
            let rounds = match (&members[..], others(self)) {
                ([one], Some(next)) => ((next - self.available[*one]) / d).max(1) as u64,
                _ => 1,
            }
            .min(round - self.round);
            members.iter().for_each(|&i| self.available[i] += u128::from(rounds) * d);
            self.round += rounds;
            self.find(&holds);
        }
    }

    fn find(&mut self, holds: &[bool]) {
        let all = || (0..holds.len()).filter(|&i| holds[i]);
        let first = all().map(|i| self.available[i]).min().unwrap_or(0);
        let end = first + u128::from(self.instance.round_time());
        self.group = (0..holds.len()).map(|i| holds[i] && self.available[i] < end).collect();
    }
}
