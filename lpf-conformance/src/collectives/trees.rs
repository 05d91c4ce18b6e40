//! Trees that grow as members come: what they give, that they can be repeated to the bit, and what becomes of members
//! that do something else.

use std::time::{Duration, Instant};

use lpf_collectives::arbiter::Arbiter;
use lpf_collectives::arrival_pattern::pairing::{Growth, Pairing};
use lpf_collectives::monitor::Monitor;
use lpf_collectives::*;
use lpf_core::{Args, Cause, Context, Lpf, Result};

use super::elements::{Element, word};
use super::mismatches::differ;
use super::world;
use crate::runner::{alone, watched};
use crate::verdict::{BOUND, assert_in_time, failing_rehook};
use crate::{Harness, Mode as Section};

const GROWTHS: [Growth; 2] = [Growth::Any, Growth::Neighbours];

fn pause(member: usize, call: usize) {
    let word = word(member, 12, call);
    if word.is_multiple_of(3) {
        std::thread::sleep(Duration::from_micros(word >> 20 & 0x3ff));
    }
}

fn arbiters<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    c: &mut Collectives<'s>,
) -> Result<[Arbiter<'s, L>; 2]> {
    Ok([Arbiter::new(ctx, c, GROWTHS[0])?, Arbiter::new(ctx, c, GROWTHS[1])?])
}

/// One reduction of a group, after which its root knows the tree.
fn reduce<'s, L: Lpf, T: Element>(
    ctx: &mut Context<'s, L>,
    c: &mut Collectives<'s>,
    arbiters: &mut [Arbiter<'s, L>; 2],
    (call, len): (usize, usize),
) -> Result<()> {
    let (me, q) = (c.me(), c.len());
    let (mut x, mut y) = (ctx.local::<T>(len)?, ctx.local::<T>(len)?);
    let own = |member: usize, nth: usize| T::of(word(member, call, nth));
    ctx.write(&mut x).iter_mut().enumerate().for_each(|(nth, x)| *x = own(me, nth));
    let op = T::Op::default();
    // An operator that does not commute has neighbours alone.
    let grows = if op.commutes() { call / 2 % 2 } else { 1 };
    let root = call % q;
    pause(me, call);
    let tree = c.reduce_as_they_come(ctx, &mut arbiters[grows], root, &op, &x, &mut y)?;
    assert_eq!(tree.is_some(), me == root, "the root is told the tree, and nobody else");
    if me == root {
        for nth in 0..len {
            let all = (0..q).map(|member| own(member, nth));
            let all = all.reduce(|a, b| op.combine(a, b)).expect("a group has members");
            assert!(ctx.read(&y)[nth] == all, "call {call}, element {nth} of {len}, {tree:?}");
        }
    }
    for local in [x, y] {
        ctx.deregister(local)?;
    }
    Ok(())
}

case! {
    /// Sums, and maps, which do not commute; of all lengths, to every root, by both ways to grow, of the whole and of a
    /// part, by members that come at any time.
    pub fn trees_that_grow_give_what_a_sequential_program_gives both_ways [1, 2, 3, 5, 8] |ctx| {
        let mut c = world(ctx, 2, 0)?;
        let mut part = c.split(ctx, Some(usize::from(c.me() % 3 == 1)))?.expect("a colour");
        let mut both = [arbiters(ctx, &mut c)?, arbiters(ctx, &mut part)?];
        for call in 0..24 {
            let len = [1, 7, 300, 6000, 0][call % 5];
            reduce::<_, u64>(ctx, &mut c, &mut both[0], (call, len))?;
            reduce::<_, [u64; 2]>(ctx, &mut part, &mut both[1], (call, len / 3))?;
            reduce::<_, [u64; 2]>(ctx, &mut c, &mut both[0], (call + 1, len / 2))?;
            if ctx.nprocs() > 2 && call % 4 == 3 {
                c.preferences_mut().mode = if call % 8 == 3 { Some(Mode::Full) } else { None };
            }
        }
        ctx.sync()?;
    }
}

