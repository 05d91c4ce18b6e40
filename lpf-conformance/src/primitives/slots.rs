//! Slots: when they are usable, what they may name, and how they go.

use lpf_core::{Cause, Pid};

use crate::memory::Buffer;
use crate::verdict::{assert_fatal_naming, failing_rehook, refused, room, sync_until_fatal};

case! {
    /// A local slot is usable at once, as the local side of a request.
    pub fn a_local_slot_is_usable_at_once everywhere [1, 2, 4] |ctx| {
        room(ctx, 3, 4)?;
        let shared = Buffer::filled(4, 1 + ctx.pid() as u8);
        let slot = shared.global(ctx)?;
        ctx.sync()?;
        let (next, source, target) =
            ((ctx.pid() + 1) % ctx.nprocs(), Buffer::of(&[9; 2]), Buffer::zeroed(2));
        let source = source.local(ctx)?;
        ctx.raw().put(source, 0, next, slot, 0, 2)?;
        let to = target.local(ctx)?;
        ctx.raw().get(next, slot, 2, to, 0, 2)?;
        ctx.sync()?;
        assert_eq!(shared.read(0, 2), [9; 2]);
        assert_eq!(target.to_vec(), [1 + next as u8; 2]);
    }
}

case! {
    /// A global slot is usable after the next sync: not before, on either side of a request.
    pub fn a_global_slot_is_usable_after_the_next_sync everywhere [1, 2, 4] |ctx| {
        room(ctx, 2, 4)?;
        let active = Buffer::zeroed(4);
        let slot = active.global(ctx)?;
        ctx.sync()?;
        let fresh = Buffer::filled(4, 5);
        let new = fresh.global(ctx)?;
        let next = (ctx.pid() + 1) % ctx.nprocs();
        refused!(
            ctx.raw().put(slot, 0, next, new, 0, 2),
            Misuse, InactiveSlot { .. }
        );
        refused!(
            ctx.raw().get(next, new, 0, slot, 0, 2),
            Misuse, InactiveSlot { .. }
        );
        refused!(
            ctx.raw().put(new, 0, next, slot, 0, 2),
            Misuse, InactiveSlot { .. }
        );
        ctx.sync()?;
        assert_eq!(active.to_vec(), [0; 4]);
        ctx.raw().put(new, 0, next, slot, 1, 2)?;
        ctx.sync()?;
        assert_eq!(active.to_vec(), [0, 5, 5, 0]);
    }
}

case! {
    /// Sizes of a raw global slot may differ per process; 0 bytes and null are allowed.
    pub fn sizes_may_differ_and_be_zero_or_null everywhere [1, 3, 5] |ctx| {
        room(ctx, 4, 64)?;
        let me = ctx.pid();
        let own = match me % 3 {
            0 => Buffer::zeroed(16 * (me + 1)),
            1 => Buffer::null(),
            _ => Buffer::zeroed(0),
        };
        let slot = own.global(ctx)?;
        let nothing = Buffer::null();
        let nothing = nothing.global(ctx)?;
        let empty = Buffer::null().local(ctx)?;
        let source = Buffer::of(&[1 + me as u8; 16]);
        let source = source.local(ctx)?;
        ctx.sync()?;
        for to in 0..ctx.nprocs() {
            ctx.raw().put(source, 0, to, nothing, 0, 0)?;
            ctx.raw().get(to, nothing, 0, empty, 0, 0)?;
            if to.is_multiple_of(3) && me <= to {
                // The last 16 bytes of what the target registered are for process `to` itself.
                let at = 16 * me;
                ctx.raw().put(source, 0, to, slot, at, 16)?;
            } else {
                ctx.raw().put(source, 0, to, slot, 0, 0)?;
            }
        }
        ctx.sync()?;
        if me.is_multiple_of(3) {
            let expected: Vec<u8> = (0..=me).flat_map(|from| [1 + from as u8; 16]).collect();
            assert_eq!(own.to_vec(), expected);
        }
    }
}

case! {
    /// Deregistering takes effect at once. (The checked mode says more about it: where.)
    pub fn a_deregistered_slot_is_unknown_at_once everywhere [1, 3] |ctx| {
        room(ctx, 3, 8)?;
        let buffers = [Buffer::zeroed(4), Buffer::zeroed(4), Buffer::zeroed(4)];
        let (kept, gone) = (buffers[0].global(ctx)?, buffers[1].global(ctx)?);
        let local = buffers[2].local(ctx)?;
        ctx.sync()?;
        ctx.raw().deregister(gone)?;
        ctx.raw().deregister(local)?;
        refused!(
            ctx.raw().put(kept, 0, 0, gone, 0, 1),
            Misuse, UnknownSlot { .. } | Cause::Checked(_)
        );
        refused!(
            ctx.raw().put(gone, 0, 0, kept, 0, 1),
            Misuse, UnknownSlot { .. } | Cause::Checked(_)
        );
        refused!(
            ctx.raw().get(0, kept, 0, local, 0, 1),
            Misuse, UnknownSlot { .. } | Cause::Checked(_)
        );
        let again = ctx.raw().deregister(gone);
        refused!(again, Misuse, UnknownSlot { .. } | Cause::Checked(_));
        refused!(ctx.raw().deregister(local), Misuse, UnknownSlot { .. } | Cause::Checked(_));
        ctx.sync()?;
    }
}

