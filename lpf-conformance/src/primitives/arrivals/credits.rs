//! Flow control: the window, credits, and what waits for them.

use std::time::Duration;

use lpf_core::board::{Board, Topic};
use lpf_core::{Awaited, Context, Expect, InboxShape, Lpf, Pid, Result, SyncAttr};

use super::{Mesh, bodies, body, channels, expect, latest, message, send};
use crate::memory::Buffer;
use crate::primitives::board::{await_version, board};
use crate::verdict::refused;

case! {
    /// 1,000 messages to a receiver that sleeps: the sender gets a window ahead and no further, so
    /// memory is bounded; nothing is overwritten, and all arrive in order.
    pub fn a_sender_gets_no_further_than_the_window_of_a_sleeping_receiver both_ways [2, 3] |ctx| {
        const WINDOW: u32 = 4;
        const MESSAGES: usize = 1000;
        let mesh = Mesh::open(ctx, 1, 0, WINDOW, 200)?;
        let mut buffer = Buffer::zeroed(4 * 200);
        let source = buffer.local(ctx)?;
        let board = board(ctx);
        ctx.sync()?;
        match ctx.pid() {
            0 => {
                for first in (0..MESSAGES).step_by(4) {
                    for k in 0..4 {
                        buffer.write(200 * k, &body(first + k, 200));
                    }
                    for k in 0..4 {
                        send(ctx, source, 200 * k..200 * k + 200, mesh.with(1))?;
                    }
                    ctx.sync_with(SyncAttr::Flush)?;
                    board.write(Topic(1), &(first + 4).to_le_bytes())?;
                }
            }
            1 => {
                std::thread::sleep(Duration::from_millis(150));
                let flushed = board.read(0, Topic(1))?.map_or(0, |record| {
                    usize::from_le_bytes(record.bytes.try_into().expect("eight bytes"))
                });
                let window = WINDOW as usize;
                assert!(flushed <= window, "{flushed} messages left for a window of {window}");
                let link = mesh.with(0);
                for number in 0..MESSAGES {
                    expect(ctx, &[(link, 1)])?;
                    assert!(latest(ctx, link)? == body(number, 200), "message {number} differs");
                    if number % 100 == 50 {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                }
            }
            _ => {}
        }
        ctx.sync()?;
    }
}

case! {
    /// Every process puts a whole window to every other, again and again, before it reads theirs:
    /// all that is unreported has to be reported before its owner waits for credit itself.
    pub fn whole_windows_cross_again_and_again both_ways [2, 4] |ctx| {
        for window in [1u32, 2, 8] {
            ctx.rehook(|ctx| {
                let w = window as usize;
                let mesh = Mesh::open(ctx, 1, 0, window, 32)?;
                let (me, p) = (ctx.pid(), ctx.nprocs());
                let others = || (0..p).filter(move |&peer| peer != me);
                // Every pair has messages of its own, in two halves: one leaves while the other
                // is filled.
                let mut buffer = Buffer::zeroed(2 * w * p * 32);
                let source = buffer.local(ctx)?;
                let number = |round: usize, from: Pid, to: Pid, k: usize| {
                    (round * w + k) * 64 + (from * 8 + to)
                };
                for round in 0..100 {
                    let half = round % 2 * w * p;
                    for to in others() {
                        for k in 0..w {
                            let at = (half + to * w + k) * 32;
                            buffer.write(at, &body(number(round, me, to, k), 32));
                            send(ctx, source, at..at + 32, mesh.with(to))?;
                        }
                    }
                    // Now before, now after the wait.
                    if round % 3 == 0 {
                        ctx.sync_with(SyncAttr::Flush)?;
                    }
                    let all: Vec<_> = others().map(|peer| (mesh.with(peer), window)).collect();
                    expect(ctx, &all)?;
                    for from in others() {
                        for k in 0..w {
                            let got = message(ctx, mesh.with(from), (round * w + k) as u64)?;
                            let sent = body(number(round, from, me, k), 32);
                            assert!(got == sent, "round {round}, {k} from process {from}");
                        }
                    }
                    ctx.sync_with(SyncAttr::Flush)?;
                }
                ctx.sync()
            })?;
        }
        ctx.sync()?;
    }
}

case! {
    /// At most W puts per channel and superstep; one more is misuse at put. Any sync begins anew.
    pub fn more_puts_than_the_window_in_a_superstep_are_misuse both_ways [2] |ctx| {
        let mesh = Mesh::open(ctx, 1, 0, 3, 8)?;
        let (_kept, source) = bodies(ctx, 1, 8)?;
        let link = mesh.with(1 - ctx.pid());
        for _ in 0..10 {
            for _ in 0..3 {
                send(ctx, source, 0..8, link)?;
            }
            refused!(send(ctx, source, 0..8, link), Misuse, Link(_));
            expect(ctx, &[(link, 3)])?;
        }
        ctx.sync()?;
    }
}

case! {
    /// Who keeps W messages unreleased may not wait for another: it could never be sent.
    pub fn more_unreleased_messages_than_the_window_are_misuse both_ways [2] |ctx| {
        let mut all = channels::<_, u32>(ctx, 1, 2, 4)?;
        let mut parts = ctx.outbox::<u32>(2, 4)?;
        let channel = all[1 - ctx.pid()].as_mut().expect("a channel with the other");
        let mut kept = Vec::new();
        for round in 0..2 {
            let mut part = parts.pop().expect("two parts");
            part.fill(round);
            ctx.send(channel, part, ..)?;
            let [message] = ctx.expect([channel])?;
            kept.push(message);
        }
        refused!(ctx.expect([channel]), Misuse, Link(_));
        assert_eq!((kept[0][0], kept[1][3]), (0, 1));
        drop(kept);
        ctx.sync()?;
    }
}

case! {
    /// A put without credit stays queued and delays no put to another target.
    pub fn a_put_without_credit_delays_no_other_target both_ways [3] |ctx| {
        let mesh = Mesh::open(ctx, 1, 0, 1, 8)?;
        let (_kept, source) = bodies(ctx, 2, 8)?;
        let board = board(ctx);
        match ctx.pid() {
            0 => {
                send(ctx, source, 0..8, mesh.with(1))?;
                expect(ctx, &[])?;
                // Process 1 has released nothing: this one has no credit.
                send(ctx, source, 8..16, mesh.with(1))?;
                send(ctx, source, 8..16, mesh.with(2))?;
                expect(ctx, &[])?;
                // A wait for process 2 makes progress on everything.
                expect(ctx, &[(mesh.with(2), 1)])?;
                ctx.sync_with(SyncAttr::Flush)?;
            }
            1 => {
                await_version(&board, 2, Topic(2), 1);
                for number in 0..2 {
                    expect(ctx, &[(mesh.with(0), 1)])?;
                    assert_eq!(latest(ctx, mesh.with(0))?, body(number, 8));
                }
            }
            _ => {
                expect(ctx, &[(mesh.with(0), 1)])?;
                assert_eq!(latest(ctx, mesh.with(0))?, body(1, 8));
                board.write(Topic(2), &[1])?;
                send(ctx, source, 0..8, mesh.with(0))?;
            }
        }
        ctx.sync()?;
    }
}

case! {
    /// A sender that never flushes is stopped by misuse before its queue has grown without bound;
    /// what was refused had no effect, and after a flush it goes on.
    pub fn a_sender_that_never_flushes_is_stopped_by_misuse both_ways [2] |ctx| {
        const MESSAGES: usize = 200;
        let mesh = Mesh::open(ctx, 1, 0, 4, 20)?;
        let (_kept, source) = bodies(ctx, MESSAGES, 20)?;
        let (board, link) = (board(ctx), mesh.with(1 - ctx.pid()));
        ctx.sync()?;
        if ctx.pid() == 0 {
            let mut refusals = 0;
            for number in 0..MESSAGES {
                let range = 20 * number..20 * number + 20;
                if send(ctx, source, range.clone(), link).is_err_and(|e| e.is_misuse()) {
                    refusals += 1;
                    board.write(Topic(1), &number.to_le_bytes())?;
                    ctx.sync_with(SyncAttr::Flush)?;
                    send(ctx, source, range, link)?;
                }
                expect(ctx, &[])?;
            }
            assert!(refusals > 0, "{MESSAGES} puts were queued for a window of 4");
        } else {
            await_version(&board, 0, Topic(1), 1);
            for number in 0..MESSAGES {
                expect(ctx, &[(link, 1)])?;
                assert_eq!(latest(ctx, link)?, body(number, 20), "message {number}");
            }
        }
        ctx.sync()?;
    }
}

/// Process 1 fills its window at process 0 and flushes; process 0 has released one message, less
/// than half the window, and waits for process 2 after `idle` supersteps without the link. Process 2 waits for what
/// process 1 sends after its flush. So process 0 has to report that one release before it sleeps.
fn wait_with_a_release_unreported<L: Lpf>(ctx: &mut Context<'_, L>, idle: usize) -> Result<()> {
    let mesh = Mesh::open(ctx, 1, 0, 4, 8)?;
    let (_kept, source) = bodies(ctx, 6, 8)?;
    ctx.sync()?;
    match ctx.pid() {
        1 => {
            for number in 0..5 {
                send(ctx, source, 8 * number..8 * number + 8, mesh.with(0))?;
                expect(ctx, &[])?;
            }
            ctx.sync_with(SyncAttr::Flush)?;
            send(ctx, source, 40..48, mesh.with(2))?;
        }
        0 => {
            expect(ctx, &[(mesh.with(1), 1)])?;
            for _ in 0..idle {
                ctx.sync_with(SyncAttr::Flush)?;
            }
            expect(ctx, &[(mesh.with(2), 1)])?;
            for number in 1..5 {
                expect(ctx, &[(mesh.with(1), 1)])?;
                assert_eq!(latest(ctx, mesh.with(1))?, body(number, 8));
            }
        }
        _ => {
            expect(ctx, &[(mesh.with(1), 1)])?;
            send(ctx, source, 0..8, mesh.with(0))?;
        }
    }
    ctx.sync()
}

case! {
    /// A process that sleeps has reported what it released just before.
    pub fn nobody_sleeps_on_releases_that_its_sender_needs both_ways [3] |ctx| {
        wait_with_a_release_unreported(ctx, 0)?;
    }
}

case! {
    /// A process that sleeps has reported what it released on a link that it has not used since.
    pub fn an_idle_link_reports_its_releases_before_a_sleep both_ways [3] |ctx| {
        wait_with_a_release_unreported(ctx, 3)?;
    }
}

case! {
    /// Process 0 has released one message, less than half the window, and goes into a rehook, to which
    /// process 1 comes when it has flushed one message more than the window holds.
    pub fn nobody_meets_on_releases_that_its_sender_needs both_ways [2] |ctx| {
        let mesh = Mesh::open(ctx, 1, 0, 4, 8)?;
        let (_kept, source) = bodies(ctx, 5, 8)?;
        ctx.sync()?;
        let link = mesh.with(1 - ctx.pid());
        if ctx.pid() == 1 {
            for number in 0..5 {
                send(ctx, source, 8 * number..8 * number + 8, link)?;
                expect(ctx, &[])?;
            }
            ctx.sync_with(SyncAttr::Flush)?;
        } else {
            expect(ctx, &[(link, 1)])?;
            ctx.sync_with(SyncAttr::Flush)?;
        }
        ctx.rehook(|ctx| ctx.sync())?;
        if ctx.pid() == 0 {
            expect(ctx, &[(link, 4)])?;
            assert_eq!(latest(ctx, link)?, body(4, 8));
        }
        ctx.sync()?;
    }
}

case! {
    /// What is awaited and has not come stays awaited: asking for more before it came releases
    /// nothing, and adds to it.
    pub fn awaiting_more_before_the_first_came_releases_nothing both_ways [2] |ctx| {
        let mesh = Mesh::open(ctx, 1, 0, 4, 8)?;
        let (_kept, source) = bodies(ctx, 3, 8)?;
        let link = mesh.with(1 - ctx.pid());
        ctx.sync()?;
        let one = [Expect::one(link)];
        ctx.raw().expect(&one)?;
        ctx.raw().expect(&one)?;
        for number in 0..3 {
            send(ctx, source, 8 * number..8 * number + 8, link)?;
        }
        expect(ctx, &[(link, 1)])?;
        for number in 0..3 {
            assert_eq!(message(ctx, link, number as u64)?, body(number, 8));
        }
        ctx.sync()?;
    }
}

case! {
    /// Two links of two processes cross: what comes on one is sent by who receives what the other sends.
    /// So what has been released of the other's messages gives this one no credit.
    pub fn the_credit_of_another_ring_is_none both_ways [2] |ctx| {
        const WINDOW: usize = 2;
        ctx.resize(1, 0)?;
        let inbox = ctx.inbox(InboxShape { rings: 2, window: WINDOW as u32, cell_bytes: 8 })?;
        ctx.sync()?;
        let (_kept, source) = bodies(ctx, 2 * WINDOW, 8)?;
        let (me, board) = (ctx.pid(), board(ctx));
        let links = [0, 1].map(|ring| {
            let peer_ring = if me == 0 { 1 - ring } else { ring };
            ctx.raw().open(inbox, ring, 1 - me, peer_ring)
        });
        let [first, second] = [links[0].clone()?, links[1].clone()?];
        if me == 0 {
            send(ctx, source, 0..8, first)?;
            ctx.sync_with(SyncAttr::Flush)?;
            for number in 0..2 * WINDOW {
                send(ctx, source, 8 * number..8 * number + 8, second)?;
                expect(ctx, &[])?;
            }
            expect(ctx, &[(first, 1)])?;
            assert_eq!(latest(ctx, first)?, body(3, 8));
            for number in 0..2 * WINDOW {
                send(ctx, source, 8 * number..8 * number + 8, first)?;
                expect(ctx, &[])?;
            }
            for _ in 0..100 {
                let has_left = ctx.raw().poll(Awaited::Flushed)?;
                assert!(!has_left, "more left than a window of which nothing was released");
            }
            board.write(Topic(1), &[1])?;
        } else {
            expect(ctx, &[(second, 1)])?;
            for number in 0..2 * WINDOW {
                expect(ctx, &[(first, 1)])?;
                assert_eq!(latest(ctx, first)?, body(number, 8));
            }
            send(ctx, source, 24..32, first)?;
            await_version(&board, 0, Topic(1), 1);
            for number in 0..2 * WINDOW {
                expect(ctx, &[(second, 1)])?;
                assert_eq!(latest(ctx, second)?, body(number, 8));
            }
        }
        ctx.sync()?;
    }
}
