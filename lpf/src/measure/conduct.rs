//! Process 0 decides which pattern is timed next, and all follow.

use lpf_core::messages::Traffic;
use lpf_core::{Area, Context, Local, Lpf, Result};

use super::superstep::{Areas, Pattern, Timing, time_batch};

/// The pattern to be timed next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The pattern's place in the list.
    pub pattern: usize,
    /// Supersteps in a row.
    pub repetitions: u32,
}

/// A batch and the nanoseconds that a superstep of it took on average.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// What was timed.
    pub batch: Batch,
    /// Nanoseconds per superstep, at process 0.
    pub ns: f64,
}

/// Decides which pattern is timed next. Process 0 asks it after each batch, until it returns `None`.
pub trait Leader {
    /// The next batch, or `None` at the end.
    fn next(&mut self, before: Option<Timed>) -> Option<Batch>;

    /// The counts of process 0's messages at the beginning and the end of a batch of `supersteps` supersteps.
    /// Called only if there are messages.
    fn count(&mut self, _begin: Traffic, _end: Traffic, _supersteps: u32) {}
}

/// Times patterns as the leader says. Collective; `leader` is asked at process 0 only, and the
/// batches reach the others by a put each, outside the time.
///
/// # Errors
/// *Mitigable* if memory is refused, *fatal* if the section failed.
pub fn conduct<L: Lpf>(
    ctx: &mut Context<'_, L>,
    patterns: &[Box<dyn Pattern<L> + '_>],
    timing: Timing,
    leader: &mut dyn Leader,
) -> Result<()> {
    let largest = patterns.iter().map(|pattern| pattern.bytes()).max().unwrap_or(0);
    // Room for many small supersteps side by side.
    let bytes = largest.max(if timing == Timing::Fresh { 1 << 20 } else { 0 });
    let requests = patterns.iter().map(|pattern| pattern.requests()).max().unwrap_or(0);
    ctx.resize(4, requests.max(ctx.nprocs() as usize + 1))?;
    ctx.sync()?;
    let mut orders = Orders::new(ctx)?;
    let mut areas = Areas { sources: ctx.area(bytes)?, destinations: ctx.area(bytes)? };
    ctx.sync()?;
    let mut before = None;
    while let Some(batch) = orders.next(ctx, leader, before)? {
        let pattern = &*patterns[batch.pattern];
        let begin = ctx.raw().traffic();
        let ns = time_batch(ctx, pattern, &mut areas, batch.repetitions, timing)?;
        if let (Some(begin), Some(end)) = (begin, ctx.raw().traffic()) {
            leader.count(begin, end, timing.supersteps(batch.repetitions));
        }
        before = Some(Timed { batch, ns });
    }
    Ok(())
}

/// Two words that travel from process 0 to all: the pattern and the repetitions, 0 of which mean
/// the end.
#[derive(Debug)]
pub struct Orders<'s> {
    spoken: Local<'s, u64>,
    heard: Area<'s, u64>,
}

impl<'s> Orders<'s> {
    /// Registers the words, in two slots; they can be used after a sync. A superstep with an order has
    /// room for a request to each process.
    ///
    /// # Errors
    /// *Misuse* if there is no room for two slots, *mitigable* if memory is refused.
    pub fn new<L: Lpf>(ctx: &mut Context<'s, L>) -> Result<Self> {
        Ok(Orders { spoken: ctx.local(2)?, heard: ctx.area(2)? })
    }

    /// The leader's decision after the batch before, at every process. One superstep.
    ///
    /// # Errors
    /// *Fatal* if the section failed.
    pub fn next<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        leader: &mut dyn Leader,
        before: Option<Timed>,
    ) -> Result<Option<Batch>> {
        let next = if ctx.pid() == 0 { leader.next(before) } else { None };
        self.give(ctx, next)
    }

    fn give<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        next: Option<Batch>,
    ) -> Result<Option<Batch>> {
        if ctx.pid() == 0 {
            let words = next.map_or([0, 0], |b| [b.pattern as u64, u64::from(b.repetitions)]);
            ctx.write(&mut self.spoken).copy_from_slice(&words);
            for to in 0..ctx.nprocs() {
                ctx.put(&self.spoken, .., to, &self.heard, 0)?;
            }
        }
        ctx.sync()?;
        let heard = ctx.read(&self.heard);
        let batch = Batch { pattern: heard[0] as usize, repetitions: heard[1] as u32 };
        Ok((batch.repetitions > 0).then_some(batch))
    }
}

/// Supersteps of `ns` nanoseconds that fill about a millisecond.
pub fn repetitions(ns: f64) -> u32 {
    const BATCH_NS: f64 = 1e6;
    (BATCH_NS / ns.max(1.0)).clamp(1.0, 20_000.0) as u32
}
