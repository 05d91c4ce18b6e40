//! Reductions by arrival: their bits, who waits for whom, and estimates that are wrong or not the same.

use std::time::{Duration, Instant};

use lpf_collectives::arrival_pattern::Estimates;
use lpf_collectives::arrival_pattern::clairvoyant::{Instance, Scheduler, Transfer, to_all};
use lpf_collectives::arrival_pattern::pairing::{Growth, Pairing};
use lpf_collectives::arrival_pattern::trees::{Tree, children};
use lpf_collectives::*;
use lpf_core::error::counted;
use lpf_core::{Args, Context, Lpf, Result};

use super::elements::word;
use super::mismatches::differ;
use super::world;
use crate::runner::{beside_others, expect_success, watched};
use crate::verdict::assert_in_time;
use crate::{Harness, Mode as Section};

const LEN: usize = 41;
const SEGMENTS: usize = 7;
const ROUND_NS: u64 = 100;

/// What a member has: numbers whose sum depends on the order of adding.
fn own(member: usize) -> Vec<f64> {
    (0..LEN)
        .map(|nth| {
            let word = word(member, 5, nth);
            let sign = if word & 1 == 0 { 1.0 } else { -1.0 };
            sign * (1.0 + (word >> 12) as f64) * 2f64.powi((word >> 1 & 7) as i32)
        })
        .collect()
}

/// Of a segment, the elements; the first ones have one more.
fn segment(nth: usize) -> std::ops::Range<usize> {
    let begin = |nth: usize| nth * (LEN / SEGMENTS) + nth.min(LEN % SEGMENTS);
    begin(nth)..begin(nth + 1)
}

/// What a schedule makes of everybody's numbers, carried out by one process alone.
fn carried_out(q: usize, schedule: impl FnOnce(&mut dyn FnMut(Transfer))) -> Vec<Vec<f64>> {
    let mut all: Vec<Vec<f64>> = (0..q).map(own).collect();
    let mut round: Vec<Transfer> = Vec::new();
    let mut end = |round: &mut Vec<Transfer>| {
        let sent: Vec<Vec<f64>> = round
            .iter()
            .map(|one| all[one.sender][segment(one.segment as usize)].to_vec())
            .collect();
        for (one, sent) in round.drain(..).zip(sent) {
            let here = &mut all[one.receiver][segment(one.segment as usize)];
            for (here, sent) in here.iter_mut().zip(sent) {
                *here = if one.overwrites { sent } else { *here + sent };
            }
        }
    };
    schedule(&mut |transfer| {
        if round.first().is_some_and(|first| first.round != transfer.round) {
            end(&mut round);
        }
        round.push(transfer);
    });
    end(&mut round);
    all
}

fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

