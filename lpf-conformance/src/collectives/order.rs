//! In which order operands are combined, and that it is always the same.

use std::time::Duration;

use lpf_collectives::*;
use lpf_core::{Context, Lpf, Pid, Result};

use super::calls::{Call, What};
use super::elements::{Compose, word};
use super::vectors::{Room, SLOTS};
use super::world;

/// The ways to combine vectors.
const REDUCTIONS: [What; 6] = [
    What::Reduce,
    What::Allreduce,
    What::AllreduceInPlace,
    What::ReduceScatter,
    What::Scan,
    What::Exscan,
];

/// And where it is known when members arrive.
const BY_ARRIVAL: [What; 3] =
    [What::ReduceByArrival, What::AllreduceByArrival, What::AllreduceInPlaceByArrival];

case! {
    /// Maps do not commute: every algorithm composes them in the order of the members, also in a group whose
    /// members do not begin with process 0, and for every root.
    pub fn operands_keep_the_order_of_their_members both_ways [1, 2, 3, 5, 6, 8] |ctx| {
        let mut c = world(ctx, SLOTS, 0)?;
        let last = c.me() + 1 == c.len();
        let mut some = c.split(ctx, Some(usize::from(c.me() > 0 && !last)))?.expect("a colour");
        let mut room = Room::<[u64; 2]>::new(ctx, 160)?;
        let mut salt = 0;
        for what in REDUCTIONS.into_iter().chain(BY_ARRIVAL) {
            for way in 0..what.ways() {
                for len in [1, 9, 20] {
                    let roots = if what.has_root() { c.len() } else { 1 };
                    for root in 0..roots {
                        salt += 1;
                        let call =
                            Call { what, way, root, len, at: [1, 0], local: [false; 2], salt };
                        call.make(ctx, &mut c, &mut room)?;
                        call.make(ctx, &mut some, &mut room)?;
                    }
                }
            }
        }
        // A single element, and what the first member gets of an exscan.
        let own = [ctx.pid() as u64 + 2, 1];
        let all = (0..ctx.nprocs()).map(|pid| [pid as u64 + 2, 1]);
        let composed = all.reduce(|a, b| Compose.combine(a, b)).expect("somebody");
        assert_eq!(c.allreduce_value(ctx, &Compose, own)?, composed);
        let all = (0..ctx.nprocs()).map(|pid| [pid as u64 + 2, 1]);
        let up_to = |end: Pid| all.clone().take(end).fold([1, 0], |a, b| Compose.combine(a, b));
        assert_eq!(c.scan_value(ctx, &Compose, own)?, up_to(ctx.pid() + 1));
        assert_eq!(c.exscan_value(ctx, &Compose, own)?, up_to(ctx.pid()));
        ctx.sync()?;
    }
}

/// Numbers whose sum depends on the order of adding.
fn number(member: usize, nth: usize) -> f64 {
    let word = word(member, 3, nth);
    let sign = if word & 1 == 0 { 1.0 } else { -1.0 };
    sign * (1.0 + (word >> 12) as f64) * 2f64.powi((word >> 1 & 7) as i32)
}

/// Makes this member late, now and then.
fn linger(member: usize, call: usize) {
    if word(member, 7, call).is_multiple_of(5) {
        std::thread::sleep(Duration::from_micros(word(member, 8, call) % 400));
    }
}

/// Whether all members have the same.
fn is_everybodys<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    c: &mut Collectives<'s>,
    bits: u64,
) -> Result<bool> {
    let (and, or) = (c.allreduce_value(ctx, &And, bits)?, c.allreduce_value(ctx, &Or, bits)?);
    Ok(and == or)
}

case! {
    /// Sums of floating-point numbers: the same bits on every call whoever comes late, and at every member.
    pub fn sums_are_the_same_bits_on_every_call_and_at_every_member both_ways [2, 3, 5, 8] |ctx| {
        const LEN: usize = 41;
        let mut c = world(ctx, 3, 0)?;
        let q = c.len();
        let (mut x, mut y) = (ctx.local::<f64>(q * LEN)?, ctx.local::<f64>(q * LEN)?);
        let me = c.me();
        ctx.write(&mut x).iter_mut().enumerate().for_each(|(nth, x)| *x = number(me, nth));
        // The numbers are such that another order of adding would show.
        let sum = |members: &mut dyn Iterator<Item = usize>, nth| {
            members.map(|member| number(member, nth)).sum::<f64>()
        };
        let differs = |&nth: &usize| sum(&mut (0..q), nth) != sum(&mut (0..q).rev(), nth);
        assert!(q == 2 || (0..LEN).filter(differs).count() > 5, "no order shows");
        let mut calls = 0;
        for what in REDUCTIONS.into_iter().filter(|&what| what != What::AllreduceInPlace) {
            for way in 1..what.ways() {
                let mut first: Option<Vec<u64>> = None;
                for _ in 0..6 {
                    calls += 1;
                    linger(me, calls);
                    ctx.write(&mut y).fill(0.0);
                    what.prefer(c.preferences_mut(), way);
                    let (all, one) = (..q * LEN, ..LEN);
                    match what {
                        What::Reduce => c.reduce(ctx, q / 2, &Sum, (&x, all), (&mut y, all))?,
                        What::Allreduce => c.allreduce(ctx, &Sum, (&x, all), (&mut y, all))?,
                        What::ReduceScatter => {
                            c.reduce_scatter(ctx, &Sum, (&x, all), (&mut y, one))?;
                        }
                        What::Scan => c.scan(ctx, &Sum, (&x, all), (&mut y, all))?,
                        _ => c.exscan(ctx, &Sum, (&x, all), (&mut y, all))?,
                    }
                    let bits: Vec<u64> = ctx.read(&y).iter().map(|y| y.to_bits()).collect();
                    let first = first.get_or_insert_with(|| bits.clone());
                    assert!(*first == bits, "{what:?}, way {way}: other bits than before");
                    if what == What::Allreduce {
                        let sum = bits.iter().fold(0, |sum, &bits| word(sum as usize, 0, bits as usize));
                        assert!(is_everybodys(ctx, &mut c, sum)?, "{way}: others have other bits");
                    }
                }
            }
        }
        ctx.sync()?;
    }
}

