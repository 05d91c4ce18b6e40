//! Channels and cells: order, counting, release, flush, and what is misuse.

use std::time::{Duration, Instant};

use lpf_core::arrivals::MAX_WINDOW;
use lpf_core::board::{Board, Topic};
use lpf_core::{Awaited, Expect, InboxShape, InboxSlot, Link, SyncAttr};

use super::{Mesh, bodies, body, channels, expect, latest, message, send};
use crate::memory::Buffer;
use crate::primitives::board::{await_version, board};
use crate::verdict::{assert_in_time, refused, room};

case! {
    /// A message that waits for credit when its flush begins: the flush waits for it, because its
    /// source is rewritten behind it.
    pub fn a_flush_waits_for_a_message_without_credit both_ways [2] |ctx| {
        let mut all = channels::<_, u64>(ctx, 1, 1, 1)?;
        let mut part = ctx.outbox::<u64>(1, 1)?.remove(0);
        let mut channel = all[1 - ctx.pid()].take().expect("a channel with the other");
        for number in 1..=10 {
            if ctx.pid() == 0 {
                part[0] = number;
                let sent = ctx.send(&mut channel, part, ..)?;
                let flushed = ctx.flush()?;
                part = sent.part(&flushed).expect("flushed since");
                part[0] = 0;
            } else {
                // The sender is at its next message, and has no credit for it.
                std::thread::sleep(Duration::from_millis(5));
                let [message] = ctx.expect([&mut channel])?;
                assert_eq!(message[..], [number]);
            }
        }
        ctx.sync()?;
    }
}

case! {
    /// The source of a put on a link is busy until the put has left, and no longer: a flush is enough.
    pub fn a_source_may_go_when_its_puts_have_left both_ways [2] |ctx| {
        let mesh = Mesh::open(ctx, 1, 0, 1, 64)?;
        let (kept, source) = bodies(ctx, 1, 64)?;
        let (me, peer) = (ctx.pid(), 1 - ctx.pid());
        let board = board(ctx);
        if me == 0 {
            for _ in 0..2 {
                send(ctx, source, 0..64, mesh.with(peer))?;
                expect(ctx, &[])?;
            }
            // One message fits the window.
            refused!(ctx.raw().deregister(source), Misuse, SlotBusy { .. });
            board.write(Topic(1), &[1])?;
            ctx.sync_with(SyncAttr::Flush)?;
            ctx.raw().deregister(source)?;
        } else {
            await_version(&board, 0, Topic(1), 1);
            for _ in 0..2 {
                expect(ctx, &[(mesh.with(peer), 1)])?;
                assert_eq!(latest(ctx, mesh.with(peer))?, body(0, 64));
            }
        }
        ctx.sync()?;
        drop(kept);
    }
}

case! {
    /// A channel is an ordered stream; the receiver counts a prefix, so that a sender several
    /// supersteps ahead is not taken for another one.
    pub fn messages_arrive_in_order_and_are_counted both_ways [2, 3, 5] |ctx| {
        let mesh = Mesh::open(ctx, 1, 0, 8, 64)?;
        let (_kept, source) = bodies(ctx, 8, 50)?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        if me > 0 {
            // Eight supersteps without waiting for anybody; the lengths are 0, 5, 10, …
            for k in 0..8 {
                send(ctx, source, 50 * k..55 * k, mesh.with(0))?;
                expect(ctx, &[])?;
            }
            ctx.sync_with(SyncAttr::Flush)?;
        } else {
            for counts in [1u32, 0, 3, 2, 2] {
                let all: Vec<_> = (1..p).map(|from| (mesh.with(from), counts)).collect();
                expect(ctx, &all)?;
                for &(link, _) in &all {
                    let end = ctx.raw().awaited(link)?;
                    for nth in end - u64::from(counts)..end {
                        let expected = &body(nth as usize, 50)[..5 * nth as usize];
                        assert_eq!(message(ctx, link, nth)?, expected, "message {nth}");
                    }
                }
            }
        }
        ctx.sync()?;
    }
}

