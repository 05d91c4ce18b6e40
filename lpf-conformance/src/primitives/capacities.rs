//! Capacities: what a resize promises, when it takes effect, and memory that is refused.

use lpf_core::{Context, GlobalSlot, InboxShape, Lpf, Result};

use crate::memory::Buffer;
use crate::verdict::{refused, room};

/// Puts one byte to the next process, which is another one from two processes on.
fn put_one<L: Lpf>(ctx: &mut Context<'_, L>, slot: GlobalSlot) -> Result<()> {
    let next = (ctx.pid() + 1) % ctx.nprocs();
    ctx.raw().put(slot, 0, next, slot, 1, 1)
}

/// Asserts that exactly `requests` requests fit in each of three supersteps: puts to others, each
/// of which counts once here for the put and once for the one that comes in.
fn assert_capacity<L: Lpf>(
    ctx: &mut Context<'_, L>,
    slot: GlobalSlot,
    requests: usize,
) -> Result<()> {
    for _ in 0..3 {
        // Half of the capacity goes out, half comes in.
        for _ in 0..requests / 2 {
            put_one(ctx, slot)?;
        }
        ctx.sync()?;
    }
    if ctx.pid() == 0 {
        for _ in 0..requests {
            put_one(ctx, slot)?;
        }
        refused!(put_one(ctx, slot), Misuse, RequestsUsedUp { .. });
    }
    ctx.sync()
}

case! {
    /// A fresh context has room for zero slots and zero messages.
    pub fn a_fresh_context_has_room_for_nothing everywhere [1, 3] |ctx| {
        let buffer = Buffer::zeroed(8);
        refused!(buffer.local(ctx), Misuse, SlotsUsedUp { reserved: 0, .. });
        refused!(buffer.global(ctx), Misuse, SlotsUsedUp { reserved: 0, .. });
        ctx.raw().resize_memory_register(1)?;
        ctx.sync()?;
        let slot = buffer.global(ctx)?;
        ctx.sync()?;
        refused!(put_one(ctx, slot), Misuse, RequestsUsedUp { reserved: 0, .. });
        ctx.sync()?;
    }
}

case! {
    /// A resize takes effect after the next full sync.
    pub fn a_resize_takes_effect_at_the_next_sync_and_not_before everywhere [1, 2, 4] |ctx| {
        let buffers = [Buffer::zeroed(8), Buffer::zeroed(8), Buffer::zeroed(8)];
        ctx.resize(2, 4)?;
        refused!(buffers[0].local(ctx), Misuse, SlotsUsedUp { .. });
        ctx.sync()?;
        let slot = buffers[0].global(ctx)?;
        buffers[1].local(ctx)?;
        refused!(buffers[2].local(ctx), Misuse, SlotsUsedUp { reserved: 2, .. });
        ctx.sync()?;
        if ctx.nprocs() > 1 {
            assert_capacity(ctx, slot, 4)?;
        }
        ctx.resize(3, 64)?;
        refused!(buffers[2].local(ctx), Misuse, SlotsUsedUp { reserved: 2, .. });
        ctx.sync()?;
        buffers[2].local(ctx)?;
        if ctx.nprocs() > 1 {
            assert_capacity(ctx, slot, 64)?;
        }
    }
}

case! {
    /// A resize may also take room away; the old room lasts until the sync.
    pub fn a_smaller_queue_holds_from_the_next_sync_on everywhere [2, 3] |ctx| {
        room(ctx, 1, 64)?;
        let buffer = Buffer::zeroed(8);
        let slot = buffer.global(ctx)?;
        ctx.sync()?;
        ctx.raw().resize_message_queue(2)?;
        for _ in 0..32 {
            put_one(ctx, slot)?;
        }
        ctx.sync()?;
        assert_capacity(ctx, slot, 2)?;
    }
}

case! {
    /// Where processes ask for different queues, the minimum holds everywhere.
    pub fn the_minimum_over_the_processes_holds everywhere [2, 3, 5] |ctx| {
        let last = ctx.nprocs() - 1;
        let own = if ctx.pid() == last { 6 } else { 100 + ctx.pid() };
        room(ctx, 1, own)?;
        let buffer = Buffer::zeroed(8);
        let slot = buffer.global(ctx)?;
        ctx.sync()?;
        assert_capacity(ctx, slot, 6)?;
    }
}

case! {
    /// A request counts once at its origin and once at its target, so one to oneself twice.
    pub fn a_request_counts_once_at_its_origin_and_a_message_to_oneself_twice everywhere [1, 2] |ctx| {
        room(ctx, 1, 5)?;
        let buffer = Buffer::zeroed(8);
        let slot = buffer.global(ctx)?;
        ctx.sync()?;
        let me = ctx.pid();
        for _ in 0..2 {
            ctx.raw().put(slot, 0, me, slot, 4, 1)?;
        }
        let third = ctx.raw().put(slot, 0, me, slot, 4, 1);
        refused!(third, Misuse, RequestsUsedUp { .. });
        ctx.sync()?;
        if ctx.nprocs() > 1 && me == 0 {
            for _ in 0..2 {
                ctx.raw().put(slot, 0, me, slot, 4, 1)?;
            }
            put_one(ctx, slot)?;
            refused!(put_one(ctx, slot), Misuse, RequestsUsedUp { .. });
        }
        ctx.sync()?;
    }
}

case! {
    /// The queue is empty again after each full sync, whatever filled it.
    pub fn a_superstep_gives_the_whole_capacity_back everywhere [2, 4] |ctx| {
        room(ctx, 1, 16)?;
        let mut buffer = Buffer::zeroed(16);
        let slot = buffer.global(ctx)?;
        ctx.sync()?;
        for round in 0..50u8 {
            buffer.write(0, &[round]);
            ctx.sync()?;
            for _ in 0..8 {
                put_one(ctx, slot)?;
            }
            ctx.sync()?;
            assert_eq!(buffer.read(1, 1), [round]);
        }
    }
}

