//! Pending requests set aside for a library's supersteps.

use crate::attr::PutAttr;
use crate::conformance::memory::Buffer;
use crate::conformance::verdict::{refused, room};
use crate::slot::Slot;

case! {
    /// A library's full syncs complete its own requests and leave the caller's as they are: puts, gets,
    /// registrations and resizes wait for the caller's sync, and slots stay busy.
    pub fn what_is_set_aside_waits_for_its_own_sync both_ways [1, 2, 3, 5] |ctx| {
        room(ctx, 6, 4)?;
        ctx.raw().reserve(0, 4)?;
        let (me, p) = (ctx.pid() as u8, ctx.nprocs());
        let next = (ctx.pid() + 1) % p;
        let (source, mut target) = (Buffer::filled(8, me), Buffer::filled(8, 0xee));
        let (mut get, library) = (Buffer::filled(8, 0xdd), Buffer::zeroed(8));
        let (from, to) = (source.global(ctx)?, target.global(ctx)?);
        let (into, theirs) = (get.local(ctx)?, library.global(ctx)?);
        ctx.sync()?;
        for round in 0..3u8 {
            // The caller's: two requests, and half of the reservation.
            ctx.raw().put(from, 0, next, to, 0, 4, PutAttr::Default)?;
            ctx.raw().get(next, from, 4, into, 4, 4, crate::attr::GetAttr::Default)?;
            let fresh = target.global(ctx)?;
            ctx.raw().resize_message_queue(5 + usize::from(round))?;

            ctx.raw().set_aside()?;
            let before = ctx.superstep();
            for step in 0..2 {
                ctx.raw().put(from, 0, next, theirs, 4 * step, 4, PutAttr::Default)?;
                ctx.sync()?;
                let left = ((ctx.pid() + p - 1) % p) as u8;
                assert_eq!(library.read(4 * step, 4), [left; 4]);
            }
            assert_eq!(ctx.superstep(), before + 2);
            assert_eq!((target.to_vec(), get.to_vec()), (vec![0xee; 8], vec![0xdd; 8]));
            refused!(ctx.raw().put(fresh, 0, next, to, 0, 1, PutAttr::Default), Misuse, InactiveSlot { .. });
            ctx.raw().take_up();

            refused!(ctx.raw().deregister(into), Misuse, SlotBusy { .. });
            refused!(ctx.raw().deregister(from), Misuse, SlotBusy { .. });
            ctx.sync()?;
            let left = ((ctx.pid() + p - 1) % p) as u8;
            assert_eq!(target.read(0, 4), [left; 4]);
            assert_eq!(get.read(4, 4), [next as u8; 4]);
            // What was registered and resized holds now.
            ctx.raw().put(from, 0, next, fresh, 4, 4, PutAttr::Default)?;
            ctx.sync()?;
            assert_eq!(target.read(4, 4), [left; 4]);
            ctx.raw().deregister(Slot::from(fresh))?;
            target.fill(0xee);
            get.fill(0xdd);
        }
    }
}

case! {
    /// A library's requests make no slot busy once it is done, and take nothing of what the caller may queue.
    pub fn a_library_leaves_no_trace_but_its_data both_ways [2, 4] |ctx| {
        room(ctx, 3, 2)?;
        ctx.raw().reserve(0, 4)?;
        let next = (ctx.pid() + 1) % ctx.nprocs();
        let (source, target) = (Buffer::filled(8, 7), Buffer::zeroed(8));
        let (from, to) = (source.local(ctx)?, target.global(ctx)?);
        ctx.sync()?;
        ctx.raw().set_aside()?;
        ctx.raw().put(from, 0, next, to, 0, 8, PutAttr::Default)?;
        ctx.sync()?;
        ctx.raw().take_up();
        assert_eq!(target.to_vec(), [7; 8]);
        ctx.raw().deregister(from)?;
        // What a library queues and never syncs is gone.
        let again = source.local(ctx)?;
        ctx.raw().set_aside()?;
        ctx.raw().put(again, 0, next, to, 0, 8, PutAttr::Default)?;
        ctx.raw().take_up();
        ctx.raw().deregister(again)?;
        ctx.sync()?;
    }
}
