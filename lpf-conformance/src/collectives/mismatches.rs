//! Members that call different things: *fatal*, in time, and the two that differ are named.

use std::time::{Duration, Instant};

use lpf_collectives::*;
use lpf_core::{Context, Error, Lpf, Pid, Result};

use super::world;
use crate::verdict::{
    BOUND, assert_fatal_naming, assert_in_time, failing_rehook, sync_until_fatal,
};

/// Runs what process 1 does not agree in with the others, in a section of its own, which fails: all learn of
/// it in time, and it is named, with one of those it does not agree with. What this process is told.
pub(super) fn differ<L: Lpf>(
    ctx: &mut Context<'_, L>,
    wait: impl for<'r> Fn(&mut Context<'r, L>, &mut Collectives<'r>) -> Result<()>,
) -> String {
    let (seen, outer) = failing_rehook(ctx, |inner| {
        let mut c = world(inner, 4, 0)?;
        inner.sync()?;
        let start = Instant::now();
        let error = wait(inner, &mut c).err().unwrap_or_else(|| sync_until_fatal(inner));
        Ok((error, start.elapsed()))
    });
    let (error, waited) = seen.expect("every process comes to its wait");
    for error in [&error, &outer] {
        assert_names_both(ctx.nprocs(), error);
    }
    assert_in_time(waited, BOUND);
    error.to_string()
}

/// Process 1 is named, and one of those it does not agree with.
fn assert_names_both(processes: Pid, error: &Error) {
    assert_fatal_naming(error, &[1]);
    let others: Vec<Pid> = (0..processes).filter(|&pid| pid != 1).collect();
    let text = error.to_string();
    let named = others.iter().filter(|pid| text.contains(&format!("process {pid}")));
    assert!(named.count() > 0, "one of processes {others:?} has to be named: {error}");
}

case! {
    /// Each takes itself for the root, or the other.
    pub fn two_roots_are_fatal_and_both_are_named timed [2, 3] |ctx| {
        for way in Broadcast::ALL {
            for itself in [true, false] {
                differ(ctx, |inner, c| {
                    c.preferences_mut().broadcast = Some(*way);
                    let mut x = inner.local::<u64>(6)?;
                    let root = usize::from((c.me() == 1) == itself);
                    c.broadcast(inner, root, &mut x)?;
                    // Where each takes itself for the root, nobody waits: the next call tells.
                    c.allreduce_in_place(inner, &Sum, &mut x)
                });
            }
        }
        for way in Reduce::ALL {
            differ(ctx, |inner, c| {
                c.preferences_mut().reduce = Some(*way);
                let (x, mut y) = (inner.local::<u64>(6)?, inner.local::<u64>(6)?);
                let root = usize::from(c.me() == 1);
                c.reduce(inner, root, &Sum, &x, &mut y)
            });
        }
    }
}

case! {
    /// Process 1 has other lengths than the others: short ones, one that goes straight to its place, and
    /// none at all.
    pub fn two_lengths_are_fatal_and_both_are_named timed [2, 3] |ctx| {
        for (one, other) in [(1, 2), (8, 7), (100, 5000), (5000, 100), (0, 3), (3, 0)] {
            let lens = move |me: usize| if me == 1 { other } else { one };
            differ(ctx, |inner, c| {
                let mut x = inner.local::<u64>(lens(c.me()))?;
                c.allreduce_in_place(inner, &Sum, &mut x)
            });
            differ(ctx, |inner, c| {
                let mut x = inner.local::<u64>(lens(c.me()))?;
                c.broadcast(inner, 0, &mut x)?;
                // Where the root sends what nobody waits for, the next call tells.
                c.allreduce_value(inner, &Sum, 1u64).map(|_| ())
            });
            differ(ctx, |inner, c| {
                let len = lens(c.me());
                let (x, mut y) = (inner.local::<u64>(len)?, inner.local::<u64>(c.len() * len)?);
                c.allgather(inner, &x, &mut y)
            });
        }
    }
}

