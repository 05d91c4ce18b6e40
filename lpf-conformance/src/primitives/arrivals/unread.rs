//! What was sent and nobody awaited when the section ends: fatal for all, naming both.

use lpf_core::board::{Board, Topic};
use lpf_core::{InboxShape, SyncAttr};

use super::{bodies, expect, send};
use crate::primitives::board::{await_version, board};
use crate::verdict::{assert_fatal_naming, failing_rehook, room};

const SHAPE: InboxShape = InboxShape { rings: 1, window: 4, cell_bytes: 8 };

case! {
    /// Process 1 sends so many messages, of which process 0 awaits some.
    pub fn what_nobody_awaited_is_fatal_at_the_end timed [2, 3, 5] |ctx| {
        for (sent, awaited) in [(1, 0), (3, 0), (3, 1), (4, 3)] {
            let (seen, outer) = failing_rehook(ctx, |inner| {
                room(inner, 1, 4)?;
                let inbox = inner.inbox(SHAPE)?;
                inner.sync()?;
                let (_kept, source) = bodies(inner, 1, 8)?;
                let me = inner.pid();
                if me < 2 {
                    let link = inner.raw().open(inbox, 0, 1 - me, 0)?;
                    for _ in 0..if me == 1 { sent } else { 0 } {
                        send(inner, source, 0..8, link)?;
                    }
                    for _ in 0..if me == 0 { awaited } else { 0 } {
                        expect(inner, &[(link, 1)])?;
                    }
                }
                Ok(())
            });
            assert!(seen.is_some(), "nobody waits for anything before the end");
            assert_fatal_naming(&outer, &[0, 1]);
            let text = outer.to_string();
            let left = format!("never awaited {} message", sent - awaited);
            assert!(text.contains(&left), "{left}: {text}");
        }
    }
}

case! {
    /// A message that comes when its receiver has given up the link, or the inbox as well.
    pub fn what_comes_after_its_link_is_fatal_at_the_end timed [2, 3, 5] |ctx| {
        for keeps_inbox in [true, false] {
            let (_, outer) = failing_rehook(ctx, |inner| {
                room(inner, 1, 4)?;
                let inbox = inner.inbox(SHAPE)?;
                inner.sync()?;
                let (_kept, source) = bodies(inner, 1, 8)?;
                let me = inner.pid();
                if me < 2 {
                    let link = inner.raw().open(inbox, 0, 1 - me, 0)?;
                    if me == 1 {
                        send(inner, source, 0..8, link)?;
                        inner.sync_with(SyncAttr::Flush)?;
                        await_version(&board(inner), 0, Topic(1), 1);
                        send(inner, source, 0..8, link)?;
                        inner.sync_with(SyncAttr::Flush)?;
                    } else {
                        expect(inner, &[(link, 1)])?;
                        expect(inner, &[])?;
                    }
                    inner.raw().close(link)?;
                    if me == 0 {
                        board(inner).write(Topic(1), &[1])?;
                    }
                }
                if !keeps_inbox {
                    inner.raw().deregister_inbox(inbox)?;
                    inner.sync()?;
                }
                Ok(())
            });
            assert_fatal_naming(&outer, &[0, 1]);
        }
    }
}
