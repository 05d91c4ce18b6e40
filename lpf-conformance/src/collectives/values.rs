//! What collectives give: every one, in every algorithm, of every length.

use std::time::Duration;

use lpf_collectives::{Alltoall, Collectives, Settings, Sum};
use lpf_core::{Args, Context, Lpf, Pid, Result};

use super::calls::{Call, What};
use super::elements::Element;
use super::vectors::{Room, SLOTS};
use super::{tight, world};
use crate::runner::{beside_others, everywhere, section};
use crate::{Harness, Mode, Pace};

/// Every collective in every algorithm with each of these lengths; every root where there are few elements.
fn all<'s, L: Lpf, T: Element>(
    ctx: &mut Context<'s, L>,
    c: &mut Collectives<'s>,
    lens: impl Fn(What) -> Vec<usize>,
) -> Result<()> {
    let q = c.len();
    let calls = |what: What| lens(what).into_iter().map(move |len| (what, len));
    let calls: Vec<(What, usize)> = What::ALL.into_iter().flat_map(calls).collect();
    let one = |&(what, len): &(What, usize)| if what.has_blocks() { q * len } else { len };
    // The longest of them is the whole of its memory.
    let most = calls.iter().map(one).max().unwrap_or(0).max(2);
    let mut room = Room::<T>::new(ctx, most)?;
    let mut salt = 0;
    for (what, len) in calls {
        for way in 0..what.ways() {
            let roots = if what.has_root() && (1..=2).contains(&len) { q } else { 1 };
            for _ in 0..roots {
                salt += 1;
                let call = Call {
                    what,
                    way,
                    root: salt,
                    len,
                    at: [salt % 4, salt / 4 % 5],
                    local: [salt & 1 == 1, salt & 2 == 2],
                    salt,
                };
                call.make(ctx, c, &mut room)?;
            }
        }
    }
    let Room { x, y } = room;
    x.into_iter().chain(y).try_for_each(|vector| vector.deregister(ctx))?;
    ctx.sync()
}

/// Lengths around the number of members, and one on its own.
fn around(q: usize) -> Vec<usize> {
    let mut lens = vec![0, 1, 2, q.saturating_sub(1), q, q + 1, 13];
    lens.sort_unstable();
    lens.dedup();
    lens
}

fn everything<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    let mut c = world(ctx, SLOTS, 0)?;
    let q = c.len();
    all::<_, u64>(ctx, &mut c, |_| around(q))?;
    // Beyond what goes through a cell.
    all::<_, u64>(ctx, &mut c, |_| vec![601])
}

/// All numbers of processes that there are, in the plain and in the checked mode.
pub fn every_algorithm_of_every_collective_gives_what_a_sequential_program_gives<H: Harness>(
    harness: &H,
) {
    let case = "every_algorithm_of_every_collective_gives_what_a_sequential_program_gives";
    let procs: Vec<Pid> = (1..=harness.procs()).collect();
    match harness.pace() {
        Pace::Threads | Pace::Model => everywhere(harness, case, &procs, everything),
        Pace::Processes | Pace::Hosts => {
            for &procs in &procs {
                // What is checked has nothing to do with how many they are.
                let check = procs == 3;
                let mode = Mode { check, ..Mode::default() };
                beside_others(|| section(harness, case, mode, procs, everything, Args::none()));
            }
        }
    }
}

case! {
    /// Cells of two cache lines and a kibibyte of scratch: parts of messages, pieces of vectors, and
    /// algorithms that give way to others where their scratch is too small.
    pub fn vectors_longer_than_cells_and_scratch_go_in_pieces both_ways [2, 3, 5, 8] |ctx| {
        ctx.resize(SLOTS, 0)?;
        let settings = tight(ctx.nprocs());
        let mut c = Collectives::with(ctx, settings)?;
        all::<_, u64>(ctx, &mut c, |_| vec![16, 17, 97, 401])?;
        all::<_, [u32; 3]>(ctx, &mut c, |_| vec![11, 211])?;
        // Pieces that are longer than a cell: more of them land on a link than its window lets be offered.
        let mut c = Collectives::with(ctx, Settings { scratch_bytes: 16 << 10, ..settings })?;
        all::<_, u64>(ctx, &mut c, |_| vec![1501])?;
    }
}

