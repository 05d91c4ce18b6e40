//! One call of a collective as plain data: how it is made, and what a sequential program gives.

use lpf_collectives::arrival_pattern::Estimates;
use lpf_collectives::*;
use lpf_core::{Context, Lpf, Pid, Result};

use super::elements::{Element, word};
use super::vectors::Room;

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Broadcast,
    BroadcastValue,
    Reduce,
    Allreduce,
    AllreduceInPlace,
    AllreduceValue,
    ReduceScatter,
    Scan,
    Exscan,
    Allgather,
    AllgatherV,
    Gather,
    GatherV,
    Scatter,
    ScatterV,
    Alltoall,
    AlltoallV,
    ReduceByArrival,
    AllreduceByArrival,
    AllreduceInPlaceByArrival,
}

use What::*;

impl What {
    pub(super) const ALL: [What; 20] = [
        Broadcast,
        BroadcastValue,
        Reduce,
        Allreduce,
        AllreduceInPlace,
        AllreduceValue,
        ReduceScatter,
        Scan,
        Exscan,
        Allgather,
        AllgatherV,
        Gather,
        GatherV,
        Scatter,
        ScatterV,
        Alltoall,
        AlltoallV,
        ReduceByArrival,
        AllreduceByArrival,
        AllreduceInPlaceByArrival,
    ];

    /// Ways to do it: its algorithms, and way 0, the cheapest of them.
    pub(super) fn ways(self) -> usize {
        let algorithms = match self {
            Broadcast | BroadcastValue => lpf_collectives::Broadcast::ALL.len(),
            Reduce => lpf_collectives::Reduce::ALL.len(),
            Allreduce | AllreduceInPlace | AllreduceValue => lpf_collectives::Allreduce::ALL.len(),
            ReduceScatter => lpf_collectives::ReduceScatter::ALL.len(),
            Scan | Exscan => lpf_collectives::Scan::ALL.len(),
            Allgather | AllgatherV => lpf_collectives::Allgather::ALL.len(),
            Gather | GatherV | Scatter | ScatterV => lpf_collectives::Gather::ALL.len(),
            Alltoall => lpf_collectives::Alltoall::ALL.len(),
            AlltoallV => 0,
            ReduceByArrival => lpf_collectives::ReduceByArrival::ALL.len(),
            AllreduceByArrival | AllreduceInPlaceByArrival => {
                lpf_collectives::AllreduceByArrival::ALL.len()
            }
        };
        algorithms + 1
    }

    /// Whether its algorithms apply an operator.
    pub(super) fn combines(self) -> bool {
        self.is_by_arrival()
            || matches!(
                self,
                Reduce
                    | Allreduce
                    | AllreduceInPlace
                    | AllreduceValue
                    | ReduceScatter
                    | Scan
                    | Exscan
            )
    }

    pub(super) fn is_by_arrival(self) -> bool {
        matches!(self, ReduceByArrival | AllreduceByArrival | AllreduceInPlaceByArrival)
    }

    pub(super) fn has_root(self) -> bool {
        matches!(
            self,
            Broadcast
                | BroadcastValue
                | Reduce
                | Gather
                | GatherV
                | Scatter
                | ScatterV
                | ReduceByArrival
        )
    }

    /// Whether a member has a block for each, or each has one for it.
    pub(super) fn has_blocks(self) -> bool {
        !matches!(
            self,
            Broadcast
                | BroadcastValue
                | Reduce
                | Allreduce
                | AllreduceInPlace
                | AllreduceValue
                | Scan
                | Exscan
                | ReduceByArrival
                | AllreduceByArrival
                | AllreduceInPlaceByArrival
        )
    }

    pub(super) fn prefer(self, preferences: &mut Preferences, way: usize) {
        fn of<W: Copy>(all: &[W], way: usize) -> Option<W> {
            way.checked_sub(1).map(|nth| all[nth])
        }
        *preferences = Preferences::default();
        match self {
            Broadcast | BroadcastValue => {
                preferences.broadcast = of(lpf_collectives::Broadcast::ALL, way);
            }
            Reduce => preferences.reduce = of(lpf_collectives::Reduce::ALL, way),
            Allreduce | AllreduceInPlace | AllreduceValue => {
                preferences.allreduce = of(lpf_collectives::Allreduce::ALL, way);
            }
            ReduceScatter => {
                preferences.reduce_scatter = of(lpf_collectives::ReduceScatter::ALL, way)
            }
            Scan | Exscan => preferences.scan = of(lpf_collectives::Scan::ALL, way),
            Allgather | AllgatherV => {
                preferences.allgather = of(lpf_collectives::Allgather::ALL, way)
            }
            Gather | GatherV => preferences.gather = of(lpf_collectives::Gather::ALL, way),
            Scatter | ScatterV => preferences.scatter = of(lpf_collectives::Gather::ALL, way),
            Alltoall => preferences.alltoall = of(lpf_collectives::Alltoall::ALL, way),
            AlltoallV => {}
            ReduceByArrival => {
                preferences.reduce_by_arrival = of(lpf_collectives::ReduceByArrival::ALL, way);
            }
            AllreduceByArrival | AllreduceInPlaceByArrival => {
                preferences.allreduce_by_arrival =
                    of(lpf_collectives::AllreduceByArrival::ALL, way);
            }
        }
    }
}

