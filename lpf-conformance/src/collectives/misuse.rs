//! Misuse: found at the call, without effect, and the section goes on.

use lpf_collectives::*;
use lpf_core::error::counted;

use super::calls::{Call, What};
use super::vectors::{Room, SLOTS};
use super::world;
use crate::verdict::refuses;

/// Longer than the cells of the case below.
type Long = [u64; 16];

struct Longest;

impl Operator<Long> for Longest {
    fn identity(&self) -> Long {
        [0; 16]
    }

    fn combine(&self, left: Long, right: Long) -> Long {
        left.max(right)
    }
}

/// Asserts that a call is a misuse whose text has these words.
fn refused<T: std::fmt::Debug>(result: lpf_core::Result<T>, words: &str) {
    let error = result.expect_err(words);
    let text = error.to_string();
    assert!(error.is_misuse() && text.contains(words), "{words}: {text}");
    assert!(text.contains("(called at ") && text.contains("misuse.rs:"), "no place: {text}");
}

case! {
    /// Roots that are no members, ranges outside, lengths that do not match, wrong numbers of counts,
    /// elements longer than a cell. No target is touched, and the next collective works.
    pub fn misuse_is_found_at_the_call_and_has_no_effect both_ways [1, 2, 3] |ctx| {
        ctx.resize(SLOTS + 6, 0)?;
        let usual = Settings::new(ctx.nprocs());
        let settings = Settings { cell_bytes: 64, ..usual };
        let mut c = Collectives::with(ctx, settings)?;
        let mut room = Room::<u64>::new(ctx, 40)?;
        let q = c.len();
        // Both are a block of two for each member.
        let (mut x, mut y) = (ctx.area::<u32>(2 * q)?, ctx.local::<u32>(2 * q)?);
        let (mut long, mut to) = (ctx.local::<Long>(q)?, ctx.area::<Long>(q)?);
        let mut huge = ctx.local::<[u64; 64]>(1)?;
        ctx.sync()?;
        ctx.write(&mut x).fill(7);
        ctx.write(&mut y).fill(8);
        ctx.write(&mut long).fill([9; 16]);
        ctx.write(&mut to).fill([10; 16]);
        ctx.write(&mut huge).fill([11; 64]);
        for nobody in [q, q + 1, usize::MAX] {
            let words = &format!("member {nobody} was named as the root of a group of {q}");
            refused(c.broadcast(ctx, nobody, &mut y), words);
            refused(c.broadcast_value(ctx, nobody, 1u8), words);
            refused(c.reduce(ctx, nobody, &Sum, &x, &mut y), words);
            refused(c.gather(ctx, nobody, (&x, ..2), &mut y), words);
            refused(c.gather_v(ctx, nobody, (&x, ..2), &vec![2; q], &mut y), words);
            refused(c.scatter(ctx, nobody, &x, (&mut y, ..2)), words);
            refused(c.scatter_v(ctx, nobody, &x, &vec![2; q], (&mut y, ..2)), words);
        }
        let len = 2 * q;
        let out = format!("of an area of {len}");
        refused(c.broadcast(ctx, 0, (&mut y, 1..len + 1)), &out);
        #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
        refused(c.broadcast(ctx, 0, (&mut y, 2..1)), &out);
        refused(c.broadcast(ctx, 0, (&mut y, ..=usize::MAX)), &out);
        refused(c.broadcast(ctx, 0, (&mut y, len + 1..)), &out);
        refused(c.allreduce(ctx, &Sum, (&x, len..len + 1), (&mut y, ..1)), &out);
        refused(c.allreduce(ctx, &Sum, (&x, ..1), (&mut y, len..len + 1)), &out);
        refused(c.allreduce_in_place(ctx, &Sum, (&mut x, ..len + 1)), &out);
        refused(c.reduce(ctx, 0, &Sum, (&x, ..len + 1), &mut y), &out);
        refused(c.scan(ctx, &Sum, (&x, ..len + 1), &mut y), &out);
        refused(c.allgather(ctx, (&x, len..len + 2), &mut y), &out);
        refused(c.alltoall(ctx, (&x, ..len + 1), &mut y), &out);
        refused(c.scatter(ctx, 0, &x, (&mut y, len..len + 2)), &out);
        let other = "where this call needs";
        refused(c.allreduce(ctx, &Sum, (&x, 1..), &mut y), other);
        refused(c.scan(ctx, &Sum, (&x, 1..), &mut y), other);
        refused(c.exscan(ctx, &Sum, &x, (&mut y, 1..)), other);
        refused(c.reduce_scatter(ctx, &Sum, &x, (&mut y, ..1)), other);
        refused(c.allgather(ctx, (&x, ..1), &mut y), other);
        refused(c.alltoall(ctx, &x, (&mut y, 1..)), other);
        refused(c.allgather_v(ctx, (&x, ..1), &vec![2; q], &mut y), other);
        refused(c.allgather_v(ctx, (&x, ..2), &vec![2; q], (&mut y, 1..)), other);
        refused(c.alltoall_v(ctx, (&x, 1..), &vec![2; q], &mut y, &vec![2; q]), other);
        refused(c.alltoall_v(ctx, &x, &vec![2; q], (&mut y, 1..), &vec![2; q]), other);
        refused(c.gather_v(ctx, 0, (&x, ..1), &vec![2; q], &mut y), other);
        refused(c.scatter_v(ctx, 0, &x, &vec![2; q], (&mut y, ..1)), other);
        let me = c.me();
        refused(c.reduce(ctx, me, &Sum, &x, (&mut y, 1..)), other);
        refused(c.gather(ctx, me, (&x, ..2), (&mut y, 1..)), other);
        refused(c.scatter(ctx, me, (&x, 1..), (&mut y, ..2)), other);
        if q > 1 {
            let words = "cannot be divided evenly";
            refused(c.alltoall(ctx, (&x, 1..), (&mut y, 1..)), words);
            refused(c.reduce_scatter(ctx, &Sum, (&x, 1..), (&mut y, ..1)), words);
        }
        for count in [0, q - 1, q + 1] {
            if count == q {
                continue;
            }
            let words = &format!("{} for a group of {q}, ", counted(count as u64, "count"));
            let counts = vec![2; count];
            refused(c.allgather_v(ctx, (&x, ..2), &counts, &mut y), words);
            refused(c.gather_v(ctx, 0, (&x, ..2), &counts, &mut y), words);
            refused(c.scatter_v(ctx, 0, &x, &counts, (&mut y, ..2)), words);
            refused(c.alltoall_v(ctx, &x, &counts, &mut y, &vec![2; q]), words);
            refused(c.alltoall_v(ctx, &x, &vec![2; q], &mut y, &counts), words);
        }
        let mut own = vec![2; q];
        own[me] = 3;
        let words = "differ for its own block: it sends 2 and receives 3";
        refused(c.alltoall_v(ctx, &x, &vec![2; q], &mut y, &own), words);
        for much in [usize::MAX, usize::MAX / 4] {
            let (counts, words) = (&vec![much; q], "add up to more elements than there is memory for");
            refused(c.allgather_v(ctx, (&x, ..2), counts, &mut y), words);
            refused(c.gather_v(ctx, 0, (&x, ..2), counts, &mut y), words);
            refused(c.scatter_v(ctx, 0, &x, counts, (&mut y, ..2)), words);
            refused(c.alltoall_v(ctx, &x, counts, &mut y, counts), words);
        }
        let words = "do not fit the collectives' cells";
        refused(c.allreduce(ctx, &Longest, &long, &mut to), words);
        refused(c.allreduce_in_place(ctx, &Longest, &mut to), words);
        refused(c.allreduce_value(ctx, &Longest, [3; 16]), words);
        refused(c.reduce(ctx, 0, &Longest, &long, &mut to), words);
        refused(c.reduce_scatter(ctx, &Longest, &long, (&mut to, ..1)), words);
        refused(c.scan(ctx, &Longest, &long, &mut to), words);
        refused(c.exscan(ctx, &Longest, &long, &mut to), words);
        if let Some(mut part) = c.split(ctx, (me > 0).then_some(0))? {
            part.preferences_mut().mode = Some(Mode::Full);
            refused(part.broadcast(ctx, 0, &mut y), "need all processes as members");
        }
        assert!(ctx.read(&to).iter().all(|&to| to == [10; 16]), "a refused call wrote");
        let mut fresh = ctx.area::<u32>(len)?;
        let words = "was registered in this superstep";
        refused(c.broadcast(ctx, 0, &mut fresh), words);
        refused(c.allreduce_in_place(ctx, &Sum, &mut fresh), words);
        refused(c.alltoall(ctx, &fresh, &mut y), words);
        // What is not combined may be as long as it likes.
        c.allgather(ctx, (&long, ..1), &mut to)?;
        c.broadcast(ctx, q - 1, &mut huge)?;
        assert!(ctx.read(&to).iter().all(|&to| to == [9; 16]));
        assert_eq!(ctx.read(&x), vec![7; len]);
        assert_eq!(ctx.read(&y), vec![8; len]);
        for salt in 0..What::ALL.len() {
            let (what, at, local) = (What::ALL[salt], [0; 2], [false; 2]);
            Call { what, way: 0, root: 0, len: 4, at, local, salt }.make(ctx, &mut c, &mut room)?;
        }
        ctx.sync()?;
    }
}

