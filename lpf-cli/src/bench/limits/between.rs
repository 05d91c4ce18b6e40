//! Bare programs of processes: what the same processes can do on the same network without LPF.
//!
//! They run inside a section, in turns with its supersteps: process 0 orders so many steps, and while
//! these are timed nobody calls LPF. Each [`Bare`] network is one that a hand-written program would use,
//! with its connections made beforehand; a step does what the pattern's superstep does, and knows
//! what comes.

use std::io::{self, IoSlice, IoSliceMut};
use std::time::Instant;

use lpf::measure::batch::{Batch, Timed};
use lpf::measure::conduct::{Leader, Orders};
use lpf::measure::superstep::nanoseconds;
use lpf::{Context, Lpf, Pid};
use serde::{Deserialize, Serialize};

use super::network::{Incoming, Network, Outgoing, Words, broken};
use super::sockets::{Idle, Sockets};
use crate::bench::batches::Batches;
use crate::bench::patterns::{Kind, Layout};

/// A network that a bare program uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Bare {
    Sockets(Idle),
    Mpi,
}

/// Times so many batches of the steps of a bare program. Collective; nanoseconds per step at process 0,
/// nothing elsewhere.
pub(crate) fn time<L: Lpf>(
    ctx: &mut Context<'_, L>,
    bare: Bare,
    kind: Kind,
    batches: usize,
) -> lpf::Result<Vec<f64>> {
    match bare {
        Bare::Sockets(idle) => {
            let network = Sockets::connect(ctx, idle)?;
            time_on(ctx, network, kind, batches)
        }
        #[cfg(feature = "mpi")]
        Bare::Mpi => {
            let network = super::mpi::Mpi::of(ctx)?;
            time_on(ctx, network, kind, batches)
        }
        #[cfg(not(feature = "mpi"))]
        Bare::Mpi => Err(lpf::backend("mpi").expect_err("MPI is not built in")),
    }
}

fn time_on<L: Lpf, N: Network>(
    ctx: &mut Context<'_, L>,
    network: N,
    kind: Kind,
    batches: usize,
) -> lpf::Result<Vec<f64>> {
    let mut program = Program::new(network, kind, ctx.pid(), ctx.nprocs());
    ctx.rehook(|ctx| batches_of(&mut program, ctx, batches))
}

fn batches_of<L: Lpf, N: Network>(
    program: &mut Program<N>,
    ctx: &mut Context<'_, L>,
    batches: usize,
) -> lpf::Result<Vec<f64>> {
    ctx.resize(2, ctx.nprocs() + 1)?;
    ctx.sync()?;
    let mut orders = Orders::new(ctx)?;
    ctx.sync()?;
    let (mut rounds, mut before) = (Rounds(Batches::new(batches)), None);
    while let Some(batch) = orders.next(ctx, &mut rounds, before)? {
        let ns = program.time(batch.repetitions).map_err(|error| broken(ctx, error))?;
        before = Some(Timed { batch, ns });
    }
    Ok(rounds.0.into_times())
}

struct Rounds(Batches);

impl Leader for Rounds {
    fn next(&mut self, before: Option<Timed>) -> Option<Batch> {
        if let Some(Timed { ns, .. }) = before {
            self.0.note(ns, ns);
        }
        Some(Batch { pattern: 0, repetitions: self.0.next()?, warm: true })
    }
}

/// A record of a packed message: where the word belongs, and the word.
const RECORD: usize = 16;
/// Words up to here are packed, as the record has room for.
const PACKED: usize = 8;

/// One process of a bare program.
struct Program<N> {
    network: N,
    kind: Kind,
    own: usize,
    processes: usize,
    layout: Layout,
    sources: Vec<u8>,
    destinations: Vec<u8>,
    /// How far apart the bytes are that their owner touches.
    step: usize,
    /// By process, packed messages.
    packed_out: Vec<Vec<u8>>,
    packed_in: Vec<Vec<u8>>,
    words_out: Vec<Words>,
    words_in: Vec<Words>,
}

impl<N: Network> Program<N> {
    fn new(network: N, kind: Kind, pid: Pid, nprocs: Pid) -> Self {
        let (own, processes) = (pid, nprocs);
        let (layout, bytes, step, packed) = match kind {
            Kind::Exchange(n, b) => {
                let layout = Layout::new(processes, n, b);
                let packed = if b <= PACKED { n * RECORD } else { 0 };
                (layout, layout.bytes(), layout.step(), packed)
            }
            Kind::Bulk(bytes) => (Layout::new(processes, 0, 0), bytes, 64, 0),
            Kind::Put8 | Kind::Get8 => (Layout::new(processes, 0, 0), 8, 64, 0),
            Kind::Sync | Kind::PutCall | Kind::Exec => (Layout::new(processes, 0, 0), 0, 64, 0),
        };
        let message = |other: usize| vec![1; if other == own { 0 } else { packed }];
        Program {
            network,
            kind,
            own,
            processes,
            layout,
            // Written, so that every page is there.
            sources: vec![1; bytes],
            destinations: vec![1; bytes],
            step,
            packed_out: (0..processes).map(message).collect(),
            packed_in: (0..processes).map(message).collect(),
            words_out: vec![Words::default(); processes],
            words_in: vec![Words::default(); processes],
        }
    }

