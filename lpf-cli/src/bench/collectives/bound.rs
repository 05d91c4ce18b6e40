//! The lower bound that a collective's time is held against, measured in the same run.
//!
//! A collective of p processes has to carry C bytes from one process to another, however it is done
//! ([`Shape::carried`]), so many that the work of one of them is B bytes at the least, with the others' help
//! ([`Shape::busiest`]); and in some each has own bytes to bring from its source to its destination
//! ([`Shape::kept`]). Its bound is
//!
//! ```text
//! max{ B bytes at one core's rate, C bytes at the machine's rate } + own bytes at a core's own rate + one way
//! ```
//!
//! - A message is copied by one of its ends, either of them: the blocks that a root gathers come from as many
//!   cores as there are senders, while the root moves its own. (The ends of one message could share it. None
//!   of these collectives does that.)
//! - One core's rate is that at which one process copies what another one has just rewritten, or what it has
//!   just rewritten to another one, while nobody else copies anything; by memcpy or by non-temporal stores:
//!   whichever is fastest.
//! - Its own rate is that at which it copies what it has itself just rewritten to a place of its own.
//! - The machine's rate is that at which all processes (as many as there are cores, where there are fewer
//!   of those) do so at once.
//! - One way is what a word takes from one process to another: half of the round trip of a cache line
//!   between two threads, or of a message. One is needed, since nobody is done before the last one's part
//!   has reached it; none of these collectives needs two, one behind the other.
//!
//! Of several measurements the median counts, as of what is held against it. Rates depend on how much is
//! copied, since caches do: they are measured for several lengths, and of the two nearest the faster is taken. Of messages (tcp, mpi) they are those of the bare network: one message to
//! the next process, and one from the last, at once; for one core's one message alone. Who waits looks again,
//! or lets another process have its core in between, whichever is faster.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};
use std::time::Instant;

use lpf::Pid;
use lpf::measure::stats::Samples;
use lpf::measure::superstep::nanoseconds;
use lpf::measure::task::unwatched;

use super::bare::{self, Bare, Bytes};
use super::least_window;
use super::shapes::Shape;
use crate::bench::limits::barrier::Barrier;
use crate::bench::limits::memory::Memory;
use crate::bench::limits::sockets::Idle;
use crate::bench::limits::streaming;
use crate::bench::limits::team::{Team, Timed};
use crate::failure::Result;
use crate::interrupt;
use crate::place::Place;

/// Lengths that rates are measured for, powers of two, bytes: up to 16 MiB.
const LENGTHS: [usize; 2] = [1 << 12, 1 << 24];

fn lengths() -> impl Iterator<Item = usize> {
    let [least, most] = LENGTHS.map(usize::trailing_zeros);
    (least..=most).map(|power| 1 << power)
}

/// How a thread copies.
#[derive(Clone, Copy)]
struct Way {
    /// What it has to the next thread's place, rather than what the last one has to its own.
    pushes: bool,
    by_streams: bool,
}

/// All ways.
const WAYS: [Way; 4] = [
    Way { pushes: false, by_streams: false },
    Way { pushes: false, by_streams: true },
    Way { pushes: true, by_streams: false },
    Way { pushes: true, by_streams: true },
];
/// What was measured of each way to copy, or to wait, where it is messages.
type ByWay = [Samples; WAYS.len()];

/// Of a message over sockets, so that who receives begins while who sends has more; and of one that goes as it is.
const PIECE: usize = 128 << 10;
const WHOLE: usize = usize::MAX;
/// Batches of a length in one pass.
const BATCHES: usize = 3;

/// What p processes can do.
pub(in crate::bench) struct Bound {
    p: Pid,
    /// Processes that copy at the same time.
    at_once: usize,
    one_way: ByWay,
    rates: Vec<Rate>,
}

/// What the copies of a length take, nanoseconds.
struct Rate {
    length: usize,
    /// One process, of what is its own.
    own: ByWay,
    /// One process alone.
    alone: ByWay,
    /// All at once.
    together: ByWay,
}

impl Rate {
    fn new(length: usize) -> Self {
        Rate {
            length,
            own: Default::default(),
            alone: Default::default(),
            together: Default::default(),
        }
    }
}

/// The median of the fastest way, as medians are what it is held against.
fn fastest(ways: &ByWay) -> f64 {
    let usual = ways.iter().filter(|samples| !samples.is_empty()).map(Samples::median);
    usual.min_by(f64::total_cmp).unwrap_or(0.0)
}

impl Bound {
    /// For these collectives of p processes.
    ///
    /// Threads that copy at once are no more than there are cores; processes that send are as many as there
    /// are.
    pub(in crate::bench) fn new(
        p: Pid,
        at_once: usize,
        shapes: impl Iterator<Item = Shape>,
    ) -> Self {
        let longest =
            shapes.map(|shape| shape.busiest().max(shape.carried() / at_once)).max().unwrap_or(0);
        let wanted = |&(nth, length): &(usize, usize)| nth == 0 || length <= longest;
        let lengths = lengths().enumerate().filter(wanted);
        Self::by(p, at_once, lengths.map(|(_, length)| length))
    }

