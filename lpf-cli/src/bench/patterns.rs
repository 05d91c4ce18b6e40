//! The patterns of `lpf bench`, as supersteps on any backend.

use lpf::measure::superstep::{Areas, Empty, Pattern};
use lpf::{Context, Lpf, Pid, Result};
use serde::{Deserialize, Serialize};

/// Where the words of an exchange lie: `n` of `b` bytes for each other process, at a constant
/// stride larger than `b`. The program that measures the limit uses the same places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) threads: usize,
    pub(crate) n: usize,
    pub(crate) b: usize,
}

impl Layout {
    pub(crate) fn new(threads: usize, n: usize, b: usize) -> Self {
        Layout { threads, n, b }
    }

    /// A gap of 8 bytes, or of a line behind blocks of lines.
    fn stride(self) -> usize {
        self.b + self.b.min(64)
    }

    /// Word `i` for the process at this distance (1 to p - 1), here and there alike.
    #[inline]
    pub(crate) fn place(self, distance: usize, i: usize) -> usize {
        ((distance - 1) * self.n + i) * self.stride()
    }

    pub(crate) fn bytes(self) -> usize {
        (self.threads - 1) * self.n * self.stride()
    }

    /// Owners touch every word, and every line of it.
    pub(crate) fn step(self) -> usize {
        self.stride().min(64)
    }
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Sync,
    Put8,
    Get8,
    /// `n` puts of `b` bytes to every other process.
    Exchange(usize, usize),
    /// One put of so many bytes to the next process.
    Bulk(usize),
    /// The call of put alone.
    PutCall,
    /// Starting and ending a section that does nothing.
    Exec,
}

/// 64 MiB.
const BULK: usize = 64 << 20;
/// Puts whose calls are timed together.
pub(crate) const CALLS: usize = 1000;

/// All patterns in the order of the rows.
pub(crate) const ALL: [(&str, Kind); 8] = [
    ("sync", Kind::Sync),
    ("put8", Kind::Put8),
    ("get8", Kind::Get8),
    ("exchange-1000x8", Kind::Exchange(1000, 8)),
    ("exchange-256x4096", Kind::Exchange(256, 4096)),
    ("bulk-64MiB", Kind::Bulk(BULK)),
    ("put-call", Kind::PutCall),
    ("exec", Kind::Exec),
];

impl Kind {
    /// Bytes that a process sends in one superstep; of one call, for the call of put.
    pub(crate) fn bytes(self, p: Pid) -> usize {
        match self {
            Kind::Sync | Kind::Exec => 0,
            Kind::Put8 | Kind::Get8 | Kind::PutCall => 8,
            Kind::Exchange(n, b) => n * b * (p - 1),
            Kind::Bulk(bytes) => bytes,
        }
    }

    /// The superstep; `None` where it is none.
    pub(crate) fn pattern<L: Lpf>(self, p: Pid) -> Option<Box<dyn Pattern<L>>> {
        Some(match self {
            Kind::Sync => Box::new(Empty),
            Kind::Put8 => Box::new(Next { bytes: 8, by_get: false }),
            Kind::Get8 => Box::new(Next { bytes: 8, by_get: true }),
            Kind::Bulk(bytes) => Box::new(Next { bytes, by_get: false }),
            Kind::Exchange(n, b) => Box::new(Exchange(Layout::new(p, n, b))),
            Kind::PutCall => Box::new(Calls),
            Kind::Exec => return None,
        })
    }
}

/// One message to or from the next process.
struct Next {
    bytes: usize,
    by_get: bool,
}

impl<L: Lpf> Pattern<L> for Next {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn requests(&self) -> usize {
        2
    }

    fn queue<'s>(&self, ctx: &mut Context<'s, L>, areas: &Areas<'s>, base: usize) -> Result<()> {
        let (next, bytes) = (next(ctx), base..base + self.bytes);
        if self.by_get {
            ctx.get(next, &areas.sources, bytes, &areas.destinations, base)
        } else {
            ctx.put(&areas.sources, bytes, next, &areas.destinations, base)
        }
    }
}

fn next<L: Lpf>(ctx: &Context<'_, L>) -> Pid {
    let next = ctx.pid() + 1;
    if next == ctx.nprocs() { 0 } else { next }
}

/// Many messages to every other process.
struct Exchange(Layout);

impl<L: Lpf> Pattern<L> for Exchange {
    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn requests(&self) -> usize {
        2 * self.0.n * (self.0.threads - 1)
    }

    fn step(&self) -> usize {
        self.0.step()
    }

    fn queue<'s>(&self, ctx: &mut Context<'s, L>, areas: &Areas<'s>, base: usize) -> Result<()> {
        let (layout, own) = (self.0, ctx.pid());
        for distance in 1..layout.threads {
            let to = (own + distance) % layout.threads;
            for i in 0..layout.n {
                let at = base + layout.place(distance, i);
                let words = at..at + layout.b;
                ctx.put(&areas.sources, words, to, &areas.destinations, at)?;
            }
        }
        Ok(())
    }
}

/// Puts of 8 bytes to the next process, at places without a stride: each is stored on its own.
struct Calls;

impl Calls {
    const PLACES: usize = 1024;
}

impl<L: Lpf> Pattern<L> for Calls {
    fn bytes(&self) -> usize {
        8 * Self::PLACES
    }

    fn requests(&self) -> usize {
        2 * CALLS
    }

    #[inline]
    fn queue<'s>(&self, ctx: &mut Context<'s, L>, areas: &Areas<'s>, base: usize) -> Result<()> {
        let next = next(ctx);
        for i in 0..CALLS {
            // Triangular numbers: every difference is another.
            let at = base + 8 * ((i * (i + 1) / 2) % Self::PLACES);
            ctx.put(&areas.sources, at..at + 8, next, &areas.destinations, at)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_an_exchange_lie_apart_and_inside() {
        for (threads, n, b) in [(2, 1000, 8), (4, 256, 4096), (3, 1, 1)] {
            let layout = Layout::new(threads, n, b);
            let mut end = 0;
            for distance in 1..threads {
                for i in 0..n {
                    let at = layout.place(distance, i);
                    assert!(at >= end, "words overlap");
                    end = at + b;
                }
            }
            assert!(end <= layout.bytes());
            assert!(layout.step() <= layout.stride());
        }
    }
}