case! {
    /// A wait is for the messages named and for nobody else: process 0 gets the first sender's
    /// message while the second has not begun, and tells it to begin.
    pub fn the_first_of_two_senders_need_not_wait_for_the_second both_ways [3, 4] |ctx| {
        let mesh = Mesh::open(ctx, 1, 0, 2, 16)?;
        let (_kept, source) = bodies(ctx, 1, 16)?;
        match ctx.pid() {
            0 => {
                expect(ctx, &[(mesh.with(1), 1)])?;
                assert_eq!(latest(ctx, mesh.with(1))?, body(0, 16));
                board(ctx).write(Topic(1), &[1])?;
                expect(ctx, &[(mesh.with(2), 1)])?;
                assert_eq!(latest(ctx, mesh.with(2))?, body(0, 16));
            }
            1 => send(ctx, source, 0..16, mesh.with(0))?,
            2 => {
                await_version(&board(ctx), 0, Topic(1), 1);
                send(ctx, source, 0..16, mesh.with(0))?;
            }
            _ => {}
        }
        ctx.sync_with(SyncAttr::Flush)?;
        ctx.sync()?;
    }
}

case! {
    /// A zero-size put fills a cell, counts as an arrival, and keeps its place in the order.
    pub fn an_empty_message_fills_a_cell_and_counts both_ways [2] |ctx| {
        let mesh = Mesh::open(ctx, 1, 0, 2, 8)?;
        let (_kept, source) = bodies(ctx, 4, 8)?;
        let link = mesh.with(1 - ctx.pid());
        for round in 0..20 {
            send(ctx, source, 8..8, link)?;
            send(ctx, source, 8..16, link)?;
            refused!(send(ctx, source, 8..8, link), Misuse, Link(_));
            expect(ctx, &[(link, 2)])?;
            assert_eq!(ctx.raw().awaited(link)?, 2 * (round + 1));
            assert!(message(ctx, link, 2 * round)?.is_empty());
            assert_eq!(message(ctx, link, 2 * round + 1)?, body(1, 8));
            ctx.sync_with(SyncAttr::Flush)?;
        }
        ctx.sync()?;
    }
}

case! {
    /// A message held by its handle stays as it is over later syncs, whatever arrives after it.
    pub fn a_message_stays_until_it_is_released both_ways [2] |ctx| {
        let mut all = channels::<_, u64>(ctx, 1, 4, 16)?;
        let mut parts = ctx.outbox::<u64>(1, 16)?;
        let peer = 1 - ctx.pid();
        let channel = all[peer].as_mut().expect("a channel with the other process");
        let mut held = Vec::new();
        for round in 0..40u64 {
            let mut part = parts.pop().expect("one part");
            part.fill(1000 * round + peer as u64);
            let sent = ctx.send(channel, part, ..)?;
            let [message] = ctx.expect([channel])?;
            let expected = 1000 * round + ctx.pid() as u64;
            assert_eq!(*message, [expected; 16]);
            // Three at a time are kept, and given back in another order than they came.
            held.push((message, expected));
            assert!(held.iter().all(|(message, e)| **message == [*e; 16]), "it changed");
            if held.len() == 3 {
                for at in [1, 1, 0] {
                    held.remove(at);
                }
            }
            let flushed = ctx.flush()?;
            parts.push(sent.part(&flushed).expect("flushed since"));
        }
        drop(held);
        ctx.sync()?;
    }
}

case! {
    /// poll never blocks: while the peer sends nothing it says so at once.
    pub fn polling_never_blocks timed [2] |ctx| {
        let mesh = Mesh::open(ctx, 1, 0, 2, 8)?;
        let (_kept, source) = bodies(ctx, 1, 8)?;
        let link = mesh.with(1 - ctx.pid());
        ctx.sync()?;
        if ctx.pid() == 1 {
            // Half a second, however often the other polls.
            std::thread::sleep(Duration::from_millis(500));
            send(ctx, source, 0..8, link)?;
            ctx.sync_with(SyncAttr::Flush)?;
        } else {
            let expected = [Expect::one(link)];
            ctx.raw().expect(&expected)?;
            let (start, mut polls, mut longest) = (Instant::now(), 0, Duration::ZERO);
            loop {
                let before = Instant::now();
                let ready = ctx.raw().poll(Awaited::Messages(&expected))?;
                longest = longest.max(before.elapsed());
                if ready {
                    break;
                }
                polls += 1;
                std::thread::sleep(Duration::from_micros(200));
            }
            assert!(start.elapsed() > Duration::from_millis(300), "it was ready too early");
            // One that blocks is ready at its end.
            assert!(polls > 5, "{polls} polls in half a second");
            assert_in_time(longest, Duration::from_millis(250));
            assert_eq!(latest(ctx, link)?, body(0, 8));
        }
        ctx.sync()?;
    }
}