case! {
    /// Process 1 calls something else than the others, of the same size.
    pub fn two_collectives_are_fatal_and_both_are_named timed [2, 3] |ctx| {
        let said = |text: String, names: [&str; 2]| {
            let is_said = |&name: &&str| text.contains(&format!("({name}"));
            assert!(names.iter().all(is_said), "{text} does not name {names:?}");
            assert!(text.contains("mismatches.rs:"), "{text} does not say where");
        };
        let text = differ(ctx, |inner, c| {
            let mut x = inner.local::<u64>(8)?;
            match c.me() {
                1 => c.allreduce_in_place(inner, &Sum, &mut x),
                _ => c.broadcast(inner, 0, &mut x),
            }
        });
        said(text, ["allreduce", "broadcast"]);
        let text = differ(ctx, |inner, c| {
            let (x, mut y) = (inner.local::<u64>(6)?, inner.local::<u64>(6)?);
            match c.me() {
                1 => c.scan(inner, &Sum, &x, &mut y),
                _ => c.exscan(inner, &Sum, &x, &mut y),
            }
        });
        said(text, ["scan", "exscan"]);
        let text = differ(ctx, |inner, c| {
            let (x, mut y) = (inner.local::<u64>(6)?, inner.local::<u64>(6)?);
            match c.me() {
                1 => c.alltoall(inner, &x, &mut y),
                _ => c.allreduce(inner, &Sum, &x, &mut y),
            }
        });
        said(text, ["alltoall", "allreduce"]);
        // A group is made by some.
        let text = differ(ctx, |inner, c| match c.me() {
            1 => c.allreduce_value(inner, &Sum, 1u64).map(|_| ()),
            _ => c.split(inner, Some(0)).map(|_| ()),
        });
        said(text, ["allreduce", "split"]);
    }
}

case! {
    /// Process 1 combines with something else, or elements of another type and the same size.
    pub fn two_operators_are_fatal_and_both_are_named timed [2, 3] |ctx| {
        for mode in [Mode::Full, Mode::Expected] {
            differ(ctx, |inner, c| {
                c.preferences_mut().mode = Some(mode);
                match c.me() {
                    1 => c.allreduce_value(inner, &Max, 1u64).map(|_| ()),
                    _ => c.allreduce_value(inner, &Sum, 1u64).map(|_| ()),
                }
            });
        }
        // What was known before is told apart, too.
        differ(ctx, |inner, c| {
            for _ in 0..3 {
                c.allreduce_value(inner, &Max, 1u64)?;
                c.allreduce_value(inner, &Sum, 1u64)?;
            }
            match c.me() {
                1 => c.allreduce_value(inner, &Sum, 1.0f64).map(|_| ()),
                _ => c.allreduce_value(inner, &Sum, 1u64).map(|_| ()),
            }
        });
        differ(ctx, |inner, c| {
            let (x, mut y) = (inner.local::<u64>(6)?, inner.local::<u64>(6)?);
            match c.me() {
                1 => c.scan(inner, &Min, &x, &mut y),
                _ => c.scan(inner, &Max, &x, &mut y),
            }
        });
        differ(ctx, |inner, c| {
            let (x, mut y) = (inner.local::<u64>(2 * c.len())?, inner.local::<u64>(2)?);
            match c.me() {
                1 => c.reduce_scatter(inner, &Min, &x, &mut y),
                _ => c.reduce_scatter(inner, &Max, &x, &mut y),
            }
        });
        differ(ctx, |inner, c| {
            let (x, mut y) = (inner.local::<u64>(6)?, inner.local::<u64>(6)?);
            match c.me() {
                1 => c.reduce(inner, 0, &Min, &x, &mut y),
                _ => c.reduce(inner, 0, &Max, &x, &mut y),
            }
        });
    }
}

