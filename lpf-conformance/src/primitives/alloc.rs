//! Areas of `alloc`: ready to use, with room of their own.

use lpf_core::{Area, Cause, Context, Lpf, Result};

use crate::verdict::{failing_rehook, refused, room};

/// Slots reserved, and those of them that are not the user's. All slots are free.
fn slots<L: Lpf>(ctx: &mut Context<'_, L>) -> (usize, usize) {
    let mut areas = Vec::new();
    loop {
        match ctx.local::<u8>(1) {
            Ok(area) => areas.push(area),
            Err(error) => match *error.cause() {
                Cause::SlotsUsedUp { reserved, libraries } => return (reserved, libraries),
                _ => panic!("{error}"),
            },
        }
    }
}

case! {
    /// A program needs neither `resize` nor a sync before its first put and get, and each area brings room for a put to
    /// and from each process.
    pub fn areas_of_alloc_are_ready everywhere [1, 2, 4] |ctx| {
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let (mut own, all) = ctx.alloc((1, p))?;
        assert_eq!(ctx.superstep(), 2);
        ctx.write(&mut own)[0] = 7 + me;
        for to in 0..p {
            ctx.put(&own, .., to, &all, me)?;
        }
        ctx.sync()?;
        let expected: Vec<usize> = (7..7 + p).collect();
        assert_eq!(ctx.read(&all), expected);

        let [mut x, y]: [Area<'_, u64>; 2] = ctx.alloc([3, 3])?;
        assert_eq!(ctx.superstep(), 5);
        ctx.write(&mut x).fill(9);
        ctx.get((me + 1) % p, &x, .., &y, 0)?;
        ctx.sync()?;
        assert_eq!(ctx.read(&y), [9; 3]);
    }
}

case! {
    /// What is pending at the caller stays pending: requests, registrations and resizes.
    pub fn alloc_leaves_pending_what_is_pending everywhere [1, 2, 3] |ctx| {
        room(ctx, 3, 2)?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let (mut x, y) = (ctx.area::<usize>(1)?, ctx.area::<usize>(1)?);
        ctx.sync()?;
        ctx.write(&mut x)[0] = 10 + me;
        ctx.put(&x, .., (me + 1) % p, &y, 0)?;
        let late = ctx.area::<usize>(1)?;
        ctx.resize(5, 8)?;
        let more = ctx.alloc::<usize, _>(1)?;
        assert_eq!(ctx.read(&y), [0]);
        refused!(ctx.put(&x, .., 0, &late, 0), Misuse, InactiveSlot { .. });
        let (reserved, libraries) = slots(ctx);
        assert_eq!((reserved, libraries), (3 + 1, 1));
        ctx.sync()?;
        let (reserved, libraries) = slots(ctx);
        assert_eq!((reserved, libraries), (5 + 1, 1));
        assert_eq!(ctx.read(&y), [10 + (me + p - 1) % p]);
        ctx.put(&x, .., (me + 1) % p, &late, 0)?;
        ctx.put(&x, .., (me + 1) % p, &more, 0)?;
        ctx.sync()?;
        assert_eq!(ctx.read(&late), ctx.read(&y));
        assert_eq!(ctx.read(&more), ctx.read(&y));
    }
}

case! {
    /// Room is used again, whether areas are dropped or deregistered; then an allocation costs one full sync.
    pub fn room_of_alloc_is_used_again everywhere [1, 2, 3] |ctx| {
        room(ctx, 1, 0)?;
        for round in 0..12 {
            let before = ctx.superstep();
            let (x, y) = ctx.alloc::<(u64, u8), _>((100, 7))?;
            // Those of the round before exist until the sync that gives them back.
            let syncs = if round < 2 { 2 } else { 1 };
            assert_eq!(ctx.superstep(), before + syncs, "round {round}");
            if round > 5 {
                ctx.deregister(y)?;
                ctx.deregister(x)?;
            }
            ctx.sync()?;
        }
        ctx.sync()?;
        assert_eq!(ctx.area_bytes(), 0);
        let (reserved, libraries) = slots(ctx);
        assert_eq!((reserved, libraries), (1 + 4, 4));
    }
}

case! {
    /// Refused memory is mitigable and leaves no trace, wherever in a tuple it is refused.
    pub fn alloc_of_refused_memory_leaves_no_trace everywhere [1, 2] |ctx| {
        let too_long = usize::MAX / 2;
        refused!(ctx.alloc::<u64, _>(too_long), Mitigable, OutOfMemory { .. });
        refused!(ctx.alloc::<(u64, u8), _>((10, too_long)), Mitigable, OutOfMemory { .. });
        refused!(ctx.alloc::<u8, _>([10, too_long]), Mitigable, OutOfMemory { .. });
        assert_eq!((ctx.superstep(), ctx.area_bytes()), (0, 0));
        // The other processes wait in this call until the one that was refused makes it again.
        if ctx.pid() == 0 {
            refused!(ctx.alloc::<u8, _>([10, too_long]), Mitigable, OutOfMemory { .. });
        }
        let areas = ctx.alloc::<u8, _>([10, 20])?;
        assert_eq!(ctx.area_bytes(), 30);
        drop(areas);
    }
}

case! {
    /// Lengths that differ are fatal in the call, at every process. The text names the call, and in checked mode its line.
    pub fn alloc_of_different_lengths_is_fatal everywhere [2, 3] |ctx| {
        let (error, _) = failing_rehook(ctx, |inner| {
            let made: Result<_> = inner.alloc::<usize, _>(5 + inner.pid().min(1));
            Ok(refused!(made, Fatal, RegistrationsDiffer { .. } | Cause::Checked(_)))
        });
        let error = error.expect("every process sees it");
        let (text, is_checked) = (error.to_string(), matches!(error.cause(), Cause::Checked(_)));
        assert!(text.contains(if is_checked { "alloc.rs:" } else { "ctx.alloc" }), "{text}");
    }
}
