//! Groups: whom they have, that they do not wait for each other, and that their room is used again.

use std::time::Duration;

use lpf_collectives::{Collectives, Max, Reduce, Settings, Sum};
use lpf_core::board::{Board, Topic};
use lpf_core::{Context, Lpf, Pid, Result};

use super::calls::{Call, What};
use super::elements::word;
use super::vectors::{Room, SLOTS};
use super::world;
use crate::primitives::board::board;

/// Call number `salt` of a group: another collective each time.
fn any_call<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    c: &mut Collectives<'s>,
    room: &mut Room<'s, u64>,
    salt: usize,
) -> Result<()> {
    let what = What::ALL[salt % What::ALL.len()];
    let (way, len) = (salt / 3 % what.ways(), [2, 1, 11, 40][salt / 5 % 4]);
    let (at, local) = ([salt % 3, 0], [salt & 4 == 4, salt & 8 == 8]);
    Call { what, way, root: salt, len, at, local, salt }.make(ctx, c, room)
}

/// The longest of a member's vectors there.
const MOST: usize = 8 * 40;

/// Asserts that a group is what its members make it.
fn is_of(c: &Collectives<'_>, members: &[Pid], own: Pid) {
    assert_eq!(c.members(), members);
    assert_eq!(c.len(), members.len());
    assert_eq!(members[c.me()], own);
    assert!(!c.is_empty());
}

case! {
    /// Collectives and their groups give their memory back when all processes have dropped them, also while puts of
    /// their last call may not have left.
    pub fn collectives_made_and_dropped_again_and_again_leave_their_memory both_ways [1, 2, 3, 5] |ctx| {
        ctx.resize(4, 0)?;
        let mut first = None;
        for round in 0..10u64 {
            let mut all = Collectives::new(ctx)?;
            let mut half = all.split(ctx, Some(ctx.pid() % 2))?.expect("a colour was named");
            let (x, mut y) = (ctx.local::<u64>(3000)?, ctx.local::<u64>(3000)?);
            all.allreduce(ctx, &Sum, &x, &mut y)?;
            assert_eq!(all.allreduce_value(ctx, &Sum, round)?, round * ctx.nprocs() as u64);
            half.broadcast(ctx, 0, &mut y)?;
            // Half of the processes drop the group last.
            if ctx.pid().is_multiple_of(2) {
                drop(all);
            }
            drop((x, y));
            let most = *first.get_or_insert(ctx.area_bytes());
            assert!(ctx.area_bytes() <= 2 * most, "round {round}: {} bytes", ctx.area_bytes());
        }
        ctx.sync()?;
        ctx.sync()?;
        assert_eq!(ctx.area_bytes(), 0);
    }
}

case! {
    /// Who names the same colour is in one group, in order; who names none is in none.
    pub fn groups_have_the_members_that_named_their_colour both_ways [1, 2, 5, 8] |ctx| {
        let mut c = world(ctx, SLOTS, 0)?;
        let mut room = Room::new(ctx, MOST)?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let colourings: [fn(Pid) -> Option<usize>; 7] = [
            |_| Some(0),
            |pid| Some(pid),
            |pid| Some(usize::MAX - 1 - pid % 2),
            |pid| (pid % 3 != 1).then_some(pid / 3),
            |_| None,
            |pid| (pid == 0).then_some(9),
            |pid| (pid > 0).then_some(7),
        ];
        for (nth, colour) in colourings.into_iter().enumerate() {
            let group = c.split(ctx, colour(me))?;
            assert_eq!(group.is_some(), colour(me).is_some());
            if let Some(mut group) = group {
                let members: Vec<Pid> = (0..p).filter(|&pid| colour(pid) == colour(me)).collect();
                is_of(&group, &members, me);
                for salt in 0..20 {
                    any_call(ctx, &mut group, &mut room, 20 * nth + salt)?;
                }
            }
            any_call(ctx, &mut c, &mut room, nth)?;
        }
        let nowhere = c.strided(ctx, 0, 0, 1).expect_err("one member again and again");
        assert!(nowhere.is_misuse(), "{nowhere}");
        for (first, stride, count) in [(0, 1, 3), (1, 2, 2), (0, 3, 100), (2, 5, 1), (9, 1, 1)] {
            let is_in = |place: usize| {
                (0..count).any(|nth| place == first + nth * stride)
            };
            let group = c.strided(ctx, first, stride, count)?;
            assert_eq!(group.is_some(), is_in(me), "{first}, {stride}, {count}");
            if let Some(mut group) = group {
                let members: Vec<Pid> = (0..p).filter(|&pid| is_in(pid)).collect();
                is_of(&group, &members, me);
                any_call(ctx, &mut group, &mut room, first + 5)?;
            }
        }
        ctx.sync()?;
    }
}

