//! Our side: collectives of a section, on any backend.

use lpf::collectives::{Collective, Collectives, Mode, Sum};
use lpf::machine::Origin;
use lpf::measure::task::{Task, Watch};
use lpf::{Area, Context, Local, Lpf, Result};
use serde::{Deserialize, Serialize};

use super::harness::{self, NOTED, Pacing, Side, Timed, host};
use super::shapes::Shape;
use crate::place::Measurement;

/// One thing to be timed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Wanted {
    pub(in crate::bench) shape: Shape,
    /// The one that is chosen where none is named.
    pub(in crate::bench) algorithm: Option<String>,
    /// In full supersteps, where that is not the default.
    pub(in crate::bench) in_full: bool,
    pub(in crate::bench) pacing: Pacing,
}

/// What was found of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(in crate::bench) timed: Timed,
    /// The algorithm that was used.
    pub(in crate::bench) algorithm: String,
    pub(in crate::bench) predicted: Predicted,
}

/// What it takes by h g + l.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct Predicted {
    pub(in crate::bench) ns: f64,
    /// Where g and l come from.
    pub(in crate::bench) origin: Origin,
}

/// Some of our collectives, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ours;

impl Task for Ours {
    type Order = Vec<Wanted>;
    type Found = Vec<Found>;

    fn run(ctx: &mut Context<'_>, order: &Self::Order, _: &Watch) -> Result<Vec<Found>> {
        // Its memory goes with the inner context.
        ctx.rehook(|ctx| in_turn(ctx, order))
    }
}

impl Measurement for Ours {
    const NAME: &str = "collectives";
    const CHOOSES: bool = true;
}

fn in_turn<L: Lpf>(ctx: &mut Context<'_, L>, order: &[Wanted]) -> Result<Vec<Found>> {
    let me = ctx.pid();
    let lengths = || order.iter().map(|wanted| wanted.shape.lengths(me));
    let (x, y) = (lengths().map(|l| l.0).max(), lengths().map(|l| l.1).max());
    ctx.resize(2 + Line::SLOTS, Line::requests(ctx))?;
    let collectives = Collectives::new(ctx)?;
    let line = Line::new(ctx)?;
    let (x, y) = (ctx.local(x.unwrap_or(0))?, ctx.local(y.unwrap_or(0))?);
    let shape = Shape::new(Collective::Broadcast, ctx.nprocs(), 0);
    let mut own = Own { ctx, collectives, line, x, y, shape };
    own.settle();
    order.iter().map(|wanted| own.time(wanted)).collect()
}

/// The start line, and what is told there: a word of process 0's, and the notes of all.
#[derive(Debug)]
pub(in crate::bench) struct Line<'s> {
    spoken: Local<'s, u64>,
    heard: Area<'s, u64>,
    noted: Local<'s, u64>,
    notes: Area<'s, u64>,
}

impl<'s> Line<'s> {
    pub(in crate::bench) const SLOTS: usize = 4;

    /// Requests to be reserved.
    pub(in crate::bench) fn requests<L: Lpf>(ctx: &Context<'s, L>) -> usize {
        2 * ctx.nprocs()
    }

    /// Collective; one sync, after which no process waits for one of another host.
    ///
    /// # Errors
    /// *Mitigable* if there are several hosts: their clocks are none of each other's.
    pub(in crate::bench) fn new<L: Lpf>(ctx: &mut Context<'s, L>) -> Result<Self> {
        let notes = NOTED * ctx.nprocs();
        let (spoken, heard) = (ctx.local(1)?, ctx.area(1)?);
        let (noted, notes) = (ctx.local(NOTED)?, ctx.area(notes)?);
        ctx.sync()?;
        let mut line = Line { spoken, heard, noted, notes };
        let mut own = vec![0; NOTED];
        own[0] = host();
        let hosts = line.gather(ctx, &own)?;
        if ctx.pid() == 0 && hosts.chunks(NOTED).any(|other| other[0] != own[0]) {
            return Err(lpf::Error::setting(
                "collectives are timed by one clock, so on one host: start the processes on one host, or let lpf start them",
            ));
        }
        Ok(line)
    }