case! {
    /// Members with other preferences.
    pub fn two_algorithms_are_fatal_and_both_are_named timed [2, 3] |ctx| {
        for odd in [Mode::Full, Mode::Expected] {
            differ(ctx, |inner, c| {
                let other = if odd == Mode::Full { Mode::Expected } else { Mode::Full };
                c.preferences_mut().mode = Some(if c.me() == 1 { odd } else { other });
                c.allreduce_value(inner, &Sum, 1u64).map(|_| ())
            });
        }
        for (one, other) in [(0, 1), (1, 3), (2, 0), (3, 2)] {
            differ(ctx, |inner, c| {
                let way = if c.me() == 1 { one } else { other };
                c.preferences_mut().allreduce = Some(Allreduce::ALL[way]);
                let mut x = inner.local::<u64>(100)?;
                c.allreduce_in_place(inner, &Sum, &mut x)
            });
            differ(ctx, |inner, c| {
                let way = if c.me() == 1 { one } else { other };
                c.preferences_mut().broadcast = Some(Broadcast::ALL[way]);
                let mut x = inner.local::<u64>(100)?;
                c.broadcast(inner, 0, &mut x)
            });
        }
    }
}

case! {
    /// Process 1 leaves one out: it is in the next one, or in a full sync.
    pub fn a_skipped_collective_is_fatal_and_both_are_named timed [2, 3] |ctx| {
        for then in 0..2 {
            differ(ctx, |inner, c| {
                let mut x = inner.local::<u64>(8)?;
                for round in 0..10 {
                    if round == 5 && c.me() == 1 {
                        if then == 1 {
                            return inner.sync();
                        }
                    } else {
                        c.allreduce_in_place(inner, &Sum, &mut x)?;
                    }
                }
                Ok(())
            });
        }
        // The root of some leaves one out.
        differ(ctx, |inner, c| {
            for round in 0..20 {
                if round != 7 || c.me() != 1 {
                    c.broadcast_value(inner, 1, round)?;
                }
            }
            Ok(())
        });
    }
}

case! {
    /// Members pass slices of other lengths, short or long ones, to one call. A memory check comes before a call on long
    /// ones, so that the two may be in different calls. The error names both lengths.
    pub fn slices_of_other_lengths_are_named_at_both timed [2, 3] |ctx| {
        // In elements of 8 bytes for each member. More than 1024 elements in all are long.
        let lens = [(10, 9000), (1000, 9000), (9000, 10), (9000, 9500), (9000, 90_000)];
        let p = ctx.nprocs();
        for (one, other) in lens {
            let own = |c: &Collectives<'_>| vec![1u64; c.len() * if c.me() == 1 { other } else { one }];
            let said = |text: String, name: &str, blocks: bool| {
                let lens = [one, other].map(|len| if blocks { len } else { len * p });
                let of = if blocks { "of blocks of" } else { "of" };
                let called = lens.map(|len| format!("{name} {of} {} bytes", 8 * len));
                assert!(called.iter().all(|call| text.contains(call)), "{text} does not name {called:?}");
                assert!(text.contains("mismatches.rs:"), "{text} does not say where");
                assert!(!text.contains("another collective"), "{text}");
            };
            let text = differ(ctx, |inner, c| c.allreduce_vec(inner, &Sum, &own(c)).map(|_| ()));
            said(text, "allreduce", false);
            let text = differ(ctx, |inner, c| c.reduce_vec(inner, 1, &Sum, &own(c)).map(|_| ()));
            said(text, "reduce", false);
            let text = differ(ctx, |inner, c| c.alltoall_vec(inner, &own(c)).map(|_| ()));
            said(text, "alltoall", true);
            let text = differ(ctx, |inner, c| c.reduce_scatter_vec(inner, &Max, &own(c)).map(|_| ()));
            said(text, "reduce-scatter", true);
        }
    }
}

