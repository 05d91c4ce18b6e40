//! Opening and closing: neither waits for anybody; puts wait for the ring.

use std::time::{Duration, Instant};

use lpf_core::board::{Board, Topic};
use lpf_core::{Awaited, Context, Error, InboxShape, Lpf, Pid, Result, SyncAttr};

use super::{bodies, body, expect, latest, send};
use crate::primitives::board::{await_version, board};
use crate::verdict::{BOUND, assert_fatal_naming, assert_in_time, failing_rehook, room};

const SHAPE: InboxShape = InboxShape { rings: 1, window: 2, cell_bytes: 8 };

case! {
    /// Messages put before the peer has opened its end wait for it, and delay nothing else.
    pub fn a_put_waits_for_the_peer_to_open_its_end both_ways [2, 3] |ctx| {
        room(ctx, 1, 0)?;
        let inbox = ctx.inbox(InboxShape { rings: ctx.nprocs(), ..SHAPE })?;
        ctx.sync()?;
        let (_kept, source) = bodies(ctx, 2, 8)?;
        let me = ctx.pid();
        if me == 0 {
            for peer in 1..ctx.nprocs() {
                let link = ctx.raw().open(inbox, peer, peer, 0)?;
                send(ctx, source, 0..8, link)?;
                send(ctx, source, 8..16, link)?;
            }
            // Nobody has opened yet: nothing has left, and nobody waits.
            assert!(!ctx.raw().poll(Awaited::Flushed)?);
            board(ctx).write(Topic(1), &[1])?;
            ctx.sync_with(SyncAttr::Flush)?;
        } else {
            await_version(&board(ctx), 0, Topic(1), 1);
            let link = ctx.raw().open(inbox, 0, 0, me)?;
            expect(ctx, &[(link, 1)])?;
            assert_eq!(latest(ctx, link)?, body(0, 8));
            expect(ctx, &[(link, 1)])?;
            assert_eq!(latest(ctx, link)?, body(1, 8));
        }
        ctx.sync()?;
    }
}

case! {
    /// A ring goes from sender to sender as fast as its owner opens it for the next: two senders
    /// never write into it together, and whoever comes early waits.
    pub fn a_ring_goes_from_sender_to_sender_without_a_full_sync both_ways [3, 5] |ctx| {
        room(ctx, 1, 0)?;
        let inbox = ctx.inbox(SHAPE)?;
        ctx.sync()?;
        let (_kept, source) = bodies(ctx, 8, 8)?;
        for round in 0..6usize {
            if ctx.pid() == 0 {
                for sender in 1..ctx.nprocs() {
                    // Every sender uses its ring 0 for this link, so its own side is free again.
                    let link = ctx.raw().open(inbox, 0, sender, 0)?;
                    for message in 0..3 {
                        expect(ctx, &[(link, 1)])?;
                        let expected = body((round + sender + message) % 8, 8);
                        assert_eq!(latest(ctx, link)?, expected, "sender {sender}");
                    }
                    ctx.raw().close(link)?;
                }
            } else {
                let link = ctx.raw().open(inbox, 0, 0, 0)?;
                for message in 0..3 {
                    let at = 8 * ((round + ctx.pid() + message) % 8);
                    send(ctx, source, at..at + 8, link)?;
                    ctx.sync_with(SyncAttr::Flush)?;
                }
                if round % 2 == 1 {
                    // The owner has opened for the next by now, who has to wait.
                    std::thread::sleep(Duration::from_millis(3));
                }
                ctx.raw().close(link)?;
            }
        }
        ctx.sync()?;
    }
}

case! {
    /// A flush is of everything, or of some links alone.
    pub fn a_flush_of_some_links_does_not_wait_for_others both_ways [3] |ctx| {
        room(ctx, 1, 0)?;
        let inbox = ctx.inbox(InboxShape { rings: 3, ..SHAPE })?;
        ctx.sync()?;
        let (_kept, source) = bodies(ctx, 1, 8)?;
        let me = ctx.pid();
        if me == 0 {
            let (one, two) = (ctx.raw().open(inbox, 1, 1, 0)?, ctx.raw().open(inbox, 2, 2, 0)?);
            send(ctx, source, 0..8, one)?;
            send(ctx, source, 0..8, two)?;
            while !ctx.raw().poll(Awaited::FlushedOn(&[one]))? {
                std::thread::yield_now();
            }
            // Process 2 opens when it hears of it.
            assert!(!ctx.raw().poll(Awaited::FlushedOn(&[one, two]))?);
            board(ctx).write(Topic(1), &[1])?;
        } else {
            if me == 2 {
                await_version(&board(ctx), 0, Topic(1), 1);
            }
            let link = ctx.raw().open(inbox, 0, 0, me)?;
            expect(ctx, &[(link, 1)])?;
            assert_eq!(latest(ctx, link)?, body(0, 8));
        }
        ctx.sync()?;
    }
}

