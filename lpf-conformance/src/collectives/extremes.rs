//! Least and greatest values, with NaN, signed zeros and equal values among them, by every algorithm that combines.

use std::ops::Range;

use bytemuck::Pod;
use lpf_collectives::arbiter::Arbiter;
use lpf_collectives::arrival_pattern::Estimates;
use lpf_collectives::arrival_pattern::pairing::Growth;
use lpf_collectives::*;
use lpf_core::{Context, Local, Lpf, Result};

use super::calls::What;
use super::world;

/// Elements of a member's part: one for each pattern of [`value`].
const LEN: usize = 24;

/// What member `member` of `q` contributes to a column: columns of a few patterns.
fn value(member: usize, q: usize, column: usize) -> f64 {
    let nan = f64::from_bits(f64::NAN.to_bits() | (member as u64 & 1) << 63 | (member as u64 % 5));
    let number = [2.5, -1.0, 2.5, f64::INFINITY, -1.0, f64::NEG_INFINITY][(member + column) % 6];
    let zero = if (member + column).is_multiple_of(2) { 0.0 } else { -0.0 };
    // The member that differs: each of them in some column.
    let is_one = member == column / LEN.div_ceil(q) % q;
    match column % 8 {
        0 | 4 => {
            if is_one {
                nan
            } else {
                number
            }
        }
        1 | 5 => {
            if is_one {
                number
            } else {
                nan
            }
        }
        2 => nan,
        3 => zero,
        6 => {
            if is_one {
                nan
            } else {
                zero
            }
        }
        _ => {
            if is_one {
                -0.0
            } else {
                0.0
            }
        }
    }
}

/// The rule in other words: NaN counts only if there is nothing else, and -0 is less than +0.
fn extreme(all: &[f64], greatest: bool) -> f64 {
    let mut numbers: Vec<f64> = all.iter().copied().filter(|x| !x.is_nan()).collect();
    numbers.sort_by(f64::total_cmp);
    let found = if greatest { numbers.last() } else { numbers.first() };
    // Of NaNs the bits do not depend on their order.
    found
        .copied()
        .unwrap_or_else(|| f64::from_bits(all.iter().fold(0, |bits, x| bits | x.to_bits())))
}

/// The lowest position of what is extreme.
fn extreme_at(all: &[f64], positions: &[usize], greatest: bool) -> At<f64> {
    let extreme = extreme(all, greatest);
    let is_equal = |x: f64| x.to_bits() == extreme.to_bits() || x.is_nan() && extreme.is_nan();
    let equal = all.iter().zip(positions).filter(|&(&x, _)| is_equal(x));
    let (&value, &position) = equal.min_by_key(|&(_, position)| position).expect("a member");
    At::new(value, position)
}

/// What a member contributes to each column, and what these members' contributions come to.
struct Columns<'a, T> {
    own: &'a dyn Fn(usize, usize) -> T,
    combined: &'a dyn Fn(Range<usize>, usize) -> T,
}

