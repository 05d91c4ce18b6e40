//! The hierarchical barrier.
//!
//! # Shape
//! Processes stand in a row. At each level, neighbours form groups; a group that is complete is
//! represented at the next level as one participant. At the top the groups that are left read each
//! other's *lines*, all of them (for two processes that is one cache-line transfer each, the least
//! there is). Then every representative releases its group, level by level down.
//!
//! How a group gathers depends on who shares what:
//! - [`Gather::Lines`]: each member writes a line of its own, the first member reads them. For
//!   members on cores of their own: reads of different lines overlap.
//! - [`Gather::Counter`]: members add to a counter, and the last to come represents the group. For
//!   members that share a core: the counter stays in its cache, and nobody waits for a leader that
//!   is not running.
//!
//! # What travels
//! Each participant brings a word of bits; everybody leaves with the OR of all. A process's own
//! line also carries a few words of payload (small puts ride there). A line is written in every
//! second meeting only (*parity*): whoever writes line k+2 has passed k+1, so every reader of k has
//! arrived at k+1 and is done with it.
//!
//! # Memory ordering
//! Two guarantees: what a process wrote before its arrival is visible to all after their departure;
//! and nobody departs before all have arrived. Each arrival is a release store (or a release
//! increment) and each look an acquire load, along a chain that leads from every arrival to every
//! departure; a counter's increments are acquire-release, so the last one carries the others.
//!
//! # Sleeping
//! A publisher looks for sleepers after its store. The store must not be delayed past the look:
//! with cores to spare the sleeper sees to that (`membarrier`, see `futex`), because sleeping is
//! rare; with more processes than cores the publisher does (a fence), because sleeping is usual.

use std::time::Duration;

use lpf_core::wait::{LONGEST_SLEEP, Patience, Waiter};

use crate::failure::Failure;
use crate::futex;
use crate::sync::{self, AtomicU32, AtomicU64, Ordering, Padded, fence};

/// Words of payload in a line.
pub(crate) const PAYLOAD: usize = 14;

/// What one participant shows in one meeting: 128 bytes.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Line {
    epoch: AtomicU32,
    bits: AtomicU32,
    sleepers: AtomicU32,
    /// Written before the arrival of the process that owns the line.
    pub(crate) payload: [AtomicU64; PAYLOAD],
}

impl Line {
    fn new() -> Self {
        Line {
            epoch: AtomicU32::new(0),
            bits: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            payload: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// The bits of the meeting that was published last.
    #[inline]
    pub(crate) fn bits(&self) -> u32 {
        self.bits.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn has_reached(&self, epoch: u32) -> bool {
        self.epoch.load(Ordering::Acquire).wrapping_sub(epoch) as i32 >= 0
    }
}

type Lines = Padded<[Line; 2]>;

fn lines() -> Lines {
    Padded([Line::new(), Line::new()])
}

/// How a group gathers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gather {
    /// A line per member, read by the first.
    Lines,
    /// A counter; the last member to arrive represents the group.
    Counter,
}

/// One level of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Level {
    /// Members of a group.
    pub fan: usize,
    /// How it gathers.
    pub gather: Gather,
}

/// The levels of a barrier, innermost first. The participants that remain wait for each other at the top, line by line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape(pub Vec<Level>);

impl Shape {
    /// All processes read all lines.
    pub fn flat() -> Self {
        Shape(Vec::new())
    }

    /// One counter for all.
    pub fn central(processes: usize) -> Self {
        Shape(vec![Level { fan: processes.max(1), gather: Gather::Counter }])
    }

    /// Counters for the processes of a core, lines between cores.
    pub fn per_core(processes: usize, cores: usize) -> Self {
        let fan = processes.div_ceil(cores.max(1));
        Shape(vec![Level { fan, gather: Gather::Counter }])
    }

