//! What put, get and sync do to memory.

use lpf_core::{Args, Context, Lpf, Memory, Pid, Result, SyncAttr};

use crate::memory::Buffer;
use crate::runner::{beside_others, section};
use crate::verdict::{failing_rehook, room};
use crate::{Harness, Mode};

/// What process `pid` sends in `round`, `len` bytes: other bytes for every process, round and place.
fn patterns(pid: Pid, round: usize, len: usize) -> Vec<u8> {
    let mut word = ((pid as u64) << 32 | round as u64) + 1;
    let words = std::iter::repeat_with(|| {
        word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ word >> 31;
        word.to_le_bytes()
    });
    let mut bytes = words.take(len.div_ceil(8)).collect::<Vec<_>>().concat();
    bytes.truncate(len);
    bytes
}

case! {
    /// Nothing moves before sync; when sync returns, this process's part is complete.
    pub fn a_put_moves_at_the_sync_and_not_before everywhere [1, 2, 3, 8] |ctx| {
        room(ctx, 2, 4)?;
        let (mut own, left) = (ctx.area::<usize>(1)?, ctx.area::<usize>(1)?);
        ctx.sync()?;
        for round in 1..20 {
            let before = ctx.read(&left)[0];
            ctx.write(&mut own)[0] = 1000 * round + ctx.pid();
            let next = (ctx.pid() + 1) % ctx.nprocs();
            ctx.put(&own, .., next, &left, 0)?;
            // The typed layer defines what a target holds until the sync: what it held before.
            assert_eq!(ctx.read(&left)[0], before, "it moved before the sync");
            ctx.sync()?;
            let from = (ctx.pid() + ctx.nprocs() - 1) % ctx.nprocs();
            assert_eq!(ctx.read(&left)[0], 1000 * round + from);
            ctx.sync()?;
        }
    }
}

case! {
    /// The same for get: it reads what the source holds at the sync.
    pub fn a_get_moves_at_the_sync_and_not_before everywhere [1, 2, 3, 8] |ctx| {
        room(ctx, 2, 4)?;
        let (mut own, right) = (ctx.area::<usize>(1)?, ctx.local::<usize>(1)?);
        ctx.sync()?;
        for round in 1..20 {
            let before = ctx.read(&right)[0];
            ctx.write(&mut own)[0] = 1000 * round + ctx.pid();
            let next = (ctx.pid() + 1) % ctx.nprocs();
            ctx.get(next, &own, .., &right, 0)?;
            assert_eq!(ctx.read(&right)[0], before, "it moved before the sync");
            ctx.sync()?;
            assert_eq!(ctx.read(&right)[0], 1000 * round + next);
        }
    }
}

case! {
    /// Gets of every small length from all at once, alone and beside a process that puts: an engine may let few bytes
    /// travel with its barriers.
    pub fn small_gets_arrive_whole_whatever_others_do everywhere [1, 2, 3, 5, 8] |ctx| {
        const BYTES: usize = 150;
        let (p, me) = (ctx.nprocs(), ctx.pid());
        room(ctx, 3, 4 * p)?;
        let (mut own, put) = (ctx.area::<u8>(BYTES)?, ctx.area::<u8>(BYTES)?);
        let mut got = ctx.local::<u8>(BYTES * p)?;
        ctx.sync()?;
        for round in 0..2 * BYTES {
            // Each process gets another length, some of them nothing.
            let (length, skipped) = ((round / 2 + 3 * me) % BYTES, round % 7);
            let length = length - skipped.min(length);
            ctx.write(&mut own).copy_from_slice(&patterns(me, round, BYTES));
            ctx.write(&mut got).fill(0xff);
            for from in 0..p {
                let at = BYTES * from;
                ctx.get(from, &own, skipped..skipped + length, &got, at)?;
            }
            let puts = round % 2 == 1 && me == 0;
            if puts {
                ctx.put(&own, .., (me + 1) % p, &put, 0)?;
            }
            ctx.sync()?;
            for (from, got) in ctx.read(&got).chunks(BYTES).enumerate() {
                let expected = patterns(from, round, BYTES);
                assert_eq!(got[..length], expected[skipped..skipped + length]);
                assert!(got[length..].iter().all(|&byte| byte == 0xff), "more arrived");
            }
            if round % 2 == 1 && me == 1 % p {
                assert_eq!(ctx.read(&put), patterns(0, round, BYTES));
            }
            // Sources are written again.
            ctx.sync()?;
        }
    }
}