/// Combines a vector by every algorithm of every collective that combines, and checks every element's bits.
fn by_every_algorithm<'s, L: Lpf, T: Pod, O: Operator<T>>(
    ctx: &mut Context<'s, L>,
    c: &mut Collectives<'s>,
    op: &O,
    (x, y): (&mut Local<'s, T>, &mut Local<'s, T>),
    columns: &Columns<'_, T>,
) -> Result<()> {
    let (me, q, all) = (c.me(), c.len(), c.len() * LEN);
    ctx.write(x).iter_mut().enumerate().for_each(|(nth, x)| *x = (columns.own)(me, nth));
    let times: Vec<u64> = (0..q as u64).map(|member| member * 7 % 5 * 1000).collect();
    let arrivals = Estimates::new(&times, 1);
    let is = |ctx: &Context<'s, L>, y: &Local<'s, T>, members: Range<usize>, first, story: &str| {
        let len = if story.starts_with("ReduceScatter") { LEN } else { all };
        for (nth, got) in ctx.read(y)[..len].iter().enumerate() {
            let expected = (columns.combined)(members.clone(), first + nth);
            let (got, expected) = (bytemuck::bytes_of(got), bytemuck::bytes_of(&expected));
            let operator = std::any::type_name::<(O, T)>();
            assert!(
                got == expected,
                "{operator}, {story}, member {me} of {q}, column {}: {got:?} and not {expected:?}",
                first + nth
            );
        }
    };
    for what in What::ALL.into_iter().filter(|what| what.combines()) {
        for way in 0..what.ways() {
            for root in 0..if what.has_root() { q } else { 1 } {
                what.prefer(c.preferences_mut(), way);
                c.preferences_mut().segments = Some(5);
                let before = ctx.read(x).to_vec();
                ctx.write(y).copy_from_slice(&before);
                let (mut members, mut first, mut is_here) = (0..q, 0, true);
                match what {
                    What::Reduce => c.reduce(ctx, root, op, &*x, &mut *y)?,
                    What::Allreduce => c.allreduce(ctx, op, &*x, &mut *y)?,
                    What::AllreduceInPlace => c.allreduce_in_place(ctx, op, &mut *y)?,
                    What::AllreduceValue => {
                        let own = ctx.read(x)[0];
                        ctx.write(y)[0] = c.allreduce_value(ctx, op, own)?;
                        // One column of them.
                        let got = ctx.read(y)[0];
                        (1..all).for_each(|nth| ctx.write(y)[nth] = (columns.combined)(0..q, nth));
                        ctx.write(y)[0] = got;
                    }
                    What::ReduceScatter => {
                        c.reduce_scatter(ctx, op, &*x, (&mut *y, ..LEN))?;
                        first = me * LEN;
                    }
                    What::Scan => {
                        c.scan(ctx, op, &*x, &mut *y)?;
                        members = 0..me + 1;
                    }
                    What::Exscan => {
                        c.exscan(ctx, op, &*x, &mut *y)?;
                        (members, is_here) = (0..me, me > 0);
                    }
                    What::ReduceByArrival => {
                        c.reduce_by_arrival(ctx, &arrivals, root, op, &*x, &mut *y)?
                    }
                    What::AllreduceByArrival => {
                        c.allreduce_by_arrival(ctx, &arrivals, op, &*x, &mut *y)?
                    }
                    _ => c.allreduce_in_place_by_arrival(ctx, &arrivals, op, &mut *y)?,
                }
                if is_here && (me == root || !what.has_root()) {
                    is(ctx, y, members, first, &format!("{what:?}, way {way}"));
                }
            }
        }
    }
    *c.preferences_mut() = Preferences::default();
    for growth in [Growth::Any, Growth::Neighbours] {
        let mut arbiter = Arbiter::new(ctx, c, growth)?;
        for root in 0..q {
            if (me + root).is_multiple_of(3) {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
            c.reduce_as_they_come(ctx, &mut arbiter, root, op, &*x, &mut *y)?;
            if me == root {
                is(ctx, y, 0..q, 0, &format!("a dynamic tree, {growth:?}"));
            }
        }
        // The arbiter of a member that runs ahead answers others.
        ctx.sync()?;
    }
    Ok(())
}

case! {
    /// `Min`, `Max`, `MinAt` and `MaxAt` of columns in which each member by turns has NaN, or all have, or all but one,
    /// or zeros of both signs: every algorithm gives the bits that the rule gives, in every column.
    pub fn nan_and_signed_zeros_have_one_rule_in_every_algorithm both_ways [1, 2, 3, 5, 8] |ctx| {
        let mut c = world(ctx, 8, 0)?;
        let q = c.len();
        let all = |members: Range<usize>, column: usize| -> Vec<f64> {
            members.map(|member| value(member, q, column)).collect()
        };
        let (mut x, mut y) = (ctx.local::<f64>(q * LEN)?, ctx.local::<f64>(q * LEN)?);
        let own = |member, column| value(member, q, column);
        let least = |members, column| extreme(&all(members, column), false);
        let columns = Columns { own: &own, combined: &least };
        by_every_algorithm(ctx, &mut c, &Min, (&mut x, &mut y), &columns)?;
        let greatest = |members, column| extreme(&all(members, column), true);
        let columns = Columns { own: &own, combined: &greatest };
        by_every_algorithm(ctx, &mut c, &Max, (&mut x, &mut y), &columns)?;

        // Positions that a float of the value's length would round, and of which some are equal.
        let position = |member: usize, column: usize| (1 << 24) + 1 + (member * 5 + column) % 7 / 2;
        let positions = |members: Range<usize>, column: usize| -> Vec<usize> {
            members.map(|member| position(member, column)).collect()
        };
        // Members of one position have one value there, so that the result's bits are known.
        let at = |member: usize, column: usize| {
            let first = (0..=member).find(|&other| position(other, column) == position(member, column));
            value(first.expect("itself"), q, column)
        };
        let all = |members: Range<usize>, column: usize| -> Vec<f64> {
            members.map(|member| at(member, column)).collect()
        };
        let (mut x, mut y) = (ctx.local::<At<f64>>(q * LEN)?, ctx.local::<At<f64>>(q * LEN)?);
        let own = |member, column| At::new(at(member, column), position(member, column));
        let least = |members: Range<usize>, column| extreme_at(&all(members.clone(), column), &positions(members, column), false);
        let columns = Columns { own: &own, combined: &least };
        by_every_algorithm(ctx, &mut c, &MinAt, (&mut x, &mut y), &columns)?;
        let greatest = |members: Range<usize>, column| extreme_at(&all(members.clone(), column), &positions(members, column), true);
        let columns = Columns { own: &own, combined: &greatest };
        by_every_algorithm(ctx, &mut c, &MaxAt, (&mut x, &mut y), &columns)?;
    }
}

case! {
    /// The same of shorter values: a position keeps all its bits beside them.
    pub fn positions_of_short_values_are_exact both_ways [2, 3] |ctx| {
        let mut c = world(ctx, 2, 0)?;
        let (me, q) = (c.me(), c.len());
        let far = (1 << 53) + 1;
        let least = c.allreduce_value(ctx, &MinAt, At::new(1f32, far + me))?;
        assert_eq!(least, At::new(1.0, far));
        let greatest = c.allreduce_value(ctx, &MaxAt, At::new(me as f32, far + me))?;
        assert_eq!(greatest, At::new((q - 1) as f32, far + q - 1));
        let byte = c.allreduce_value(ctx, &MaxAt, At::new(7u8, 1000 * (q - me)))?;
        assert_eq!(byte, At::new(7, 1000));
        // A member's NaN is never the result while another has a number.
        for nan in 0..q {
            let value = if me == nan { f32::NAN } else { 2.0 };
            let first = if nan == 0 { 1 } else { 0 };
            assert_eq!(c.allreduce_value(ctx, &MinAt, At::new(value, me))?, At::new(2.0, first));
            assert_eq!(c.allreduce_value(ctx, &MaxAt, At::new(value, me))?, At::new(2.0, first));
        }
    }
}