    /// Of a machine described by the sizes of its levels, outermost first. Processes beyond its
    /// size share cores.
    pub fn of_levels(sizes: &[usize], processes: usize) -> Self {
        let places = sizes.iter().fold(1, |all: usize, &size| all.saturating_mul(size)).max(1);
        let share = processes.div_ceil(places);
        let mut levels = Vec::new();
        if share > 1 {
            levels.push(Level { fan: share, gather: Gather::Counter });
        }
        // The outermost level is the top.
        let inner = sizes.iter().skip(1).rev().filter(|&&fan| fan > 1);
        levels.extend(inner.map(|&fan| Level { fan, gather: Gather::Lines }));
        Shape(levels)
    }
}

#[derive(Debug)]
struct Group {
    count: AtomicU32,
    gathered: [AtomicU32; 2],
}

#[derive(Debug)]
struct Floor {
    level: Level,
    /// Participants of this floor.
    size: usize,
    /// What they show to the first of their group.
    lines: Vec<Lines>,
    groups: Vec<Padded<Group>>,
    releases: Vec<Lines>,
}

/// Whether a wait in a meeting was given up; see [`Failure`].
#[derive(Debug)]
pub(crate) struct GivenUp;

/// How a wait treats failures.
#[derive(Clone, Copy)]
pub(crate) enum Watch<'a> {
    /// Give up where the meeting can never be complete.
    Meeting(&'a Failure, u64),
    /// Everybody is inside the runtime and will arrive.
    Bound,
}

#[derive(Debug)]
pub(crate) struct Barrier {
    /// The lines of the processes: at the lowest floor's lines where it gathers by lines, but
    /// always written, for they carry the payload.
    own: Vec<Lines>,
    floors: Vec<Floor>,
    top: Vec<Lines>,
    /// Of those who wait for the release of their group, and of those who stand for theirs.
    patience: [Patience; 2],
    fenced: bool,
    height: usize,
    /// The longest sleep between two looks.
    longest_sleep: Duration,
}

/// With more processes than this, each sleeps longer between two looks: the looks of 8000 sleepers every 20 ms took
/// all the time of two cores.
const MANY: usize = 256;

/// Who waits: an index into the patience of a barrier.
const MEMBER: usize = 0;
const REPRESENTATIVE: usize = 1;

impl Barrier {
    pub(crate) fn new(processes: usize, shape: &Shape, patience: [Patience; 2]) -> Self {
        let mut floors = Vec::new();
        let mut size = processes;
        for &level in &shape.0 {
            let groups = size.div_ceil(level.fan);
            let shown = if floors.is_empty() || level.gather == Gather::Counter { 0 } else { size };
            floors.push(Floor {
                level,
                size,
                lines: (0..shown).map(|_| lines()).collect(),
                groups: (0..groups)
                    .map(|_| {
                        Padded(Group {
                            count: AtomicU32::new(0),
                            gathered: [AtomicU32::new(0), AtomicU32::new(0)],
                        })
                    })
                    .collect(),
                releases: (0..groups).map(|_| lines()).collect(),
            });
            size = groups;
        }
        Barrier {
            own: (0..processes).map(|_| lines()).collect(),
            top: if floors.is_empty() { Vec::new() } else { (0..size).map(|_| lines()).collect() },
            height: floors.len(),
            floors,
            longest_sleep: LONGEST_SLEEP * processes.div_ceil(MANY).max(1) as u32,
            fenced: patience[MEMBER].spins == 0,
            patience,
        }
    }

    /// The longest sleep between two looks, if a wake-up is sure to come.
    pub(crate) fn longest_sleep(&self) -> Duration {
        self.longest_sleep
    }

    /// The line that process `who` shows in the meeting of `epoch`.
    #[inline]
    pub(crate) fn line(&self, who: usize, epoch: u32) -> &Line {
        &self.own[who].0[(epoch & 1) as usize]
    }

    /// The epoch that process `who` has reached, where no meeting is going on.
    pub(crate) fn epoch(&self, who: usize) -> u32 {
        let [even, odd] =
            [0, 1].map(|parity| self.own[who].0[parity].epoch.load(Ordering::Relaxed));
        if even.wrapping_sub(odd) as i32 > 0 { even } else { odd }
    }

    /// Arrives with `bits` and departs with everybody's. `epoch` counts this process's calls from
    /// 1; `on_sleep` is called when the wait gets long.
    #[inline]
    pub(crate) fn meet(
        &self,
        who: usize,
        epoch: u32,
        bits: u32,
        watch: Watch<'_>,
        on_sleep: &mut dyn FnMut(),
    ) -> Result<u32, GivenUp> {
        self.publish(self.line(who, epoch), epoch, bits);
        if self.height == 0 {
            return self.read_all(&self.own, who, epoch, bits, watch, on_sleep);
        }
        self.climb(who, epoch, bits, watch, on_sleep)
    }