case! {
    /// Elements of 1, 2, 4, 8, 16, 12 and 24 bytes and of none, commuting and not.
    pub fn elements_of_every_size_arrive_whole both_ways [1, 3, 4] |ctx| {
        ctx.resize(SLOTS, 0)?;
        let settings = tight(ctx.nprocs());
        let mut c = Collectives::with(ctx, settings)?;
        let lens = |_| vec![1, 5, 37];
        all::<_, u8>(ctx, &mut c, lens)?;
        all::<_, u16>(ctx, &mut c, lens)?;
        all::<_, u32>(ctx, &mut c, lens)?;
        all::<_, u128>(ctx, &mut c, lens)?;
        all::<_, [u64; 2]>(ctx, &mut c, lens)?;
        all::<_, [u32; 3]>(ctx, &mut c, lens)?;
        all::<_, [f64; 3]>(ctx, &mut c, lens)?;
        all::<_, [u64; 0]>(ctx, &mut c, lens)?;
    }
}

fn mebibytes<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    let mut c = world(ctx, SLOTS, 0)?;
    let q = c.len();
    let whole = (1 << 20) / size_of::<u64>();
    all::<_, u64>(ctx, &mut c, |what| {
        vec![if what.has_blocks() { whole.div_ceil(q) } else { whole }]
    })
}

/// Vectors of a mebibyte in all, which is no multiple of three members' blocks.
pub fn a_mebibyte_arrives_whole<H: Harness>(harness: &H) {
    for procs in [2, 3] {
        let case = "a_mebibyte_arrives_whole";
        let mode = Mode::default();
        beside_others(|| section(harness, case, mode, procs, mebibytes, Args::none()));
    }
}

case! {
    /// Blocks that wait for a member that sleeps, while the next round's come from a member that is not late: they are
    /// not stored where blocks still have to leave. (Among six members rounds of Bruck's algorithm have other lengths, so
    /// that their places overlap.)
    pub fn what_has_not_left_is_not_overwritten timed [6] |ctx| {
        const BLOCK: usize = 5000;
        let mut c = world(ctx, 2, 0)?;
        c.preferences_mut().alltoall = Some(Alltoall::Bruck);
        let (q, me) = (c.len(), c.me());
        let (mut x, mut y) = (ctx.local::<u64>(q * BLOCK)?, ctx.local::<u64>(q * BLOCK)?);
        let element = |from: usize, to: usize, nth: usize| (from << 40 | to << 20 | nth) as u64;
        for (at, x) in ctx.write(&mut x).iter_mut().enumerate() {
            *x = element(me, at / BLOCK, at % BLOCK);
        }
        for late in 0..q {
            c.allreduce_value(ctx, &Sum, 1u32)?;
            if me == late {
                std::thread::sleep(Duration::from_millis(50));
            }
            ctx.write(&mut y).fill(0);
            c.alltoall(ctx, &x, &mut y)?;
            let wrong = |(at, y): (usize, &u64)| *y != element(at / BLOCK, me, at % BLOCK);
            assert!(!ctx.read(&y).iter().enumerate().any(wrong), "member {late} was late");
        }
    }
}