case! {
    /// Puts that nobody flushed leave with a full sync; those of the last superstep with leaving.
    pub fn leaving_and_full_syncs_flush both_ways [2, 4] |ctx| {
        let mesh = Mesh::open(ctx, 1, 0, 2, 8)?;
        let (mut buffer, source) = bodies(ctx, 2, 8)?;
        let (p, me) = (ctx.nprocs(), ctx.pid());
        let (next, left) = ((me + 1) % p, (me + p - 1) % p);
        send(ctx, source, 0..8, mesh.with(next))?;
        ctx.sync()?;
        // The source is free again after a full sync, which flushed it.
        buffer.write(0, &[0xff; 8]);
        expect(ctx, &[(mesh.with(left), 1)])?;
        assert_eq!(latest(ctx, mesh.with(left))?, body(0, 8));
        ctx.rehook(|inner| {
            let mesh = Mesh::open(inner, 1, 0, 2, 8)?;
            let (_kept, source) = bodies(inner, 2, 8)?;
            match inner.pid() {
                // It returns at once; its puts leave in leaving.
                0 => {
                    send(inner, source, 0..8, mesh.with(1))?;
                    send(inner, source, 8..16, mesh.with(1))?;
                }
                1 => {
                    std::thread::sleep(Duration::from_millis(30));
                    expect(inner, &[(mesh.with(0), 2)])?;
                    assert_eq!(latest(inner, mesh.with(0))?, body(1, 8));
                }
                _ => {}
            }
            Ok(())
        })?;
        ctx.sync()?;
    }
}

case! {
    /// After a flush the source is this process's again.
    pub fn a_flushed_source_may_be_rewritten both_ways [2] |ctx| {
        let mesh = Mesh::open(ctx, 1, 0, 4, 4096)?;
        let (mut buffer, source) = bodies(ctx, 1, 4096)?;
        let link = mesh.with(1 - ctx.pid());
        for round in 0..100usize {
            buffer.write(0, &body(round, 4096));
            send(ctx, source, 0..4096, link)?;
            ctx.sync_with(SyncAttr::Flush)?;
            buffer.fill(0xee);
            expect(ctx, &[(link, 1)])?;
            assert!(latest(ctx, link)? == body(round, 4096), "message {round} was overwritten");
        }
        ctx.sync()?;
    }
}

case! {
    /// Inboxes, rings, peers, lengths and windows are checked at the call, without effect.
    pub fn what_is_misused_on_links_is_found_at_the_call both_ways [1, 2, 3] |ctx| {
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let shape = InboxShape { rings: 2, window: 2, cell_bytes: 8 };
        for window in [0, MAX_WINDOW + 1, u32::MAX] {
            refused!(ctx.inbox(InboxShape { window, ..shape }), Misuse, Link(_));
        }
        refused!(ctx.inbox(InboxShape { rings: 1 << 32, ..shape }), Misuse, Link(_));
        let inbox = ctx.inbox(shape)?;
        let peer = (me + 1) % p;
        let early = ctx.raw().open(inbox, 0, peer, 0).expect_err("before the activating sync");
        assert!(early.is_misuse(), "{early}");
        room(ctx, 1, 4)?;
        if p == 1 {
            ctx.raw().deregister_inbox(inbox)?;
            return Ok(());
        }
        for bad in [InboxSlot::new(1), InboxSlot::new(u32::MAX)] {
            let error = ctx.raw().open(bad, 0, peer, 0).expect_err("an unknown inbox");
            assert!(error.is_misuse(), "{error}");
        }
        for (ring, peer, peer_ring) in [(2, peer, 0), (0, peer, 2), (0, p, 0), (usize::MAX, peer, 0)] {
            let error = ctx.raw().open(inbox, ring, peer, peer_ring).expect_err("ring or peer");
            assert!(error.is_misuse(), "{error}");
        }
        // A chain: ring 0 for the process before, ring 1 for the one after.
        let link = if me == 0 { ctx.raw().open(inbox, 1, 1, 0)? } else {
            ctx.raw().open(inbox, 0, me - 1, 1)?
        };
        let taken = ctx.raw().open(inbox, usize::from(me == 0), peer, 0);
        assert!(taken.expect_err("the ring is taken").is_misuse());
        let (_kept, source) = bodies(ctx, 2, 8)?;
        let error = send(ctx, source, 0..9, link).expect_err("longer than a cell");
        assert!(error.is_misuse(), "{error}");
        let error = send(ctx, source, 12..17, link).expect_err("outside the slot");
        assert!(error.is_misuse(), "{error}");
        let unknown = Link::new(99, 0);
        let error = send(ctx, source, 0..8, unknown).expect_err("an unknown link");
        assert!(error.is_misuse(), "{error}");
        let error = ctx.raw().deregister_inbox(inbox).expect_err("it has open links");
        assert!(error.is_misuse(), "{error}");
        if me < 2 {
            send(ctx, source, 8..16, link)?;
            expect(ctx, &[(link, 1)])?;
            assert_eq!(latest(ctx, link)?, body(1, 8));
        }
        ctx.sync()?;
    }
}

