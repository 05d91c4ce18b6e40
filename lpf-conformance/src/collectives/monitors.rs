//! The arrival monitor: predictions, the agreement of members on them, and the others' calls if a member has gone.

use std::time::{Duration, Instant};

use lpf_collectives::arrival_pattern::Estimates;
use lpf_collectives::monitor::{Estimator, Exponential, LastValue, Monitor, MovingAverage};
use lpf_collectives::*;
use lpf_core::board::{Board, Topic};
use lpf_core::{Context, Error, Lpf, Result};

use super::elements::word;
use super::mismatches::differ;
use super::world;
use crate::verdict::{
    BOUND, LATE, allowed, assert_fatal_naming, assert_in_time, failing_rehook, sync_until_fatal,
};

/// Compares what all members have been told.
fn is_agreed<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    c: &mut Collectives<'s>,
    arrivals: &Estimates,
) -> Result<()> {
    let fold = |sum, &time: &u64| word(sum as usize, 1, time as usize);
    let own = arrivals.times_ns().iter().fold(arrivals.grain_ns(), fold);
    for member in 0..c.len() {
        let theirs = c.broadcast_value(ctx, member, own)?;
        assert_eq!(theirs, own, "member {member} was told something else than {arrivals:?}");
    }
    Ok(())
}

fn late(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// The unit of phases that are to be predicted, in milliseconds, the same for all members: 10 on a machine with a
/// core for each thread, and at most 50.
fn unit<'s, L: Lpf>(ctx: &mut Context<'s, L>, c: &mut Collectives<'s>) -> Result<u64> {
    let own = allowed(Duration::from_millis(10)).as_millis() as u64;
    c.broadcast_value(ctx, 0, own.min(50))
}

case! {
    /// Phases of two units, and of eight at the last member: with an edge the first one is predicted, too.
    pub fn late_members_are_predicted timed [2, 3] |ctx| {
        let mut c = world(ctx, 1, 0)?;
        let estimators: [fn() -> Box<dyn Estimator>; 3] = [
            || Box::new(LastValue::default()),
            || Box::new(MovingAverage::default()),
            || Box::new(Exponential::new(0.3)),
        ];
        let mut x = ctx.local::<u64>(50)?;
        let last = c.len() - 1;
        let unit = unit(ctx, &mut c)?;
        let ms = if c.me() == last { 8 * unit } else { 2 * unit };
        for (estimator, has_edge) in estimators.into_iter().flat_map(|of| [(of, true), (of, false)]) {
            let mut monitor = Monitor::with(ctx, &mut c, estimator)?;
            let mut predicted = 0;
            for phase in 0..6 {
                monitor.begin();
                late(ms / 10);
                if has_edge {
                    monitor.edge(0.1);
                }
                late(ms * 9 / 10);
                let arrivals = monitor.finish(ctx)?;
                is_agreed(ctx, &mut c, &arrivals)?;
                // A machine may be so busy that some phase comes out otherwise, but not most of them.
                let spread = arrivals.spread_ns();
                let is_right = arrivals.times_ns()[last] == spread && spread / 1_000_000 > 3 * unit;
                predicted += usize::from(is_right);
                assert!(has_edge || phase > 0 || spread == 0, "nothing was known of phase {phase}");
                ctx.write(&mut x).fill(1);
                c.allreduce_in_place_by_arrival(ctx, &arrivals, &Sum, &mut x)?;
                assert_eq!(ctx.read(&x), [last as u64 + 1; 50]);
            }
            assert!(predicted >= 3, "{LATE}: edge {has_edge}: {predicted} of 6 phases were predicted");
        }
        ctx.sync()?;
    }
}