case! {
    /// Each text, word for word.
    pub fn misuse_is_told_in_the_same_words both_ways [3] |ctx| {
        ctx.resize(4, 0)?;
        let settings = Settings { cell_bytes: 64, ..Settings::new(ctx.nprocs()) };
        let (small, narrow) = (Settings { cell_bytes: 63, window: 4, ..settings }, Settings { window: 1, ..settings });
        refuses! { ctx;
            Collectives::with(ctx, small) =>
                "collectives need a Settings::cell_bytes of at least 64 and a Settings::window of 2 to 64, not 63 \
                 and 4 (called at HERE)";
            Collectives::with(ctx, narrow) =>
                "collectives need a Settings::cell_bytes of at least 64 and a Settings::window of 2 to 64, not 64 \
                 and 1 (called at HERE)";
        }
        let mut c = Collectives::with(ctx, settings)?;
        let (x, mut y) = (ctx.local::<u32>(6)?, ctx.local::<u32>(6)?);
        let mut long = ctx.local::<Long>(1)?;
        ctx.sync()?;
        let mut fresh = ctx.area::<u32>(6)?;
        let (me, mut own) = (c.me(), [2; 3]);
        own[me] = 3;
        #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
        let backwards = 2..1;
        refuses! { ctx;
            c.broadcast(ctx, 3, &mut y) =>
                "member 3 was named as the root of a group of 3, whose last is 2 (called at HERE)";
            c.broadcast(ctx, 0, (&mut y, 1..7)) =>
                "elements 1..7 were asked for of an area of 6 (called at HERE)";
            c.broadcast(ctx, 0, (&mut y, backwards)) =>
                "elements 2..1 were asked for of an area of 6, which end before they begin (called at HERE)";
            c.broadcast(ctx, 0, &mut fresh) =>
                "global slot 1 was registered in this superstep; it can be used after the next sync (called at HERE)";
            c.allreduce(ctx, &Sum, (&x, 1..), &mut y) =>
                "y has 6 elements where this call needs exactly 5 (called at HERE)";
            c.alltoall(ctx, (&x, 1..), (&mut y, 1..)) =>
                "5 elements cannot be divided evenly among 3 members; the next length that can is 6 (called at HERE)";
            c.allgather_v(ctx, (&x, ..2), &[2, 2], &mut y) =>
                "2 counts for a group of 3, which takes one for each member (called at HERE)";
            c.allgather_v(ctx, (&x, ..2), &[usize::MAX; 3], &mut y) =>
                "the counts add up to more elements than there is memory for (called at HERE)";
            c.alltoall_v(ctx, &x, &[2; 3], &mut y, &own) => &format!(
                "the counts of member {me} differ for its own block: it sends 2 and receives 3 (called at HERE)"
            );
            c.allreduce_in_place(ctx, &Longest, &mut long) =>
                "elements of 128 bytes do not fit the collectives' cells of 64; see Settings::cell_bytes (called at \
                 HERE)";
        }
        if let Some(mut part) = c.split(ctx, (me > 0).then_some(0))? {
            part.preferences_mut().mode = Some(Mode::Full);
            refuses! { ctx;
                part.broadcast(ctx, 0, &mut y) => "full supersteps need all processes as members (called at HERE)";
            }
        }
        ctx.sync()?;
    }
}

