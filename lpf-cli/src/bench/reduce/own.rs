//! What is timed: one call after the other, by processes that sleep until they arrive.
//!
//! Before each call all meet, process 0 names a moment soon after, and each process sleeps until its own arrival
//! after that. It notes when it came, for a sleep lasts longer than it should, and when the call returned.

use std::time::Duration;

use lpf::collectives::arbiter::Arbiter;
use lpf::collectives::arrival_pattern::Estimates;
use lpf::collectives::arrival_pattern::pairing::Growth;
use lpf::collectives::{
    Allreduce, AllreduceByArrival, Collective, Collectives, Preferences, Reduce, ReduceByArrival,
    Sum,
};
use lpf::measure::task::{Task, Watch};
use lpf::{Context, Local, Lpf, Result};
use serde::{Deserialize, Serialize};

use super::wanted::Wanted;
use crate::bench::collectives::harness::{self, NOTED, Side, now_ns};
use crate::bench::collectives::own::Line;
use crate::bench::collectives::shapes::Shape;
use crate::interrupt;
use crate::place::Measurement;

/// A call: what each process noted, ns after the common start, and what making the schedule took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(in crate::bench) arrived_ns: Vec<u64>,
    pub(in crate::bench) done_ns: Vec<u64>,
    /// The longest of all processes; nothing for MPI's own.
    pub(super) planned_ns: u64,
    /// Of the default choice: the algorithm that was used.
    pub(super) used: Option<String>,
}

/// An algorithm by the name that it has here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::bench) enum Algorithm {
    Auto,
    Reduce(Reduce),
    ReduceByArrival(ReduceByArrival),
    Tree(Growth),
    Allreduce(Allreduce),
    AllreduceByArrival(AllreduceByArrival),
    /// MPI's own, in a job of MPI's that this process is one of.
    Mpi,
}

pub(super) const AUTO: &str = "auto";
/// MPI's own call.
pub(super) const OWN: &str = "own";

/// After so many elements a vector is the same again.
const PERIOD: usize = 13;

/// All algorithms of a call, with their names, the ordinary ones first.
pub(in crate::bench) fn algorithms(call: Collective) -> Vec<(String, Algorithm)> {
    let auto = (AUTO.to_string(), Algorithm::Auto);
    let mut all: Vec<(String, Algorithm)> = match call {
        Collective::Reduce => {
            let ordinary = Reduce::ALL.iter();
            let ordinary = ordinary.map(|&way| (way.name().into(), Algorithm::Reduce(way)));
            let ahead = ReduceByArrival::ALL.iter();
            let ahead = ahead.map(|&way| (way.name().into(), Algorithm::ReduceByArrival(way)));
            let any = ("tree-dyn".to_string(), Algorithm::Tree(Growth::Any));
            let near = ("non-commut-tree-dyn".to_string(), Algorithm::Tree(Growth::Neighbours));
            ordinary.chain(ahead).chain([any, near]).collect()
        }
        _ => {
            let ordinary = Allreduce::ALL.iter();
            let ordinary = ordinary.map(|&way| (way.name().into(), Algorithm::Allreduce(way)));
            let ahead = AllreduceByArrival::ALL.iter().map(|&way| {
                // The ordinary ring goes round in rounds, this one segment by segment.
                let prefix = if way == AllreduceByArrival::Ring { "chain-" } else { "" };
                (format!("{prefix}{way}"), Algorithm::AllreduceByArrival(way))
            });
            ordinary.chain(ahead).collect()
        }
    };
    all.push(auto);
    all
}

/// Whether it uses predictions.
pub(super) fn looks_ahead(algorithm: Algorithm) -> bool {
    use Algorithm::*;
    matches!(algorithm, Auto | ReduceByArrival(_) | AllreduceByArrival(_))
}

/// Calls, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arriving;

impl Measurement for Arriving {
    const NAME: &str = "arriving";
    const CHOOSES: bool = true;
}

impl Task for Arriving {
    type Order = Vec<Wanted>;
    type Found = Vec<Seen>;

    fn run(ctx: &mut Context<'_>, order: &Self::Order, _: &Watch) -> Result<Vec<Seen>> {
        // Its memory goes with the inner context.
        ctx.rehook(|ctx| in_turn(ctx, order))
    }
}