case! {
    /// Long slices in different calls: both are named, or the text says that the calls may be different.
    pub fn calls_on_long_slices_that_differ_are_named timed [2, 3] |ctx| {
        let said = |text: String, words: [&str; 2]| {
            assert!(words.iter().all(|word| text.contains(word)), "{text} does not name {words:?}");
        };
        let x = &vec![1u64; 6000];
        let text = differ(ctx, |inner, c| {
            c.reduce_vec(inner, usize::from(c.me() == 1), &Sum, x).map(|_| ())
        });
        said(text, ["before reduce of 48000 bytes, root 0", "before reduce of 48000 bytes, root 1"]);
        let text = differ(ctx, |inner, c| match c.me() {
            1 => c.alltoall_vec(inner, x).map(|_| ()),
            _ => c.allreduce_vec(inner, &Sum, x).map(|_| ()),
        });
        said(text, ["before alltoall of blocks of ", "before allreduce of 48000 bytes"]);
        let text = differ(ctx, |inner, c| match c.me() {
            1 => c.allgather_value(inner, 1u64).map(|_| ()),
            _ => c.allreduce_vec(inner, &Sum, x).map(|_| ()),
        });
        said(text, ["memory check", "the two pass different lengths, or make different calls"]);
        let text = differ(ctx, |inner, c| {
            if c.me() == 1 { c.exchange(inner, &vec![x; c.len()]).map(|_| ()) }
            else { c.allreduce_vec(inner, &Sum, x).map(|_| ()) }
        });
        said(text, ["alltoall", "memory check"]);
    }
}

/// Operators of a program.
struct First;
struct Second;

impl Operator<u64> for First {
    fn identity(&self) -> u64 {
        0
    }

    fn combine(&self, left: u64, _right: u64) -> u64 {
        left
    }
}

impl Operator<u64> for Second {
    fn identity(&self) -> u64 {
        0
    }

    fn combine(&self, _left: u64, right: u64) -> u64 {
        right
    }
}

case! {
    /// One value differs: the error names the call of a member with its values, and the value of the other one.
    pub fn the_value_that_differs_is_named_at_both timed [2, 3] |ctx| {
        let said = |text: String, words: [&str; 2]| {
            assert!(words.iter().all(|word| text.contains(word)), "{text} does not name {words:?}");
        };
        for (one, other) in [(1, 2), (100, 5000)] {
            let text = differ(ctx, |inner, c| {
                let mut x = inner.local::<u64>(if c.me() == 1 { other } else { one })?;
                c.allreduce_in_place(inner, &Sum, &mut x)
            });
            said(text, [&format!("of {} bytes", 8 * one), &format!("of {} bytes", 8 * other)]);
        }
        let text = differ(ctx, |inner, c| {
            c.preferences_mut().broadcast = Some(Broadcast::Direct);
            let mut x = inner.local::<u64>(6)?;
            // Each waits for the other.
            c.broadcast(inner, usize::from(c.me() != 1), &mut x)
        });
        said(text, ["broadcast of 48 bytes, root 0, algorithm direct", "root 1"]);
        // In full supersteps all members are compared, also those that receive nothing.
        let text = differ(ctx, |inner, c| {
            c.preferences_mut().mode = Some(Mode::Full);
            let mut x = inner.local::<u64>(6)?;
            c.broadcast(inner, usize::from(c.me() == 1), &mut x)
        });
        said(text, ["broadcast of 48 bytes, root ", "with root "]);
        let text = differ(ctx, |inner, c| {
            let way = if c.me() == 1 { Allreduce::Ring } else { Allreduce::Doubling };
            c.preferences_mut().allreduce = Some(way);
            let mut x = inner.local::<u64>(100)?;
            c.allreduce_in_place(inner, &Sum, &mut x)
        });
        said(text, ["algorithm doubling", "algorithm ring"]);
        for mode in [Mode::Full, Mode::Expected] {
            let text = differ(ctx, |inner, c| {
                c.preferences_mut().mode = Some(mode);
                match c.me() {
                    1 => c.allreduce_value(inner, &Max, 1u64).map(|_| ()),
                    _ => c.allreduce_value(inner, &Sum, 1u64).map(|_| ()),
                }
            });
            said(text, ["operator Max of u64", "operator Sum of u64"]);
        }
        // Elements of another type, and an operator that is in a pair.
        let text = differ(ctx, |inner, c| match c.me() {
            1 => c.allreduce_value(inner, &Sum, 1.0f32).map(|_| ()),
            _ => c.allreduce_value(inner, &Sum, 1u64).map(|_| ()),
        });
        said(text, ["operator Sum of f32", "operator Sum of u64"]);
        let text = differ(ctx, |inner, c| match c.me() {
            1 => c.allreduce_value(inner, &(Sum, Min), Pair(1.0, 2)).map(|_| ()),
            _ => c.allreduce_value(inner, &(Sum, Max), Pair(1.0, 2)).map(|_| ()),
        });
        said(text, ["operator (Sum, Min) of Pair<f64, i32>", "operator (Sum, Max) of Pair<f64, i32>"]);
        // A program's own operator is named at its own member only.
        let text = differ(ctx, |inner, c| match c.me() {
            1 => c.allreduce_value(inner, &First, 1u64).map(|_| ()),
            _ => c.allreduce_value(inner, &Second, 1u64).map(|_| ()),
        });
        let own = if text.contains("First") { "operator First of u64" } else { "operator Second of u64" };
        said(text, [own, "with another length, operator"]);
    }
}