    /// Nanoseconds per step of so many.
    fn time(&mut self, steps: u32) -> io::Result<f64> {
        // Untimed: after it all processes are here, however late the order reached them.
        self.step(0)?;
        let start = Instant::now();
        for nth in 0..steps {
            self.step(nth as u8)?;
        }
        Ok(nanoseconds(start) / f64::from(steps.max(1)))
    }

    fn step(&mut self, value: u8) -> io::Result<()> {
        lpf::measure::superstep::touch_bytes(
            &mut self.sources,
            &self.destinations,
            self.step,
            value,
        );
        match self.kind {
            Kind::Sync | Kind::PutCall | Kind::Exec => {
                self.network.meet(&self.words_out, &mut self.words_in)
            }
            Kind::Put8 => self.eight_bytes(self.next(), self.last()),
            // Whoever is asked sends: it knows who asks.
            Kind::Get8 => self.eight_bytes(self.last(), self.next()),
            Kind::Exchange(_, b) if b <= PACKED => self.packed(),
            Kind::Exchange(..) => self.gathered(),
            Kind::Bulk(_) => self.bulk(),
        }
    }

    fn next(&self) -> usize {
        (self.own + 1) % self.processes
    }

    fn last(&self) -> usize {
        (self.own + self.processes - 1) % self.processes
    }

    /// In the message of the barrier.
    fn eight_bytes(&mut self, to: usize, from: usize) -> io::Result<()> {
        self.words_out[to][8..].copy_from_slice(&self.sources);
        self.network.meet(&self.words_out, &mut self.words_in)?;
        self.destinations.copy_from_slice(&self.words_in[from][8..]);
        Ok(())
    }

    /// One message of records to each, and from each.
    fn packed(&mut self) -> io::Result<()> {
        let (layout, own, p) = (self.layout, self.own, self.processes);
        let b = layout.b;
        for distance in 1..p {
            let message = &mut self.packed_out[(own + distance) % p];
            for (i, record) in message.chunks_exact_mut(RECORD).enumerate() {
                let at = layout.place(distance, i);
                record[..8].copy_from_slice(&(at as u64).to_le_bytes());
                record[8..8 + b].copy_from_slice(&self.sources[at..at + b]);
            }
        }
        let others = |process: &usize| *process != own;
        let out = (0..p)
            .filter(others)
            .map(|to| Outgoing { to, pieces: vec![IoSlice::new(&self.packed_out[to])] });
        let into = self.packed_in.iter_mut().enumerate().filter(|(from, _)| *from != own);
        let into =
            into.map(|(from, bytes)| Incoming { from, pieces: vec![IoSliceMut::new(bytes)] });
        self.network.exchange(out.collect(), into.collect())?;
        for record in self.packed_in.iter().flat_map(|message| message.chunks_exact(RECORD)) {
            let mut at = [0; 8];
            at.copy_from_slice(&record[..8]);
            let at = u64::from_le_bytes(at) as usize;
            if let Some(place) = self.destinations.get_mut(at..at + b) {
                place.copy_from_slice(&record[8..8 + b]);
            }
        }
        Ok(())
    }

    /// One message of all blocks to each, from where they are to where they belong.
    fn gathered(&mut self) -> io::Result<()> {
        let (layout, own, p) = (self.layout, self.own, self.processes);
        let of_one = layout.bytes() / (p - 1);
        let stride = layout.place(1, 1);
        let sources = self.sources.chunks_exact(of_one).zip(1..p);
        let out = sources.map(|(blocks, distance)| Outgoing {
            to: (own + distance) % p,
            pieces: blocks
                .chunks_exact(stride)
                .map(|block| IoSlice::new(&block[..layout.b]))
                .collect(),
        });
        let destinations = self.destinations.chunks_exact_mut(of_one).zip(1..p);
        let into = destinations.map(|(blocks, distance)| Incoming {
            from: (own + p - distance) % p,
            pieces: blocks
                .chunks_exact_mut(stride)
                .map(|block| IoSliceMut::new(&mut block[..layout.b]))
                .collect(),
        });
        self.network.exchange(out.collect(), into.collect())
    }

    /// One stream to the next process, while one comes from the last.
    fn bulk(&mut self) -> io::Result<()> {
        let (to, from) = (self.next(), self.last());
        let out = Outgoing { to, pieces: vec![IoSlice::new(&self.sources)] };
        let into = Incoming { from, pieces: vec![IoSliceMut::new(&mut self.destinations)] };
        self.network.exchange(vec![out], vec![into])
    }
}
