//! Carries out a call, in parts if it needs more of the collectives' own memory than there is.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use lpf_core::{CallValues, Cause, Context, Error, Lpf, Result, panic_text};

use super::algorithm::Part;
use super::raw::RawCall;
use crate::collectives::Collectives;
use crate::group::Group;
use crate::preferences::Mode;
use crate::run::{Buffers, Call, Combine, expected, full, leave};
use crate::schedule::Schedule;
use crate::schedule_cache::Terms;
use crate::scratch::Scratch;
use crate::shared::Shared;
use crate::signature::{Signature, stamp};
use crate::values::{MemoryCheck, Values};
use crate::workspace::Workspace;

/// Runs what uses the operator, which may panic: then the section ends before any process reads memory that others may be
/// writing.
pub(super) fn caught<'a, 'r, L: Lpf>(
    call: &mut Call<'a, 'r, L>,
    run: impl FnOnce(&mut Call<'a, 'r, L>) -> Result<()>,
) -> Result<()> {
    match catch_unwind(AssertUnwindSafe(|| run(call))) {
        Ok(done) => done,
        Err(payload) => {
            let cause = Cause::Panicked { message: panic_text(&*payload) };
            let error = Error::fatal(call.raw.pid(), call.raw.superstep(), cause);
            call.raw.fail(error);
            resume_unwind(payload);
        }
    }
}

/// The bytes without those of an incomplete element. A division takes as long as a tenth of a short collective.
#[inline]
pub(super) fn whole(bytes: usize, element: usize) -> usize {
    if element.is_power_of_two() { bytes & !(element - 1) } else { bytes / element * element }
}

/// Bytes that a part may have.
fn most(scratch: Scratch, mode: Mode, shared: &Shared, members: usize) -> usize {
    let Scratch { kept, waiting, one_part, .. } = scratch;
    let room = shared.room(members);
    match mode {
        // The algorithm makes its messages as short as that.
        Mode::Full if kept + waiting == 0 => usize::MAX,
        Mode::Full => room / (kept + waiting),
        Mode::Expected if one_part => shared.cell,
        Mode::Expected if kept > 0 => room / kept,
        Mode::Expected => usize::MAX,
    }
}

/// Carries out the schedule of a part. If a call `next` is given, this one is its memory check.
///
/// # Safety
/// The buffers are registered memory of this process, as long as the schedule's regions reach, which no other code
/// touches until it returns. What the schedule keeps, and what waits for it, fits scratch.
#[inline(always)]
#[track_caller]
unsafe fn carry_out_part<L: Lpf>(
    ctx: &mut Context<'_, L>,
    (group, shared): (&mut Group, &mut Shared),
    (what, terms, schedule, next): (&Signature, Terms, &Schedule, Option<&Signature>),
    buffers: &Buffers,
    combine: Combine<'_>,
) -> Result<()> {
    let Terms { mode, algorithm, stamp, part, lends, at_front } = terms;
    let members = group.members().len();
    let own = Values { what, algorithm, mode, members };
    let of_check = next.map(|next| MemoryCheck { next, mode, members });
    let stamp = next.map_or(stamp, |next| next.memory_check(stamp));
    let of_check = of_check.as_ref().map(|check| check as &dyn CallValues);
    let values = of_check.or(Some(&own));
    let mut raw = ctx.raw();
    let which = group.enter(&mut raw, stamp);
    let mut call =
        Call { raw: &mut raw, which, values, group, shared, buffers, combine, part, lends };
    // SAFETY: the buffers and scratch are as this function's caller promises them.
    let done = caught(&mut call, |call| unsafe {
        match mode {
            Mode::Expected => expected(call, schedule),
            Mode::Full => full(call, schedule, at_front),
        }
    });
    leave(&mut raw, done)
}

