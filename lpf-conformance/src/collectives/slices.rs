//! Collectives on slices, which return vectors.

use std::fmt::Debug;

use lpf_collectives::*;
use lpf_core::{Context, Lpf, Result};

use super::elements::{Element, word};
use super::world;

/// Elements of member `member`.
fn elements<T: Element>(member: usize, salt: usize, len: usize) -> Vec<T> {
    (0..len).map(|nth| T::of(word(member, salt, nth))).collect()
}

/// A length for each pair of members: none, few, or so many that members have to agree on their memory.
fn len_of(from: usize, to: usize, salt: usize) -> usize {
    [0, 3, 1, 0, 40, 700, 0, 5000][(3 * from + 5 * to + salt) % 8]
}

fn same<T: PartialEq + Debug>(got: &T, expected: &T, story: &str) {
    // Their elements would be pages.
    assert!(got == expected, "{story}: another vector than expected");
}

/// Every call on slices, for every root.
fn slices<'s, L: Lpf, T: Element>(
    ctx: &mut Context<'s, L>,
    c: &mut Collectives<'s>,
    salt: usize,
) -> Result<()> {
    let (me, q, op) = (c.me(), c.len(), T::Op::default());
    let combined = |len: usize| -> Vec<T> {
        let one = |nth: usize| {
            let operands = (0..q).map(|member| T::of(word(member, salt, nth)));
            operands.fold(op.identity(), |left, right| op.combine(left, right))
        };
        (0..len).map(one).collect()
    };
    let own = |member| elements::<T>(member, salt, len_of(member, 0, salt));
    let all: Vec<T> = (0..q).flat_map(own).collect();
    let value = |member| T::of(word(member, salt, 0));
    let values: Vec<T> = (0..q).map(value).collect();
    same(&c.allgather_value(ctx, value(me))?, &values, "allgather_value");
    same(&c.allgather_vec(ctx, &own(me))?, &all, "allgather_vec");

    let len = len_of(1, 1, salt);
    let x = elements::<T>(me, salt, len);
    same(&c.allreduce_vec(ctx, &op, &x)?, &combined(len), "allreduce_vec");
    let block = len_of(1, 2, salt);
    let x = elements::<T>(me, salt, q * block);
    let own_block = &combined(q * block)[me * block..][..block];
    same(&&*c.reduce_scatter_vec(ctx, &op, &x)?, &own_block, "reduce_scatter_vec");
    let blocks: Vec<T> = (0..q)
        .flat_map(|from| elements::<T>(from, salt, q * block)[me * block..][..block].to_vec())
        .collect();
    same(&c.alltoall_vec(ctx, &x)?, &blocks, "alltoall_vec");

    let part = |from: usize, to: usize| elements::<T>(from, salt + to, len_of(from, to, salt));
    let parts: Vec<Vec<T>> = (0..q).map(|to| part(me, to)).collect();
    let received: Vec<Vec<T>> = (0..q).map(|from| part(from, me)).collect();
    same(&c.exchange(ctx, &parts)?, &received, "exchange");
    let borrowed: Vec<&[T]> = parts.iter().map(Vec::as_slice).collect();
    same(&c.exchange(ctx, &borrowed)?, &received, "exchange of slices");

    for root in 0..q {
        let here = |vector: Vec<T>| if me == root { vector } else { Vec::new() };
        let x = here(own(root));
        same(&c.broadcast_vec(ctx, root, &x)?, &own(root), "broadcast_vec");
        same(&c.gather_vec(ctx, root, &own(me))?, &here(all.clone()), "gather_vec");
        let x = elements::<T>(me, salt, len);
        same(&c.reduce_vec(ctx, root, &op, &x)?, &here(combined(len)), "reduce_vec");
        let given = if me == root { parts.clone() } else { Vec::new() };
        same(&c.scatter_vec(ctx, root, &given)?, &part(root, me), "scatter_vec");
    }
    Ok(())
}