/// One call, the same at every member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) what: What,
    pub(super) way: usize,
    /// A member, modulo their number.
    pub(super) root: usize,
    /// Elements of a vector, or of a block; the most of a block where they differ.
    pub(super) len: usize,
    /// Where source and target begin.
    pub(super) at: [usize; 2],
    /// Whether they are local.
    pub(super) local: [bool; 2],
    /// What the elements are made from, how long blocks are that differ, and how rounds end.
    pub(super) salt: usize,
}

/// The elements that member `from` has for member `to` where they differ; some have none.
fn count(call: &Call, from: usize, to: usize) -> usize {
    let word = word(from, call.salt, to) as usize;
    if word.is_multiple_of(3) { 0 } else { word / 3 % (call.len + 1) }
}

impl Call {
    /// When a member is expected, ns: all together, one late, in order, or anyhow, with ties. Nobody keeps to it.
    fn arrival(&self, member: usize) -> u64 {
        let salt = self.salt / 3;
        match salt % 4 {
            0 => 0,
            1 => {
                if member == salt / 4 % 5 {
                    1 << (salt / 20 % 24)
                } else {
                    0
                }
            }
            2 => member as u64 * (salt as u64 / 4 % 3000),
            _ => word(member, salt, 1) % 8 * 1000,
        }
    }