case! {
    /// Phases without a beginning, and with one or two, edges that are none, members that are late, two monitors by turns, and
    /// one of a part of them; reductions to a root, after which members run ahead. All members are told the same.
    pub fn members_are_told_the_same_whatever_they_do both_ways [1, 2, 3, 5] |ctx| {
        let mut c = world(ctx, 2, 0)?;
        let me = c.me();
        let mut half = c.split(ctx, Some(me % 2))?.expect("a colour");
        let mut monitors = [Monitor::new(ctx, &mut c)?, Monitor::new(ctx, &mut c)?];
        let mut part = Monitor::new(ctx, &mut half)?;
        let (x, mut y) = (ctx.local::<u64>(3)?, ctx.local::<u64>(3)?);
        let mut told = Vec::new();
        for phase in 0..60 {
            let choice = word(me, 9, phase);
            let monitor = &mut monitors[phase / 3 % 2];
            for _ in 0..choice % 3 {
                monitor.begin();
            }
            if choice & 6 == 0 {
                late(choice >> 40 & 3);
            }
            if choice & 8 == 0 {
                for none in [0.0, -1.0, 1.1, f64::NAN, f64::INFINITY] {
                    monitor.edge(none);
                }
                monitor.edge(0.5);
            }
            let arrivals = monitor.finish(ctx)?;
            c.reduce_by_arrival(ctx, &arrivals, phase % c.len(), &Sum, &x, &mut y)?;
            told.push(arrivals);
            if phase % 5 == 0 {
                part.begin();
                part.edge(0.9);
                let arrivals = part.finish(ctx)?;
                half.allreduce_in_place_by_arrival(ctx, &arrivals, &Sum, &mut y)?;
                is_agreed(ctx, &mut half, &arrivals)?;
            }
        }
        for arrivals in &told {
            assert_eq!(arrivals.times_ns().len(), c.len());
            is_agreed(ctx, &mut c, arrivals)?;
        }
        ctx.sync()?;
    }
}

case! {
    /// A member says nothing in its first phase, and is half a second late: the others, who come meanwhile, are told
    /// at once that nobody knows, and so is it.
    pub fn who_has_said_nothing_is_waited_for_by_nobody timed [2, 3] |ctx| {
        let mut c = world(ctx, 1, 0)?;
        let mut x = ctx.local::<u64>(20)?;
        for silent in 0..c.len() {
            let mut monitor = Monitor::new(ctx, &mut c)?;
            let start = Instant::now();
            monitor.begin();
            if c.me() == silent {
                late(500);
            } else {
                monitor.edge(0.5);
            }
            let arrivals = monitor.finish(ctx)?;
            if c.me() != silent {
                assert_in_time(start.elapsed(), Duration::from_millis(250));
                assert_eq!(arrivals.spread_ns(), 0, "somebody knew when process {silent} comes");
            }
            ctx.write(&mut x).fill(1);
            c.allreduce_in_place_by_arrival(ctx, &arrivals, &Sum, &mut x)?;
            assert_eq!(ctx.read(&x), [c.len() as u64; 20]);
            is_agreed(ctx, &mut c, &arrivals)?;
        }
        ctx.sync()?;
    }
}

case! {
    /// What a member has said comes again: in the phase that it is of, and in the next one, before the word of that;
    /// or no word comes. Each phase has another member late: members are told the same, and most phases are predicted.
    pub fn words_that_come_again_say_nothing_new timed [2, 3] |ctx| {
        let mut c = world(ctx, 1, 0)?;
        let (board, me) = (ctx.raw().board(), ctx.pid());
        let unit = unit(ctx, &mut c)?;
        let mut monitor = Monitor::new(ctx, &mut c)?;
        let mut said = None;
        let again = |said: Option<Topic>| -> Result<()> {
            let Some(said) = said else { return Ok(()) };
            match board.read(me, said)? {
                Some(record) => board.write(said, &record.bytes),
                None => Ok(()),
            }
        };
        let mut predicted = 0;
        for phase in 0..9 {
            let is_late = phase % c.len();
            let ms = if c.me() == is_late { 8 * unit } else { 2 * unit };
            monitor.begin();
            again(said)?;
            if let Some(said) = said.filter(|_| phase % 2 == 0) {
                board.write(said, &[1, 2, 3])?;
            }
            late(ms / 10);
            monitor.edge(0.1);
            late(ms / 2);
            again(said)?;
            again(said)?;
            late(ms - ms / 10 - ms / 2);
            let arrivals = monitor.finish(ctx)?;
            is_agreed(ctx, &mut c, &arrivals)?;
            said = Some(monitor.said());
            let spread = arrivals.spread_ns();
            let is_right = arrivals.times_ns()[is_late] == spread && spread / 1_000_000 > 3 * unit;
            predicted += usize::from(is_right);
        }
        // As above, a machine may be busy.
        assert!(predicted >= 5, "{LATE}: {predicted} of 9 phases were predicted");
        ctx.sync()?;
    }
}