case! {
    /// With the number of segments and the time of a round given, a Clairvoyant sum is what the schedule says, to
    /// the bit: on every backend, in both modes, on every call, whoever really comes late.
    pub fn sums_by_arrival_have_the_bits_of_their_schedule both_ways [1, 2, 3, 5, 8] |ctx| {
        let mut c = world(ctx, 2, 0)?;
        let (me, q) = (c.me(), c.len());
        let (mut x, mut y) = (ctx.local::<f64>(LEN)?, ctx.local::<f64>(LEN)?);
        ctx.write(&mut x).copy_from_slice(&own(me));
        let mut seen = 0;
        for pattern in 0..12 {
            let times: Vec<u64> = (0..q).map(|member| word(member, pattern, 0) % 2000).collect();
            let arrivals = Estimates::new(&times, [1, 7, 100][pattern % 3]);
            let root = pattern % q;
            let instance =
                Instance::new(SEGMENTS as u32, root, ROUND_NS, arrivals.times_ns().to_vec());
            let instance = instance.expect("a pattern");
            let reduced = carried_out(q, |each| Scheduler::Linear.schedule(&instance, each));
            let spread = carried_out(q, |each| to_all(&instance, each));
            assert!(spread.iter().all(|one| bits(one) == bits(&spread[0])), "others have others");
            seen += usize::from(bits(&spread[0]) != bits(&reduced[root]));
            for mode in [Mode::Expected, Mode::Full] {
                let preferences = c.preferences_mut();
                preferences.mode = Some(mode);
                preferences.segments = Some(SEGMENTS as u32);
                preferences.round_ns = Some(ROUND_NS);
                preferences.reduce_by_arrival = Some(ReduceByArrival::Clairvoyant);
                preferences.allreduce_by_arrival = Some(AllreduceByArrival::Clairvoyant);
                if word(me, pattern, mode as usize + 1).is_multiple_of(4) {
                    std::thread::sleep(Duration::from_micros(300));
                }
                c.reduce_by_arrival(ctx, &arrivals, root, &Sum, &x, &mut y)?;
                if me == root {
                    assert_eq!(bits(ctx.read(&y)), bits(&reduced[root]), "{times:?}, {mode:?}");
                }
                c.allreduce_by_arrival(ctx, &arrivals, &Sum, &x, &mut y)?;
                assert_eq!(bits(ctx.read(&y)), bits(&spread[0]), "{times:?}, {mode:?}");
            }
            // The chains: the same bits in both modes, at every member, on every call.
            for &way in &AllreduceByArrival::ALL[..4] {
                let mut first: Option<Vec<u64>> = None;
                for mode in [Mode::Expected, Mode::Full, Mode::Expected] {
                    c.preferences_mut().mode = Some(mode);
                    c.preferences_mut().allreduce_by_arrival = Some(way);
                    ctx.write(&mut y).copy_from_slice(&own(me));
                    c.allreduce_in_place_by_arrival(ctx, &arrivals, &Sum, &mut y)?;
                    let bits = bits(ctx.read(&y));
                    let mut all = vec![0u64; q];
                    let sum = bits.iter().fold(0, |sum, bits| word(sum as usize, 0, *bits as usize));
                    for (member, all) in all.iter_mut().enumerate() {
                        *all = c.broadcast_value(ctx, member, sum)?;
                    }
                    assert!(all.iter().all(|&one| one == all[0]), "{way}, {mode:?}: others have other bits");
                    let first = first.get_or_insert_with(|| bits.clone());
                    assert!(*first == bits, "{way}, {mode:?}: other bits than before");
                }
            }
        }
        assert!(q < 5 || seen > 0, "no order shows");
        ctx.sync()?;
    }
}

/// Trees whose shape does not depend on arrivals.
const STATIC: [(ReduceByArrival, Tree); 2] =
    [(ReduceByArrival::Binomial, Tree::Binomial), (ReduceByArrival::Fibonacci, Tree::Fibonacci)];

