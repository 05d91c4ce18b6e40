//! One kind of superstep, and the time it takes.

use std::hint::black_box;
use std::time::Instant;

use lpf_core::{Area, Context, Lpf, Memory, Result};

use super::batch::Batch;

/// The memory that patterns move words between, alike at every process.
#[derive(Debug)]
pub struct Areas<'s> {
    /// Puts read here at their origin, gets at their target.
    pub sources: Area<'s, u8>,
    /// Puts write here at their target, gets at their origin.
    pub destinations: Area<'s, u8>,
}

/// The requests of one superstep.
pub trait Pattern<L: Lpf>: Sync {
    /// Bytes of each of the two areas that it uses, at the process that uses most.
    fn bytes(&self) -> usize;

    /// Requests that a process makes or is subject to, at the process with most.
    fn requests(&self) -> usize;

    /// How far apart the bytes are that an owner rewrites and reads before the superstep: a cache
    /// line, or less if words are denser than lines and all of them have to be rewritten.
    fn step(&self) -> usize {
        64
    }

    /// Queues this process's part, in the bytes of the areas from `base` on.
    ///
    /// # Errors
    /// *Misuse* if the areas or the queue are smaller than `bytes` and `requests`.
    fn queue<'s>(&self, ctx: &mut Context<'s, L>, areas: &Areas<'s>, base: usize) -> Result<()>;
}

/// Nothing queued: T(0).
#[derive(Clone, Copy, Debug)]
pub struct Empty;

impl<L: Lpf> Pattern<L> for Empty {
    fn bytes(&self) -> usize {
        0
    }

    fn requests(&self) -> usize {
        0
    }

    fn queue<'s>(&self, _: &mut Context<'s, L>, _: &Areas<'s>, _base: usize) -> Result<()> {
        Ok(())
    }
}

/// How a batch of supersteps is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Only the requests and the sync, each superstep on memory that its owner has rewritten
    /// before the batch: for g, l and the bound they make.
    Fresh,
    /// With the time in which owners rewrite their sources and read their destinations before each
    /// superstep: for comparison with a bare program that does the same.
    Whole,
    /// Only the calls that queue the requests.
    Queueing,
}

/// The nanoseconds that one superstep of a batch took on average, at this process.
///
/// # Errors
/// What the pattern and sync return.
pub fn time_batch<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    pattern: &dyn Pattern<L>,
    areas: &mut Areas<'s>,
    batch: Batch,
    timing: Timing,
) -> Result<f64> {
    let repetitions = batch.repetitions;
    match timing {
        Timing::Fresh => supersteps(ctx, pattern, areas, batch),
        Timing::Whole => with_touches(ctx, pattern, areas, repetitions),
        Timing::Queueing => queueing(ctx, pattern, areas, repetitions),
    }
}

/// Where the next superstep of a batch works: on an alignment of its own.
const ALIGN: usize = 128;

/// Times supersteps in a row, each in a region of its own that its owner rewrote before the batch:
/// a pattern repeated on memory that nobody uses would measure the copier's own cache. (Regions
/// that do not fit the areas are used again; so large a batch leaves no cache behind.)
///
/// The clock starts when process 0 leaves a superstep like those that are timed. Starting it behind
/// a barrier of another kind would leave out whatever the other processes do before process 0 is
/// let go: half of the superstep, where processes share a core. (Long supersteps do without, see [`Batch::of`].)
fn supersteps<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    pattern: &dyn Pattern<L>,
    areas: &mut Areas<'s>,
    batch: Batch,
) -> Result<f64> {
    let Batch { repetitions, warm, .. } = batch;
    let stride = pattern.bytes().next_multiple_of(ALIGN);
    let fitting = areas.sources.len().checked_div(stride).unwrap_or(1);
    let regions = fitting.clamp(1, repetitions as usize + 1);
    let used = (regions * stride).min(areas.sources.len());
    touch(ctx, areas, used, pattern.step(), repetitions as u8);
    ctx.sync()?;
    let mut region = 0;
    let mut superstep = |ctx: &mut Context<'s, L>| {
        pattern.queue(ctx, areas, region * stride)?;
        region = if region + 1 < regions { region + 1 } else { 0 };
        ctx.sync()
    };
    if warm {
        superstep(ctx)?;
    }
    let start = Instant::now();
    for _ in 0..repetitions {
        superstep(ctx)?;
    }
    Ok(nanoseconds(start) / f64::from(repetitions.max(1)))
}

fn with_touches<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    pattern: &dyn Pattern<L>,
    areas: &mut Areas<'s>,
    repetitions: u32,
) -> Result<f64> {
    let start = Instant::now();
    for repetition in 0..repetitions {
        touch(ctx, areas, pattern.bytes(), pattern.step(), repetition as u8);
        pattern.queue(ctx, areas, 0)?;
        ctx.sync()?;
    }
    Ok(nanoseconds(start) / f64::from(repetitions.max(1)))
}

fn queueing<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    pattern: &dyn Pattern<L>,
    areas: &mut Areas<'s>,
    repetitions: u32,
) -> Result<f64> {
    let mut inside = 0.0;
    for repetition in 0..repetitions {
        touch(ctx, areas, pattern.bytes(), pattern.step(), repetition as u8);
        let start = Instant::now();
        pattern.queue(ctx, areas, 0)?;
        inside += nanoseconds(start);
        ctx.sync()?;
    }
    Ok(inside / f64::from(repetitions.max(1)))
}

/// Nanoseconds since `start`.
pub fn nanoseconds(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64
}

/// Rewrites the sources and reads the destinations of this process, every `step` bytes.
fn touch<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    areas: &mut Areas<'s>,
    bytes: usize,
    step: usize,
    value: u8,
) {
    if bytes == 0 {
        return;
    }
    let (sources, destinations) = ctx.access((&mut areas.sources, &areas.destinations));
    touch_bytes(&mut sources[..bytes], &destinations[..bytes], step, value);
}

/// Rewrites the sources and reads the destinations of an owner before a superstep, every `step` bytes.
#[inline]
pub fn touch_bytes(sources: &mut [u8], destinations: &[u8], step: usize, value: u8) {
    for place in sources.chunks_mut(step) {
        place[0] = value;
    }
    let read = destinations.chunks(step).map(|place| u64::from(place[0])).sum::<u64>();
    black_box((sources, read));
}