case! {
    /// Sums of floating-point numbers: with the tree that the root was told they come out as before, in both modes.
    pub fn a_tree_is_repeated_to_the_bit both_ways [1, 2, 3, 5, 8] |ctx| {
        const LEN: usize = 33;
        let mut c = world(ctx, 3, 0)?;
        let (me, q) = (c.me(), c.len());
        let (mut x, mut y) = (ctx.local::<f64>(LEN)?, ctx.local::<f64>(LEN)?);
        let number = |nth: usize| {
            let word = word(me, 13, nth);
            (1.0 + (word >> 12) as f64) * 2f64.powi((word & 31) as i32) * if word & 64 == 0 { -1.0 } else { 1.0 }
        };
        ctx.write(&mut x).iter_mut().enumerate().for_each(|(nth, x)| *x = number(nth));
        let mut both = arbiters(ctx, &mut c)?;
        let mut seen: Vec<Vec<u64>> = Vec::new();
        for call in 0..16 {
            let growth = GROWTHS[call % 2];
            pause(me, call);
            c.preferences_mut().mode = None;
            let root = call / 4 % q;
            let arbiter = &mut both[call % 2];
            let tree = c.reduce_as_they_come(ctx, arbiter, root, &Sum, &x, &mut y)?;
            let bits: Vec<u64> = ctx.read(&y).iter().map(|y| y.to_bits()).collect();
            // Every member has to know the tree.
            let mut pairs = vec![[0; 2]; q - 1];
            if let Some(tree) = &tree {
                pairs.copy_from_slice(tree.pairs());
            }
            for pair in &mut pairs {
                *pair = c.broadcast_value(ctx, root, *pair)?;
            }
            let all = Pairing::new(growth, q, root, pairs).expect("a tree");
            for mode in [Mode::Full, Mode::Expected] {
                c.preferences_mut().mode = Some(mode);
                ctx.write(&mut y).fill(0.0);
                c.reduce_by_pairing(ctx, &all, &Sum, &x, &mut y)?;
                if me == root {
                    let again: Vec<u64> = ctx.read(&y).iter().map(|y| y.to_bits()).collect();
                    assert_eq!(again, bits, "{all:?}, {mode:?}");
                }
            }
            if me == root {
                seen.push(bits);
            }
        }
        ctx.sync()?;
    }
}

case! {
    /// A member sleeps for a second while the others are there, to every root: the sleeper, and others.
    pub fn a_tree_waits_for_who_sleeps timed [2, 4] |ctx| {
        let mut c = world(ctx, 2, 0)?;
        let mut both = arbiters(ctx, &mut c)?;
        for call in 0..4 {
            if c.me() == 1 && call < 2 {
                std::thread::sleep(Duration::from_secs(1));
            }
            reduce::<_, u64>(ctx, &mut c, &mut both, (call, 50))?;
        }
        // Not from one call into the next: those who have given all they have are there before.
        ctx.sync()?;
    }
}

case! {
    /// Members run ahead of each other: hundreds of calls without a sync, to one root, and to all by turns.
    pub fn hundreds_of_trees_back_to_back both_ways [2, 3, 5] |ctx| {
        let mut c = world(ctx, 2, 0)?;
        let mut both = arbiters(ctx, &mut c)?;
        for call in 0..150 {
            let salt = if call < 75 { 4 * c.len() * call } else { call };
            reduce::<_, u64>(ctx, &mut c, &mut both, (salt, 3))?;
        }
        ctx.sync()?;
    }
}

case! {
    /// Process 1 makes no call; or its arbiter is gone, and it the root.
    pub fn members_that_are_in_no_tree_are_fatal_and_named timed [2, 3] |ctx| {
        for is_root in [false, true] {
            let start = Instant::now();
            differ(ctx, |inner, c| {
                let mut arbiter = Some(Arbiter::new(inner, c, Growth::Any)?);
                let (x, mut y) = (inner.local::<u64>(9)?, inner.local::<u64>(9)?);
                if c.me() == 1 {
                    drop(arbiter.take().filter(|_| is_root));
                    return inner.sync();
                }
                let arbiter = arbiter.as_mut().expect("it is there");
                c.reduce_as_they_come(inner, arbiter, usize::from(is_root), &Sum, &x, &mut y).map(|_| ())
            });
            assert_in_time(start.elapsed(), 2 * BOUND);
        }
    }
}