    /// For one process that has to move one of these numbers of bytes, or a share of them.
    pub(in crate::bench) fn of_shares(p: Pid, at_once: usize, bytes: &[usize]) -> Self {
        let [least, most] = LENGTHS;
        // Of what lies between two lengths both are wanted, of what is beyond them the last.
        let near = |length: usize| {
            let is_next = |&bytes: &usize| {
                let bytes = bytes.clamp(least, most);
                length < 2 * bytes && bytes < 2 * length
            };
            bytes.iter().any(is_next)
        };
        Self::by(p, at_once, lengths().filter(|&length| near(length)))
    }

    fn by(p: Pid, at_once: usize, lengths: impl Iterator<Item = usize>) -> Self {
        let rates = lengths.map(Rate::new).collect();
        Bound { p, at_once, one_way: Default::default(), rates }
    }

    /// The number of processes.
    pub(in crate::bench) fn p(&self) -> Pid {
        self.p
    }

    /// Measures once more.
    pub(in crate::bench) fn measure(&mut self, place: &mut Place) -> Result<()> {
        match place.backend {
            "threads" => self.measure_threads(),
            _ => self.measure_messages(place)?,
        }
        let one = Team::new(1);
        for Rate { length, own, .. } in &mut self.rates {
            // Alone, what one pushes and what one pulls is the same.
            for (nth, way) in WAYS.into_iter().enumerate().filter(|(_, way)| !way.pushes) {
                own[nth].extend(copy(&one, BATCHES, *length, true, way));
            }
        }
        Ok(())
    }

    fn measure_threads(&mut self) {
        let pair = Team::new(2);
        // Where two share a core, what passes between them is a switch, and no law of nature.
        if pair.cores() == 2 {
            self.one_way[0].extend(round_trip(&pair, BATCHES).into_iter().map(|ns| ns / 2.0));
        }
        let team = Team::new(self.at_once);
        for Rate { length, alone, together, .. } in &mut self.rates {
            for (nth, way) in WAYS.into_iter().enumerate() {
                alone[nth].extend(copy(&pair, BATCHES, *length, false, way));
                together[nth].extend(copy(&team, BATCHES, *length, true, way));
            }
        }
    }

    fn measure_messages(&mut self, place: &mut Place) -> Result<()> {
        let oversubscribed = self.p > lpf::settings::cores();
        let sockets = |idle, piece| (Bare::Sockets(idle), piece);
        let networks = match (place.backend, oversubscribed) {
            ("mpi", _) => vec![(Bare::Mpi, WHOLE)],
            (_, true) => vec![sockets(Idle::Yielding, WHOLE), sockets(Idle::Sleeping, WHOLE)],
            (_, false) => vec![
                sockets(Idle::Yielding, WHOLE),
                sockets(Idle::Polling, WHOLE),
                sockets(Idle::Sleeping, WHOLE),
                sockets(Idle::Yielding, PIECE),
            ],
        };
        let lengths: Vec<usize> = self.rates.iter().map(|rate| rate.length).collect();
        for (way, (network, piece)) in networks.into_iter().enumerate() {
            let with_none = [&[0], &lengths[..]].concat();
            let bytes = |oversubscribed, all, lengths| {
                let window_ns = least_window(place.backend, oversubscribed);
                Bytes { network, piece, oversubscribed, window_ns, all, lengths }
            };
            let alone = bytes(false, false, with_none);
            let together = bytes(oversubscribed, true, lengths.clone());
            let mut alone = place.measure::<bare::Messages>(2, &alone, unwatched())?.into_iter();
            let together = place.measure::<bare::Messages>(self.p, &together, unwatched())?;
            self.one_way[way].extend(alone.next().unwrap_or_default());
            for (rate, (alone, together)) in self.rates.iter_mut().zip(alone.zip(together)) {
                rate.alone[way].extend(alone);
                rate.together[way].extend(together);
            }
        }
        Ok(())
    }

    /// The bound of a collective, nanoseconds.
    pub(super) fn ns(&self, shape: Shape) -> f64 {
        let kept = self.time(shape.kept(), 0.0, |rate| fastest(&rate.own));
        self.of_bytes(shape.busiest(), shape.carried()) + kept
    }

    /// Where one process has to move so many bytes, and all together so many, nanoseconds.
    pub(in crate::bench) fn of_bytes(&self, busiest: usize, carried: usize) -> f64 {
        let one_way = fastest(&self.one_way);
        // What the first byte waits for is counted once.
        let one = self.time(busiest, one_way, |rate| fastest(&rate.alone));
        let all = self.time(carried / self.at_once, one_way, |rate| fastest(&rate.together));
        one.max(all) + one_way
    }

    /// So many bytes at the faster rate of the lengths on either side, of whose time so much is no copying.
    fn time(&self, bytes: usize, before: f64, of: fn(&Rate) -> f64) -> f64 {
        let below = self.rates.iter().rev().find(|rate| rate.length <= bytes);
        let above = self.rates.iter().find(|rate| rate.length >= bytes);
        let of_a_byte = |rate: &Rate| (of(rate) - before).max(0.0) / rate.length as f64;
        let fastest = [below, above].into_iter().flatten().map(of_a_byte).min_by(f64::total_cmp);
        fastest.unwrap_or(0.0) * bytes as f64
    }
}

