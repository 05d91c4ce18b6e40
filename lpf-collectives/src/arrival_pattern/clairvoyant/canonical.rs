//! A schedule in its canonical order, and a hash of it.

use std::hash::Hasher;

use fnv::FnvHasher;

use super::{Instance, Scheduler, Transfer};

/// Passes on a schedule sorted by (round, sender, receiver, segment); it keeps the transfers of one round.
pub fn canonical(instance: &Instance, scheduler: Scheduler, mut each: impl FnMut(Transfer)) {
    let mut round: Vec<Transfer> = Vec::with_capacity(instance.processes());
    let mut hand_out = |round: &mut Vec<Transfer>| {
        round.sort_unstable();
        round.drain(..).for_each(&mut each);
    };
    scheduler.schedule(instance, |transfer| {
        if round.last().is_some_and(|last| last.round != transfer.round) {
            hand_out(&mut round);
        }
        round.push(transfer);
    });
    hand_out(&mut round);
}

/// A digest that distinguishes schedules, of transfers in canonical order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// FNV-1a (64 bits) of all numbers in little endian, the round in eight bytes, the others in four each.
    pub fnv1a: u64,
    /// Transfers so far.
    pub count: u64,
    /// Those of them that combine.
    pub combines: u64,
    /// The round of the last of them.
    pub last_round: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Digest { fnv1a: FnvHasher::default().finish(), count: 0, combines: 0, last_round: 0 }
    }
}

impl Digest {
    /// Of a whole schedule.
    pub fn of(instance: &Instance, scheduler: Scheduler) -> Self {
        let mut digest = Digest::default();
        canonical(instance, scheduler, |transfer| digest.add(&transfer));
        digest
    }

    /// The next transfer.
    pub fn add(&mut self, transfer: &Transfer) {
        let Transfer { round, sender, receiver, segment, overwrites } = *transfer;
        let mut hasher = FnvHasher::with_key(self.fnv1a);
        hasher.write(&round.to_le_bytes());
        for word in [sender as u32, receiver as u32, segment] {
            hasher.write(&word.to_le_bytes());
        }
        self.fnv1a = hasher.finish();
        self.count += 1;
        self.combines += u64::from(!overwrites);
        self.last_round = round;
    }
}