case! {
    /// MinAt and MaxAt: of equal values the lowest position, whichever member has it.
    pub fn of_equal_values_the_lowest_position_is_named both_ways [1, 2, 5, 8] |ctx| {
        let mut c = world(ctx, 3, 0)?;
        let (p, me) = (ctx.nprocs(), ctx.pid());
        let (mut x, mut y) = (ctx.local::<At<i32>>(30)?, ctx.local::<At<i32>>(30)?);
        // Two members have the least value of element `nth`, and others the greatest; positions go down.
        let own = |me: Pid, nth: usize| {
            let value = match (me + nth) % p.max(3) {
                0 | 1 => -5,
                2 => 6,
                _ => 6 * ((me + nth) % 2) as i32,
            };
            At::new(value, p - me)
        };
        ctx.write(&mut x).iter_mut().enumerate().for_each(|(nth, x)| *x = own(me, nth));
        for way in Allreduce::ALL {
            c.preferences_mut().allreduce = Some(*way);
            c.allreduce(ctx, &MinAt, &x, &mut y)?;
            for (nth, y) in ctx.read(&y).iter().enumerate() {
                let least = (0..p).map(|me| own(me, nth)).min_by_key(|at| (at.value, at.position));
                assert_eq!(Some(*y), least, "{way}, element {nth}");
            }
            c.allreduce(ctx, &MaxAt, &x, &mut y)?;
            for (nth, y) in ctx.read(&y).iter().enumerate() {
                let most = (0..p).map(|me| own(me, nth)).min_by_key(|at| (-at.value, at.position));
                assert_eq!(Some(*y), most, "{way}, element {nth}");
            }
        }
        let own = At::new(2.5, p - me);
        assert_eq!(c.allreduce_value(ctx, &MinAt, own)?, At::new(2.5, 1));
        ctx.sync()?;
    }
}

case! {
    /// Each operator against the fold of a sequential program, and its identity.
    pub fn operators_do_what_they_say both_ways [3] |ctx| {
        let mut c = world(ctx, 1, 0)?;
        let me = c.me();
        macro_rules! folds {
            ($($operator:ident of $type:ty: $f:expr;)*) => {$(
                let own = |member: usize| word(member, 5, 1) as $type;
                let all = (0..c.len()).map(own).reduce($f).expect("somebody");
                assert_eq!(c.allreduce_value(ctx, &$operator, own(me))?, all);
                let identity = Operator::<$type>::identity(&$operator);
                assert_eq!($operator.combine(identity, own(me)), own(me));
                assert_eq!($operator.combine(own(me), identity), own(me));
            )*};
        }
        folds! {
            Sum of i64: |a, b| a.wrapping_add(b);
            Product of i64: |a, b| a.wrapping_mul(b);
            Min of i64: |a, b| a.min(b);
            Max of i64: |a, b| a.max(b);
            And of u32: |a, b| a & b;
            Or of u32: |a, b| a | b;
            Xor of u16: |a, b| a ^ b;
            Min of f64: |a, b| a.min(b);
            Max of f32: |a, b| a.max(b);
        }
        ctx.sync()?;
    }
}

case! {
    /// The built-in operators on arrays and pairs, and pairs of operators, nested.
    pub fn arrays_and_pairs_are_combined_element_by_element both_ways [1, 2, 5] |ctx| {
        let mut c = world(ctx, 0, 0)?;
        let (me, q) = (c.me(), c.len());
        let sum = q * (q - 1) / 2;
        assert_eq!(c.allreduce_value(ctx, &Sum, [me, 1])?, [sum, q]);
        assert_eq!(c.allreduce_value(ctx, &Max, [-(me as f64), me as f64])?, [0.0, (q - 1) as f64]);
        assert_eq!(c.allreduce_value(ctx, &Xor, [[me, me], [0, 7 * me]])?[1][0], 0);
        assert_eq!(c.scan_value(ctx, &Sum, [1, me])?, [me + 1, me * (me + 1) / 2]);
        let before = if me == 0 { [usize::MAX; 2] } else { [0, 5] };
        assert_eq!(c.exscan_value(ctx, &Min, [me, 5])?, before);
        let least = c.allreduce_value(ctx, &MinAt, [At::new(1.5, me), At::new(-(me as f64), me)])?;
        assert_eq!(least, [At::new(1.5, 0), At::new(1.0 - q as f64, q - 1)]);
        let Pair(total, count) = c.allreduce_value(ctx, &Sum, Pair(0.5, 1_u8))?;
        assert_eq!((total, count), (0.5 * q as f64, q as u8));
        let three = Pair(me as f64, Pair(me as u32, [me, me + 9]));
        let Pair(total, Pair(least, greatest)) =
            c.allreduce_value(ctx, &(Sum, (Min, Max)), three)?;
        assert_eq!((total, least, greatest), (sum as f64, 0, [q - 1, q + 8]));
    }
}