    pub(in crate::bench) fn tell<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        word: u64,
    ) -> Result<u64> {
        if ctx.pid() == 0 {
            ctx.write(&mut self.spoken)[0] = word;
            for to in 0..ctx.nprocs() {
                ctx.put(&self.spoken, .., to, &self.heard, 0)?;
            }
        }
        ctx.sync()?;
        Ok(ctx.read(&self.heard)[0])
    }

    pub(in crate::bench) fn gather<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        own: &[u64],
    ) -> Result<Vec<u64>> {
        ctx.write(&mut self.noted).copy_from_slice(own);
        ctx.put(&self.noted, .., 0, &self.notes, NOTED * ctx.pid())?;
        ctx.sync()?;
        Ok(ctx.read(&self.notes).to_vec())
    }
}

struct Own<'c, 's, L: Lpf> {
    ctx: &'c mut Context<'s, L>,
    collectives: Collectives<'s>,
    line: Line<'s>,
    /// What this process contributes, and what it gets.
    x: Local<'s, f64>,
    y: Local<'s, f64>,
    /// What is timed now.
    shape: Shape,
}

impl<L: Lpf> Own<'_, '_, L> {
    /// Every page is there.
    fn settle(&mut self) {
        self.ctx.write(&mut self.x).fill(1.0);
        self.ctx.write(&mut self.y).fill(1.0);
    }

    fn time(&mut self, wanted: &Wanted) -> Result<Found> {
        self.shape = wanted.shape;
        let (collective, v) = (wanted.shape.collective(), wanted.shape.vector());
        let algorithm = wanted.algorithm.as_deref();
        if !collective.prefer(self.collectives.preferences_mut(), algorithm) {
            return Err(lpf::Error::setting("the algorithm asked for does not exist"));
        }
        self.collectives.preferences_mut().mode = wanted.in_full.then_some(Mode::Full);
        let cheapest = self.collectives.cheapest_of(self.ctx, collective, v);
        let all = collective.algorithms(wanted.shape.p, v);
        let used = all.into_iter().find(|one| algorithm == Some(one.name)).unwrap_or(cheapest);
        let timed = harness::time(self, &wanted.pacing)?;
        let (machine, p) = (self.ctx.probe(), self.ctx.nprocs());
        let seconds = used.supersteps.seconds(&machine, p);
        let predicted = Predicted { ns: 1e9 * seconds, origin: machine.origin() };
        Ok(Found { timed, algorithm: used.name.into(), predicted })
    }
}

impl<L: Lpf> Side for Own<'_, '_, L> {
    fn touch(&mut self, value: f64) {
        let (x, y) = self.shape.lengths(self.ctx.pid());
        let (sources, destinations) = self.ctx.access((&mut self.x, &self.y));
        harness::touch(&mut sources[..x], &destinations[..y], value);
    }

    fn meet(&mut self) -> Result<()> {
        self.ctx.sync()
    }

    fn tell(&mut self, word: u64) -> Result<u64> {
        self.line.tell(self.ctx, word)
    }

    fn act(&mut self) -> Result<()> {
        let Own { ctx, collectives: all, x, y, shape, .. } = self;
        let me = ctx.pid();
        let (from, to) = shape.lengths(me);
        match shape.collective() {
            Collective::Broadcast if me == 0 => all.broadcast(ctx, 0, (&mut *x, ..from)),
            Collective::Broadcast => all.broadcast(ctx, 0, (&mut *y, ..to)),
            Collective::Reduce => all.reduce(ctx, 0, &Sum, (&*x, ..from), (&mut *y, ..to)),
            Collective::Allreduce => all.allreduce(ctx, &Sum, (&*x, ..from), (&mut *y, ..to)),
            Collective::ReduceScatter => {
                all.reduce_scatter(ctx, &Sum, (&*x, ..from), (&mut *y, ..to))
            }
            Collective::Scan => all.scan(ctx, &Sum, (&*x, ..from), (&mut *y, ..to)),
            Collective::Exscan => all.exscan(ctx, &Sum, (&*x, ..from), (&mut *y, ..to)),
            Collective::Gather => all.gather(ctx, 0, (&*x, ..from), (&mut *y, ..to)),
            Collective::Scatter => all.scatter(ctx, 0, (&*x, ..from), (&mut *y, ..to)),
            Collective::Allgather => all.allgather(ctx, (&*x, ..from), (&mut *y, ..to)),
            Collective::Alltoall => all.alltoall(ctx, (&*x, ..from), (&mut *y, ..to)),
        }
    }

    fn gather(&mut self, own: &[u64]) -> Result<Vec<u64>> {
        self.line.gather(self.ctx, own)
    }
}