/// Runs `story` in a section that fails because a flush waits for what never comes; whose error names
/// these two.
fn fails_flushing<L: Lpf>(
    ctx: &mut Context<'_, L>,
    parties: [Pid; 2],
    story: impl for<'r> FnOnce(&mut Context<'r, L>) -> Result<()>,
) {
    let (seen, outer) = failing_rehook(ctx, |inner| {
        let start = Instant::now();
        let error: Error = story(inner).and_then(|()| inner.sync()).expect_err("nobody goes on");
        Ok((error, start.elapsed()))
    });
    let (error, waited) = seen.expect("nobody panics");
    assert_fatal_naming(&error, &parties);
    assert_fatal_naming(&outer, &parties);
    assert_in_time(waited, BOUND);
}

case! {
    /// A link that one side opens only, and uses: fatal, naming both.
    pub fn a_link_that_the_peer_never_opens_is_fatal timed [2, 3] |ctx| {
        fails_flushing(ctx, [0, 1], |inner| {
            room(inner, 1, 0)?;
            let inbox = inner.inbox(SHAPE)?;
            inner.sync()?;
            let (_kept, source) = bodies(inner, 1, 8)?;
            if inner.pid() == 0 {
                let link = inner.raw().open(inbox, 0, 1, 0)?;
                send(inner, source, 0..8, link)?;
            }
            inner.sync()
        });
    }
}

case! {
    /// The former sender never closes, and goes on to a full sync: fatal, naming both senders.
    pub fn a_ring_that_is_never_given_up_is_fatal timed [3] |ctx| {
        fails_flushing(ctx, [1, 2], |inner| {
            room(inner, 1, 0)?;
            let inbox = inner.inbox(SHAPE)?;
            inner.sync()?;
            let (_kept, source) = bodies(inner, 1, 8)?;
            if inner.pid() == 0 {
                let link = inner.raw().open(inbox, 0, 1, 0)?;
                expect(inner, &[(link, 1)])?;
                inner.raw().close(link)?;
                inner.raw().open(inbox, 0, 2, 0)?;
            } else {
                let link = inner.raw().open(inbox, 0, 0, 0)?;
                send(inner, source, 0..8, link)?;
            }
            inner.sync()
        });
    }
}

case! {
    /// The former sender does not close because it waits for the next one, which waits for the ring: a cycle,
    /// fatal for all, naming both.
    pub fn a_ring_whose_former_sender_waits_for_the_next_is_fatal timed [3] |ctx| {
        fails_flushing(ctx, [1, 2], |inner| {
            room(inner, 1, 0)?;
            let inbox = inner.inbox(InboxShape { rings: 2, ..SHAPE })?;
            inner.sync()?;
            let (_kept, source) = bodies(inner, 1, 8)?;
            match inner.pid() {
                0 => {
                    let link = inner.raw().open(inbox, 0, 1, 0)?;
                    expect(inner, &[(link, 1)])?;
                    inner.raw().close(link)?;
                    inner.raw().open(inbox, 0, 2, 0)?;
                }
                1 => {
                    let link = inner.raw().open(inbox, 0, 0, 0)?;
                    send(inner, source, 0..8, link)?;
                    let next = inner.raw().open(inbox, 1, 2, 1)?;
                    expect(inner, &[(next, 1)])?;
                }
                _ => {
                    let link = inner.raw().open(inbox, 0, 0, 0)?;
                    send(inner, source, 0..8, link)?;
                    inner.sync_with(SyncAttr::Flush)?;
                    let former = inner.raw().open(inbox, 1, 1, 1)?;
                    send(inner, source, 0..8, former)?;
                }
            }
            inner.sync()
        });
    }
}

case! {
    /// The former sender does not close because it waits for the ring's owner, which waits for the message of
    /// the next one: that was put, but has no ring. Fatal for all, naming the owner and the former sender.
    pub fn a_ring_kept_by_who_waits_for_its_owner_is_fatal timed [3] |ctx| {
        fails_flushing(ctx, [0, 1], |inner| {
            room(inner, 1, 0)?;
            let inbox = inner.inbox(InboxShape { rings: 2, ..SHAPE })?;
            inner.sync()?;
            let (_kept, source) = bodies(inner, 1, 8)?;
            match inner.pid() {
                0 => {
                    let link = inner.raw().open(inbox, 0, 1, 0)?;
                    expect(inner, &[(link, 1)])?;
                    inner.raw().close(link)?;
                    let next = inner.raw().open(inbox, 0, 2, 0)?;
                    expect(inner, &[(next, 1)])?;
                }
                me => {
                    let link = inner.raw().open(inbox, 0, 0, 0)?;
                    send(inner, source, 0..8, link)?;
                    let answers = inner.raw().open(inbox, 1, 0, 1)?;
                    // Nobody waits for the put of process 2.
                    expect(inner, &[(if me == 1 { answers } else { link }, 1)])?;
                }
            }
            inner.sync()
        });
    }
}