case! {
    /// A slot that a pending request names may not be deregistered; after the sync it may.
    pub fn a_slot_with_pending_requests_is_not_deregistered everywhere [1, 2] |ctx| {
        room(ctx, 3, 8)?;
        let (source, target, spare) = (Buffer::of(&[3; 4]), Buffer::zeroed(4), Buffer::zeroed(4));
        let (slot, from, to) = (target.global(ctx)?, source.local(ctx)?, spare.local(ctx)?);
        ctx.sync()?;
        let next = (ctx.pid() + 1) % ctx.nprocs();
        ctx.raw().put(from, 0, next, slot, 0, 2)?;
        ctx.raw().get(next, slot, 2, to, 0, 2)?;
        refused!(ctx.raw().deregister(from), Misuse, SlotBusy { .. });
        refused!(ctx.raw().deregister(to), Misuse, SlotBusy { .. });
        refused!(ctx.raw().deregister(slot), Misuse, SlotBusy { .. });
        ctx.sync()?;
        assert_eq!(target.to_vec(), [3, 3, 0, 0]);
        ctx.raw().deregister(slot)?;
        ctx.raw().deregister(from)?;
        ctx.raw().deregister(to)?;
        ctx.sync()?;
    }
}

case! {
    /// The place of a deregistered slot is free at once; the old name never means the new area.
    pub fn deregistering_gives_the_place_back everywhere [1, 3] |ctx| {
        room(ctx, 2, 8)?;
        let mut keep = Vec::new();
        let mut old = Vec::new();
        for round in 0..40u8 {
            let (a, b) = (Buffer::of(&[round]), Buffer::zeroed(1));
            let (slot, local) = (b.global(ctx)?, a.local(ctx)?);
            ctx.sync()?;
            let next = (ctx.pid() + 1) % ctx.nprocs();
            ctx.raw().put(local, 0, next, slot, 0, 1)?;
            for &stale in &old {
                refused!(
                    ctx.raw().put(local, 0, next, stale, 0, 1),
                    Misuse, UnknownSlot { .. } | Cause::Checked(_)
                );
            }
            ctx.sync()?;
            assert_eq!(b.to_vec(), [round]);
            ctx.raw().deregister(slot)?;
            ctx.raw().deregister(local)?;
            old.push(slot);
            keep.push((a, b));
        }
        // Registered and given up without a sync between.
        for _ in 0..10 {
            let slot = keep[0].0.global(ctx)?;
            ctx.raw().deregister(slot)?;
        }
        ctx.sync()?;
    }
}

case! {
    /// The n-th collective registration is the same slot everywhere, however many local slots a
    /// process has and whatever was deregistered before.
    pub fn a_global_slot_names_the_same_call_everywhere everywhere [2, 4] |ctx| {
        room(ctx, 32, 64)?;
        let me = ctx.pid();
        let spare = Buffer::zeroed(1);
        for _ in 0..me {
            spare.local(ctx)?;
        }
        let buffers: Vec<Buffer> = (0..8).map(|_| Buffer::zeroed(1)).collect();
        let mut slots = Vec::new();
        for buffer in &buffers {
            slots.push(buffer.global(ctx)?);
        }
        ctx.sync()?;
        for at in [5, 1, 3] {
            ctx.raw().deregister(slots[at])?;
        }
        for at in [3, 1, 5] {
            slots[at] = buffers[at].global(ctx)?;
            spare.local(ctx)?;
        }
        ctx.sync()?;
        let numbers = Buffer::of(&[10, 11, 12, 13, 14, 15, 16, 17]);
        let numbers = numbers.local(ctx)?;
        let next = (me + 1) % ctx.nprocs();
        for (at, &slot) in slots.iter().enumerate() {
            ctx.raw().put(numbers, at, next, slot, 0, 1)?;
        }
        ctx.sync()?;
        for (at, buffer) in buffers.iter().enumerate() {
            assert_eq!(buffer.to_vec(), [10 + at as u8], "global slot {at}");
        }
    }
}

case! {
    /// One process registered more: fatal at the sync that would activate it, for everybody.
    pub fn registrations_that_differ_are_fatal_at_the_next_sync everywhere [2, 4] |ctx| {
        let (error, outer) = failing_rehook(ctx, |inner| {
            room(inner, 4, 4)?;
            let (one, two) = (Buffer::zeroed(4), Buffer::zeroed(4));
            one.global(inner)?;
            if inner.pid() == 1 {
                two.global(inner)?;
            }
            Ok(refused!(inner.sync(), Fatal, RegistrationsDiffer { .. } | Cause::Checked(_)))
        });
        let error = error.expect("every process sees it at its sync");
        assert!(error.to_string().contains("process 1"), "{error}");
        assert!(outer.is_fatal(), "{outer}");
    }
}