case! {
    /// Process 1 makes the call once more than the others, or a scan in its place. The others wait for it in the
    /// call, or have gone on to a full sync.
    pub fn a_member_that_calls_twice_or_something_else_is_fatal_and_named timed [2, 3, 4] |ctx| {
        for (root, twice) in [(0, true), (1, true), (0, false), (1, false)] {
            let start = Instant::now();
            differ(ctx, |inner, c| {
                let mut arbiter = Arbiter::new(inner, c, Growth::Any)?;
                let (x, mut y) = (inner.local::<u64>(9)?, inner.local::<u64>(9)?);
                if c.me() == 1 && !twice {
                    return c.scan(inner, &Sum, &x, &mut y);
                }
                c.reduce_as_they_come(inner, &mut arbiter, root, &Sum, &x, &mut y)?;
                if c.me() == 1 {
                    c.reduce_as_they_come(inner, &mut arbiter, root, &Sum, &x, &mut y)?;
                }
                inner.sync()
            });
            assert_in_time(start.elapsed(), 2 * BOUND);
        }
    }
}

/// The time limit of [`grows_without_the_last`].
const LIMIT: Duration = Duration::from_secs(1);

/// The last member computes for longer than the time limit; the others, the root among them, are in the call.
fn grows_without_the_last<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    let mut c = world(ctx, 4, 0)?;
    let mut arbiter = Arbiter::new(ctx, &mut c, Growth::Any)?;
    let (x, mut y) = (ctx.local::<u64>(9)?, ctx.local::<u64>(9)?);
    ctx.sync()?;
    if c.me() + 1 == c.len() {
        std::thread::sleep(3 * LIMIT);
    }
    c.reduce_as_they_come(ctx, &mut arbiter, 0, &Sum, &x, &mut y)?;
    ctx.sync()
}

/// A member that does not come to a tree within the time limit is named, and not the root that waits for it.
pub fn the_time_limit_names_the_member_that_does_not_come_to_a_tree<H: Harness>(harness: &H) {
    let case = "the_time_limit_names_the_member_that_does_not_come_to_a_tree";
    let limited = Section { timeout: Some(LIMIT), ..Section::default() };
    for procs in [2, 3, 5] {
        let run = || {
            let run = || harness.exec(limited, procs, grows_without_the_last, Args::none());
            watched(case, run).expect_err("the last member is late")
        };
        alone(|| {
            // On a busy machine a process may be late when it begins: then it is named.
            let mut errors = std::iter::repeat_with(run).take(5);
            let error = errors.find(|error| error.superstep() >= Some(3));
            let error = error.expect("the processes begin within the limit");
            assert!(matches!(error.cause(), Cause::Late { .. }), "{error}");
            assert_eq!(error.process(), Some(procs - 1), "{error}");
        });
    }
}

/// Dropped after the arbiter, and some time before its section learns why.
struct Lingers;

impl Drop for Lingers {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_millis(100));
    }
}

case! {
    /// Process 0, the root, returns an error or panics while its arbiter lives and the others wait for pairs: they
    /// learn of that, and not of the arbiter's end.
    pub fn the_error_or_panic_that_drops_an_arbiter_is_what_others_learn timed [2, 3] |ctx| {
        for (monitors, panics) in [(false, false), (false, true), (true, false), (true, true)] {
            let (_, error) = failing_rehook(ctx, |inner| {
                let mut c = world(inner, 4, 0)?;
                let _lingers = Lingers;
                let mut arbiter = Arbiter::new(inner, &mut c, Growth::Any)?;
                let mut monitor = Monitor::new(inner, &mut c)?;
                let (x, mut y) = (inner.local::<u64>(9)?, inner.local::<u64>(9)?);
                if c.me() == 0 {
                    // The others come to their wait.
                    std::thread::sleep(Duration::from_millis(30));
                    if panics {
                        // Unlike `panic!` this prints nothing.
                        std::panic::resume_unwind(Box::new("the matrix is empty"));
                    }
                    return Err(lpf_core::Error::program("the matrix is empty"));
                }
                if monitors {
                    monitor.finish(inner)?;
                }
                c.reduce_as_they_come(inner, &mut arbiter, 0, &Sum, &x, &mut y).map(|_| ())
            });
            let text = error.to_string();
            assert!(text.contains("the matrix is empty"), "{text}");
        }
    }
}

