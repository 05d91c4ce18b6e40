//! Process 0 decides which pattern is timed next, and all follow.

use lpf_core::{Area, Context, Local, Lpf, Result};

use super::batch::{Batch, Timed};
use super::superstep::{Areas, Pattern, Timing, time_batch};

/// Decides which pattern is timed next. Process 0 asks it after each batch, until it returns `None`.
pub trait Leader {
    /// The next batch, or `None` at the end.
    fn next(&mut self, before: Option<Timed>) -> Option<Batch>;
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
    let mut room = Room::new(ctx)?;
    let mut before = None;
    while let Some(batch) = room.orders.next(ctx, leader, before)? {
        let pattern = &*patterns[batch.pattern];
        let areas = room.fit(ctx, pattern)?;
        let ns = time_batch(ctx, pattern, areas, batch, timing)?;
        before = Some(Timed { batch, ns });
    }
    Ok(())
}

/// What a section has room for: as much as the patterns so far needed. The largest may never be timed.
struct Room<'s> {
    orders: Orders<'s>,
    areas: Option<Areas<'s>>,
    bytes: usize,
    requests: usize,
}

impl<'s> Room<'s> {
    /// Room for orders, and for areas in which many small supersteps work side by side.
    fn new<L: Lpf>(ctx: &mut Context<'s, L>) -> Result<Self> {
        let (bytes, requests) = (1 << 20, ctx.nprocs() + 1);
        ctx.resize(4, requests)?;
        ctx.sync()?;
        let orders = Orders::new(ctx)?;
        ctx.sync()?;
        Ok(Room { orders, areas: None, bytes, requests })
    }

    /// The areas, with room for a pattern. Collective, and grown in the same steps everywhere.
    fn fit<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        pattern: &dyn Pattern<L>,
    ) -> Result<&mut Areas<'s>> {
        if pattern.bytes() > self.bytes {
            self.bytes = pattern.bytes();
            if let Some(Areas { sources, destinations }) = self.areas.take() {
                // The old memory is free at the next sync, before there is new.
                ctx.deregister(sources)?;
                ctx.deregister(destinations)?;
            }
        }
        if pattern.requests() > self.requests {
            self.requests = pattern.requests();
            ctx.resize(4, self.requests)?;
            ctx.sync()?;
        }
        if self.areas.is_none() {
            ctx.sync()?;
            let (sources, destinations) = (ctx.area(self.bytes)?, ctx.area(self.bytes)?);
            ctx.sync()?;
            self.areas = Some(Areas { sources, destinations });
        }
        Ok(self.areas.as_mut().expect("they were made above"))
    }
}

/// Words that travel from process 0 to all: the pattern, the repetitions (0 means the end), and whether the batch begins
/// with a superstep that is not timed.
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
        Ok(Orders { spoken: ctx.local(3)?, heard: ctx.area(3)? })
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
            let words = next.map_or([0; 3], |Batch { pattern, repetitions, warm }| {
                [pattern as u64, u64::from(repetitions), u64::from(warm)]
            });
            ctx.write(&mut self.spoken).copy_from_slice(&words);
            for to in 0..ctx.nprocs() {
                ctx.put(&self.spoken, .., to, &self.heard, 0)?;
            }
        }
        ctx.sync()?;
        let heard = ctx.read(&self.heard);
        let (pattern, repetitions, warm) = (heard[0] as usize, heard[1] as u32, heard[2] != 0);
        Ok((repetitions > 0).then_some(Batch { pattern, repetitions, warm }))
    }
}