case! {
    /// A call that was misuse at one member has not been made there: it makes the right one, for which the
    /// others wait.
    pub fn misuse_at_one_member_alone_can_be_made_good both_ways [2, 4] |ctx| {
        let mut c = world(ctx, 2, 0)?;
        let (q, me) = (c.len(), c.me());
        let (mut x, mut y) = (ctx.local::<u64>(q)?, ctx.local::<u64>(q)?);
        ctx.write(&mut x).fill(me as u64);
        for clumsy in 0..q {
            if me == clumsy {
                refused(c.allreduce(ctx, &Sum, &x, (&mut y, 1..)), "where this call needs");
                refused(c.gather(ctx, me, (&x, ..1), (&mut y, 1..)), "where this call needs");
                refused(c.broadcast(ctx, q, &mut y), "of a group of");
            }
            c.allreduce(ctx, &Sum, &x, &mut y)?;
            assert_eq!(ctx.read(&y), vec![(q * (q - 1) / 2) as u64; q]);
            c.gather(ctx, clumsy, (&x, ..1), &mut y)?;
            if me == clumsy {
                assert_eq!(ctx.read(&y), (0..q as u64).collect::<Vec<_>>());
            }
        }
        ctx.sync()?;
    }
}

case! {
    /// Too small a cell, too small or too large a window, and more memory than there is.
    pub fn settings_that_cannot_be_are_refused both_ways [1, 2] |ctx| {
        ctx.resize(SLOTS, 0)?;
        let usual = Settings::new(ctx.nprocs());
        for settings in [
            Settings { cell_bytes: 63, ..usual },
            Settings { cell_bytes: 0, ..usual },
            Settings { window: 1, ..usual },
            Settings { window: 65, ..usual },
        ] {
            let error = Collectives::with(ctx, settings).expect_err("they cannot be");
            assert!(error.is_misuse(), "{settings:?}: {error}");
        }
        for settings in [
            Settings { cell_bytes: 1 << 60, ..usual },
            Settings { cell_bytes: usize::MAX, ..usual },
            Settings { scratch_bytes: 1 << 60, ..usual },
            Settings { scratch_bytes: usize::MAX - 5, ..usual },
            Settings { scratch_bytes: usize::MAX, ..usual },
        ] {
            let error = Collectives::with(ctx, settings).expect_err("nobody has as much");
            assert!(error.is_mitigable(), "{settings:?}: {error}");
        }
        // Some networks have a limit of their own.
        let too_many = Settings { group_members: usize::MAX, ..usual };
        let error = Collectives::with(ctx, too_many).expect_err("nobody has room for as many");
        assert!(error.is_misuse() || error.is_mitigable(), "{error}");
        let mut c = Collectives::new(ctx)?;
        let error = c.split(ctx, Some(usize::MAX)).expect_err("no colour");
        assert!(error.is_misuse(), "{error}");
        let sum = c.allreduce_value(ctx, &Sum, 1)?;
        assert_eq!(sum, ctx.nprocs());
        ctx.sync()?;
    }
}