case! {
    /// Elements of every size, parts of every length, in all processes and in groups, by expected arrivals and in full
    /// supersteps; the program reserves nothing.
    pub fn slices_give_what_a_sequential_program_gives both_ways [1, 2, 3, 5] |ctx| {
        let mut c = Collectives::new(ctx)?;
        for mode in [None, Some(Mode::Full)] {
            c.preferences_mut().mode = mode;
            for salt in 0..8 {
                slices::<_, u64>(ctx, &mut c, salt)?;
            }
            slices::<_, u8>(ctx, &mut c, 1)?;
            slices::<_, [u32; 3]>(ctx, &mut c, 2)?;
            slices::<_, [u64; 0]>(ctx, &mut c, 3)?;
        }
        c.preferences_mut().mode = None;
        let mut half = c.split(ctx, Some(ctx.pid() % 2))?.expect("a colour was named");
        for salt in 0..4 {
            slices::<_, u32>(ctx, &mut half, salt)?;
            slices::<_, u16>(ctx, &mut c, salt)?;
        }
    }
}

case! {
    /// What the caller has put and registered waits for its own full sync, and its slots are its own, while the room of
    /// the collectives grows.
    pub fn slices_leave_requests_and_slots_alone both_ways [2, 3] |ctx| {
        let mut c = world(ctx, 3, 2)?;
        let (mut x, y) = (ctx.area::<usize>(1)?, ctx.area::<usize>(1)?);
        ctx.sync()?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let (next, left) = ((me + 1) % p, (me + p - 1) % p);
        for round in 1..6 {
            ctx.write(&mut x)[0] = 100 * round + me;
            let before = ctx.read(&y)[0];
            ctx.put(&x, .., next, &y, 0)?;
            let late = ctx.area::<usize>(1)?;
            slices::<_, u64>(ctx, &mut c, round)?;
            let parts = vec![vec![me; 3000 * round]; p];
            let received = c.exchange(ctx, &parts)?;
            assert_eq!(received[left], vec![left; 3000 * round]);
            assert_eq!(ctx.read(&y)[0], before, "done too early");
            assert!(ctx.local::<u8>(1).expect_err("no slot is left").is_misuse());
            assert!(ctx.put(&x, .., next, &late, 0).expect_err("not in force").is_misuse());
            ctx.sync()?;
            assert_eq!(ctx.read(&y)[0], 100 * round + left);
            drop(late);
            ctx.sync()?;
        }
    }
}

case! {
    /// Calls without a full sync between them: the memory is that of the longest.
    pub fn slices_of_many_calls_take_the_memory_of_one both_ways [2] |ctx| {
        let mut c = world(ctx, 0, 0)?;
        let before = ctx.area_bytes();
        for call in 0..200 {
            let x = vec![call as u64; 50 * call];
            assert_eq!(c.allreduce_vec(ctx, &Max, &x)?, x);
        }
        // Input and result, doubled; and as much again of those before.
        let (grown, most) = (ctx.area_bytes() - before, 2 * 8 * 50 * 200);
        assert!(grown <= 4 * most, "{grown} bytes more, where a call has {most}");
        ctx.sync()?;
        assert!(ctx.area_bytes() - before <= 2 * most, "what was replaced is not freed");
    }
}

/// Asserts that a call is a misuse whose text has these words.
fn refused<T: Debug>(result: Result<T>, words: &str) {
    let error = result.expect_err(words);
    let text = error.to_string();
    assert!(error.is_misuse() && text.contains(words), "{words}: {text}");
    assert!(text.contains("(called at ") && text.contains("slices.rs:"), "no place: {text}");
}

case! {
    /// A root that is not a member, a wrong number of parts, lengths that are no multiple: also at one member alone, while
    /// the others wait for the right call.
    pub fn misuse_of_slices_is_found_at_the_call_and_has_no_effect both_ways [2, 3] |ctx| {
        let mut c = world(ctx, 0, 0)?;
        let (me, q) = (c.me(), c.len());
        if me == 0 {
            let (x, parts) = (vec![1_u32; q * 5000 + 1], vec![vec![1_u32]; q + 1]);
            let words = &format!("member {q} was named as the root of a group of {q}");
            refused(c.broadcast_vec(ctx, q, &x), words);
            refused(c.reduce_vec(ctx, q, &Sum, &x), words);
            refused(c.gather_vec(ctx, q, &x), words);
            refused(c.scatter_vec(ctx, q, &parts), words);
            let words = &format!("{} parts for a group of {q}", q + 1);
            refused(c.scatter_vec(ctx, 0, &parts), words);
            refused(c.exchange(ctx, &parts), words);
            let words = "cannot be divided evenly";
            refused(c.reduce_scatter_vec(ctx, &Sum, &x), words);
            refused(c.alltoall_vec(ctx, &x), words);
        }
        slices::<_, u64>(ctx, &mut c, 5)?;
    }
}
