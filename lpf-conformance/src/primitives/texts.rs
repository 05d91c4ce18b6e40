//! The texts of errors, word for word. Each is written once, here, so it is the same on every backend that passes.

use lpf_core::{
    Call, Context, Error, Expect, GlobalSlot, InboxShape, InboxSlot, Kind, Link, Lpf, Result,
    SyncAttr,
};

use super::arrivals::{Mesh, bodies, expect, send, send_landing};
use crate::memory::Buffer;
use crate::verdict::{failing_rehook, refuses, room, sync_until_fatal, told};

case! {
    /// Calls on slots and requests.
    pub fn misused_slots_and_requests_are_told_in_the_same_words everywhere [3] |ctx| {
        room(ctx, 2, 2)?;
        let buffer = Buffer::zeroed(16);
        let (slot, local) = (buffer.global(ctx)?, buffer.local(ctx)?);
        // SAFETY: no slot has this number.
        let unknown = unsafe { GlobalSlot::from_bits(1 << 62 | 77) };
        refuses! { ctx;
            ctx.raw().put(local, 0, 0, slot, 0, 1),
            ctx.raw().get(0, slot, 0, local, 0, 1) =>
                "global slot 0 was registered in this superstep; it can be used after the next sync \
                 (called at HERE)";
            buffer.local(ctx),
            buffer.global(ctx),
            ctx.area::<u64>(2) =>
                "no slot is left of the 2 reserved (by ctx.resize); use ctx.alloc, or resize and sync first (an \
                 area keeps its slot until deregistered, or dropped by all processes and a sync has returned) (called at HERE)";
        }
        ctx.sync()?;
        refuses! { ctx;
            ctx.raw().put(local, 12, 0, slot, 0, 8) =>
                "bytes 12..20 lie outside local slot 0, which has 16 bytes (called at HERE)";
            ctx.raw().get(0, slot, 0, local, 17, 1) =>
                "bytes 17..18 lie outside local slot 0, which has 16 bytes (called at HERE)";
            ctx.raw().put(local, usize::MAX, 0, slot, 0, 2) =>
                "a range from byte 18446744073709551615 that ends before it begins lies outside local slot 0, \
                 which has 16 bytes (called at HERE)";
            ctx.raw().put(local, 0, 3, slot, 0, 1) =>
                "process 3 does not exist; the processes are 0 to 2 (called at HERE)";
            ctx.raw().get(9, slot, 0, local, 0, 1) =>
                "process 9 does not exist; the processes are 0 to 2 (called at HERE)";
            ctx.raw().put(local, 0, 0, unknown, 0, 1),
            ctx.raw().put(unknown, 0, 0, slot, 0, 1),
            ctx.raw().deregister(unknown) =>
                "global slot 77 is not registered (never was, was deregistered, or all processes have dropped \
                 its area) (called at HERE)";
        }
        // One to oneself counts twice.
        let me = ctx.pid();
        ctx.raw().put(local, 0, me, slot, 8, 4)?;
        refuses! { ctx;
            ctx.raw().put(local, 0, 0, slot, 0, 1) =>
                "no request is left of the 2 reserved (by ctx.resize), the least that any process asked for \
                 (one to oneself counts twice); resize for more requests and sync first (called at HERE)";
            ctx.raw().deregister(local) =>
                "local slot 0 has requests pending; sync before deregistering it (called at HERE)";
            ctx.raw().deregister(slot) =>
                "global slot 0 has requests pending; sync before deregistering it (called at HERE)";
        }
        ctx.sync()?;
        ctx.raw().deregister(local)?;
        ctx.raw().deregister(slot)?;
        ctx.sync()?;
        let (x, y) = (ctx.local::<u64>(4)?, ctx.area::<u64>(4)?);
        ctx.sync()?;
        refuses! { ctx;
            ctx.put(&x, 2..5, 0, &y, 0) =>
                "elements 2..5 lie outside local slot 0, which has 4 elements of 8 bytes (called at HERE)";
            ctx.get(0, &y, .., &x, 1) =>
                "elements 1..5 lie outside local slot 0, which has 4 elements of 8 bytes (called at HERE)";
        }
        ctx.sync()?;
    }
}

