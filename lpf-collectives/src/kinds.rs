//! The collectives by name, with their algorithms: for commands, tables and measurements.

use lpf_core::machine::Machine;

use crate::cost::{Supersteps, Vector, choose};
use crate::preferences::Preferences;
use crate::ways::*;

/// A collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // their names say it
pub enum Collective {
    Broadcast = 1,
    Reduce,
    Allreduce,
    ReduceScatter,
    Scan,
    Exscan,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
}

/// The names of a group's calls, by the numbers in their stamps: the collectives, and then others.
pub(crate) static NAMES: [&str; lpf_core::Call::KIND as usize + 1] = {
    let named = [
        "",
        "broadcast",
        "reduce",
        "allreduce",
        "reduce-scatter",
        "scan",
        "exscan",
        "gather",
        "scatter",
        "allgather",
        "alltoall",
        "split",
        "reduce_by_arrival",
        "allreduce_by_arrival",
        "reduce_as_they_come",
        "reduce_by_pairing",
        "gather_v",
        "scatter_v",
        "allgather_v",
        "alltoall_v",
        lpf_core::Call::MEMORY_CHECK,
    ];
    let (mut names, mut nth) = ([""; lpf_core::Call::KIND as usize + 1], 0);
    while nth < named.len() {
        names[nth] = named[nth];
        nth += 1;
    }
    names
};
pub(crate) const SPLIT: u32 = 11;
pub(crate) const REDUCE_BY_ARRIVAL: u32 = 12;
pub(crate) const ALLREDUCE_BY_ARRIVAL: u32 = 13;
pub(crate) const REDUCE_AS_THEY_COME: u32 = 14;
pub(crate) const REDUCE_BY_PAIRING: u32 = 15;
/// The forms with counts, in the order of their collectives, from gather on.
pub(crate) const WITH_COUNTS: u32 = 16;
/// Of whether all members have the memory for a call on slices.
pub(crate) const MEMORY_CHECK: u32 = 20;

/// An algorithm of a collective, and its supersteps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Algorithm {
    /// Its name in commands.
    pub name: &'static str,
    /// Its supersteps, on any machine.
    pub supersteps: Supersteps,
}

/// All ways of a collective, with what each costs.
fn all<W: Copy>(
    ways: &[W],
    name: fn(W) -> &'static str,
    cost: impl Fn(W) -> Supersteps,
) -> Vec<Algorithm> {
    let one = |&way: &W| Algorithm { name: name(way), supersteps: cost(way) };
    ways.iter().map(one).collect()
}

/// The way of a name, in the place of a preference; false where none has that name.
fn set<W: Copy>(
    place: &mut Option<W>,
    ways: &[W],
    name: fn(W) -> &'static str,
    wanted: Option<&str>,
) -> bool {
    let found = wanted.and_then(|wanted| ways.iter().copied().find(|&way| name(way) == wanted));
    *place = found;
    found.is_some() == wanted.is_some()
}

impl Collective {
    /// All of them.
    pub const ALL: [Collective; 10] = [
        Collective::Broadcast,
        Collective::Reduce,
        Collective::Allreduce,
        Collective::ReduceScatter,
        Collective::Scan,
        Collective::Exscan,
        Collective::Gather,
        Collective::Scatter,
        Collective::Allgather,
        Collective::Alltoall,
    ];

    /// Its name in commands.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// Its algorithms among `p` members. Each member (or the root, if only the root sends) contributes this vector in
    /// all.
    pub fn algorithms(self, p: usize, v: impl Into<Vector>) -> Vec<Algorithm> {
        let v = v.into();
        let everything = Vector { bytes: v.bytes.saturating_mul(p), ..v };
        match self {
            Collective::Broadcast => {
                all(Broadcast::ALL, Broadcast::name, |way| way.supersteps(p, v))
            }
            Collective::Reduce => all(Reduce::ALL, Reduce::name, |way| way.supersteps(p, v)),
            Collective::Allreduce => {
                all(Allreduce::ALL, Allreduce::name, |way| way.supersteps(p, v))
            }
            Collective::ReduceScatter => {
                all(ReduceScatter::ALL, ReduceScatter::name, |way| way.supersteps(p, v))
            }
            Collective::Scan => all(Scan::ALL, Scan::name, |way| way.supersteps(p, v, false)),
            Collective::Exscan => all(Scan::ALL, Scan::name, |way| way.supersteps(p, v, true)),
            Collective::Gather => {
                all(Gather::ALL, Gather::name, |way| way.supersteps(p, everything))
            }
            Collective::Scatter => all(Gather::ALL, Gather::name, |way| way.supersteps(p, v)),
            Collective::Allgather => {
                all(Allgather::ALL, Allgather::name, |way| way.supersteps(p, everything))
            }
            Collective::Alltoall => all(Alltoall::ALL, Alltoall::name, |way| way.supersteps(p, v)),
        }
    }

    /// The cheapest algorithm on a machine, for an operator that commutes, as collectives choose it. Of
    /// those predicted within 5 % of the smallest time it is the one with the fewest supersteps.
    pub fn cheapest(self, machine: &Machine, p: usize, v: impl Into<Vector>) -> Algorithm {
        let all = self.algorithms(p, v);
        all[choose(&all, |one| Some(one.supersteps), |cost| cost.seconds(machine, p))]
    }

    /// Sets the algorithm of this name, or without a name the cheapest. If no algorithm has this name, it sets the
    /// cheapest and returns false. A scan and an exscan use the same.
    pub fn prefer(self, preferences: &mut Preferences, algorithm: Option<&str>) -> bool {
        let all = preferences;
        match self {
            Collective::Broadcast => {
                set(&mut all.broadcast, Broadcast::ALL, Broadcast::name, algorithm)
            }
            Collective::Reduce => set(&mut all.reduce, Reduce::ALL, Reduce::name, algorithm),
            Collective::Allreduce => {
                set(&mut all.allreduce, Allreduce::ALL, Allreduce::name, algorithm)
            }
            Collective::ReduceScatter => {
                set(&mut all.reduce_scatter, ReduceScatter::ALL, ReduceScatter::name, algorithm)
            }
            Collective::Scan | Collective::Exscan => {
                set(&mut all.scan, Scan::ALL, Scan::name, algorithm)
            }
            Collective::Gather => set(&mut all.gather, Gather::ALL, Gather::name, algorithm),
            Collective::Scatter => set(&mut all.scatter, Gather::ALL, Gather::name, algorithm),
            Collective::Allgather => {
                set(&mut all.allgather, Allgather::ALL, Allgather::name, algorithm)
            }
            Collective::Alltoall => {
                set(&mut all.alltoall, Alltoall::ALL, Alltoall::name, algorithm)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_with_counts_has_the_name_of_its_collective() {
        for collective in
            [Collective::Gather, Collective::Scatter, Collective::Allgather, Collective::Alltoall]
        {
            let number = WITH_COUNTS + (collective as u32 - Collective::Gather as u32);
            assert_eq!(NAMES[number as usize], format!("{}_v", collective.name()));
        }
    }

    #[test]
    fn every_algorithm_can_be_preferred_by_its_name() {
        for collective in Collective::ALL {
            let mut preferences = Preferences::default();
            for one in collective.algorithms(4, 1 << 10) {
                assert!(collective.prefer(&mut preferences, Some(one.name)), "{one:?}");
                assert_ne!(preferences, Preferences::default());
            }
            assert!(!collective.prefer(&mut preferences, Some("pigeons")));
            assert_eq!(preferences, Preferences::default());
        }
    }
}