    fn climb(
        &self,
        who: usize,
        epoch: u32,
        bits: u32,
        watch: Watch<'_>,
        on_sleep: &mut dyn FnMut(),
    ) -> Result<u32, GivenUp> {
        let parity = (epoch & 1) as usize;
        let mut bits = bits;
        let mut at = who;
        let mut climbed = 0;
        for (number, floor) in self.floors.iter().enumerate() {
            let group = at / floor.level.fan;
            let first = group * floor.level.fan;
            let members = floor.level.fan.min(floor.size - first);
            let represents = match floor.level.gather {
                Gather::Counter => {
                    let counter = &floor.groups[group];
                    if bits != 0 {
                        counter.gathered[parity].fetch_or(bits, Ordering::Relaxed);
                    }
                    let before = counter.count.fetch_add(1, Ordering::AcqRel);
                    let last = before as usize + 1 == members;
                    if last {
                        // The next to add has departed from this meeting, so after this store.
                        counter.count.store(0, Ordering::Relaxed);
                        bits |= counter.gathered[parity].load(Ordering::Relaxed);
                        counter.gathered[parity].store(0, Ordering::Relaxed);
                    }
                    last
                }
                Gather::Lines => {
                    let lines = if number == 0 { &self.own } else { &floor.lines };
                    if number > 0 && at != first {
                        self.publish(&lines[at].0[parity], epoch, bits);
                    }
                    if at == first {
                        for line in &lines[first + 1..first + members] {
                            let line = &line.0[parity];
                            self.wait(line, epoch, REPRESENTATIVE, watch, on_sleep)?;
                            bits |= line.bits();
                        }
                    }
                    at == first
                }
            };
            if !represents {
                let release = &floor.releases[group].0[parity];
                self.wait(release, epoch, MEMBER, watch, on_sleep)?;
                bits = release.bits();
                return self.descend(who, climbed, epoch, bits);
            }
            at = group;
            climbed = number + 1;
        }
        if self.top.len() > 1 {
            self.publish(&self.top[at].0[parity], epoch, bits);
            bits = self.read_all(&self.top, at, epoch, bits, watch, on_sleep)?;
        }
        self.descend(who, climbed, epoch, bits)
    }

    /// Releases the groups that this process represented, outermost first.
    fn descend(&self, who: usize, climbed: usize, epoch: u32, bits: u32) -> Result<u32, GivenUp> {
        let parity = (epoch & 1) as usize;
        for number in (0..climbed).rev() {
            let fans = self.floors[..=number].iter().map(|floor| floor.level.fan);
            let size = fans.fold(1, usize::saturating_mul);
            self.publish(&self.floors[number].releases[who / size].0[parity], epoch, bits);
        }
        Ok(bits)
    }

    #[inline]
    fn read_all(
        &self,
        lines: &[Lines],
        own: usize,
        epoch: u32,
        mut bits: u32,
        watch: Watch<'_>,
        on_sleep: &mut dyn FnMut(),
    ) -> Result<u32, GivenUp> {
        let parity = (epoch & 1) as usize;
        for (other, line) in lines.iter().enumerate() {
            if other != own {
                let line = &line.0[parity];
                if !line.has_reached(epoch) {
                    self.wait(line, epoch, REPRESENTATIVE, watch, on_sleep)?;
                }
                bits |= line.bits();
            }
        }
        Ok(bits)
    }

    #[inline]
    fn publish(&self, line: &Line, epoch: u32, bits: u32) {
        line.bits.store(bits, Ordering::Relaxed);
        line.epoch.store(epoch, Ordering::Release);
        if self.fenced {
            fence(Ordering::SeqCst);
        }
        if line.sleepers.load(Ordering::Relaxed) != 0 {
            futex::wake(&line.epoch);
        }
    }

    fn wait(
        &self,
        line: &Line,
        epoch: u32,
        who: usize,
        watch: Watch<'_>,
        on_sleep: &mut dyn FnMut(),
    ) -> Result<(), GivenUp> {
        let mut waiter = Waiter::new(self.patience[who]);
        while !line.has_reached(epoch) {
            if let Watch::Meeting(failure, meeting) = watch
                && failure.prevents(meeting)
                && !line.has_reached(epoch)
            {
                return Err(GivenUp);
            }
            if sync::pause(&mut waiter).is_some() {
                on_sleep();
                self.sleep(line, epoch);
            }
        }
        waiter.learn();
        Ok(())
    }

    #[cold]
    fn sleep(&self, line: &Line, epoch: u32) {
        line.sleepers.fetch_add(1, Ordering::SeqCst);
        if !self.fenced {
            futex::barrier_everywhere();
        }
        // loom takes sequentially consistent accesses for acquire and release.
        #[cfg(loom)]
        fence(Ordering::SeqCst);
        let seen = line.epoch.load(Ordering::SeqCst);
        if (seen.wrapping_sub(epoch) as i32) < 0 {
            futex::sleep(&line.epoch, seen, self.longest_sleep);
        }
        line.sleepers.fetch_sub(1, Ordering::Relaxed);
    }
}
