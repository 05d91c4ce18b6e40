//! The Clairvoyant all-reduce: the papers' future work.
//!
//! There is no root. In each round those who are there combine what they can, as in a reduction; whoever ends up
//! with all operands of a segment is its root, and from the next round on the segment is sent to those who lack it
//! by everybody who sends nothing else. So the two phases overlap, segment by segment.
//!
//! A round, of those who have arrived, in the order of their arrival:
//!
//! 1. Each takes the first segment of which it and somebody else hold a part, from the first who has not sent.
//! 2. Of those who have taken nothing, who has the fewest results first, each takes the result that the fewest
//!    have, from the first who has it and has not sent. Of results that as few have, the first one's first.
//!
//! What is taken in a round is not sent in it. A segment is combined P-1 times and stored P-1 times. Who comes last
//! has N parts to give or to add to, and N results to get or to make: N messages each way, so N rounds, of which
//! none is lost to it as long as others have what it lacks. The last result has ⌈log2 P⌉ rounds to go further.

use super::{Instance, Transfer};

/// Bits for segments.
struct Sets {
    words: usize,
    bits: Vec<u64>,
}

impl Sets {
    fn new(processes: usize, column: &[u64]) -> Self {
        Sets { words: column.len(), bits: column.repeat(processes) }
    }

    fn of(&self, process: usize) -> &[u64] {
        &self.bits[process * self.words..][..self.words]
    }

    fn has(&self, process: usize, segment: usize) -> bool {
        self.bits[process * self.words + segment / 64] >> (segment % 64) & 1 == 1
    }

    fn flip(&mut self, process: usize, segment: usize) {
        self.bits[process * self.words + segment / 64] ^= 1 << (segment % 64);
    }
}

/// What a process has done in this round.
#[derive(Clone, Copy, Default)]
struct Now {
    sent: bool,
    taken: Option<usize>,
}

struct Round<'a> {
    /// Who has arrived, first come first.
    here: &'a [usize],
    now: &'a mut [Now],
    /// Parts that are still to be combined, and results.
    parts: &'a mut Sets,
    results: &'a mut Sets,
    /// Of each segment.
    holders: &'a mut [u32],
    copies: &'a mut [u32],
    /// Of each process.
    has: &'a mut [u32],
    /// What somebody lacks.
    lacks: &'a mut [u64],
}

impl Round<'_> {
    /// Who can still send to a process.
    fn senders(&self, to: usize) -> impl Iterator<Item = usize> + '_ {
        self.here.iter().copied().filter(move |&from| from != to && !self.now[from].sent)
    }

    /// The first segment of which a process and somebody who can send it hold parts, and who sends it.
    fn part(&self, to: usize) -> Option<(usize, usize)> {
        let own = self.parts.of(to);
        let first = |from: usize| {
            let fresh = self.now[from].taken;
            own.iter().zip(self.parts.of(from)).enumerate().find_map(|(word, (own, other))| {
                let hidden = fresh.filter(|segment| segment / 64 == word);
                let both = own & other & !hidden.map_or(0, |segment| 1 << (segment % 64));
                (both != 0).then(|| word * 64 + both.trailing_zeros() as usize)
            })
        };
        let found = self.senders(to).filter_map(|from| Some((first(from)?, from)));
        found.min_by_key(|&(segment, _)| segment)
    }

    /// The rarest result that a process lacks and somebody can send, and who sends it.
    fn result(&mut self, to: usize) -> Option<(usize, usize)> {
        let own = self.results.of(to);
        self.lacks.fill(0);
        for &from in self.here.iter().filter(|&&from| from != to && !self.now[from].sent) {
            let all = self.lacks.iter_mut().zip(own.iter().zip(self.results.of(from)));
            all.for_each(|(lacks, (own, other))| *lacks |= other & !own);
        }
        let rarest = bits(self.lacks).map(|segment| self.copies[segment]).min()?;
        self.senders(to).find_map(|from| {
            let mut alike = bits(self.lacks).filter(|&segment| self.copies[segment] == rarest);
            Some((alike.find(|&segment| self.results.has(from, segment))?, from))
        })
    }
}

fn bits(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(at, &word)| {
        std::iter::successors((word != 0).then_some(word), |&rest| {
            let rest = rest & (rest - 1);
            (rest != 0).then_some(rest)
        })
        .map(move |rest| at * 64 + rest.trailing_zeros() as usize)
    })
}