case! {
    /// A put or get to oneself is allowed and obeys the same rules.
    pub fn requests_to_oneself_obey_the_same_rules everywhere [1, 2, 5] |ctx| {
        room(ctx, 2, 8)?;
        let me = ctx.pid();
        let (mut x, y) = (ctx.area::<u64>(4)?, ctx.area::<u64>(4)?);
        ctx.sync()?;
        ctx.write(&mut x).copy_from_slice(&[1, 2, 3, 4]);
        ctx.put(&x, 0..2, me, &y, 2)?;
        ctx.get(me, &x, 2..4, &y, 0)?;
        assert_eq!(ctx.read(&y), [0; 4]);
        ctx.sync()?;
        assert_eq!(ctx.read(&y), [3, 4, 1, 2]);
        // Within one area, as long as nothing is read and written.
        ctx.put(&y, 0..1, me, &y, 3)?;
        ctx.sync()?;
        assert_eq!(ctx.read(&y), [3, 4, 1, 3]);
    }
}

case! {
    /// Zero-size requests are legal and do nothing, also at the very end of a slot.
    pub fn an_empty_request_is_a_legal_no_op everywhere [1, 3] |ctx| {
        room(ctx, 2, 64)?;
        let (a, b) = (Buffer::filled(8, 1), Buffer::filled(8, 2));
        let (slot, local) = (a.global(ctx)?, b.local(ctx)?);
        ctx.sync()?;
        for to in 0..ctx.nprocs() {
            for offset in [0, 3, 8] {
                ctx.raw().put(local, offset, to, slot, 8 - offset, 0)?;
                ctx.raw().get(to, slot, offset, local, 8 - offset, 0)?;
            }
        }
        ctx.sync()?;
        assert_eq!((a.to_vec(), b.to_vec()), (vec![1; 8], vec![2; 8]));
    }
}

case! {
    /// Offsets and sizes are bytes: every length and alignment arrives, and nothing beside it.
    pub fn every_length_and_alignment_arrives_exactly everywhere [1, 2, 3] |ctx| {
        room(ctx, 3, 4)?;
        let me = ctx.pid();
        let (next, left) = ((me + 1) % ctx.nprocs(), (me + ctx.nprocs() - 1) % ctx.nprocs());
        let source = Buffer::of(&patterns(me, 0, 256));
        let (mut put, mut got) = (Buffer::zeroed(256), Buffer::zeroed(256));
        let (from, to) = (source.global(ctx)?, put.global(ctx)?);
        let here = got.local(ctx)?;
        ctx.sync()?;
        let lengths = (0..=40).chain([63, 64, 65, 127, 128, 129, 160]);
        for (i, bytes) in lengths.enumerate() {
            let (at, there) = (i * 7 % 19, 32 + i * 5 % 23);
            put.fill(0xee);
            got.fill(0xdd);
            ctx.sync()?;
            ctx.raw().put(from, at, next, to, there, bytes)?;
            ctx.raw().get(next, from, at, here, there, bytes)?;
            ctx.sync()?;
            for (buffer, pid, rest) in [(&put, left, 0xee), (&got, next, 0xdd)] {
                let mut expected = vec![rest; 256];
                let sent = &patterns(pid, 0, 256)[at..at + bytes];
                expected[there..there + bytes].copy_from_slice(sent);
                assert_eq!(buffer.to_vec(), expected, "{bytes} bytes from {at} to {there}");
            }
        }
    }
}