case! {
    /// A message is readable from the sync that awaited it until it is released, and no longer.
    pub fn what_is_misused_on_arrivals_is_found_at_the_call both_ways [2] |ctx| {
        let mesh = Mesh::open(ctx, 1, 0, 4, 8)?;
        let (_kept, source) = bodies(ctx, 4, 8)?;
        let link = mesh.with(1 - ctx.pid());
        for k in 0..3 {
            send(ctx, source, 8 * k..8 * k + 8, link)?;
        }
        ctx.sync()?;
        refused!(ctx.raw().arrival(link, 0), Misuse, Link(_));
        refused!(ctx.raw().release(link, 0), Misuse, Link(_));
        expect(ctx, &[(link, 2)])?;
        refused!(ctx.raw().arrival(link, 2), Misuse, Link(_));
        refused!(ctx.raw().arrival(link, u64::MAX), Misuse, Link(_));
        assert_eq!(message(ctx, link, 1)?, body(1, 8));
        ctx.raw().release(link, 1)?;
        refused!(ctx.raw().arrival(link, 1), Misuse, Link(_));
        refused!(ctx.raw().release(link, 1), Misuse, Link(_));
        assert_eq!(message(ctx, link, 0)?, body(0, 8));
        // The next sync releases what it did not wait for.
        expect(ctx, &[(link, 1)])?;
        refused!(ctx.raw().arrival(link, 0), Misuse, Link(_));
        assert_eq!(message(ctx, link, 2)?, body(2, 8));
        let unknown = [Expect::one(Link::new(99, 0))];
        let error = ctx.sync_with(SyncAttr::Expected(&unknown)).expect_err("an unknown link");
        assert!(error.is_misuse(), "{error}");
        assert!(ctx.raw().awaited(Link::new(99, 0)).is_err());
        ctx.sync()?;
    }
}

case! {
    /// A link closes when everything is released and flushed; its ring serves another link, and
    /// the old name means nothing.
    pub fn a_closed_link_gives_its_ring_back both_ways [2] |ctx| {
        room(ctx, 1, 4)?;
        let inbox = ctx.inbox(InboxShape { rings: 1, window: 2, cell_bytes: 8 })?;
        let mut buffer = Buffer::zeroed(8);
        let source = buffer.local(ctx)?;
        ctx.sync()?;
        let peer = 1 - ctx.pid();
        let mut old = None;
        for round in 0..10 {
            let link = ctx.raw().open(inbox, 0, peer, 0)?;
            if let Some(old) = old {
                let error = send(ctx, source, 0..8, old).expect_err("a closed link");
                assert!(error.is_misuse(), "{error}");
            }
            buffer.write(0, &body(round, 8));
            send(ctx, source, 0..8, link)?;
            expect(ctx, &[(link, 1)])?;
            assert_eq!(latest(ctx, link)?, body(round, 8));
            ctx.sync()?;
            ctx.raw().close(link)?;
            // Both ends are closed before one is opened again.
            ctx.sync()?;
            old = Some(link);
        }
        ctx.raw().deregister_inbox(inbox)?;
        ctx.sync()?;
    }
}

case! {
    /// A link does not close while a message of it is held or a put has not left.
    pub fn a_link_in_use_is_not_closed both_ways [2] |ctx| {
        let mut all = channels::<_, u32>(ctx, 1, 1, 1)?;
        let mut parts = ctx.outbox::<u32>(2, 1)?;
        let mut channel = all[1 - ctx.pid()].take().expect("a channel with the other");
        for _ in 0..2 {
            // The second finds no credit: the peer has released nothing.
            let part = parts.pop().expect("two parts");
            ctx.send(&mut channel, part, ..)?;
            ctx.sync_with(SyncAttr::Expected(&[]))?;
        }
        let [message] = ctx.expect([&mut channel])?;
        let (error, channel) = ctx.close(channel).expect_err("a message is held");
        assert!(error.is_misuse(), "{error}");
        drop(message);
        let mut channel = channel;
        let [message] = ctx.expect([&mut channel])?;
        drop(message);
        ctx.flush()?;
        ctx.close(channel)?;
        ctx.sync()?;
    }
}