case! {
    /// From the middle of a phase on one member has no monitor, or does not use it any more, while the others are at
    /// that phase's end or come to it later: their calls are ordinary, and so are its own, however many follow.
    pub fn a_monitor_that_is_dropped_in_a_phase_leaves_ordinary_calls timed [2, 3] |ctx| {
        let mut c = world(ctx, 1, 0)?;
        let mut x = ctx.local::<u64>(20)?;
        let ways = [(true, true), (true, false), (false, true), (false, false)];
        for (gone, (drops, waits)) in (0..c.len()).flat_map(|gone| ways.map(|way| (gone, way))) {
            let mut monitor = Some(Monitor::new(ctx, &mut c)?);
            let mut unused = None;
            // More than there are registers for agreements.
            for phase in 0..10 {
                if let Some(monitor) = &mut monitor {
                    monitor.begin();
                    monitor.edge(0.5);
                }
                let is_late = (phase == 2 && c.me() == gone) == waits;
                late(if is_late && phase < 4 { 30 } else { 0 });
                if phase == 2 && c.me() == gone {
                    unused = monitor.take().filter(|_| !drops);
                }
                ctx.write(&mut x).fill(1);
                let start = Instant::now();
                match &mut monitor {
                    Some(monitor) => {
                        let arrivals = monitor.finish(ctx)?;
                        // What it said before it went is known.
                        assert!(phase < 3 || arrivals.spread_ns() == 0, "{phase}: {arrivals:?}");
                        c.allreduce_in_place_by_arrival(ctx, &Estimates::together(c.len()), &Sum, &mut x)?;
                    }
                    None => c.allreduce_in_place(ctx, &Sum, &mut x)?,
                }
                assert_eq!(ctx.read(&x), [c.len() as u64; 20]);
                assert_in_time(start.elapsed(), BOUND);
            }
            drop(unused);
        }
        ctx.sync()?;
    }
}

case! {
    /// Process 1 takes its estimates from another monitor than the others: fatal where they meet, whatever the
    /// estimates are.
    pub fn monitors_of_two_calls_are_told_apart timed [2, 3] |ctx| {
        for edges in [true, false] {
            differ(ctx, |inner, c| {
                let mut monitors = [Monitor::new(inner, c)?, Monitor::new(inner, c)?];
                let mut x = inner.local::<u64>(9)?;
                let monitor = &mut monitors[usize::from(c.me() == 1)];
                monitor.begin();
                if edges {
                    monitor.edge(0.5);
                }
                let arrivals = monitor.finish(inner)?;
                c.allreduce_in_place_by_arrival(inner, &arrivals, &Sum, &mut x)
            });
        }
    }
}

case! {
    /// A member ends badly while the others wait for an agreement that its helper has to close, or for their call.
    pub fn a_member_that_ends_badly_in_a_phase_is_fatal_for_the_others timed [2, 3] |ctx| {
        for guilty in 0..ctx.nprocs() {
            let (seen, outer) = failing_rehook(ctx, |inner| {
                let mut c = world(inner, 1, 0)?;
                let mut monitor = Monitor::new(inner, &mut c)?;
                let mut x = inner.local::<u64>(9)?;
                // No process is left in these calls when the guilty one ends.
                inner.sync()?;
                monitor.begin();
                if inner.pid() == guilty {
                    late(50);
                    return Err(Error::program("done on purpose"));
                }
                let start = Instant::now();
                let end = monitor.finish(inner).and_then(|arrivals| {
                    c.allreduce_in_place_by_arrival(inner, &arrivals, &Sum, &mut x)
                });
                let error = end.err().unwrap_or_else(|| sync_until_fatal(inner));
                Ok((error, start.elapsed()))
            });
            if ctx.pid() != guilty {
                let (error, waited) = seen.expect("nobody else ends badly");
                assert_fatal_naming(&error, &[guilty]);
                assert_fatal_naming(&outer, &[guilty]);
                assert_in_time(waited, BOUND);
            }
        }
    }
}