case! {
    /// A superstep in which one process registers and no other does: fatal for all, also for those that announce nothing.
    pub fn a_slot_that_only_one_process_registers_is_an_error_for_all everywhere [2, 3, 4] |ctx| {
        for only in [0, ctx.nprocs() - 1] {
            let (error, outer) = failing_rehook(ctx, |inner| {
                room(inner, 1, 1)?;
                let memory = Buffer::zeroed(4);
                if inner.pid() == only {
                    memory.global(inner)?;
                }
                Ok(refused!(inner.sync(), Fatal, RegistrationsDiffer { .. } | Cause::Checked(_)))
            });
            let error = error.expect("every process sees it at its sync");
            assert_fatal_naming(&error, &[only]);
            assert!(outer.is_fatal(), "{outer}");
        }
    }
}

case! {
    /// Typed global areas have one length everywhere, verified at the activating sync.
    pub fn areas_of_different_length_are_fatal_at_the_next_sync everywhere [2, 3] |ctx| {
        let (error, _) = failing_rehook(ctx, |inner| {
            room(inner, 4, 4)?;
            inner.area::<usize>(5 + inner.pid().min(1))?;
            Ok(sync_until_fatal(inner))
        });
        let error = error.expect("every process sees it at its sync");
        assert!(matches!(error.cause(), Cause::RegistrationsDiffer { .. } | Cause::Checked(_)), "{error}");
    }
}

case! {
    /// Checked mode names the areas that two processes registered in another order, whichever process finds it first.
    pub fn areas_in_another_order_are_fatal_and_checked_mode_names_them everywhere [3, 4] |ctx| {
        for _ in 0..4 {
            let (error, outer) = failing_rehook(ctx, |inner| {
                room(inner, 4, 4)?;
                let lens = if inner.pid() == 2 { [20, 10] } else { [10, 20] };
                let _areas = [inner.area::<u64>(lens[0])?, inner.area::<u64>(lens[1])?];
                Ok(sync_until_fatal(inner))
            });
            for error in [error.expect("every process sees it at its sync"), outer] {
                let text = error.to_string();
                assert!(text.contains("process 0") && text.contains("process 2"), "{text}");
                let is_checked = matches!(error.cause(), Cause::Checked(_));
                assert_eq!(text.contains("primitives/slots.rs:"), is_checked, "{text}");
                assert!(!text.contains("inbox"), "{text}");
            }
        }
    }
}

case! {
    /// An area's slot may be used again after the area was deregistered.
    pub fn areas_may_be_deregistered_and_made_anew everywhere [1, 2, 4] |ctx| {
        room(ctx, 2, 8)?;
        let next = (ctx.pid() + 1) % ctx.nprocs();
        for round in 0..20 {
            let (mut x, y) = (ctx.local::<usize>(1)?, ctx.area::<usize>(2)?);
            ctx.sync()?;
            ctx.write(&mut x)[0] = round + 100 * ctx.pid();
            ctx.put(&x, .., next, &y, 1)?;
            let busy = ctx.try_deregister(x).expect_err("it has a request pending");
            let x = busy.1;
            ctx.sync()?;
            let left: Pid = (ctx.pid() + ctx.nprocs() - 1) % ctx.nprocs();
            assert_eq!(ctx.read(&y), [0, round + 100 * left]);
            ctx.deregister(y)?;
            ctx.deregister(x)?;
        }
        ctx.sync()?;
    }
}

case! {
    /// A table that grows keeps the slots it has, local and global, and their names.
    pub fn a_grown_table_keeps_its_slots everywhere [1, 3] |ctx| {
        const SLOTS: usize = 500;
        room(ctx, 2, 8)?;
        let (target, source) = (Buffer::zeroed(8), Buffer::of(&[6; 8]));
        let (to, from) = (target.global(ctx)?, source.local(ctx)?);
        room(ctx, SLOTS, 8)?;
        let next = (ctx.pid() + 1) % ctx.nprocs();
        ctx.raw().put(from, 0, next, to, 0, 4)?;
        let more: Vec<Buffer> = (2..SLOTS).map(|_| Buffer::zeroed(8)).collect();
        let mut last = to;
        for (at, buffer) in more.iter().enumerate() {
            if at % 2 == 0 {
                buffer.local(ctx)?;
            } else {
                last = buffer.global(ctx)?;
            }
        }
        refused!(target.local(ctx), Misuse, SlotsUsedUp { reserved: SLOTS, .. });
        ctx.sync()?;
        assert_eq!(target.to_vec(), [6, 6, 6, 6, 0, 0, 0, 0]);
        ctx.raw().put(from, 0, next, last, 1, 7)?;
        ctx.sync()?;
        assert_eq!(more[SLOTS - 3].to_vec(), [0, 6, 6, 6, 6, 6, 6, 6]);
    }
}