/// Runs calls that process 1 does not agree in, after which nobody waits for anybody: the section's end is fatal
/// for all.
fn end_differently<L: Lpf>(
    ctx: &mut Context<'_, L>,
    calls: impl for<'r> Fn(&mut Context<'r, L>, &mut Collectives<'r>) -> Result<()>,
) {
    let (_, outer) = failing_rehook(ctx, |inner| {
        let mut c = world(inner, 4, 0)?;
        inner.sync()?;
        c.preferences_mut().mode = Some(Mode::Expected);
        calls(inner, &mut c)
    });
    assert_names_both(ctx.nprocs(), &outer);
}

case! {
    /// Nothing comes after the call that process 1 has skipped, or of which it took itself for the root.
    pub fn what_differs_last_is_fatal_and_both_are_named timed [2, 3] |ctx| {
        for skipped in [0, 3, 4] {
            // Process 1 is one of those that get, and then the root.
            for root in [0, 1] {
                end_differently(ctx, |inner, c| {
                    c.preferences_mut().broadcast = Some(Broadcast::Direct);
                    let mut x = inner.local::<u64>(6)?;
                    for call in 0..5 {
                        if call != skipped || c.me() != 1 {
                            c.broadcast(inner, root, &mut x)?;
                        }
                    }
                    Ok(())
                });
            }
            end_differently(ctx, |inner, c| {
                c.preferences_mut().reduce = Some(Reduce::Direct);
                let (x, mut y) = (inner.local::<u64>(2)?, inner.local::<u64>(2 * c.len())?);
                for call in 0..5 {
                    match call {
                        _ if call == skipped && c.me() == 1 => {}
                        0 | 3 => c.reduce(inner, 1, &Sum, &x, (&mut y, ..2))?,
                        _ => c.gather(inner, 1, &x, &mut y)?,
                    }
                }
                Ok(())
            });
        }
        end_differently(ctx, |inner, c| {
            let mut x = inner.local::<u64>(6)?;
            c.broadcast(inner, usize::from(c.me() == 1), &mut x)
        });
    }
}

