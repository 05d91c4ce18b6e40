//! Long sums of floating-point numbers: the same bits however many pieces a vector goes in.

use lpf_collectives::arrival_pattern::Estimates;
use lpf_collectives::*;
use lpf_core::{Context, Local, Lpf, Result};

use super::calls::What;
use super::elements::word;
use super::{tight, world};

/// Collectives whose algorithms combine vectors.
fn combining() -> impl Iterator<Item = What> {
    What::ALL.into_iter().filter(|what| what.combines() && *what != What::AllreduceValue)
}

/// A number whose sums are rounded, so that they show in which order it was added.
fn number(member: usize, column: usize) -> f64 {
    let word = word(member, 21, column);
    let sign = if word & 1 == 0 { 1.0 } else { -1.0 };
    sign * (1.0 + (word >> 12) as f64) * 2f64.powi((word >> 1 & 15) as i32)
}

/// Combines `x` into `y` by an algorithm, and returns the bits of this member's result, if it has one.
fn sum<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    c: &mut Collectives<'s>,
    (what, way, mode): (What, usize, Mode),
    (x, y): (&Local<'s, f64>, &mut Local<'s, f64>),
) -> Result<Vec<u64>> {
    let (q, root) = (c.len(), c.len() / 2);
    let times: Vec<u64> = (0..q as u64).map(|member| member * 5 % 3 * 700).collect();
    let arrivals = Estimates::new(&times, 1);
    what.prefer(c.preferences_mut(), way);
    let preferences = c.preferences_mut();
    (preferences.mode, preferences.segments) = (Some(mode), Some(7));
    preferences.round_ns = Some(100);
    let contribution = ctx.read(x).to_vec();
    let len = contribution.len();
    ctx.write(y).copy_from_slice(&contribution);
    let mut has = len;
    match what {
        What::Reduce => c.reduce(ctx, root, &Sum, x, &mut *y)?,
        What::Allreduce => c.allreduce(ctx, &Sum, x, &mut *y)?,
        What::AllreduceInPlace => c.allreduce_in_place(ctx, &Sum, &mut *y)?,
        What::ReduceScatter => {
            has = len / q;
            c.reduce_scatter(ctx, &Sum, (x, ..has * q), (&mut *y, ..has))?;
        }
        What::Scan => c.scan(ctx, &Sum, x, &mut *y)?,
        What::Exscan => c.exscan(ctx, &Sum, x, &mut *y)?,
        What::ReduceByArrival => c.reduce_by_arrival(ctx, &arrivals, root, &Sum, x, &mut *y)?,
        What::AllreduceByArrival => c.allreduce_by_arrival(ctx, &arrivals, &Sum, x, &mut *y)?,
        _ => c.allreduce_in_place_by_arrival(ctx, &arrivals, &Sum, &mut *y)?,
    }
    if what.has_root() && c.me() != root {
        has = 0;
    }
    Ok(ctx.read(y)[..has].iter().map(|y| y.to_bits()).collect())
}

/// The sum of a column in block `block` of a vector that is cut into a block for each of `q` members.
fn by_block(way: Allreduce, q: usize, block: usize, column: usize) -> Option<f64> {
    let add = |a: f64, b: f64| a + b;
    let own = |member: usize| number(member % q, column);
    match way {
        // It begins behind its owner, and goes around to it.
        Allreduce::Ring => (1..=q).map(|distance| own(block + distance)).reduce(add),
        // Its owner adds those before it, from the nearest on, and then those behind it.
        Allreduce::Transpose => (0..=block).rev().chain(block + 1..q).map(own).reduce(add),
        _ => None,
    }
}

/// The block of a column: lines of eight numbers are divided evenly, or single numbers if there are fewer lines than
/// members. The first blocks have one more, and the last one has what is left of a line.
fn block_of(q: usize, len: usize, column: usize) -> usize {
    let unit = if len / 8 >= q { 8 } else { 1 };
    let units = len / unit;
    let end = |block: usize| block * (units / q) + block.min(units % q);
    (1..q).take_while(|&block| column / unit >= end(block)).count()
}