case! {
    /// A total exchange, by puts and by gets, in blocks of several sizes.
    pub fn every_process_sends_to_every_other everywhere [1, 2, 4, 7, 8] |ctx| {
        let p = ctx.nprocs();
        room(ctx, 3, 4 * p)?;
        for block in [1usize, 8, 100, 5000] {
            let me = ctx.pid();
            let (mut x, y) = (ctx.area::<u8>(block * p)?, ctx.area::<u8>(block * p)?);
            let z = ctx.local::<u8>(block * p)?;
            ctx.sync()?;
            ctx.write(&mut x).copy_from_slice(&patterns(me, block, block * p));
            for i in 0..p {
                let here = i * block..(i + 1) * block;
                let mine = me * block;
                ctx.put(&x, here.clone(), i, &y, mine)?;
                ctx.get(i, &x, mine..mine + block, &z, here.start)?;
            }
            ctx.sync()?;
            for i in 0..p {
                let mine = me * block..(me + 1) * block;
                let expected = &patterns(i, block, block * p)[mine];
                let here = i * block..(i + 1) * block;
                assert_eq!(&ctx.read(&y)[here.clone()], expected, "put by process {i}");
                assert_eq!(&ctx.read(&z)[here], expected, "got from process {i}");
            }
            ctx.deregister(x)?;
            ctx.deregister(y)?;
            ctx.deregister(z)?;
        }
    }
}

case! {
    /// Many tiny requests, at a constant stride and scattered, in one superstep.
    pub fn thousands_of_small_requests_arrive everywhere [2, 4] |ctx| {
        const N: usize = 4096;
        let p = ctx.nprocs();
        room(ctx, 2, 2 * N * p)?;
        let me = ctx.pid();
        let (mut x, y) = (ctx.local::<u64>(N)?, ctx.area::<u64>(2 * N * p)?);
        ctx.sync()?;
        for round in 0..3u64 {
            for (i, word) in ctx.write(&mut x).iter_mut().enumerate() {
                *word = round << 40 | (me as u64) << 20 | i as u64;
            }
            ctx.sync()?;
            for to in 0..p {
                for i in 0..N {
                    // Stride 2 in one round, and a permutation without any stride in another.
                    let place = if round == 1 { i * 2053 % N } else { i };
                    ctx.put(&x, i..i + 1, to, &y, 2 * (me * N + place))?;
                }
            }
            ctx.sync()?;
            for from in 0..p {
                for i in 0..N {
                    let place = if round == 1 { i * 2053 % N } else { i };
                    let expected = round << 40 | (from as u64) << 20 | i as u64;
                    let here = &ctx.read(&y)[2 * (from * N + place)..][..2];
                    assert_eq!(here, [expected, 0], "element {i} of process {from}");
                }
            }
        }
    }
}

case! {
    /// One message of several MiB and an odd length, each way.
    pub fn a_large_message_arrives_whole everywhere [1, 2, 3] |ctx| {
        const BYTES: usize = (2 << 20) + 13;
        room(ctx, 2, 4)?;
        let next = (ctx.pid() + 1) % ctx.nprocs();
        let (mut x, y) = (ctx.area::<u8>(BYTES)?, ctx.area::<u8>(BYTES)?);
        ctx.sync()?;
        let me = ctx.pid();
        ctx.write(&mut x).copy_from_slice(&patterns(me, 0, BYTES));
        ctx.put(&x, .., next, &y, 0)?;
        ctx.sync()?;
        let left = (ctx.pid() + ctx.nprocs() - 1) % ctx.nprocs();
        assert!(ctx.read(&y) == patterns(left, 0, BYTES), "the put differs");
        ctx.sync()?;
        ctx.get(next, &x, .., &y, 0)?;
        ctx.sync()?;
        assert!(ctx.read(&y) == patterns(next, 0, BYTES), "the get differs");
    }
}