case! {
    /// Calls on inboxes, links, messages and offers.
    pub fn misused_links_are_told_in_the_same_words both_ways [2] |ctx| {
        room(ctx, 1, 0)?;
        let (shape, peer) = (InboxShape { rings: 2, window: 2, cell_bytes: 8 }, 1 - ctx.pid());
        let (inbox, unknown) = (ctx.inbox(shape)?, InboxSlot::new(9));
        refuses! { ctx;
            ctx.inbox(InboxShape { window: 0, ..shape }) => "an inbox's window is 1 to 64 cells, not 0";
            ctx.inbox(InboxShape { window: 65, ..shape }) => "an inbox's window is 1 to 64 cells, not 65";
            ctx.raw().open(inbox, 0, peer, 0) => "inbox 0 is not active; register it and sync first";
            ctx.raw().deregister_inbox(unknown) => "inbox 9 is not registered";
        }
        ctx.sync()?;
        refuses! { ctx;
            ctx.raw().open(unknown, 0, peer, 0) => "inbox 9 is not active; register it and sync first";
            ctx.raw().open(inbox, 2, peer, 0),
            ctx.raw().open(inbox, 0, peer, 2) => "inbox 0 has rings 0 to 1";
            ctx.raw().open(inbox, 0, 2, 0) => "process 2 does not exist; the processes are 0 to 1";
        }
        let link = ctx.raw().open(inbox, 1, peer, 1)?;
        let none = Link::new(99, 0);
        let (_kept, slot) = bodies(ctx, 2, 8)?;
        refuses! { ctx;
            ctx.raw().open(inbox, 1, peer, 0) => "ring 1 of inbox 0 carries a link already";
            ctx.raw().deregister_inbox(inbox) => "inbox 0 has open links; close them first";
            send(ctx, slot, 0..9, link) =>
                "a message of 9 bytes does not fit the cells of link 0, which have 8; send it in parts that \
                 do, or as a landing (called at HERE)";
            send(ctx, slot, 12..17, link) =>
                "bytes 12..17 lie outside local slot 0, which has 16 bytes (called at HERE)";
            send(ctx, slot, 0..8, none) => "link 99 is not open (never was, or was closed) (called at HERE)";
            ctx.raw().close(none),
            ctx.raw().release(none, 0),
            ctx.raw().awaited(none),
            ctx.raw().longest_part(none),
            ctx.raw().landing_pays_from(none),
            ctx.sync_with(SyncAttr::Expected(&[Expect::one(none)])) =>
                "link 99 is not open (never was, or was closed)";
            expect(ctx, &[(link, 3)]) => "more than 2 unreleased messages on link 0";
            ctx.raw().arrival(link, 0) => "message 0 on link 0 was not awaited, or is released";
        }
        // SAFETY: nothing touches the memory until the messages were awaited; wrong offers are refused.
        unsafe {
            refuses! { ctx;
                ctx.raw().offer(none, slot, 0, 8) => "link 99 is not open (never was, or was closed) (called at HERE)";
                ctx.raw().offer(link, slot, 12, 5) =>
                    "bytes 12..17 lie outside local slot 0, which has 16 bytes (called at HERE)";
            }
            ctx.raw().offer(link, slot, 0, 4)?;
            ctx.raw().offer(link, slot, 4, 4)?;
            refuses! { ctx;
                ctx.raw().offer(link, slot, 0, 1) => "more than 2 open offers on link 0 (called at HERE)";
                ctx.raw().deregister(slot) =>
                    "local slot 0 is offered for a landing; await its message before deregistering it \
                     (called at HERE)";
                ctx.raw().close(link) =>
                    "link 0 has 0 unreleased messages, 0 puts that have not left and 2 open offers";
            }
        }
        send_landing(ctx, slot, 8..12, link)?;
        send_landing(ctx, slot, 12..16, link)?;
        refuses! { ctx;
            send(ctx, slot, 8..9, link) =>
                "more than 2 puts on link 0 without a sync, expect or flush (called at HERE)";
        }
        expect(ctx, &[(link, 2)])?;
        ctx.raw().release(link, 0)?;
        refuses! { ctx;
            ctx.raw().arrival(link, 0) => "message 0 on link 0 was not awaited, or is released";
            ctx.raw().release(link, 0) => "message 0 on link 0 was not awaited, is released, or is held";
            ctx.raw().release(link, 2) => "message 2 on link 0 was not awaited, is released, or is held";
        }
        ctx.sync()?;
        ctx.raw().close(link)?;
        refuses! { ctx;
            send(ctx, slot, 0..8, link) => "link 0 is not open (never was, or was closed) (called at HERE)";
            ctx.raw().close(link) => "link 0 is not open (never was, or was closed)";
        }
        ctx.raw().deregister_inbox(inbox)?;
        refuses! { ctx;
            ctx.raw().open(inbox, 0, peer, 0) => "inbox 0 was deregistered";
        }
        ctx.sync()?;
    }
}