case! {
    /// `..`, `a..`, `..b`, `a..=b` and ranges that begin behind their bound, of both handles.
    pub fn handles_and_ranges_name_the_same_elements both_ways [1, 2, 3] |ctx| {
        use std::ops::Bound::{Excluded, Included};
        let mut c = world(ctx, 4, 0)?;
        let (mut x, mut y) = (ctx.area::<usize>(12)?, ctx.local::<usize>(12)?);
        ctx.sync()?;
        let (p, own) = (c.len(), ctx.pid());
        // The sum of 3..9 of one handle in 2..8 of the other; anything else stays as it is.
        macro_rules! sums {
            ($($from:expr, $to:expr;)*) => {$(
                fill(ctx.write(&mut x), own);
                ctx.write(&mut y).fill(7);
                c.allreduce(ctx, &Sum, (&x, $from), (&mut y, $to))?;
                is_sum(ctx.read(&y), p, 2..8, &[7; 12]);
                // The other way.
                fill(ctx.write(&mut y), own);
                ctx.write(&mut x).fill(7);
                c.allreduce(ctx, &Sum, (&y, $from), (&mut x, $to))?;
                is_sum(ctx.read(&x), p, 2..8, &[7; 12]);
            )*};
        }
        sums! {
            3..9, 2..8;
            3..=8, 2..=7;
            (Excluded(2), Excluded(9)), (Excluded(1), Included(7));
        }
        let whole: Vec<usize> = (0..12).map(|at| p * 100 * at + p * (p - 1) / 2).collect();
        for (to_local, open) in [(false, false), (false, true), (true, false), (true, true)] {
            fill(ctx.write(&mut x), own);
            fill(ctx.write(&mut y), own);
            match (to_local, open) {
                (false, false) => c.allreduce(ctx, &Sum, &y, &mut x)?,
                (false, true) => c.allreduce(ctx, &Sum, (&y, ..12), (&mut x, 0..))?,
                (true, false) => c.allreduce(ctx, &Sum, &x, &mut y)?,
                (true, true) => c.allreduce(ctx, &Sum, (&x, 0..), (&mut y, ..))?,
            }
            assert_eq!(if to_local { ctx.read(&y) } else { ctx.read(&x) }, whole);
        }
        // In place.
        fill(ctx.write(&mut x), own);
        let before = ctx.read(&x).to_vec();
        c.allreduce_in_place(ctx, &Sum, (&mut x, 5..7))?;
        assert_eq!(ctx.read(&x)[5..7], whole[5..7]);
        assert_eq!((&ctx.read(&x)[..5], &ctx.read(&x)[7..]), (&before[..5], &before[7..]));
        let root = c.len() - 1;
        fill(ctx.write(&mut y), own);
        c.broadcast(ctx, root, (&mut y, ..4))?;
        for (at, &got) in (0..).zip(ctx.read(&y)) {
            assert_eq!(got, 100 * at + if at < 4 { p - 1 } else { own });
        }
    }
}

fn fill(x: &mut [usize], own: Pid) {
    x.iter_mut().zip(0..).for_each(|(x, at)| *x = 100 * at + own);
}

/// Asserts that a range holds the sums of what is one element further on, and that the rest is as before.
fn is_sum(y: &[usize], p: Pid, range: std::ops::Range<usize>, before: &[usize]) {
    for (at, &got) in y.iter().enumerate() {
        let sum = p * 100 * (at + 1) + p * (p - 1) / 2;
        assert_eq!(got, if range.contains(&at) { sum } else { before[at] }, "element {at}");
    }
}

case! {
    /// The least and the greatest window and cell, and several objects of one context side by side.
    pub fn settings_of_every_size_do both_ways [2, 3] |ctx| {
        ctx.resize(SLOTS, 0)?;
        let mut all = Vec::new();
        for (cell_bytes, window, scratch_bytes) in
            [(64, 2, 0), (100, 3, 100), (4096, 64, 1 << 12), (1 << 16, 5, 1 << 16)]
        {
            let settings = Settings { cell_bytes, window, scratch_bytes, group_members: 4 };
            all.push(Collectives::with(ctx, settings)?);
        }
        let mut room = Room::<u64>::new(ctx, 900)?;
        for salt in 0..400 {
            let what = What::ALL[salt % What::ALL.len()];
            let c = &mut all[salt / 3 % 4];
            let len = [3, 8, 70, 290][salt / 17 % 4];
            let way = salt / 29 % what.ways();
            let (at, local) = ([0, salt % 7], [salt & 1 == 0, salt & 2 == 0]);
            Call { what, way, root: salt, len, at, local, salt }.make(ctx, c, &mut room)?;
        }
    }
}