fn in_turn<L: Lpf>(ctx: &mut Context<'_, L>, order: &[Wanted]) -> Result<Vec<Seen>> {
    let most = order.iter().map(|wanted| wanted.shape.elements).max().unwrap_or(0);
    ctx.resize(3 + Line::SLOTS, Line::requests(ctx))?;
    let mut all = Collectives::new(ctx)?;
    let line = Line::new(ctx)?;
    let (mut x, mut y) = (ctx.local(most)?, ctx.local(most)?);
    let me = ctx.pid();
    // Whole numbers, of which every sum is exact, in whatever order.
    let of = |nth: usize| ((me + 1) * (1 + nth % PERIOD)) as f64;
    ctx.write(&mut x).iter_mut().enumerate().for_each(|(nth, x)| *x = of(nth));
    all.allreduce(ctx, &Sum, &x, &mut y)?;
    let sums: [f64; PERIOD] =
        std::array::from_fn(|nth| ctx.read(&y).get(nth).copied().unwrap_or(0.0));
    let arbiters =
        [Growth::Any, Growth::Neighbours].map(|growth| Arbiter::new(ctx, &mut all, growth));
    let [any, near] = arbiters;
    let arbiters = [any?, near?];
    let first = order.first().cloned();
    let Some(wanted) = first else { return Ok(Vec::new()) };
    let mut own = Own { ctx, all, line, arbiters, x, y, sums, wanted, algorithm: Algorithm::Auto };
    uncut(order.iter().map(|wanted| own.call(wanted)))
}

struct Own<'c, 's, L: Lpf> {
    ctx: &'c mut Context<'s, L>,
    all: Collectives<'s>,
    line: Line<'s>,
    arbiters: [Arbiter<'s, L>; 2],
    x: Local<'s, f64>,
    y: Local<'s, f64>,
    /// What every call has to give, again and again, as the ordinary one gave it: a whole vector of it would be more
    /// memory than calls have to do with, and drive theirs out of the caches.
    sums: [f64; PERIOD],
    wanted: Wanted,
    algorithm: Algorithm,
}

/// One call of a side: when this process arrived, and when it was done, ns after the common start. None after an
/// interrupt, at all processes.
pub(in crate::bench) fn arrive(
    side: &mut impl Side,
    late_ns: u64,
    window_ns: u64,
) -> Result<Option<[u64; 2]>> {
    /// A delay of minutes does not delay the end of an interrupted program.
    const LOOK_EVERY: Duration = Duration::from_millis(100);
    side.meet()?;
    let Some(start) = harness::start(side, window_ns)? else { return Ok(None) };
    let due = start + late_ns;
    loop {
        match due.saturating_sub(now_ns()) {
            0 => break,
            _ if interrupt::came() => break,
            left => std::thread::sleep(Duration::from_nanos(left).min(LOOK_EVERY)),
        }
    }
    let arrived = now_ns();
    side.act()?;
    Ok(Some([arrived, now_ns()].map(|at| at.saturating_sub(start))))
}

/// What all processes noted, at process 0; none if one of them was interrupted, which may have cut its delay.
pub(in crate::bench) fn seen(
    side: &mut impl Side,
    own: [u64; 2],
    planned_ns: u64,
) -> Result<Option<Seen>> {
    let mut notes = vec![0; NOTED];
    notes[..2].copy_from_slice(&own);
    notes[2..4].copy_from_slice(&[planned_ns, interrupt::came().into()]);
    let all = side.gather(&notes)?;
    let of = |nth: usize| all.chunks(NOTED).map(move |own| own[nth]);
    let seen = Seen {
        arrived_ns: of(0).collect(),
        done_ns: of(1).collect(),
        planned_ns: of(2).max().unwrap_or(0),
        used: None,
    };
    Ok(of(3).all(|interrupted| interrupted == 0).then_some(seen))
}

/// The calls before the first one that an interrupt has cut: after it all are.
pub(in crate::bench) fn uncut<E>(
    calls: impl Iterator<Item = std::result::Result<Option<Seen>, E>>,
) -> std::result::Result<Vec<Seen>, E> {
    let calls: std::result::Result<Vec<Option<Seen>>, E> = calls.collect();
    Ok(calls?.into_iter().map_while(|seen| seen).collect())
}

impl<L: Lpf> Own<'_, '_, L> {
    fn call(&mut self, wanted: &Wanted) -> Result<Option<Seen>> {
        let call = wanted.shape.collective();
        let named = algorithms(call).into_iter().find(|(name, _)| *name == wanted.algorithm);
        let mpi = (wanted.algorithm == OWN).then_some(Algorithm::Mpi);
        let Some(algorithm) = named.map(|(_, algorithm)| algorithm).or(mpi) else {
            return Err(lpf::Error::setting("the algorithm asked for does not exist"));
        };
        (self.wanted, self.algorithm) = (wanted.clone(), algorithm);
        *self.all.preferences_mut() = match algorithm {
            Algorithm::Auto | Algorithm::Tree(_) | Algorithm::Mpi => Preferences::default(),
            Algorithm::Reduce(way) => Preferences { reduce: Some(way), ..Default::default() },
            Algorithm::Allreduce(way) => Preferences { allreduce: Some(way), ..Default::default() },
            Algorithm::ReduceByArrival(way) => {
                Preferences { reduce_by_arrival: Some(way), ..Default::default() }
            }
            Algorithm::AllreduceByArrival(way) => {
                Preferences { allreduce_by_arrival: Some(way), ..Default::default() }
            }
        };
        let n = wanted.shape.elements;
        self.ctx.write(&mut self.y)[..n].fill(-1.0);
        let me = self.ctx.pid();
        let Some(own) = arrive(self, wanted.arrivals_ns[me], wanted.window_ns)? else {
            return Ok(None);
        };
        let ahead = looks_ahead(algorithm);
        let planned = if ahead { self.all.planning().as_nanos() as u64 } else { 0 };
        // Nobody looks at what it got while others, on the same cores, have not got theirs.
        let mut seen = seen(self, own, planned)?;
        if let Some(seen) = seen.as_mut().filter(|_| algorithm == Algorithm::Auto) {
            seen.used = Some(self.all.algorithm_by_arrival().to_string());
        }
        if call == Collective::Allreduce || me == 0 {
            let mut all = self.ctx.read(&self.y)[..n].chunks(PERIOD);
            if !all.all(|some| *some == self.sums[..some.len()]) {
                let text = format!(
                    "{} by {} of {n} elements gave process {me} another result than the arrival-unaware algorithm",
                    call.name(),
                    wanted.algorithm
                );
                return Err(lpf::Error::program(&text));
            }
        }
        Ok(seen)
    }
}

impl<L: Lpf> Side for Own<'_, '_, L> {
    fn touch(&mut self, _value: f64) {}