impl<'s> Collectives<'s> {
    /// Carries out a call.
    ///
    /// # Safety
    /// The memory of the call is registered memory of this process, as long as its vectors or blocks, which no other code
    /// touches until it returns. Its root is a member, and its counts are one for each member.
    #[inline]
    #[track_caller]
    pub(super) unsafe fn carry_out<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        call: RawCall<'_>,
    ) -> Result<()> {
        // SAFETY: as this function's caller promises it.
        unsafe { self.carry_out_before(ctx, call, None) }
    }

    /// Carries out a call, as the memory check of call `next` if there is one.
    ///
    /// # Safety
    /// As [`carry_out`](Self::carry_out).
    #[inline(always)]
    #[track_caller]
    pub(super) unsafe fn carry_out_before<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        mut call: RawCall<'_>,
        next: Option<&Signature>,
    ) -> Result<()> {
        let Collectives { group, shared, schedules, .. } = self;
        let Some((terms, schedule)) = schedules.find(&call.what) else {
            // SAFETY: as this function's caller promises it.
            return unsafe { self.carry_out_parts(ctx, &mut call, next) };
        };
        let common = (group, &mut *shared.borrow_mut());
        let combine: Combine<'_> = match call.combine {
            Some(combine) => combine,
            None => &mut |_, _, _, _| {},
        };
        // SAFETY: this schedule was made for a call of the same kind and size, whose one part fitted scratch; its regions
        // lie in the vectors or blocks, which are as this function's caller promises them.
        unsafe {
            let what = (&call.what, terms, schedule, next);
            carry_out_part(ctx, common, what, &call.memory, combine)
        }
    }

    /// Carries out a call that has no schedule yet.
    ///
    /// # Safety
    /// As [`carry_out`](Self::carry_out).
    #[inline(never)]
    #[track_caller]
    unsafe fn carry_out_parts<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        call: &mut RawCall<'_>,
        next: Option<&Signature>,
    ) -> Result<()> {
        let (what, members) = (call.what, self.len());
        if call.combine.is_some() {
            self.fits(ctx, what.element)?;
        }
        let algorithm = self.algorithm(ctx, call);
        let scratch @ Scratch { one_part, kept, of_blocks, .. } = algorithm.scratch(members);
        let mode = if scratch.unknown { Mode::Expected } else { self.mode(ctx)? };
        let (element, all) = (what.element.max(1), call.len(of_blocks, members));
        let most = most(scratch, mode, &self.shared.borrow(), members);
        if most < element && all > 0 {
            return Err(self.no_room(ctx, element));
        }
        let fits = all.checked_mul(element).is_some_and(|bytes| bytes <= most);
        let step = if fits { all } else { (most / element).max(1) };
        let Collectives { group, shared, schedules, workspace, .. } = self;
        let (shared, workspace) = (&mut *shared.borrow_mut(), &mut *workspace.borrow_mut());
        let number = algorithm.number(what.algorithm);
        let stamp = stamp(Signature { algorithm: number, ..what }.digest(), mode);
        let (part, lends) = (whole(shared.cell, element), !one_part);
        let terms = Terms { mode, algorithm: number, stamp, part, lends, at_front: 0 };
        let combine: Combine<'_> = match call.combine.take() {
            Some(combine) => combine,
            None => &mut |_, _, _, _| {},
        };
        let Workspace { schedule, ends } = workspace;
        call.lens.write_ends(ends);
        let mut first = 0;
        loop {
            // An empty vector is one part: its members still wait for each other, as far as the algorithm has them wait.
            let len = step.min(all - first);
            let (member, part) = (group.member(), Part { first, len, of_blocks });
            schedule.clear();
            call.write(algorithm, ends, schedule, member, part);
            let terms = Terms { at_front: kept * len * element, ..terms };
            let common = (&mut *group, &mut *shared);
            let buffers = call.buffers(member, part);
            // SAFETY: parts lie in the vectors or blocks, which are as this function's caller promises them, and are so
            // short that what is kept and what waits fits scratch.
            unsafe {
                let what = (&what, terms, &*schedule, next);
                carry_out_part(ctx, common, what, &buffers, &mut *combine)?
            };
            if len == all {
                schedules.store(what, terms, schedule);
            }
            first += len;
            if first == all {
                return Ok(());
            }
        }
    }
}
