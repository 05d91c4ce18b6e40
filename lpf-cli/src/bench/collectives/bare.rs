//! Bare messages between the processes that are measured: what a bound between processes rests on.

use std::io::{IoSlice, IoSliceMut};

use lpf::measure::task::{Task, Watch};
use lpf::{Context, Lpf, Result};
use serde::{Deserialize, Serialize};

use super::harness::{self, Pacing, Side};
use super::own::Line;
use crate::bench::limits::network::{Incoming, Network, Outgoing, Words, broken};
use crate::bench::limits::sockets::Sockets;
use crate::place::Measurement;

pub(super) use crate::bench::limits::between::Bare;

/// Messages of these lengths; of no bytes: 16, as in a barrier.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Bytes {
    pub(super) network: Bare,
    pub(super) oversubscribed: bool,
    /// To the common start, at the least.
    pub(super) window_ns: u64,
    /// Everybody sends and receives; else process 0 sends and the next one receives.
    pub(super) all: bool,
    /// A message goes in pieces of so many bytes.
    pub(super) piece: usize,
    pub(super) lengths: Vec<usize>,
}

/// One message to the next process, and one from the last, at once; or one message alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages;

impl Measurement for Messages {
    const NAME: &str = "messages";
}

impl Task for Messages {
    type Order = Bytes;
    /// Nanoseconds, by length.
    type Found = Vec<Vec<f64>>;

    fn run(ctx: &mut Context<'_>, order: &Bytes, _: &Watch) -> Result<Self::Found> {
        match order.network {
            Bare::Sockets(idle) => {
                let network = Sockets::connect(ctx, idle)?;
                of_all(ctx, network, order)
            }
            #[cfg(feature = "mpi")]
            Bare::Mpi => {
                let network = crate::bench::limits::mpi::Mpi::of(ctx)?;
                of_all(ctx, network, order)
            }
            #[cfg(not(feature = "mpi"))]
            Bare::Mpi => Err(lpf::backend("mpi").expect_err("MPI is not built in")),
        }
    }
}

fn of_all<L: Lpf, N: Network>(
    ctx: &mut Context<'_, L>,
    network: N,
    order: &Bytes,
) -> Result<Vec<Vec<f64>>> {
    ctx.rehook(|ctx| {
        let mut found = Vec::new();
        ctx.resize(Line::SLOTS, Line::requests(ctx))?;
        ctx.sync()?;
        let line = Line::new(ctx)?;
        let p = ctx.nprocs();
        let longest = order.lengths.iter().copied().max().unwrap_or(0);
        let (out, into) = (vec![Words::default(); p], vec![Words::default(); p]);
        let (sources, destinations) = (vec![1; longest], vec![1; longest]);
        let (words, &Bytes { all, piece, .. }) = ((out, into), order);
        let mut messages =
            Bytewise { ctx, line, network, sources, destinations, words, all, piece, bytes: 0 };
        for &length in &order.lengths {
            messages.bytes = length;
            let timed = harness::time(&mut messages, &pacing(length, order))?;
            found.push(if timed.ns.is_empty() { timed.late } else { timed.ns });
        }
        Ok(found)
    })
}

fn pacing(length: usize, &Bytes { window_ns, oversubscribed, .. }: &Bytes) -> Pacing {
    let (repetitions, warm_up) = if length > 256 << 10 { (5, 1) } else { (16, 4) };
    Pacing { repetitions, warm_up, window_ns, oversubscribed }
}

struct Bytewise<'c, 's, L: Lpf, N> {
    ctx: &'c mut Context<'s, L>,
    line: Line<'s>,
    network: N,
    sources: Vec<u8>,
    destinations: Vec<u8>,
    words: (Vec<Words>, Vec<Words>),
    all: bool,
    piece: usize,
    bytes: usize,
}

impl<L: Lpf, N: Network> Side for Bytewise<'_, '_, L, N> {
    fn touch(&mut self, value: f64) {
        let (from, to) = (&mut self.sources[..self.bytes], &self.destinations[..self.bytes]);
        lpf::measure::superstep::touch_bytes(from, to, 64, value as u8);
    }

    fn meet(&mut self) -> Result<()> {
        self.ctx.sync()
    }

    fn tell(&mut self, word: u64) -> Result<u64> {
        self.line.tell(self.ctx, word)
    }

    fn act(&mut self) -> Result<()> {
        if self.bytes == 0 {
            let met = self.network.meet(&self.words.0, &mut self.words.1);
            return met.map_err(|error| broken(self.ctx, error));
        }
        let (me, p) = (self.ctx.pid(), self.ctx.nprocs());
        let (sends, receives) = (self.all || me == 0, self.all || me == 1);
        let sources = self.sources[..self.bytes].chunks(self.piece);
        let destinations = self.destinations[..self.bytes].chunks_mut(self.piece);
        for (source, destination) in sources.zip(destinations) {
            let out = Outgoing { to: (me + 1) % p, pieces: vec![IoSlice::new(source)] };
            let pieces = vec![IoSliceMut::new(destination)];
            let into = Incoming { from: (me + p - 1) % p, pieces };
            let out = sends.then_some(out).into_iter().collect();
            self.network
                .exchange(out, receives.then_some(into).into_iter().collect())
                .map_err(|error| broken(self.ctx, error))?;
        }
        Ok(())
    }

    fn gather(&mut self, own: &[u64]) -> Result<Vec<u64>> {
        self.line.gather(self.ctx, own)
    }
}