    /// Makes the call as a member of a group, and checks all that it may write.
    pub(super) fn make<'s, L: Lpf, T: Element>(
        &self,
        ctx: &mut Context<'s, L>,
        c: &mut Collectives<'s>,
        room: &mut Room<'s, T>,
    ) -> Result<()> {
        let (me, q, len) = (c.me(), c.len(), self.len);
        let root = self.root % q;
        let members: Vec<Pid> = c.members().to_vec();
        let own = |member: usize, nth: usize| T::of(word(members[member], self.salt, nth));
        let fold = |first: usize, end: usize, nth: usize| {
            let operands = (first..end).map(|member| own(member, nth));
            operands.reduce(|a, b| T::Op::default().combine(a, b))
        };
        let sum = |nth: usize| fold(0, q, nth).expect("a group has members");
        // Of blocks that differ: from each here, from here to each, and each member's.
        let receives: Vec<usize> = (0..q).map(|from| count(self, from, me)).collect();
        let sends: Vec<usize> = (0..q).map(|to| count(self, me, to)).collect();
        let counts: Vec<usize> = (0..q).map(|member| count(self, member, q)).collect();
        let (all, mine) = (counts.iter().sum::<usize>(), counts[me]);
        // The member whose element it is in blocks one behind the other, and which of its it is.
        let place = |counts: &[usize], mut nth: usize| {
            let member = counts.iter().position(|&count| {
                let is_in = nth < count;
                nth -= if is_in { 0 } else { count };
                is_in
            });
            (member.expect("an element of a block"), nth)
        };
        let here = |is_here: bool, len: usize| if is_here { len } else { len.min(1) };
        let (x_len, y_len) = match self.what {
            Broadcast
            | BroadcastValue
            | AllreduceInPlace
            | AllreduceValue
            | AllreduceInPlaceByArrival => (0, len),
            ReduceByArrival | AllreduceByArrival => (len, len),
            Reduce => (len, here(me == root, len)),
            Allreduce | Scan | Exscan => (len, len),
            ReduceScatter => (q * len, len),
            Allgather => (len, q * len),
            AllgatherV => (mine, all),
            Gather => (len, here(me == root, q * len)),
            GatherV => (mine, here(me == root, all)),
            Scatter => (here(me == root, q * len), len),
            ScatterV => (here(me == root, all), mine),
            Alltoall => (q * len, q * len),
            AlltoallV => (sends.iter().sum(), receives.iter().sum()),
        };
        let (x, y) =
            (&mut room.x[usize::from(self.local[0])], &mut room.y[usize::from(self.local[1])]);
        x.choose(self.at[0], x_len);
        y.choose(self.at[1], y_len);
        x.fill(ctx, |nth| own(me, nth));
        // What is there before: the vector itself where it is worked on in its place.
        let before = |nth: usize| match self.what {
            Broadcast | AllreduceInPlace | AllreduceInPlaceByArrival => own(me, nth),
            _ => T::of(!word(me, self.salt, nth)),
        };
        y.fill(ctx, before);
        self.what.prefer(c.preferences_mut(), self.way);
        // Some of the calls of a whole context are made in full supersteps.
        let full = self.salt % 4 == 3 && q == ctx.nprocs();
        c.preferences_mut().mode = full.then_some(Mode::Full);
        let times: Vec<u64> = (0..q).map(|member| self.arrival(member)).collect();
        let arrivals = Estimates::new(&times, 1 + self.salt as u64 % 3);
        let preferences = c.preferences_mut();
        // By g and l, or any: fewer than members, as many, and more than elements.
        preferences.segments = [None, Some(1), Some(3), Some(q as u32), Some(71)][self.salt % 5];
        preferences.round_ns = [None, Some(1), Some(1000)][self.salt / 5 % 3];
        let op = T::Op::default();
        let story = format!("{self:?}, member {me} of {q}");
        match self.what {
            Broadcast => c.broadcast(ctx, root, &mut *y)?,
            BroadcastValue => {
                let value = c.broadcast_value(ctx, root, own(me, 0))?;
                assert!(value == own(root, 0), "{story}: {value:?}");
            }
            Reduce => c.reduce(ctx, root, &op, &*x, &mut *y)?,
            Allreduce => c.allreduce(ctx, &op, &*x, &mut *y)?,
            AllreduceInPlace => c.allreduce_in_place(ctx, &op, &mut *y)?,
            AllreduceValue => {
                let value = c.allreduce_value(ctx, &op, own(me, 0))?;
                assert!(value == sum(0), "{story}: {value:?}");
            }
            ReduceScatter => c.reduce_scatter(ctx, &op, &*x, &mut *y)?,
            Scan => c.scan(ctx, &op, &*x, &mut *y)?,
            Exscan => c.exscan(ctx, &op, &*x, &mut *y)?,
            Allgather => c.allgather(ctx, &*x, &mut *y)?,
            AllgatherV => c.allgather_v(ctx, &*x, &counts, &mut *y)?,
            Gather => c.gather(ctx, root, &*x, &mut *y)?,
            GatherV => c.gather_v(ctx, root, &*x, &counts, &mut *y)?,
            Scatter => c.scatter(ctx, root, &*x, &mut *y)?,
            ScatterV => c.scatter_v(ctx, root, &*x, &counts, &mut *y)?,
            Alltoall => c.alltoall(ctx, &*x, &mut *y)?,
            AlltoallV => c.alltoall_v(ctx, &*x, &sends, &mut *y, &receives)?,
            ReduceByArrival => c.reduce_by_arrival(ctx, &arrivals, root, &op, &*x, &mut *y)?,
            AllreduceByArrival => c.allreduce_by_arrival(ctx, &arrivals, &op, &*x, &mut *y)?,
            AllreduceInPlaceByArrival => {
                c.allreduce_in_place_by_arrival(ctx, &arrivals, &op, &mut *y)?;
            }
        }
        let after = |nth: usize| match self.what {
            BroadcastValue | AllreduceValue => before(nth),
            Reduce | Gather | GatherV if me != root => before(nth),
            Broadcast => own(root, nth),
            Reduce
            | Allreduce
            | AllreduceInPlace
            | ReduceByArrival
            | AllreduceByArrival
            | AllreduceInPlaceByArrival => sum(nth),
            ReduceScatter => sum(me * len + nth),
            Scan => fold(0, me + 1, nth).expect("itself"),
            Exscan => fold(0, me, nth).unwrap_or(op.identity()),
            Allgather | Gather => own(nth / len, nth % len),
            AllgatherV | GatherV => {
                let (member, nth) = place(&counts, nth);
                own(member, nth)
            }
            Scatter => own(root, me * len + nth),
            ScatterV => own(root, counts[..me].iter().sum::<usize>() + nth),
            Alltoall => own(nth / len, me * len + nth % len),
            AlltoallV => {
                let (member, nth) = place(&receives, nth);
                let before: usize = (0..me).map(|to| count(self, member, to)).sum();
                own(member, before + nth)
            }
        };
        if self.what == ReduceByArrival && me != root {
            // Room, of which nothing is said.
            y.refill(ctx, after);
        }
        y.check(ctx, after, &story);
        x.check(ctx, |nth| own(me, nth), &story);
        Ok(())
    }
}