/// Runs `f` in a section that fails with this text. Every process learns it from its own calls, and from what started
/// the section. If `f` returns true, its process goes on to full syncs.
fn fails<L: Lpf>(
    ctx: &mut Context<'_, L>,
    text: &str,
    f: impl for<'r> FnOnce(&mut Context<'r, L>, &Mesh, GlobalSlot) -> Result<bool>,
) {
    let (seen, outer) = failing_rehook(ctx, |inner| {
        let mesh = Mesh::open(inner, 2, 3, 2, 64)?;
        let buffer = Buffer::zeroed(8 + 8 * inner.pid());
        let slot = buffer.global(inner)?;
        inner.sync()?;
        let error = match f(inner, &mesh, slot) {
            Ok(true) => sync_until_fatal(inner),
            Err(error) if error.is_fatal() => error,
            other => return other.map(|_| None),
        };
        Ok(Some([error, inner.sync().expect_err("a sync after the failure")]))
    });
    let own = Some(outer).filter(|outer| outer.kind() != Kind::Program);
    for error in seen.flatten().into_iter().flatten().chain(own) {
        assert_eq!(told(&error), text, "process {}", ctx.pid());
    }
}

case! {
    /// What ends a section at once, or in the next sync.
    pub fn failures_are_told_in_the_same_words plain [3] |ctx| {
        let text = "fatal: process 1, superstep 2: process 1 named global slot 0 at process 0: bytes 5..9 lie outside \
             its 8 bytes there (run with LPF_CHECK=1 to see where)";
        fails(ctx, text, |inner, _, slot| {
            if inner.pid() == 1 {
                inner.raw().put(slot, 0, 0, slot, 5, 4)?;
            }
            Ok(true)
        });
        let text = "fatal: process 1, superstep 3: process 1 named global slot 1 at process 0: elements 3..5 lie outside \
             its 4 elements of 8 bytes there (run with LPF_CHECK=1 to see where)";
        fails(ctx, text, |inner, _, _| {
            let area = inner.area::<u64>(4)?;
            inner.sync()?;
            if inner.pid() == 1 {
                inner.put(&area, 0..2, 0, &area, 3)?;
            }
            Ok(true)
        });
        let text = "fatal: process 1, superstep 2: process 1 named global slot 0 at process 0: a range from byte \
             18446744073709551615 that ends before it begins lies outside its 8 bytes there (run with \
             LPF_CHECK=1 to see where)";
        fails(ctx, text, |inner, _, slot| {
            if inner.pid() == 1 {
                inner.raw().get(0, slot, usize::MAX, slot, 0, 2)?;
            }
            Ok(true)
        });
        let text = "fatal: process 1, superstep 2: process 0 makes and is subject to 5 requests but has reserved 3 \
             (by ctx.resize); process 1 sent it the most; resize for more (run with LPF_CHECK=1 to see where)";
        fails(ctx, text, |inner, _, slot| {
            for nth in 0..[0, 3, 2][inner.pid()] {
                inner.raw().put(slot, nth, 0, slot, nth, 1)?;
            }
            Ok(true)
        });
        let text = "fatal: process 1, superstep 2: process 0 and process 1 registered or deregistered global slots \
             (by ctx.alloc, ctx.area or a library such as the collectives) differently since the last sync (2 and 3 calls since the section began); all processes make the same calls in the same \
             order (run with LPF_CHECK=1 to see where)";
        fails(ctx, text, |inner, _, slot| {
            if inner.pid() == 1 {
                inner.raw().deregister(slot)?;
            }
            Ok(true)
        });
        let text = "fatal: process 1, superstep 2: process 0 and process 1 registered or deregistered global slots \
             (by ctx.alloc, ctx.area or a library such as the collectives) differently since the last sync (in another order, or areas of another length); all processes \
             make the same calls in the same order (run with LPF_CHECK=1 to see where)";
        fails(ctx, text, |inner, _, _| {
            inner.inbox(InboxShape { rings: 1 + inner.pid(), window: 1, cell_bytes: 8 })?;
            Ok(true)
        });
        let text = "fatal: process 1, superstep 2: process 0 and process 1 registered or deregistered global slots \
             (by ctx.alloc, ctx.area or a library such as the collectives) differently since the last sync (in another order, or areas of another length: the last area has 12 \
             bytes at process 0 and 16 bytes at process 1); all processes make the same calls in the same order (run \
             with LPF_CHECK=1 to see where)";
        fails(ctx, text, |inner, _, _| {
            inner.area::<u32>(3 + inner.pid())?;
            Ok(true)
        });
        let text = "fatal: process 0, superstep 2: it called sync where process 1 called rehook; all processes call \
             the same";
        fails(ctx, text, |inner, _, _| {
            if inner.pid() == 1 {
                inner.rehook(|_| Ok(()))?;
            }
            Ok(true)
        });
        let text = "fatal: process 1, superstep 2: it panicked: on purpose";
        fails(ctx, text, |inner, _, _| match inner.pid() {
            1 => std::panic::resume_unwind(Box::new("on purpose")),
            _ => Ok(true),
        });
        let text = "fatal: process 1, superstep 2: it left the section with an error: on purpose";
        fails(ctx, text, |inner, _, _| match inner.pid() {
            1 => Err(Error::program("on purpose")),
            _ => Ok(true),
        });
        let text = "fatal: process 1, superstep 2: it returned after 2 full syncs while process 0 went on to sync 3; \
             all processes call sync equally often";
        fails(ctx, text, |inner, _, _| Ok(inner.pid() != 1));
    }
}

