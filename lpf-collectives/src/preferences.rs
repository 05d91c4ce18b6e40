//! What a program chooses for the collectives of a group.

use crate::ways::*;

/// How rounds end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// With expected arrivals: a member goes on when its messages have arrived.
    Expected,
    /// With a full sync of all processes: only if all of them are members.
    Full,
}

impl Mode {
    /// Its name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Expected => "expected",
            Mode::Full => "full",
        }
    }
}

/// The algorithms of a group; `None`: the cheapest by the machine's g and l. The same at
/// every member. An algorithm may be unusable for a call: for an operator that does not commute, or for blocks of
/// different lengths. Then another one replaces it, without a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // their names say it
pub struct Preferences {
    pub broadcast: Option<Broadcast>,
    pub reduce: Option<Reduce>,
    pub allreduce: Option<Allreduce>,
    pub allgather: Option<Allgather>,
    pub alltoall: Option<Alltoall>,
    pub scan: Option<Scan>,
    pub gather: Option<Gather>,
    pub scatter: Option<Gather>,
    pub reduce_scatter: Option<ReduceScatter>,
    /// `None`: the cheapest, arrival-unaware algorithms included.
    pub reduce_by_arrival: Option<ReduceByArrival>,
    pub allreduce_by_arrival: Option<AllreduceByArrival>,
    /// The number of segments of a vector in a Clairvoyant reduction: at least 1, at most 4096 and the number of
    /// elements. `None`: by g and l.
    pub segments: Option<u32>,
    /// The time that schedules assume for a transfer, ns: of a segment, and in the predicted dynamic tree of a vector.
    /// `None`: by g and l. With this, the number of segments and the algorithm given, and with equal estimates, a sum by
    /// arrival has the same bits on every backend and in strict mode.
    pub round_ns: Option<u64>,
    /// `None`: expected arrivals. Under `LPF_STRICT=1` full supersteps, or in a group of some of the processes a barrier
    /// among its members after each round.
    pub mode: Option<Mode>,
}