    fn meet(&mut self) -> Result<()> {
        self.ctx.sync()
    }

    fn tell(&mut self, word: u64) -> Result<u64> {
        self.line.tell(self.ctx, word)
    }

    fn act(&mut self) -> Result<()> {
        let Own { ctx, all, arbiters, x, y, wanted, algorithm, .. } = self;
        let n = wanted.shape.elements;
        let (x, y) = ((&*x, ..n), (&mut *y, ..n));
        let predicted = || {
            let spread = wanted.predicted_ns.iter().max().copied().unwrap_or(0);
            Estimates::new(&wanted.predicted_ns, (spread / 64).next_power_of_two())
        };
        match (wanted.shape.collective(), algorithm) {
            (_, Algorithm::Mpi) => own_call(ctx, wanted.shape, x.0, y.0),
            (_, Algorithm::Tree(growth)) => {
                let arbiter = &mut arbiters[usize::from(*growth == Growth::Neighbours)];
                all.reduce_as_they_come(ctx, arbiter, 0, &Sum, x, y).map(|_| ())
            }
            (Collective::Reduce, Algorithm::Reduce(_)) => all.reduce(ctx, 0, &Sum, x, y),
            (Collective::Reduce, _) => all.reduce_by_arrival(ctx, &predicted(), 0, &Sum, x, y),
            (_, Algorithm::Allreduce(_)) => all.allreduce(ctx, &Sum, x, y),
            _ => all.allreduce_by_arrival(ctx, &predicted(), &Sum, x, y),
        }
    }

    fn gather(&mut self, own: &[u64]) -> Result<Vec<u64>> {
        self.line.gather(self.ctx, own)
    }
}

/// MPI's own call, by processes that LPF has brought MPI up in: nothing of LPF's is under way.
#[cfg(feature = "mpi")]
fn own_call<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    shape: Shape,
    x: &Local<'s, f64>,
    y: &mut Local<'s, f64>,
) -> Result<()> {
    let me = ctx.pid();
    let (x, y) = ctx.access((x, y));
    crate::bench::collectives::own_of_mpi(shape, me, x, y)
}

#[cfg(not(feature = "mpi"))]
fn own_call<L: Lpf>(
    _ctx: &mut Context<'_, L>,
    _shape: Shape,
    _x: &Local<'_, f64>,
    _y: &mut Local<'_, f64>,
) -> Result<()> {
    Err(lpf::Error::setting("MPI is not built in"))
}