case! {
    /// Members that do not agree on what they send each other, and waits without an end.
    pub fn failures_on_links_are_told_in_the_same_words plain [2] |ctx| {
        let call = |number| Call { number, stamp: 7, ..Call::default() };
        // A landing that does not fit its offer.
        let text = "fatal: process 1, superstep 2: process 1 sends 9 bytes to process 0, which has room for 8: the \
             two do not agree on the length";
        fails(ctx, text, |inner, mesh, slot| {
            let link = mesh.with(1 - inner.pid());
            match inner.pid() {
                // SAFETY: nothing touches the memory until the section has failed.
                0 => unsafe { inner.raw().offer(link, slot, 0, 8)? },
                _ => send_landing(inner, slot, 0..9, link).map(|()| 0)?,
            };
            inner.sync_with(SyncAttr::Flush)?;
            Ok(true)
        });
        // A message of another call.
        let text = "fatal: process 1, superstep 2: process 0 is in call 1, but process 1 in call 2, so one of them \
             has left a call out, or they did not agree in the earlier one on what they send each other";
        fails(ctx, text, |inner, mesh, slot| {
            let call = call(1 + inner.pid() as u32);
            inner.raw().enter(call);
            if inner.pid() == 1 {
                send(inner, slot, 0..8, mesh.with(0))?;
                return Ok(true);
            }
            expect(inner, &[(mesh.with(1), 1)]).map(|()| true)
        });
        // A message that its receiver never awaits.
        let text = "fatal: process 0, superstep 2: it never awaited 1 message of process 1: the two do not agree on \
             what they send each other (one of them has left out a call, or called it with another root or \
             length)";
        fails(ctx, text, |inner, mesh, slot| {
            if inner.pid() == 1 {
                send(inner, slot, 0..8, mesh.with(0))?;
            }
            Ok(false)
        });
        // The same in a call, which the message names.
        let text = "fatal: process 0, superstep 2: it never awaited 1 message of process 1 (sent in call 3): the two \
             do not agree on what they send each other (one of them has left out a call, or called it with another \
             root or length)";
        fails(ctx, text, |inner, mesh, slot| {
            inner.raw().enter(call(3));
            if inner.pid() == 1 {
                send(inner, slot, 0..8, mesh.with(0))?;
            }
            inner.raw().enter(Call::default());
            Ok(false)
        });
        // The same, when its link closes.
        let text = "fatal: process 0, superstep 3: it gives up a link on which a message of process 1 has arrived \
             that it never awaited: the two do not agree on what they send each other";
        fails(ctx, text, |inner, mesh, slot| {
            let link = mesh.with(1 - inner.pid());
            if inner.pid() == 1 {
                send(inner, slot, 0..8, link)?;
            }
            inner.sync()?;
            inner.raw().close(link)?;
            Ok(true)
        });
        // The sender of an awaited message is in a full sync,
        let text = "fatal: process 1, superstep 2: process 0 waits for message 1 of process 1 (0 have arrived), but \
             process 1 is in the full sync that ends superstep 2, having sent 0";
        fails(ctx, text, |inner, mesh, _| match inner.pid() {
            0 => expect(inner, &[(mesh.with(1), 1)]).map(|()| true),
            _ => Ok(true),
        });
        // or waits itself, in a later call or in none,
        let text = "fatal: process 1, superstep 2: process 0, in call 1, waits for message 1 of process 1 (0 have \
             arrived), but process 1 has gone on to call 2, having sent 0";
        fails(ctx, text, |inner, mesh, _| {
            let call = call(1 + inner.pid() as u32);
            inner.raw().enter(call);
            expect(inner, &[(mesh.with(1 - inner.pid()), 1)]).map(|()| true)
        });
        let text = "fatal: process 0, superstep 2: a cycle of waits: process 0 waits for message 1 of process 1 (0 \
             have arrived); process 1 waits for message 1 of process 0 (0 have arrived)";
        fails(ctx, text, |inner, mesh, _| {
            expect(inner, &[(mesh.with(1 - inner.pid()), 1)]).map(|()| true)
        });
        // or has left.
        let text = "fatal: process 1, superstep 2: process 0 waits for message 1 of process 1 (0 have arrived), but \
             process 1 has left the section in superstep 2, having sent 0";
        fails(ctx, text, |inner, mesh, _| match inner.pid() {
            0 => expect(inner, &[(mesh.with(1), 1)]).map(|()| true),
            _ => Ok(false),
        });
        // There is no offer for a landing.
        let text = "fatal: process 0, superstep 2: process 1 waits for offer 1 of process 0 (0 have arrived), but \
             process 0 is in the full sync that ends superstep 2, having offered 0";
        fails(ctx, text, |inner, mesh, slot| match inner.pid() {
            1 => {
                send_landing(inner, slot, 0..9, mesh.with(0))?;
                inner.sync_with(SyncAttr::Flush).map(|()| true)
            }
            _ => Ok(true),
        });
    }
}