case! {
    /// Out of memory has no side effects, at absurd sizes too, and the call may be made again.
    pub fn out_of_memory_leaves_no_trace_and_may_be_retried everywhere [1, 3] |ctx| {
        room(ctx, 2, 4)?;
        let buffers = [Buffer::zeroed(8), Buffer::zeroed(8), Buffer::zeroed(8)];
        let slot = buffers[0].global(ctx)?;
        ctx.sync()?;
        for absurd in [usize::MAX, usize::MAX / 2 + 1, usize::MAX / 10, 1 << 50] {
            refused!(ctx.raw().resize_message_queue(absurd), Mitigable, OutOfMemory { .. });
            refused!(ctx.raw().resize_memory_register(absurd), Mitigable, OutOfMemory { .. });
        }
        if ctx.nprocs() > 1 {
            assert_capacity(ctx, slot, 4)?;
        }
        ctx.sync()?;
        buffers[1].local(ctx)?;
        refused!(buffers[2].local(ctx), Misuse, SlotsUsedUp { reserved: 2, .. });
        room(ctx, 3, 10)?;
        buffers[2].local(ctx)?;
        if ctx.nprocs() > 1 {
            assert_capacity(ctx, slot, 10)?;
        }
    }
}

case! {
    /// One process's resize is refused, the others' succeed: the minimum is what it had.
    pub fn a_process_that_was_refused_memory_keeps_the_old_capacity_for_all everywhere [2, 3] |ctx| {
        room(ctx, 1, 4)?;
        let buffer = Buffer::zeroed(8);
        let slot = buffer.global(ctx)?;
        ctx.sync()?;
        if ctx.pid() == 1 {
            let refused = ctx.raw().resize_message_queue(usize::MAX / 10);
            refused!(refused, Mitigable, OutOfMemory { .. });
        } else {
            ctx.raw().resize_message_queue(40)?;
        }
        ctx.sync()?;
        assert_capacity(ctx, slot, 4)?;
        ctx.raw().resize_message_queue(20)?;
        ctx.sync()?;
        assert_capacity(ctx, slot, 20)?;
    }
}

case! {
    /// Memory that the runtime is asked for is refused without trace, too.
    pub fn an_absurd_area_or_inbox_is_refused_without_trace everywhere [1, 2] |ctx| {
        room(ctx, 2, 2)?;
        for absurd in [usize::MAX, usize::MAX / 10, 1 << 52] {
            refused!(ctx.area::<u64>(absurd), Mitigable, OutOfMemory { .. });
            refused!(ctx.local::<u8>(absurd), Mitigable, OutOfMemory { .. });
            let shape = InboxShape { rings: 1, window: 2, cell_bytes: absurd };
            refused!(ctx.inbox(shape), Mitigable, OutOfMemory { .. });
        }
        ctx.sync()?;
        let (mut one, two) = (ctx.area::<u8>(1)?, ctx.area::<u8>(1)?);
        ctx.inbox(InboxShape { rings: 1, window: 2, cell_bytes: 64 })?;
        ctx.sync()?;
        ctx.write(&mut one)[0] = 7;
        let next = (ctx.pid() + 1) % ctx.nprocs();
        ctx.put(&one, .., next, &two, 0)?;
        ctx.sync()?;
        assert_eq!(ctx.read(&two), [7]);
    }
}

case! {
    /// A library's reservation is added to the user's and survives the user's resizes. A refusal tells them apart.
    pub fn a_reservation_of_a_library_is_added_to_the_users everywhere [2, 3] |ctx| {
        ctx.raw().reserve(1, 4)?;
        ctx.resize(1, 2)?;
        ctx.sync()?;
        let buffers = [Buffer::zeroed(8), Buffer::zeroed(8), Buffer::zeroed(8)];
        let slot = buffers[0].global(ctx)?;
        buffers[1].local(ctx)?;
        refused!(buffers[2].local(ctx), Misuse, SlotsUsedUp { reserved: 2, libraries: 1 });
        ctx.sync()?;
        assert_capacity(ctx, slot, 6)?;
        ctx.raw().resize_message_queue(5)?;
        ctx.sync()?;
        assert_capacity(ctx, slot, 9)?;
        if ctx.pid() == 0 {
            (0..9).try_for_each(|_| put_one(ctx, slot))?;
            refused!(put_one(ctx, slot), Misuse, RequestsUsedUp { reserved: 9, libraries: 4 });
        }
        ctx.sync()?;
    }
}

case! {
    /// What was queued before a resize is moved by the sync that makes the resize effective.
    pub fn requests_queued_before_a_resize_are_moved everywhere [1, 2, 4] |ctx| {
        room(ctx, 1, 16)?;
        for requests in [4000, 16, 70_000, 16] {
            let mut buffer = Buffer::zeroed(16);
            let slot = buffer.global(ctx)?;
            ctx.sync()?;
            buffer.write(0, &[1, 2, 3, 4, 5, 6, 7, 8]);
            let next = (ctx.pid() + 1) % ctx.nprocs();
            for at in 0..8 {
                if at == 5 {
                    ctx.raw().resize_message_queue(requests)?;
                }
                ctx.raw().put(slot, at, next, slot, 15 - at, 1)?;
            }
            ctx.sync()?;
            assert_eq!(buffer.read(8, 8), [8, 7, 6, 5, 4, 3, 2, 1]);
            ctx.raw().deregister(slot)?;
        }
        ctx.sync()?;
    }
}