case! {
    /// Process 1 takes another arbiter, or has made it for another growth, or has another root, length or operator, or
    /// makes an ordinary reduction: what differs is said, and of whom.
    pub fn what_differs_in_a_tree_is_said timed [2, 3] |ctx| {
        let said = [
            "take different arbiters",
            "take different arbiters",
            "reduce to different roots, members ",
            "reduce 72 and 64 bytes",
            "have different operators or element types",
            "has not taken part",
        ];
        for (how, words) in said.into_iter().enumerate() {
            let start = Instant::now();
            let text = differ(ctx, |inner, c| {
                let other = |one: usize| usize::from(c.me() == 1 && how == one);
                let (taken, grows, root, len) = (other(0), other(1), other(2), 9 - other(3));
                let (maximum, ordinary) = (other(4) == 1, other(5) == 1);
                let mut new = || Arbiter::new(inner, c, GROWTHS[grows]);
                let arbiter = &mut [new()?, new()?][taken];
                let (x, mut y) = (inner.local::<u64>(len)?, inner.local::<u64>(len)?);
                match (ordinary, maximum) {
                    (true, _) => return c.reduce(inner, root, &Sum, &x, &mut y),
                    (_, true) => c.reduce_as_they_come(inner, arbiter, root, &Max, &x, &mut y),
                    (_, false) => c.reduce_as_they_come(inner, arbiter, root, &Sum, &x, &mut y),
                }
                .map(|_| ())
            });
            // Of three the first two that differ are named, in the order in which they came.
            let said = text.contains(words) || text.contains(&words.replace("72 and 64", "64 and 72"));
            // Process 1 may still be in its ordinary reduction, or past it.
            let said = said || how == 5 && text.contains("call 3 (reduce)");
            assert!(said && text.contains("(reduce_as_they_come"), "{text}");
            // A third one may have been told first.
            assert!(ctx.nprocs() > 2 || text.contains("trees.rs:"), "{text}");
            assert_in_time(start.elapsed(), 2 * BOUND);
        }
    }
}

case! {
    /// An arbiter of another group, also of the same members, targets that are too short, trees of other groups and of no neighbours.
    pub fn misuse_of_trees_is_found_at_the_call both_ways [2, 3] |ctx| {
        let mut c = world(ctx, 4, 0)?;
        let q = c.len();
        let mut alone = c.split(ctx, Some(c.me()))?.expect("a colour");
        let any = Growth::Any;
        let mut arbiters = [Arbiter::new(ctx, &mut c, any)?, Arbiter::new(ctx, &mut alone, any)?];
        let (x, mut y) = (ctx.local::<u64>(4)?, ctx.local::<u64>(4)?);
        let (maps, mut to) = (ctx.local::<[u64; 2]>(4)?, ctx.local::<[u64; 2]>(4)?);
        let refused = |error: Option<lpf_core::Error>, words: &str| {
            let text = error.as_ref().expect(words).to_string();
            assert!(error.is_some_and(|error| error.is_misuse()) && text.contains(words), "{text}");
        };
        let mut same = c.split(ctx, Some(0))?.expect("a colour");
        let error = c.reduce_as_they_come(ctx, &mut arbiters[1], 0, &Sum, &x, &mut y).err();
        refused(error, "the arbiter was made for another group");
        let error = same.reduce_as_they_come(ctx, &mut arbiters[0], 0, &Sum, &x, &mut y).err();
        refused(error, "the arbiter was made for another group");
        let error = c.reduce_as_they_come(ctx, &mut arbiters[0], q, &Sum, &x, &mut y).err();
        refused(error, "was named as the root");
        let short = (&mut y, ..3);
        let error = c.reduce_as_they_come(ctx, &mut arbiters[0], 0, &Sum, &x, short).err();
        refused(error, "where this call needs exactly 4");
        let star = (1..=q).map(|member| [member, 0]).collect();
        let large = Pairing::new(any, q + 1, 0, star).expect("a star");
        refused(c.reduce_by_pairing(ctx, &large, &Sum, &x, &mut y).err(), "members");
        let star = (1..q).map(|member| [member, 0]).collect();
        let star = Pairing::new(any, q, 0, star).expect("a star");
        let op = <[u64; 2] as Element>::Op::default();
        refused(c.reduce_by_pairing(ctx, &star, &op, &maps, &mut to).err(), "neighbours");
        let error = c.reduce_as_they_come(ctx, &mut arbiters[0], 0, &op, &maps, &mut to).err();
        refused(error, "neighbours");
        c.reduce_by_pairing(ctx, &star, &Sum, &x, &mut y)?;
        c.reduce_as_they_come(ctx, &mut arbiters[0], 0, &Sum, &x, &mut y)?;
        ctx.sync()?;
    }
}