/// A copy of what a thread has just rewritten to where another one has just read, by one of them: by thread 0,
/// or by all at once. Nanoseconds at thread 0.
fn copy(team: &Team, batches: usize, bytes: usize, everybody: bool, way: Way) -> Vec<f64> {
    if interrupt::came() {
        // Before memory is made for it.
        return Vec::new();
    }
    let threads = team.threads();
    let (barrier, memory) = (Barrier::new(team), Memory::new(threads, bytes, 64));
    team.time(batches, Timed::Inside, |me| {
        let (memory, mut member) = (&memory, barrier.member(me));
        let (source, destination) = match way.pushes {
            true => (me, (me + 1) % threads),
            false => ((me + threads - 1) % threads, me),
        };
        memory.settle(me);
        let mut value = 0u8;
        move || {
            value = value.wrapping_add(1);
            memory.touch(me, value);
            member.wait();
            let start = Instant::now();
            if everybody || me == 0 {
                // SAFETY: areas of that size, a multiple of 64, aligned to 128; between the barriers nobody
                // writes a source, and each destination is one thread's to write.
                unsafe {
                    let (from, to) = (memory.sources(source), memory.destinations(destination));
                    if way.by_streams {
                        streaming::copy(from, to, bytes);
                    } else {
                        std::ptr::copy_nonoverlapping(from, to, bytes);
                    }
                }
            }
            let ns = nanoseconds(start);
            member.wait();
            ns
        }
    })
}

#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU32);

/// A line goes to the other thread and another one comes back, nanoseconds.
fn round_trip(pair: &Team, batches: usize) -> Vec<f64> {
    let lines = [Line::default(), Line::default()];
    pair.time(batches, Timed::Step, |me| {
        let (own, other, mut sequence) = (&lines[me].0, &lines[1 - me].0, 0u32);
        let seen = move |sequence| while other.load(Acquire) != sequence {};
        move || {
            sequence = sequence.wrapping_add(1);
            if me == 0 {
                own.store(sequence, Release);
                seen(sequence);
            } else {
                seen(sequence);
                own.store(sequence, Release);
            }
            0.0
        }
    })
}

#[cfg(test)]
mod tests {
    use lpf::collectives::Collective;

    use super::*;

    #[test]
    fn a_bound_is_the_slower_of_one_core_and_the_machine_and_one_way() {
        let broadcast = |bytes| Shape::new(Collective::Broadcast, 4, bytes);
        let mut bound = Bound::new(4, 2, [broadcast(64 << 20)].into_iter());
        assert_eq!(bound.rates.len(), lengths().count());
        bound.one_way[0].push(100.0);
        for Rate { length, own, alone, together } in &mut bound.rates {
            own[0].push(0.5 * *length as f64);
            alone[0].push(100.0 + *length as f64);
            together[0].push(100.0 + 2.5 * *length as f64);
            together[1].push(100.0 + 1.5 * *length as f64);
        }
        let is = |shape, expected: f64| {
            let ns = bound.ns(shape);
            assert!((ns - expected).abs() < 1e-6, "{ns}, not {expected}");
        };
        // Three vectors are carried, by two cores at once; the busiest gets one.
        is(broadcast(64 << 10), 1.5 * f64::from(3 * (64 << 10)) / 2.0 + 100.0);
        // Each of three vectors goes to the root by itself, while that moves its own.
        let gather = Shape::new(Collective::Gather, 4, 64 << 10);
        is(gather, 1.5 * f64::from(3 * (64 << 10)) / 2.0 + 100.0);
        // Everybody gets three, and moves its own.
        let allgather = Shape::new(Collective::Allgather, 4, 64 << 10);
        is(allgather, 9.5 * f64::from(64 << 10) + 100.0);
        is(broadcast(0), 100.0);
    }

    #[test]
    fn what_is_measured_takes_time() {
        let pair = Team::new(2);
        if pair.cores() == 2 {
            assert!(round_trip(&pair, 1)[0] > 0.0);
        }
        for way in WAYS {
            assert!(copy(&pair, 1, 4096, true, way)[0] > 0.0);
        }
    }

    #[test]
    fn between_two_lengths_the_faster_rate_counts() {
        let mut bound =
            Bound::new(2, 2, [Shape::new(Collective::Broadcast, 2, 64 << 20)].into_iter());
        for Rate { length, alone, .. } in &mut bound.rates {
            // From 256 KiB on twice as slow.
            let slower = if *length >= 256 << 10 { 2.0 } else { 1.0 };
            alone[0].push(slower * *length as f64);
        }
        let ns = |bytes| bound.ns(Shape::new(Collective::Broadcast, 2, bytes)) / bytes as f64;
        let found = [1 << 10, 100 << 10, 200 << 10, 256 << 10, 64 << 20].map(ns);
        assert_eq!(found, [1.0, 1.0, 1.0, 2.0, 2.0]);
    }
}
