//! Full and expected supersteps beside each other.

use lpf_core::{InboxShape, SyncAttr};

use super::{Mesh, bodies, body, channels, expect, latest, send};
use crate::memory::Buffer;
use crate::verdict::refused;

case! {
    /// Expected and flush syncs leave ordinary puts and gets pending; the next full sync completes
    /// them. (A get has no attribute that would let it go on a channel.)
    pub fn ordinary_requests_stay_pending_across_expected_supersteps both_ways [2, 4] |ctx| {
        let mut all = channels::<_, usize>(ctx, 4, 2, 1)?;
        let (mut x, y) = (ctx.area::<usize>(1)?, ctx.area::<usize>(1)?);
        let z = ctx.local::<usize>(1)?;
        let mut parts = ctx.outbox::<usize>(1, 1)?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let (next, left) = ((me + 1) % p, (me + p - 1) % p);
        ctx.sync()?;
        for round in 1..20 {
            ctx.write(&mut x)[0] = 100 * round + me;
            let (put_before, got_before) = (ctx.read(&y)[0], ctx.read(&z)[0]);
            ctx.put(&x, .., next, &y, 0)?;
            ctx.get(next, &x, .., &z, 0)?;
            let superstep = ctx.superstep();
            for call in 0..3 {
                let mut part = parts.pop().expect("one part");
                part[0] = call;
                let to = all[next].as_mut().expect("a channel");
                let sent = ctx.send(to, part, ..)?;
                let from = all[left].as_mut().expect("a channel");
                let [message] = ctx.expect([from])?;
                assert_eq!(message[0], call);
                let flushed = ctx.flush()?;
                parts.push(sent.part(&flushed).expect("flushed since"));
                assert_eq!((ctx.read(&y)[0], ctx.read(&z)[0]), (put_before, got_before));
            }
            assert_eq!(ctx.superstep(), superstep, "only full syncs are counted");
            ctx.sync()?;
            assert_eq!(ctx.read(&y)[0], 100 * round + left);
            assert_eq!(ctx.read(&z)[0], 100 * round + next);
            ctx.sync()?;
        }
    }
}

case! {
    /// Expected and flush syncs activate no registrations, no inboxes and no resizes.
    pub fn registrations_and_resizes_wait_for_a_full_sync both_ways [2] |ctx| {
        let mesh = Mesh::open(ctx, 2, 2, 2, 8)?;
        let (_kept, source) = bodies(ctx, 1, 8)?;
        let buffer = Buffer::zeroed(8);
        let slot = buffer.global(ctx)?;
        let inbox = ctx.inbox(InboxShape { rings: 1, window: 1, cell_bytes: 8 })?;
        ctx.resize(3, 40)?;
        let (peer, link) = (1 - ctx.pid(), mesh.with(1 - ctx.pid()));
        for _ in 0..3 {
            send(ctx, source, 0..8, link)?;
            expect(ctx, &[(link, 1)])?;
            assert_eq!(latest(ctx, link)?, body(0, 8));
            ctx.sync_with(SyncAttr::Flush)?;
            let put = ctx.raw().put(source, 0, peer, slot, 0, 8);
            refused!(put, Misuse, InactiveSlot { .. });
            let get = ctx.raw().get(peer, slot, 0, source, 0, 8);
            refused!(get, Misuse, InactiveSlot { .. });
            refused!(buffer.local(ctx), Misuse, SlotsUsedUp { reserved: 2, .. });
            assert!(ctx.raw().open(inbox, 0, peer, 0).expect_err("not active").is_misuse());
        }
        ctx.sync()?;
        buffer.local(ctx)?;
        ctx.raw().open(inbox, 0, peer, 0)?;
        for _ in 0..20 {
            ctx.raw().put(source, 0, peer, slot, 0, 8)?;
        }
        ctx.sync()?;
        assert_eq!(buffer.to_vec(), body(0, 8));
    }
}

case! {
    /// Messages cross full syncs: put before one and awaited after it, or several ones later.
    pub fn full_and_expected_supersteps_mix both_ways [2, 3] |ctx| {
        let mesh = Mesh::open(ctx, 3, 16, 4, 8)?;
        let (_kept, source) = bodies(ctx, 8, 8)?;
        let target = Buffer::zeroed(8);
        let slot = target.global(ctx)?;
        ctx.sync()?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let (next, left) = ((me + 1) % p, (me + p - 1) % p);
        let (to, from) = (mesh.with(next), mesh.with(left));
        for round in 0..60usize {
            let k = round % 8;
            send(ctx, source, 8 * k..8 * k + 8, to)?;
            if round % 3 == 0 {
                ctx.raw().put(source, 8 * k, next, slot, 0, 8)?;
                ctx.sync()?;
                assert_eq!(target.to_vec(), body(k, 8), "the put of round {round}");
                // Nobody puts here again before this process has looked.
                ctx.sync()?;
            }
            if round % 2 == 1 {
                if round % 5 == 0 {
                    ctx.sync()?;
                }
                // Two at once: the one of this round and the one before.
                expect(ctx, &[(from, 2)])?;
                assert_eq!(latest(ctx, from)?, body(k, 8), "message {round}");
                let before = super::message(ctx, from, round as u64 - 1)?;
                assert_eq!(before, body(k - 1, 8), "message {}", round - 1);
            }
        }
        ctx.sync()?;
    }
}

case! {
    /// Inboxes of several shapes live beside each other, in a context and in what is rehooked on
    /// it; a message sent before a rehook is awaited after it.
    pub fn inboxes_live_side_by_side_and_across_a_rehook both_ways [2, 3] |ctx| {
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let (next, left) = ((me + 1) % p, (me + p - 1) % p);
        ctx.resize(1, 0)?;
        let small = ctx.inbox(InboxShape { rings: 2, window: 1, cell_bytes: 4 })?;
        let gone = ctx.inbox(InboxShape { rings: 1, window: 3, cell_bytes: 1 })?;
        let large = ctx.inbox(InboxShape { rings: 2, window: 5, cell_bytes: 9000 })?;
        ctx.sync()?;
        ctx.raw().deregister_inbox(gone)?;
        ctx.sync()?;
        assert!(ctx.raw().open(gone, 0, next, 0).expect_err("deregistered").is_misuse());
        let (_kept, source) = bodies(ctx, 2, 9000)?;
        // Ring 0 ends what comes from the left, ring 1 what comes from the right.
        let mut links = Vec::new();
        for inbox in [small, large] {
            let to = ctx.raw().open(inbox, 1, next, 0)?;
            links.push((to, ctx.raw().open(inbox, 0, left, 1)?));
        }
        let [(small_to, small_from), (large_to, large_from)] = links[..] else { unreachable!() };
        send(ctx, source, 0..4, small_to)?;
        send(ctx, source, 9000..18_000, large_to)?;
        ctx.rehook(|inner| {
            let mesh = Mesh::open(inner, 1, 0, 2, 16)?;
            let (_kept, source) = bodies(inner, 3, 16)?;
            send(inner, source, 32..48, mesh.with(next))?;
            expect(inner, &[(mesh.with(left), 1)])?;
            assert_eq!(latest(inner, mesh.with(left))?, body(2, 16));
            inner.sync()
        })?;
        expect(ctx, &[(large_from, 1), (small_from, 1)])?;
        assert_eq!(latest(ctx, small_from)?, &body(0, 9000)[..4]);
        assert!(latest(ctx, large_from)? == body(1, 9000), "the long message differs");
        ctx.sync()?;
    }
}