case! {
    /// Halves of halves down to groups of one, all of them in use; a group takes over how its parent works.
    pub fn groups_of_groups_work both_ways [1, 3, 4, 8] |ctx| {
        ctx.resize(SLOTS, 0)?;
        let p = ctx.nprocs();
        let settings = Settings { group_members: 4 * p, cell_bytes: 512, ..Settings::new(p) };
        let mut all = vec![Collectives::with(ctx, settings)?];
        let mut room = Room::new(ctx, MOST)?;
        while let Some(last) = all.last_mut().filter(|last| last.len() > 1) {
            last.preferences_mut().broadcast = Some(lpf_collectives::Broadcast::Binomial);
            let (half, me) = (last.len().div_ceil(2), last.me());
            let members: Vec<Pid> = last.members().to_vec();
            let (lower, upper) = members.split_at(half);
            let mut group = last.split(ctx, Some(usize::from(me >= half)))?.expect("a colour");
            is_of(&group, if me < half { lower } else { upper }, ctx.pid());
            assert_eq!(group.preferences_mut().broadcast, Some(lpf_collectives::Broadcast::Binomial));
            all.push(group);
        }
        for salt in 0..60 {
            for c in &mut all {
                any_call(ctx, c, &mut room, salt)?;
            }
        }
        // From the smallest to the whole, and parents that go before their groups.
        for c in all.iter_mut().rev() {
            let salt = c.len();
            any_call(ctx, c, &mut room, salt)?;
        }
        while all.len() > 1 {
            all.remove(0);
            all.iter_mut().try_for_each(|c| any_call(ctx, c, &mut room, 77))?;
        }
        ctx.sync()?;
    }
}

case! {
    /// Rows and columns of a grid. A member of the first row sleeps: the other rows have done all they do
    /// before it wakes.
    pub fn a_sleeping_member_delays_its_own_group_alone timed [4, 6] |ctx| {
        let mut c = world(ctx, SLOTS, 0)?;
        let mut room = Room::new(ctx, MOST)?;
        let board = board(ctx);
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let mut row = c.split(ctx, Some(me / 2))?.expect("a colour");
        let mut column = c.split(ctx, Some(me % 2))?.expect("a colour");
        ctx.sync()?;
        if me == 0 {
            std::thread::sleep(Duration::from_millis(1500));
            let done = board.read_all(Topic(1))?;
            let late: Vec<Pid> = (2..p).filter(|&pid| done[pid].is_none()).collect();
            assert!(late.is_empty(), "processes {late:?} waited for another row");
        }
        for salt in 0..2 * What::ALL.len() {
            any_call(ctx, &mut row, &mut room, salt)?;
        }
        if me >= 2 {
            board.write(Topic(1), &[])?;
        }
        for salt in 0..What::ALL.len() {
            any_call(ctx, &mut column, &mut room, salt)?;
            any_call(ctx, &mut row, &mut room, salt)?;
        }
        ctx.sync()?;
    }
}

case! {
    /// There is room for one group of all: it has to be given back every time, though some members may still
    /// be in the group before, whose rings the new one's members use.
    pub fn groups_made_and_dropped_again_and_again_leave_their_room both_ways [2, 5, 8] |ctx| {
        ctx.resize(SLOTS, 0)?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let settings =
            Settings { group_members: p, cell_bytes: 512, window: 2, ..Settings::new(p) };
        let mut c = Collectives::with(ctx, settings)?;
        let mut room = Room::new(ctx, MOST)?;
        for round in 0..if p == 8 { 30 } else { 100 } {
            let colour = match round % 4 {
                0 => Some(0),
                1 => Some(me % 2),
                2 => (me + round).is_multiple_of(2).then_some(1),
                _ => Some(me / 2),
            };
            let Some(mut group) = c.split(ctx, colour)? else { continue };
            if word(me, 1, round).is_multiple_of(7) {
                std::thread::sleep(Duration::from_micros(200));
            }
            for salt in 0..round % 3 {
                any_call(ctx, &mut group, &mut room, round + 10 * salt)?;
            }
        }
        any_call(ctx, &mut c, &mut room, 3)?;
        ctx.sync()?;
    }
}