case! {
    /// Several requests may read the same memory, puts and gets alike.
    pub fn many_may_read_the_same_memory everywhere [2, 4, 8] |ctx| {
        let p = ctx.nprocs();
        room(ctx, 3, 4 * p)?;
        let (mut x, y) = (ctx.area::<u8>(1000)?, ctx.area::<u8>(1000)?);
        let z = ctx.local::<u8>(1000)?;
        ctx.sync()?;
        let me = ctx.pid();
        ctx.write(&mut x).copy_from_slice(&patterns(me, 0, 1000));
        ctx.get(0, &x, .., &z, 0)?;
        if ctx.pid() == 0 {
            for to in 0..p {
                ctx.put(&x, .., to, &y, 0)?;
            }
        }
        ctx.sync()?;
        assert_eq!(ctx.read(&y), patterns(0, 0, 1000));
        assert_eq!(ctx.read(&z), patterns(0, 0, 1000));
        assert_eq!(ctx.read(&x), patterns(ctx.pid(), 0, 1000), "the source changed");
    }
}

case! {
    /// Puts of all processes to the same bytes: one of them is there, whole.
    pub fn conflicting_puts_leave_one_of_them_whole everywhere [2, 4, 8] |ctx| {
        let p = ctx.nprocs();
        for bytes in [1usize, 8, 64, 1000, 100_000] {
            room(ctx, 2, 2 * p)?;
            let (mut x, y) = (ctx.local::<u8>(bytes)?, ctx.area::<u8>(bytes)?);
            ctx.sync()?;
            let me = ctx.pid();
            ctx.write(&mut x).copy_from_slice(&patterns(me, bytes, bytes));
            for to in 0..p {
                ctx.put(&x, .., to, &y, 0)?;
            }
            ctx.sync()?;
            let whole = (0..p).any(|from| ctx.read(&y) == patterns(from, bytes, bytes));
            assert!(whole, "{bytes} bytes hold no process's message as a whole");
            ctx.deregister(x)?;
            ctx.deregister(y)?;
        }
    }
}

case! {
    /// Large and many, so that two writers at work at the same time would meet, and one overtake the
    /// other.
    pub fn of_large_conflicting_puts_one_is_whole_every_time timed [2, 4] |ctx| {
        const BYTES: usize = 4 << 20;
        room(ctx, 2, 8)?;
        let (mut own, mut hit) = (ctx.area::<u8>(BYTES)?, ctx.area::<u8>(BYTES)?);
        ctx.sync()?;
        let pid = ctx.pid() as u8;
        for round in 0..30u8 {
            ctx.write(&mut own).fill(4 * round + pid);
            ctx.write(&mut hit).fill(u8::MAX);
            // Meet, so that both writers would begin together.
            ctx.sync()?;
            ctx.put(&own, .., 0, &hit, 0)?;
            ctx.sync()?;
            if pid == 0 {
                let winner = ctx.read(&hit)[0];
                assert!(winner / 4 == round, "round {round}: {winner} is nobody's byte");
                let other = ctx.read(&hit).iter().position(|&byte| byte != winner);
                assert_eq!(other, None, "round {round}: bytes of both");
            }
        }
    }
}

case! {
    /// Gets of one process into the same bytes: one of them is there, whole.
    pub fn conflicting_gets_leave_one_of_them_whole everywhere [2, 4, 8] |ctx| {
        let p = ctx.nprocs();
        room(ctx, 2, 2 * p)?;
        let (mut x, y) = (ctx.area::<u8>(3000)?, ctx.local::<u8>(3000)?);
        ctx.sync()?;
        let me = ctx.pid();
        ctx.write(&mut x).copy_from_slice(&patterns(me, 0, 3000));
        for from in 0..p {
            ctx.get(from, &x, .., &y, 0)?;
        }
        ctx.sync()?;
        let whole = (0..p).any(|from| ctx.read(&y) == patterns(from, 0, 3000));
        assert!(whole, "the target holds no process's block as a whole");
    }
}