/// What a node of a tree to member `root` of `q` has when it has taken what its children have, one after the other.
fn up_to(tree: &[Vec<usize>], node: usize, root: usize) -> Vec<f64> {
    // The root is the first node, and the others come behind it.
    let mut sum = own((root + node) % tree.len());
    for &child in &tree[node] {
        let more = up_to(tree, child, root);
        sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    sum
}

/// The time that the predicted dynamic tree assumes for a pair, ns: some of its members are later than that.
const PAIR_NS: u64 = 300;

/// What the root has when trees have been gone up by members that are expected at these times.
fn summed_up(way: ReduceByArrival, root: usize, times: &[u64]) -> Vec<f64> {
    let q = times.len();
    if let Some(&(_, tree)) = STATIC.iter().find(|&&(of, _)| of == way) {
        return up_to(&children(tree, q), 0, root);
    }
    let (tree, _) = Pairing::of_times(Growth::Any, root, times, |_, _| PAIR_NS, |_| 0);
    let mut sums: Vec<Vec<f64>> = (0..q).map(own).collect();
    for &[from, to] in tree.pairs() {
        let more = std::mem::take(&mut sums[from]);
        sums[to].iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    sums.swap_remove(root)
}

/// Sums up all trees to every root, by members of which some come late; the output is a hash of their bits.
fn up_trees<L: Lpf>(ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()> {
    let mut c = world(ctx, 2, 0)?;
    let (me, q) = (c.me(), c.len());
    let (mut x, mut y) = (ctx.local::<f64>(LEN)?, ctx.local::<f64>(LEN)?);
    ctx.write(&mut x).copy_from_slice(&own(me));
    let mut hash = 0;
    c.preferences_mut().round_ns = Some(PAIR_NS);
    for way in
        [ReduceByArrival::Binomial, ReduceByArrival::Fibonacci, ReduceByArrival::PredictedTree]
    {
        for root in 0..q {
            let times: Vec<u64> = (0..q).map(|member| word(member, root, 1) % 2000).collect();
            let wanted = bits(&summed_up(way, root, &times));
            let arrivals = Estimates::new(&times, 1);
            for mode in [None, Some(Mode::Full), Some(Mode::Expected)] {
                let preferences = c.preferences_mut();
                (preferences.mode, preferences.reduce_by_arrival) = (mode, Some(way));
                if word(me, root, 2 + mode.is_some() as usize).is_multiple_of(3) {
                    std::thread::sleep(Duration::from_micros(300));
                }
                c.reduce_by_arrival(ctx, &arrivals, root, &Sum, &x, &mut y)?;
                let mut sum = 0;
                if me == root {
                    let is = bits(ctx.read(&y));
                    assert!(is == wanted, "{way} to {root}, {mode:?}: not the bits of the tree");
                    sum = is.iter().fold(0, |sum, &bits| word(sum as usize, 3, bits as usize));
                }
                hash = word(hash as usize, 4, c.broadcast_value(ctx, root, sum)? as usize);
            }
        }
    }
    ctx.sync()?;
    if ctx.pid() == 0 {
        args.output.copy_from_slice(&hash.to_le_bytes());
    }
    Ok(())
}

/// Sums of floating-point numbers up the static trees and the predicted dynamic tree have the bits that the tree says,
/// and in strict mode the same.
pub fn trees_that_are_known_have_the_same_bits_in_strict_mode<H: Harness>(harness: &H) {
    let case = "trees_that_are_known_have_the_same_bits_in_strict_mode";
    for procs in [1, 2, 3, 5, 8] {
        let outputs = [false, true].map(|strict| {
            let mode = Section { strict, ..Section::default() };
            let mut output = [0; 8];
            let args = Args::in_out(&[], &mut output);
            let run = || harness.exec(mode, procs, up_trees, args);
            expect_success(case, mode, procs, beside_others(|| watched(case, run)));
            output
        });
        assert_eq!(outputs[0], outputs[1], "{case}, {procs} processes: other bits in strict mode");
    }
}

/// Vectors of ones, reduced while the last member sleeps: by whom is it waited for?
fn with_a_sleeper<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    expected_ns: u64,
    sleeps: Duration,
) -> Result<[Duration; 2]> {
    let mut c = world(ctx, 2, 0)?;
    let (me, q) = (c.me(), c.len());
    let (mut x, mut y) = (ctx.local::<u64>(LEN)?, ctx.local::<u64>(LEN)?);
    ctx.write(&mut x).fill(1);
    let mut times = vec![0; q];
    times[q - 1] = expected_ns;
    let arrivals = Estimates::new(&times, 1);
    let mut waited = [Duration::ZERO; 2];
    for (waited, mode) in
        waited.iter_mut().zip([ReduceByArrival::Clairvoyant, ReduceByArrival::Binomial])
    {
        c.preferences_mut().reduce_by_arrival = Some(mode);
        c.preferences_mut().segments = Some(5);
        ctx.sync()?;
        let start = Instant::now();
        if me + 1 == q {
            std::thread::sleep(sleeps);
        }
        c.reduce_by_arrival(ctx, &arrivals, 0, &Sum, &x, &mut y)?;
        *waited = start.elapsed();
        if me == 0 {
            assert!(ctx.read(&y).iter().all(|&one| one == q as u64), "not everybody's");
        }
        for &way in AllreduceByArrival::ALL {
            c.preferences_mut().allreduce_by_arrival = Some(way);
            c.allreduce_by_arrival(ctx, &arrivals, &Sum, &x, &mut y)?;
            assert!(ctx.read(&y).iter().all(|&one| one == q as u64), "{way}: not everybody's");
        }
    }
    Ok(waited)
}

case! {
    /// The last member is a second late, as all know: those in between have given all they have to the root, and
    /// are gone, before it comes.
    pub fn who_is_early_has_left_before_the_last_one_comes timed [3, 4] |ctx| {
        let second = Duration::from_secs(1);
        let [waited, _] = with_a_sleeper(ctx, second.as_nanos() as u64, second)?;
        let me = ctx.pid();
        if me > 0 && me + 1 < ctx.nprocs() {
            assert_in_time(waited, second / 2);
        }
        ctx.sync()?;
    }
}

case! {
    /// It was to be the first one, by hours.
    pub fn a_member_that_sleeps_in_spite_of_its_estimate_is_waited_for timed [2, 4] |ctx| {
        with_a_sleeper(ctx, 0, Duration::from_secs(1))?;
        let mut c = world(ctx, 4, 0)?;
        let hours = 10_000_000_000_000;
        let times: Vec<u64> = (0..c.len() as u64).map(|member| hours * (member % 3)).collect();
        let mut x = ctx.local::<u64>(LEN)?;
        for &way in AllreduceByArrival::ALL {
            c.preferences_mut().allreduce_by_arrival = Some(way);
            ctx.write(&mut x).fill(1);
            c.allreduce_in_place_by_arrival(ctx, &Estimates::new(&times, 1000), &Sum, &mut x)?;
            let all = c.len() as u64;
            assert!(ctx.read(&x).iter().all(|&one| one == all), "{way}");
        }
        ctx.sync()?;
    }
}

case! {
    /// As many estimates as there are others, and none.
    pub fn estimates_of_others_are_misuse both_ways [1, 2, 3] |ctx| {
        let mut c = world(ctx, 2, 0)?;
        let (x, mut y) = (ctx.local::<u64>(3)?, ctx.local::<u64>(3)?);
        let q = c.len();
        ctx.write(&mut y).fill(7);
        for wrong in [0, q - 1, q + 1] {
            if wrong == q {
                continue;
            }
            let arrivals = Estimates::together(wrong);
            for error in [
                c.reduce_by_arrival(ctx, &arrivals, 0, &Sum, &x, &mut y),
                c.allreduce_by_arrival(ctx, &arrivals, &Sum, &x, &mut y),
                c.allreduce_in_place_by_arrival(ctx, &arrivals, &Sum, &mut y),
            ] {
                let error = error.expect_err("as many as members");
                let text = error.to_string();
                let words = format!("{} for a group of {q}, ", counted(wrong as u64, "estimate"));
                assert!(error.is_misuse() && text.contains(&words), "{text}");
                assert!(text.contains("by_arrival.rs:"), "no place: {text}");
            }
        }
        // Not as long, at whatever member.
        let error = c.reduce_by_arrival(ctx, &Estimates::together(q), 0, &Sum, &x, (&mut y, ..2));
        assert!(error.expect_err("as long as the source").is_misuse());
        assert_eq!(ctx.read(&y), [7; 3]);
        c.allreduce_by_arrival(ctx, &Estimates::together(q), &Sum, &x, &mut y)?;
        ctx.sync()?;
    }
}

case! {
    /// More segments than elements are as many as elements, and none is one.
    pub fn segments_of_any_number_do both_ways [2, 3] |ctx| {
        let mut c = world(ctx, 2, 0)?;
        let q = c.len();
        let (mut x, mut y) = (ctx.local::<u64>(LEN)?, ctx.local::<u64>(LEN)?);
        ctx.write(&mut x).fill(1);
        let times: Vec<u64> = (0..q as u64).map(|member| 100_000 * member).collect();
        let arrivals = Estimates::new(&times, 1);
        for segments in [0, LEN as u32, LEN as u32 + 1, u32::MAX] {
            let preferences = c.preferences_mut();
            preferences.segments = Some(segments);
            preferences.reduce_by_arrival = Some(ReduceByArrival::Clairvoyant);
            preferences.allreduce_by_arrival = Some(AllreduceByArrival::Clairvoyant);
            c.reduce_by_arrival(ctx, &arrivals, 0, &Sum, &x, &mut y)?;
            assert!(c.me() != 0 || ctx.read(&y) == [q as u64; LEN], "{segments}");
            c.allreduce_by_arrival(ctx, &arrivals, &Sum, &x, &mut y)?;
            assert_eq!(ctx.read(&y), [q as u64; LEN], "{segments}");
        }
        ctx.sync()?;
    }
}

case! {
    /// Process 1 has other estimates, of times, of their grain, or cuts the vector into other segments; also where the
    /// algorithm is chosen, and is the ordinary one.
    pub fn other_estimates_are_fatal_and_both_are_named timed [2, 3] |ctx| {
        for other in 0..4 {
            let chosen = AllreduceByArrival::ALL.iter().copied().map(Some);
            for way in chosen.chain([None]) {
                let text = differ(ctx, |inner, c| {
                    let is_other = c.me() == 1;
                    let mut times = vec![0; c.len()];
                    times[0] = if is_other && other == 0 { 300_000 } else { 200_000 };
                    let grain = if is_other && other == 1 { 3 } else { 1 };
                    let preferences = c.preferences_mut();
                    preferences.allreduce_by_arrival = way;
                    preferences.segments = Some(if is_other && other == 2 { 3 } else { 4 });
                    preferences.round_ns = Some(if is_other && other == 3 { 30 } else { 40 });
                    let mut x = inner.local::<u64>(LEN)?;
                    c.allreduce_in_place_by_arrival(inner, &Estimates::new(&times, grain), &Sum, &mut x)
                });
                assert!(text.contains("(allreduce_by_arrival"), "{text}");
            }
        }
    }
}