/// Asserts that every member learns that `full` has no room.
fn is_full<T: std::fmt::Debug>(result: Result<T>, full: &[Pid]) {
    let error = result.expect_err("there is no room for it");
    let names = |&pid: &Pid| error.to_string().contains(&format!("process {pid} has no room"));
    assert!(error.is_misuse() && full.iter().any(names), "{error}");
}

case! {
    /// Where one member has no room for a group, all members of the one it was to be a part of learn of it,
    /// whatever they named; those groups that are there go on, and there is room again when one is dropped.
    pub fn a_group_too_many_is_misuse_at_every_member both_ways [4, 5] |ctx| {
        ctx.resize(SLOTS, 0)?;
        let me = ctx.pid();
        let usual = Settings::new(ctx.nprocs());
        let settings = Settings { group_members: 4, cell_bytes: 512, ..usual };
        let mut c = Collectives::with(ctx, settings)?;
        let mut room = Room::new(ctx, MOST)?;
        // Processes 0 and 1 have room for two more members after this, the others for four.
        let mut pair = c.split(ctx, (me < 2).then_some(0))?;
        for round in 0..3 {
            is_full(c.split(ctx, (me < 3).then_some(5)), &[0, 1]);
            is_full(c.split(ctx, Some(usize::from(me > 2))), &[0, 1]);
            any_call(ctx, &mut c, &mut room, round)?;
            pair.iter_mut().try_for_each(|pair| any_call(ctx, pair, &mut room, round))?;
            // What fits can be made, also by those who had room for what could not be.
            let fits = c.split(ctx, Some(me / 2))?;
            if let Some(mut fits) = fits {
                any_call(ctx, &mut fits, &mut room, round + 9)?;
            }
        }
        drop(pair);
        let three = c.split(ctx, (me < 3).then_some(5))?;
        if let Some(mut three) = three {
            assert_eq!(three.allreduce_value(ctx, &Sum, me as u64)?, 3);
        }
        ctx.sync()?;
    }
}

case! {
    /// A group makes as many calls as it likes; members of several are in them in one order, and that is all
    /// that is asked of them.
    pub fn groups_take_turns_in_any_order both_ways [4, 6, 8] |ctx| {
        let mut c = world(ctx, SLOTS, 0)?;
        let mut room = Room::new(ctx, MOST)?;
        let me = ctx.pid();
        let mut row = c.split(ctx, Some(me / 2))?.expect("a colour");
        let mut column = c.split(ctx, Some(me % 2))?.expect("a colour");
        for round in 0..12 {
            for nth in 0..word(me / 2, 4, round) as usize % 4 {
                any_call(ctx, &mut row, &mut room, round + 5 * nth)?;
            }
            for nth in 0..word(me % 2, 5, round) as usize % 4 {
                any_call(ctx, &mut column, &mut room, round + 3 * nth)?;
            }
            if round % 4 == 3 {
                let all = ctx.nprocs() as u64 - 1;
                assert_eq!(c.allreduce_value(ctx, &Max, me as u64)?, all);
            }
        }
        ctx.sync()?;
    }
}

case! {
    /// Two objects of one context number their calls apart: who waits in one for a member that is in the other
    /// waits on.
    pub fn objects_of_one_context_are_told_apart both_ways [3] |ctx| {
        ctx.resize(SLOTS, 0)?;
        let (mut first, mut second) = (Collectives::new(ctx)?, Collectives::new(ctx)?);
        first.preferences_mut().reduce = Some(Reduce::Direct);
        let (x, mut y) = (ctx.local::<u32>(1)?, ctx.local::<u32>(1)?);
        for _ in 0..10 {
            first.allreduce_value(ctx, &Sum, 1u32)?;
        }
        if ctx.pid() == 2 {
            std::thread::sleep(Duration::from_millis(700));
        }
        // Member 1 waits for member 2 here, and member 0 for member 1 behind it.
        first.reduce(ctx, 1, &Sum, &x, &mut y)?;
        let me = ctx.pid();
        assert_eq!(second.broadcast_value(ctx, 1, me)?, 1);
        ctx.sync()?;
    }
}