/// Passes on the transfers of an all-reduce, round after round; the instance's root is ignored.
/// Of P processes and N segments it takes a time of P N (P N/64 + P + N).
pub fn to_all(instance: &Instance, mut each: impl FnMut(Transfer)) {
    let (p, n) = (instance.processes(), instance.segments() as usize);
    let first = instance.arrivals().iter().min().copied().unwrap_or(0);
    let begins = |process: usize| (instance.arrivals()[process] - first) / instance.round_time();
    let mut order: Vec<usize> = (0..p).collect();
    order.sort_unstable_by_key(|&process| (instance.arrivals()[process], process));
    let mut parts = Sets::new(p, &instance.column());
    let mut lacks = vec![0; parts.words];
    let mut results = Sets::new(p, &lacks);
    let (mut holders, mut copies) = (vec![p as u32; n], vec![0; n]);
    let (mut has, mut done) = (vec![0; p], if p < 2 || n == 0 { p } else { 0 });
    let (mut round, mut now) = (0, vec![Now::default(); p]);
    let mut takers: Vec<usize> = Vec::with_capacity(p);
    while done < p {
        let here = &order[..order.partition_point(|&process| begins(process) <= round)];
        now.fill(Now::default());
        let mut r = Round {
            here,
            now: &mut now,
            parts: &mut parts,
            results: &mut results,
            holders: &mut holders,
            copies: &mut copies,
            has: &mut has,
            lacks: &mut lacks,
        };
        let mut moved = false;
        let mut send = |from: usize, to: usize, segment: usize, overwrites| {
            moved = true;
            let (sender, receiver, segment) = (from, to, segment as u32);
            each(Transfer { round, sender, receiver, segment, overwrites });
        };
        for &to in here {
            if let Some((segment, from)) = r.part(to) {
                r.parts.flip(from, segment);
                r.holders[segment] -= 1;
                r.now[from].sent = true;
                r.now[to].taken = Some(segment);
                send(from, to, segment, false);
            }
        }
        takers.clear();
        takers.extend(here.iter().filter(|&&to| r.now[to].taken.is_none()));
        takers.sort_by_key(|&to| r.has[to]);
        for &to in &takers {
            if let Some((segment, from)) = r.result(to) {
                r.now[from].sent = true;
                r.now[to].taken = Some(segment);
                r.copies[segment] += 1;
                send(from, to, segment, true);
            }
        }
        for &process in here {
            let Some(segment) = r.now[process].taken else { continue };
            if r.parts.has(process, segment) {
                if r.holders[segment] > 1 {
                    continue;
                }
                r.parts.flip(process, segment);
                r.copies[segment] = 1;
            }
            r.results.flip(process, segment);
            r.has[process] += 1;
            done += usize::from(r.has[process] as usize == n);
        }
        let next = order.get(here.len()).map(|&process| begins(process));
        // Nobody can do anything before somebody else is there.
        round = if moved { round + 1 } else { next.unwrap_or(round + 1) };
        debug_assert!(moved || next.is_some(), "an all-reduce in which no process can go on");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds until each process has received its last, from the last arrival on; and all transfers are counted.
    fn rounds(p: usize, n: u32, late: u64) -> Vec<u64> {
        let mut arrivals = vec![0; p];
        arrivals[p - 1] = late;
        let instance = Instance::new(n, 0, 1, arrivals).unwrap();
        let (mut ends, mut count) = (vec![0; p], [0; 2]);
        let mut here = vec![0; p];
        to_all(&instance, |transfer| {
            count[usize::from(transfer.overwrites)] += 1;
            here[transfer.receiver] += 1;
            ends[transfer.receiver] = (transfer.round + 1).saturating_sub(late);
        });
        assert_eq!(count, [(p - 1) * n as usize; 2], "{p} processes, {n} segments");
        assert!(here.iter().all(|&here| here >= n), "{p} processes, {n} segments: {here:?}");
        ends
    }

    /// What the book says of it, which is printed.
    #[test]
    fn an_allreduction_takes_as_many_transfers_as_it_has_to_and_not_many_more_rounds() {
        // Over their bound, of all together and of one who is late: in the mean over processes, and of the last one.
        let (mut together, mut late, mut all) = ([0.0; 2], [0.0; 2], 0.0);
        for p in 3..=24 {
            for n in [p as u32, 2 * p as u32, 4 * p as u32] {
                let over = |ends: &[u64], bound: f64| {
                    let mean = ends.iter().sum::<u64>() as f64 / p as f64;
                    let last = ends.iter().max().copied().unwrap_or(0) as f64;
                    [mean, last].map(|rounds| rounds / bound - 1.0)
                };
                let bound = 2.0 * (p - 1) as f64 * f64::from(n) / p as f64;
                let of_together = over(&rounds(p, n, 0), bound);
                let ends = rounds(p, n, 4 * u64::from(n));
                assert!(ends[p - 1] >= u64::from(n), "the last one has all of {n} to receive");
                let of_late = over(&ends, f64::from(n));
                assert!(of_late.iter().chain(&of_together).all(|&over| over < 1.0), "{p}, {n}");
                for which in 0..2 {
                    together[which] += of_together[which];
                    late[which] += of_late[which];
                }
                all += 1.0;
            }
        }
        let percent = |over: [f64; 2]| over.map(|over| (100.0 * over / all).round());
        let ([mean, last], [mean_late, last_late]) = (percent(together), percent(late));
        println!(
            "together: {mean} % over 2 (P-1) N / P rounds in the mean over processes, {last} % the last one"
        );
        println!(
            "one late: {mean_late} % over N rounds in the mean over processes, {last_late} % the last one"
        );
    }
}