case! {
    /// A put from elsewhere and a get of the owner to the same bytes: one of them, whole.
    pub fn a_put_and_a_get_may_write_the_same_memory everywhere [2, 3] |ctx| {
        let p = ctx.nprocs();
        room(ctx, 2, 8)?;
        let (mut x, y) = (ctx.area::<u8>(500)?, ctx.area::<u8>(500)?);
        ctx.sync()?;
        let me = ctx.pid();
        ctx.write(&mut x).copy_from_slice(&patterns(me, 0, 500));
        let (next, left) = ((ctx.pid() + 1) % p, (ctx.pid() + p - 1) % p);
        ctx.put(&x, .., next, &y, 0)?;
        ctx.get(ctx.pid(), &x, .., &y, 0)?;
        ctx.sync()?;
        let y = ctx.read(&y);
        let either = y == patterns(left, 0, 500) || y == patterns(ctx.pid(), 0, 500);
        assert!(either, "the target holds neither message as a whole");
    }
}

case! {
    /// Writers that overlap their neighbours only: every overlap holds one of the two, whole.
    pub fn a_staggered_row_of_writers_is_whole_in_every_overlap everywhere [2, 4, 8] |ctx| {
        const STEP: usize = 90;
        const BYTES: usize = 150;
        let p = ctx.nprocs();
        room(ctx, 2, 2 * p)?;
        let len = STEP * p + BYTES;
        let (mut x, y) = (ctx.local::<u8>(BYTES)?, ctx.area::<u8>(len)?);
        ctx.sync()?;
        let me = ctx.pid();
        ctx.write(&mut x).fill(1 + me as u8);
        for to in 0..p {
            ctx.put(&x, .., to, &y, STEP * ctx.pid())?;
        }
        ctx.sync()?;
        let y = ctx.read(&y);
        for from in 0..p {
            let start = STEP * from;
            let own = if from == 0 { start } else { start + BYTES - STEP };
            assert!(y[own..start + STEP].iter().all(|&b| b == 1 + from as u8), "alone");
            let overlap = &y[start + STEP..start + BYTES];
            let first = overlap[0];
            assert!(overlap.iter().all(|&b| b == first), "two writers mixed: {overlap:?}");
            let last = from + 1 == p;
            assert!(first == 1 + from as u8 || !last && first == 2 + from as u8, "{first}");
        }
        assert!(y[STEP * (p - 1) + BYTES..].iter().all(|&b| b == 0), "outside");
    }
}

case! {
    /// The promise of no conflicts changes nothing that a correct program observes, whatever the lengths of
    /// what two processes put to and get from each other.
    pub fn the_no_conflict_attribute_changes_nothing everywhere [1, 2, 4] |ctx| {
        const LENGTHS: [usize; 3] = [8, 96, 3000];
        const EACH: usize = 8000;
        const GOT: usize = 4000;
        let p = ctx.nprocs();
        room(ctx, 2, 4 * p)?;
        let me = ctx.pid();
        let (mut x, mut y) = (ctx.area::<u8>(LENGTHS[2])?, ctx.area::<u8>(EACH * p)?);
        ctx.sync()?;
        for round in 0..9 {
            let (put, got) = (LENGTHS[round % 3], LENGTHS[round / 3]);
            ctx.write(&mut x).copy_from_slice(&patterns(me, round, LENGTHS[2]));
            ctx.write(&mut y).fill(0);
            ctx.sync()?;
            for to in 0..p {
                ctx.put(&x, ..put, to, &y, EACH * me + 1)?;
                ctx.get(to, &x, ..got, &y, EACH * to + GOT)?;
            }
            ctx.sync_with(SyncAttr::NoConflict)?;
            for from in 0..p {
                let mut expected = vec![0; EACH];
                let sent = patterns(from, round, LENGTHS[2]);
                expected[1..1 + put].copy_from_slice(&sent[..put]);
                expected[GOT..GOT + got].copy_from_slice(&sent[..got]);
                assert!(ctx.read(&y)[EACH * from..][..EACH] == expected, "{put} put, {got} got");
            }
        }
    }
}