/// Every algorithm with every one of these objects, in both modes, gives the same bits.
fn same_bits<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    all: &mut [Collectives<'s>],
    len: usize,
) -> Result<()> {
    let (mut x, mut y) = (ctx.local::<f64>(len)?, ctx.local::<f64>(len)?);
    let (me, q) = (all[0].me(), all[0].len());
    ctx.write(&mut x).iter_mut().enumerate().for_each(|(nth, x)| *x = number(me, nth));
    for what in combining() {
        for way in 1..what.ways() {
            let mut first: Option<Vec<u64>> = None;
            for (nth, c) in all.iter_mut().enumerate() {
                for mode in [Mode::Expected, Mode::Full] {
                    let bits = sum(ctx, c, (what, way, mode), (&x, &mut y))?;
                    let first = first.get_or_insert_with(|| bits.clone());
                    let differs = bits.iter().zip(&*first).position(|(one, other)| one != other);
                    let story =
                        format!("{what:?}, way {way}, object {nth}, {mode:?}, member {me} of {q}");
                    assert_eq!(
                        differs, None,
                        "{story}: an element has other bits than in the first call"
                    );
                }
            }
            if matches!(what, What::Allreduce | What::AllreduceInPlace) {
                for (column, &bits) in first.iter().flatten().enumerate() {
                    let order =
                        by_block(Allreduce::ALL[way - 1], q, block_of(q, len, column), column);
                    let is = f64::from_bits(bits);
                    assert!(
                        order.is_none_or(|sum| sum.to_bits() == bits),
                        "way {way} of {q}, column {column}: {is} and not {order:?}"
                    );
                }
            }
        }
    }
    for local in [x, y] {
        ctx.deregister(local)?;
    }
    Ok(())
}

case! {
    /// Vectors that need several pieces in one mode and fewer in the other, and with more memory for pieces still fewer:
    /// the bits are those of the algorithm, the length and the number of members.
    pub fn long_sums_have_the_same_bits_in_both_modes both_ways [2, 3, 5] |ctx| {
        ctx.resize(2, 0)?;
        let settings = tight(ctx.nprocs());
        let more = Settings { scratch_bytes: 16 << 10, ..settings };
        let mut all = [
            Collectives::with(ctx, settings)?,
            Collectives::with(ctx, more)?,
            Collectives::new(ctx)?,
        ];
        for len in [1, 203, 803] {
            same_bits(ctx, &mut all, len)?;
        }
        ctx.sync()?;
    }
}

case! {
    /// The same with the usual settings: 131,072 elements and more are longer than their memory for pieces.
    pub fn sums_of_a_mebibyte_and_more_have_the_same_bits_in_both_modes both_ways [3] |ctx| {
        let mut all = [world(ctx, 2, 0)?];
        for len in [131_072, 150_001] {
            same_bits(ctx, &mut all, len)?;
        }
        ctx.sync()?;
    }
}

case! {
    /// A vector whose columns are equal: so are the bits of its sums, but where an algorithm adds the columns of
    /// different blocks or segments in different orders.
    pub fn equal_columns_have_equal_bits both_ways [2, 5] |ctx| {
        const LEN: usize = 701;
        let settings = tight(ctx.nprocs());
        ctx.resize(2, 0)?;
        let mut c = Collectives::with(ctx, settings)?;
        let (mut x, mut y) = (ctx.local::<f64>(LEN)?, ctx.local::<f64>(LEN)?);
        let me = c.me();
        ctx.write(&mut x).fill(number(me, 0));
        let mut different = 0;
        for what in combining() {
            for way in 1..what.ways() {
                let is_cut = match what {
                    What::Reduce => matches!(Reduce::ALL[way - 1], Reduce::Transpose | Reduce::Radix | Reduce::Ring),
                    What::Allreduce | What::AllreduceInPlace => {
                        matches!(Allreduce::ALL[way - 1], Allreduce::Transpose | Allreduce::Ring)
                    }
                    What::ReduceByArrival => ReduceByArrival::ALL[way - 1] == ReduceByArrival::Clairvoyant,
                    What::AllreduceByArrival | What::AllreduceInPlaceByArrival => {
                        AllreduceByArrival::ALL[way - 1] != AllreduceByArrival::Linear
                    }
                    _ => false,
                };
                for mode in [Mode::Expected, Mode::Full] {
                    let bits = sum(ctx, &mut c, (what, way, mode), (&x, &mut y))?;
                    let differs = bits.iter().any(|&one| one != bits[0]);
                    different += usize::from(differs);
                    assert!(!differs || is_cut, "{what:?}, way {way}, {mode:?}: columns have different bits");
                }
            }
        }
        assert!(different > 0 || c.len() < 5, "no order shows");
        ctx.sync()?;
    }
}