case! {
    /// A message that nobody awaited is never taken for one of the ring's next link, of the same sender or
    /// another: fatal, naming the ring's owner and who sends there next.
    pub fn what_nobody_awaited_is_fatal_where_its_ring_goes_on timed [2, 3] |ctx| {
        let next = ctx.nprocs() - 1;
        // Whether the next sender sends, or not.
        for sends in [true, false] {
            fails_flushing(ctx, [0, next], |inner| {
                room(inner, 1, 0)?;
                let inbox = inner.inbox(SHAPE)?;
                inner.sync()?;
                let (_kept, source) = bodies(inner, 2, 8)?;
                let me = inner.pid();
                if me == 0 {
                    let link = inner.raw().open(inbox, 0, 1, 0)?;
                    expect(inner, &[(link, 1)])?;
                    assert_eq!(latest(inner, link)?, body(0, 8));
                    expect(inner, &[])?;
                    inner.raw().close(link)?;
                    board(inner).write(Topic(1), &[1])?;
                } else if me == 1 {
                    let link = inner.raw().open(inbox, 0, 0, 0)?;
                    send(inner, source, 0..8, link)?;
                    inner.sync_with(SyncAttr::Flush)?;
                    await_version(&board(inner), 0, Topic(1), 1);
                    // The other is done with the link.
                    send(inner, source, 0..8, link)?;
                    inner.sync_with(SyncAttr::Flush)?;
                    inner.raw().close(link)?;
                }
                inner.sync()?;
                if me == 0 {
                    let link = inner.raw().open(inbox, 0, next, 0)?;
                    expect(inner, &[(link, 1)])?;
                    assert_eq!(latest(inner, link)?, body(1, 8), "taken for another's");
                } else if me == next {
                    let link = inner.raw().open(inbox, 0, 0, 0)?;
                    if sends {
                        send(inner, source, 8..16, link)?;
                    }
                }
                inner.sync()
            });
        }
    }
}

case! {
    /// A message that has come and was never awaited is found where its link is closed: fatal, naming both.
    pub fn a_link_is_not_closed_on_a_message_that_has_come timed [2, 3] |ctx| {
        fails_flushing(ctx, [0, 1], |inner| {
            room(inner, 1, 0)?;
            let inbox = inner.inbox(SHAPE)?;
            inner.sync()?;
            let (_kept, source) = bodies(inner, 1, 8)?;
            let me = inner.pid();
            let link = if me < 2 { Some(inner.raw().open(inbox, 0, 1 - me, 0)?) } else { None };
            if let (1, Some(link)) = (me, link) {
                send(inner, source, 0..8, link)?;
                send(inner, source, 0..8, link)?;
            }
            if let (0, Some(link)) = (me, link) {
                expect(inner, &[(link, 1)])?;
            }
            inner.sync()?;
            if let (0, Some(link)) = (me, link) {
                inner.raw().close(link)?;
            }
            inner.sync()
        });
    }
}

case! {
    /// What is sent on a link that its receiver has opened and closed again, before it was ever used: fatal,
    /// naming both, at the latest where its ring goes to its next link.
    pub fn a_link_that_the_peer_has_closed_again_is_fatal timed [2, 3] |ctx| {
        fails_flushing(ctx, [0, 1], |inner| {
            room(inner, 1, 0)?;
            let inbox = inner.inbox(SHAPE)?;
            inner.sync()?;
            let (_kept, source) = bodies(inner, 1, 8)?;
            let me = inner.pid();
            for round in 0..2 {
                match me {
                    0 => {
                        let link = inner.raw().open(inbox, 0, 1, 0)?;
                        inner.raw().close(link)?;
                        if round == 0 {
                            board(inner).write(Topic(1), &[1])?;
                        }
                    }
                    1 => {
                        if round == 0 {
                            await_version(&board(inner), 0, Topic(1), 1);
                        }
                        let link = inner.raw().open(inbox, 0, 0, 0)?;
                        send(inner, source, 0..8, link)?;
                        inner.sync_with(SyncAttr::Flush)?;
                        inner.raw().close(link)?;
                    }
                    _ => {}
                }
                inner.sync()?;
            }
            inner.sync()
        });
    }
}