case! {
    /// What a later superstep writes stands over what an earlier one wrote.
    pub fn later_supersteps_overwrite_earlier_ones everywhere [2, 5] |ctx| {
        let p = ctx.nprocs();
        room(ctx, 2, 4)?;
        let (mut x, y) = (ctx.local::<usize>(1)?, ctx.area::<usize>(1)?);
        ctx.sync()?;
        for round in 0..200 {
            ctx.write(&mut x)[0] = round;
            if round % p == ctx.pid() {
                ctx.put(&x, .., (ctx.pid() + 1) % p, &y, 0)?;
            }
            ctx.sync()?;
            if (round + 1) % p == ctx.pid() {
                assert_eq!(ctx.read(&y)[0], round);
            }
        }
    }
}

case! {
    /// Supersteps in which some or all processes have nothing to say.
    pub fn an_idle_process_hinders_nobody everywhere [1, 2, 3, 8] |ctx| {
        let p = ctx.nprocs();
        room(ctx, 2, 4 * p)?;
        let (mut x, y) = (ctx.local::<usize>(1)?, ctx.area::<usize>(p)?);
        ctx.sync()?;
        for round in 0..100 {
            let speaks = |pid: Pid| (round * 7 + pid * 3) % 5 < 2;
            ctx.write(&mut x)[0] = round * 10 + ctx.pid();
            if speaks(ctx.pid()) {
                for to in 0..p {
                    ctx.put(&x, .., to, &y, ctx.pid())?;
                }
            }
            ctx.sync()?;
            for from in (0..p).filter(|&pid| speaks(pid)) {
                assert_eq!(ctx.read(&y)[from], round * 10 + from);
            }
        }
    }
}

fn reads_what_is_written<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    for by_get in [false, true] {
        let (seen, outer) = failing_rehook(ctx, |inner| {
            room(inner, 2, 8)?;
            let (x, y) = (inner.area::<u64>(8)?, inner.area::<u64>(8)?);
            inner.sync()?;
            if inner.pid() == 0 {
                inner.put(&x, 0..4, 1, &y, 2)?;
            }
            if by_get && inner.pid() == 0 {
                inner.get(1, &y, 4..8, &x, 4)?;
            } else if !by_get && inner.pid() == 1 {
                inner.put(&y, 4..8, 0, &x, 4)?;
            }
            Ok(inner.sync())
        });
        drop(seen);
        assert!(outer.is_fatal(), "{outer}");
        let text = outer.to_string();
        assert!(text.contains("checked mode"), "{text}");
        assert!(text.contains("communication.rs"), "it names no place in the source: {text}");
    }
    // Adjacent bytes do not conflict.
    room(ctx, 2, 8)?;
    let (x, y) = (ctx.area::<u8>(8)?, ctx.area::<u8>(8)?);
    ctx.sync()?;
    let next = (ctx.pid() + 1) % ctx.nprocs();
    ctx.put(&x, 0..3, next, &y, 0)?;
    ctx.put(&y, 3..6, next, &x, 5)?;
    ctx.sync()?;
    assert_eq!((x.len(), ctx.read(&y)[0]), (8, 0));
    Ok(())
}

/// Reading and writing the same memory in one superstep is illegal; the checked mode reports it,
/// with the place in the source.
pub fn the_checked_mode_reports_reads_and_writes_of_the_same_bytes<H: Harness>(harness: &H) {
    let case = "the_checked_mode_reports_reads_and_writes_of_the_same_bytes";
    let mode = Mode { check: true, ..Mode::default() };
    for procs in [2, 3] {
        let args = lpf_core::Args::none();
        beside_others(|| section(harness, case, mode, procs, reads_what_is_written, args));
    }
}