case! {
    /// Members pass different counts. The error names the call, by its own name, and its place in the program.
    pub fn counts_that_differ_are_fatal_and_both_are_named timed [2, 3] |ctx| {
        let said = |text: String, name: &str| {
            let calls = [format!("({name}, called at "), format!("({name} with counts, ")];
            assert!(calls.iter().any(|call| text.contains(call)), "{text} does not name {name}");
            assert!(text.contains("mismatches.rs:"), "{text} does not say where");
            assert!(!text.contains("calls/"), "{text} has a place inside the collectives");
        };
        let text = differ(ctx, |inner, c| {
            let q = c.len();
            let (x, mut y) = (inner.local::<u32>(3 * q)?, inner.local::<u32>(3 * q + 1)?);
            let mut receives = vec![3; q];
            let len = if c.me() == 1 { 3 * q + 1 } else { 3 * q };
            if c.me() == 1 {
                receives[0] = 4;
            }
            c.alltoall_v(inner, &x, &vec![3; q], (&mut y, ..len), &receives)
        });
        said(text, "alltoall_v");
        let counts = |q: usize, me: usize| {
            let mut counts = vec![4; q];
            if me == 1 {
                (counts[0], counts[1]) = (3, 5);
            }
            counts
        };
        let text = differ(ctx, |inner, c| {
            let counts = counts(c.len(), c.me());
            let (x, mut y) = (inner.local::<u32>(counts[c.me()])?, inner.local::<u32>(4 * c.len())?);
            c.allgather_v(inner, &x, &counts, &mut y)
        });
        said(text, "allgather_v");
        let text = differ(ctx, |inner, c| {
            let counts = counts(c.len(), c.me());
            let (x, mut y) = (inner.local::<u32>(counts[c.me()])?, inner.local::<u32>(4 * c.len())?);
            c.gather_v(inner, 0, &x, &counts, &mut y)
        });
        said(text, "gather_v");
        let text = differ(ctx, |inner, c| {
            let counts = counts(c.len(), c.me());
            let (x, mut y) = (inner.local::<u32>(4 * c.len())?, inner.local::<u32>(counts[c.me()])?);
            c.scatter_v(inner, 0, &x, &counts, &mut y)
        });
        said(text, "scatter_v");
    }
}

case! {
    /// Blocks so long that they go straight to their places: the sender finds that they do not fit.
    pub fn long_counts_that_differ_name_the_call timed [2, 3] |ctx| {
        const LONG: usize = 1 << 14;
        let text = differ(ctx, |inner, c| {
            let q = c.len();
            let (mut sends, mut receives) = (vec![0; q], vec![0; q]);
            match c.me() {
                0 => receives[1] = LONG - 1,
                1 => sends[0] = LONG,
                _ => {}
            }
            let (sent, came) = (sends.iter().sum(), receives.iter().sum());
            let (x, mut y) = (inner.local::<u64>(sent)?, inner.local::<u64>(came)?);
            c.alltoall_v(inner, &x, &sends, &mut y, &receives)
        });
        assert!(text.contains("mismatches.rs:"), "{text} does not say where");
    }
}

case! {
    /// When a call has failed in its middle, nobody writes to its member's memory any more, though another's
    /// message was on its way there.
    pub fn memory_is_still_when_a_call_has_failed timed [3] |ctx| {
        const LONG: usize = 4096;
        let (seen, outer) = failing_rehook(ctx, |inner| {
            let mut c = world(inner, 4, 0)?;
            let (mut x, mut y) = (inner.local::<u32>(LONG)?, inner.local::<u32>(LONG + 4)?);
            inner.sync()?;
            inner.write(&mut x).fill(7);
            // Member 2 sends less than member 0 awaits, member 1 what it awaits, but late.
            let (sent, receives) = match c.me() {
                0 => (0, [0, LONG, 4]),
                2 => (3, [0; 3]),
                _ => {
                    std::thread::sleep(Duration::from_millis(100));
                    (LONG, [0; 3])
                }
            };
            let len = receives.iter().sum::<usize>();
            let done = c.alltoall_v(inner, (&x, ..sent), &[sent, 0, 0], (&mut y, ..len), &receives);
            if c.me() == 0 && inner.raw().memory_is_quiet() {
                let before = inner.read(&y).to_vec();
                std::thread::sleep(Duration::from_millis(300));
                assert!(inner.read(&y) == before, "written after the call");
            }
            Ok(done.err().unwrap_or_else(|| sync_until_fatal(inner)))
        });
        for error in [seen.expect("every process comes to its end"), outer] {
            assert_fatal_naming(&error, &[0, 2]);
        }
    }
}
