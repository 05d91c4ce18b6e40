//! The memory of typed areas: it belongs to the section, not to a handle or a process's stack.
//!
//! That memory is freed cannot be seen by reading it. What can be seen: that others still read and
//! write an area whose owner dropped the handle (under AddressSanitizer a block freed too early is
//! a report), and that the memory of many sections does not add up.

use std::time::Duration;

use lpf_core::{Args, Context, Lpf, Result};

use crate::memory::bury;
use crate::runner::{alone, expect_success, watched};
use crate::verdict::room;
use crate::{Harness, Mode};

case! {
    /// Until its sync an owner may write to its areas, also if requests name them. A put copies the old or the new
    /// value, a get what its source holds at the sync of the owner, and both replace what the target holds.
    pub fn an_owner_may_write_until_its_sync everywhere [1, 2, 3] |ctx| {
        room(ctx, 3, 8)?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let (next, previous) = ((me + 1) % p, (me + p - 1) % p);
        for len in [1, 20_000] {
            let (mut own, mut put) = (ctx.area::<usize>(len)?, ctx.area::<usize>(len)?);
            let mut got = ctx.local::<usize>(len)?;
            ctx.sync()?;
            ctx.write(&mut own).fill(100 + me);
            ctx.put(&own, .., next, &put, 0)?;
            ctx.get(next, &own, .., &got, 0)?;
            ctx.write(&mut own).fill(200 + me);
            ctx.write(&mut put).fill(1);
            ctx.write(&mut got).fill(2);
            ctx.sync()?;
            assert!(ctx.read(&put).iter().all(|&x| x == 100 + previous || x == 200 + previous));
            assert!(ctx.read(&got).iter().all(|&x| x == 200 + next));
            for area in [own, put] {
                ctx.deregister(area)?;
            }
            ctx.deregister(got)?;
        }
    }
}

case! {
    /// An area whose handle one process has dropped stays while others have theirs, so what one
    /// process wrote into it, another still reads.
    pub fn an_area_outlives_its_handle everywhere [3, 5] |ctx| {
        room(ctx, 4, 32)?;
        let me = ctx.pid();
        let shared = ctx.area::<u64>(1000)?;
        let (mut own, got) = (ctx.local::<u64>(1000)?, ctx.local::<u64>(1000)?);
        ctx.sync()?;
        // The owner of the area that is read loses its handle; the others keep theirs.
        let shared = Some(shared).filter(|_| me != 1);
        ctx.write(&mut own).fill(77);
        if let (0, Some(shared)) = (me, &shared) {
            ctx.put(&own, .., 1, shared, 0)?;
        }
        ctx.sync()?;
        if let (2.., Some(shared)) = (me, &shared) {
            ctx.get(1, shared, .., &got, 0)?;
        }
        ctx.sync()?;
        if me >= 2 {
            assert_eq!(ctx.read(&got), [77; 1000]);
        }
    }
}

const AREA: usize = 16 << 20;
const SECTIONS: usize = 40;

/// Touches every page of an area and of a local one, and deregisters neither.
fn touches<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    room(ctx, 2, 0)?;
    let (mut x, mut y) = (ctx.area::<u8>(AREA)?, ctx.local::<u8>(AREA)?);
    ctx.sync()?;
    let (x, y) = ctx.access((&mut x, &mut y));
    x.iter_mut().step_by(4096).chain(y.iter_mut().step_by(4096)).for_each(|b| *b = 1);
    Ok(())
}

/// Resident bytes of this operating-system process; `None` where the system does not tell.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// Areas that nobody deregistered are freed when every process has left.
pub fn an_area_is_freed_when_the_section_ends<H: Harness>(harness: &H) {
    let case = "an_area_is_freed_when_the_section_ends";
    alone(|| {
        let before = resident();
        for _ in 0..SECTIONS {
            let run = || harness.exec(Mode::default(), 2, touches, Args::none());
            let result = watched(case, run);
            expect_success(case, Mode::default(), 2, result);
        }
        if let (Some(before), Some(after)) = (before, resident()) {
            let grown = after.saturating_sub(before);
            // Process 0 alone touches twice this.
            let leaked = SECTIONS * AREA;
            assert!(grown < leaked, "{SECTIONS} sections left {} MiB", grown >> 20);
        }
    });
}

const SAME: &[u8; 4] = b"same";

/// Process 1 leaves by a panic while the others put into its area and get from it. Process 0's
/// output says whether its own area is as it was: an assertion made after the section has
/// failed would be lost with it.
fn fails_under_fire<L: Lpf>(ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()> {
    bury();
    room(ctx, 2, 64)?;
    let (mut x, y) = (ctx.area::<u8>(1 << 20)?, ctx.area::<u8>(1 << 20)?);
    ctx.sync()?;
    for round in 0..4u8 {
        if ctx.pid() == 1 && round == 3 {
            std::panic::resume_unwind(Box::new("under fire"));
        }
        ctx.write(&mut x).fill(round);
        ctx.put(&x, ..1 << 19, 1, &y, ctx.pid() << 10)?;
        ctx.get(1, &x, 1 << 19.., &y, 1 << 19)?;
        if let Err(error) = ctx.sync() {
            std::thread::sleep(Duration::from_millis(1));
            let same = ctx.read(&x).iter().all(|&b| b == round);
            if ctx.pid() == 0 {
                args.output.copy_from_slice(if same { SAME } else { b"else" });
            }
            return Err(error);
        }
    }
    Ok(())
}

/// A section that fails while copies are under way frees nothing that is still in use.
pub fn an_area_outlives_a_process_that_fails<H: Harness>(harness: &H) {
    let case = "an_area_outlives_a_process_that_fails";
    alone(|| {
        for procs in [2, 4, 2, 4, 2, 4] {
            let mut output = [0; SAME.len()];
            let args = Args::in_out(&[], &mut output);
            let run = || harness.exec(Mode::default(), procs, fails_under_fire, args);
            let error = watched(case, run).expect_err("process 1 panics");
            assert!(output == *SAME || output == [0; SAME.len()], "process 0's area changed");
            assert!(error.is_fatal() && error.process() == Some(1), "{error}");
            assert!(error.to_string().contains("under fire"), "{error}");
        }
    });
}

case! {
    /// Slices of distinct areas are alive together between two syncs.
    pub fn several_areas_are_accessed_at_once everywhere [1, 2] |ctx| {
        room(ctx, 3, 8)?;
        let (mut x, mut y) = (ctx.area::<usize>(3)?, ctx.local::<usize>(3)?);
        let z = ctx.area::<usize>(3)?;
        ctx.sync()?;
        {
            let (x, y, z) = ctx.access((&mut x, &mut y, &z));
            x.copy_from_slice(&[1, 2, 3]);
            y.iter_mut().zip(&*x).zip(z).for_each(|((y, x), z)| *y = 10 * x + z);
        }
        let next = (ctx.pid() + 1) % ctx.nprocs();
        ctx.put(&y, .., next, &z, 0)?;
        ctx.sync()?;
        assert_eq!(ctx.read(&z), [10, 20, 30]);
    }
}
