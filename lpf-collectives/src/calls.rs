//! The collectives, typed.

mod as_they_come;
mod blocks;
mod by_arrival;
mod pattern;
mod raw;
mod vectors;

pub use raw::RawOperator;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use bytemuck::Pod;
use lpf_core::{Cause, Context, Element, Error, Lpf, Result, panic_text};

use crate::algorithms::{Member, Piece, Results, Vector, by_way};
use crate::blocks::Blocks;
use crate::collectives::Collectives;
use crate::cost::{Supersteps, choose};
use crate::hash::mixed;
use crate::kinds::*;
use crate::memory::{Source, Target, View};
use crate::misuse::{misuse, refused};
use crate::operators::{Operator, on_slices};
use crate::preferences::Mode;
use crate::run::{Buffers, Call, Combine, expected, full, leave};
use crate::schedule::Schedule;
use crate::scratch::Scratch;
use crate::shared::{Place, Shared};
use crate::signature::{OperatorName, Signature, stamp};
use crate::ways::*;

/// Carries out a call's part that uses the operator, which may panic: then the section ends before anybody looks at
/// what others may be writing.
fn caught<'a, 'r, L: Lpf>(
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

/// A call: what it works on.
#[derive(Clone, Copy)]
struct Plan {
    what: Signature,
    /// Elements of what is worked on piece by piece.
    len: usize,
    scratch: Scratch,
}

impl Plan {
    /// Bytes that a piece may have.
    fn most(&self, mode: Mode, shared: &Shared, members: usize) -> usize {
        let Scratch { kept, waiting, one_part, .. } = self.scratch;
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
}

/// How a vector to be combined is cut into pieces.
#[derive(Clone, Copy)]
struct Cut {
    v: Vector,
    members: usize,
    /// Whether a piece is one of each block.
    of_blocks: bool,
}

impl Cut {
    /// Elements of what is worked on piece by piece.
    fn len(self) -> usize {
        let bytes =
            if self.of_blocks { self.v.blocks(self.members).longest() } else { self.v.bytes };
        bytes / self.v.element.max(1)
    }

    /// Where the piece from element `first` on lies.
    fn buffers(self, x: Place, y: Place, first: usize) -> Buffers {
        let offset = if self.of_blocks { 0 } else { first * self.v.element };
        Buffers { input: x.from(offset), output: y.from(offset) }
    }

    fn piece(self, first: usize, len: usize) -> Piece {
        let element = self.v.element;
        match self.of_blocks {
            true => Piece { v: self.v, first: first * element, most: len * element },
            false => Vector { bytes: len * element, element }.into(),
        }
    }
}

/// So many bytes, less what is no whole element: a division takes as long as a tenth of a short collective.
#[inline]
fn whole(bytes: usize, element: usize) -> usize {
    if element.is_power_of_two() { bytes & !(element - 1) } else { bytes / element * element }
}

#[cold]
fn other_length(has: usize, needs: usize) -> String {
    match needs {
        usize::MAX => {
            format!("a vector of length {has} where this call needs more than there is memory")
        }
        needs => format!("a vector of length {has} where this call needs exactly {needs}"),
    }
}

/// What a scan counts in.
enum Way<'a> {
    /// The own element, too.
    Inclusive,
    /// Those before it; this is called when nothing of the call is refused any more.
    Exclusive(&'a dyn Fn()),
}

/// Nothing to combine with.
fn nothing() -> impl FnMut(*const u8, *const u8, *mut u8, usize) {
    |_, _, _, _| {}
}

/// An operator for the executor.
fn combining<T: Pod, O: Operator<T>>(
    operator: &O,
) -> impl FnMut(*const u8, *const u8, *mut u8, usize) {
    // SAFETY: the executor hands out whole elements of checked places and of messages.
    move |left, right, into, bytes| unsafe { on_slices::<T, O>(operator, left, right, into, bytes) }
}

impl<'s> Collectives<'s> {
    #[inline]
    #[track_caller]
    fn inside<L: Lpf>(&self, ctx: &Context<'s, L>, view: View) -> Result<View> {
        match view.outside {
            None if view.active_from > ctx.superstep() => {
                let slot = view.place.slot.to_string();
                Err(refused(ctx, Cause::InactiveSlot { slot }))
            }
            None => Ok(view),
            Some((start, end, len)) => {
                let backwards = if end < start { ", which end before they begin" } else { "" };
                let text = format!(
                    "elements {start}..{end} were asked for of an area of {len}{backwards}"
                );
                Err(misuse(ctx, text))
            }
        }
    }

    #[inline]
    #[track_caller]
    fn as_long<L: Lpf>(&self, ctx: &Context<'s, L>, view: View, len: usize) -> Result<View> {
        let view = self.inside(ctx, view)?;
        if view.len != len {
            return Err(misuse(ctx, other_length(view.len, len)));
        }
        Ok(view)
    }

    #[inline]
    #[track_caller]
    fn root<L: Lpf>(&self, ctx: &Context<'s, L>, root: usize) -> Result<usize> {
        if root >= self.len() {
            let text = format!(
                "member {root} was named as the root of a group of {}, whose last is {}",
                self.len(),
                self.len() - 1
            );
            return Err(misuse(ctx, text));
        }
        Ok(root)
    }

    /// Carries out, piece by piece, the schedules that `write` writes of each. It is handed where the piece
    /// begins and how long it is, in elements; `buffers` says where it lies.
    ///
    /// # Safety
    /// The buffers are registered memory of this process, as long as the schedules' regions reach, which
    /// nobody else touches until it returns.
    #[track_caller]
    unsafe fn carry_out<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        plan: Plan,
        combine: Combine<'_>,
        buffers: impl Fn(Member, usize) -> Buffers,
        mut write: impl FnMut(&mut Schedule, Member, usize, usize),
    ) -> Result<()> {
        let mode = if plan.scratch.unknown { Mode::Expected } else { self.mode(ctx)? };
        let element = plan.what.element.max(1);
        let most = plan.most(mode, &self.shared.borrow(), self.len());
        if most < element && plan.len > 0 {
            return Err(self.no_room(ctx, element));
        }
        let Collectives { group, shared, schedules, .. } = self;
        let shared = &mut *shared.borrow_mut();
        let (known, digest) = schedules.find(&plan.what);
        let (part, stamp) = (whole(shared.cell, element), stamp(digest, mode));
        let fits = plan.len.checked_mul(element).is_some_and(|bytes| bytes <= most);
        let step = if fits { plan.len } else { (most / element).max(1) };
        let mut first = 0;
        loop {
            // An empty vector is one piece: its members still meet, as far as the algorithm has them meet.
            let len = step.min(plan.len - first);
            let (is_whole, member) = (len == plan.len, group.member());
            let mut written = None;
            let schedule = match known.filter(|_| is_whole) {
                Some(known) => schedules.schedule(known),
                None => {
                    let schedule = written.insert(std::mem::take(&mut shared.schedule));
                    schedule.clear();
                    write(schedule, member, first, len);
                    schedule
                }
            };
            let mut raw = ctx.raw();
            let which = group.enter(&mut raw, stamp);
            let at_front = plan.scratch.kept * len * element;
            let buffers = buffers(member, first);
            let lends = !plan.scratch.one_part;
            let mut call =
                Call { raw: &mut raw, which, group, shared, buffers, combine, part, lends };
            // SAFETY: the caller's promise; pieces are so long that what is kept and what waits fits scratch.
            let done = caught(&mut call, |call| unsafe {
                match mode {
                    Mode::Expected => expected(call, schedule),
                    Mode::Full => full(call, schedule, at_front),
                }
            });
            if let Some(mut schedule) = written {
                if is_whole {
                    schedules.store(plan.what, digest, &mut schedule);
                }
                shared.schedule = schedule;
            }
            leave(&mut raw, done)?;
            first += len;
            if first == plan.len {
                return Ok(());
            }
        }
    }

    #[cold]
    #[track_caller]
    fn no_room<L: Lpf>(&self, ctx: &Context<'s, L>, element: usize) -> Error {
        let text = format!(
            "elements of {element} bytes do not fit what the collectives have for them; see Settings::scratch_bytes"
        );
        misuse(ctx, text)
    }

    /// How this call's rounds end.
    #[inline]
    #[track_caller]
    fn mode<L: Lpf>(&self, ctx: &Context<'s, L>) -> Result<Mode> {
        match (self.preferences.mode, self.strict) {
            (None | Some(Mode::Expected), false) => Ok(Mode::Expected),
            (mode, _) => self.slow_mode(ctx, mode),
        }
    }

    #[track_caller]
    fn slow_mode<L: Lpf>(&self, ctx: &Context<'s, L>, mode: Option<Mode>) -> Result<Mode> {
        let is_all = self.len() == ctx.nprocs();
        if mode == Some(Mode::Full) && !is_all {
            let text = "full supersteps need all processes as members".into();
            return Err(misuse(ctx, text));
        }
        // In strict mode a part of the context has barriers of its own.
        Ok(if is_all { Mode::Full } else { Mode::Expected })
    }

    #[inline]
    #[track_caller]
    fn fits<L: Lpf>(&self, ctx: &Context<'s, L>, element: usize) -> Result<()> {
        let cell = self.shared.borrow().cell;
        if element > cell {
            let text = format!(
                "elements of {element} bytes do not fit the collectives' cells of {cell}; see Settings::cell_bytes"
            );
            return Err(misuse(ctx, text));
        }
        Ok(())
    }

    /// The algorithm of a reduction to one of members that come together: as preferred, or the cheapest.
    fn usual_reduce<L: Lpf>(&self, ctx: &Context<'s, L>, v: Vector, commutes: bool) -> Reduce {
        let way = self.preferences.reduce.unwrap_or_else(|| {
            self.cheapest(ctx, (Collective::Reduce, v, commutes), Reduce::ALL, |way| {
                (commutes || way != Reduce::Ring).then(|| way.supersteps(self.len(), v))
            })
        });
        if way == Reduce::Ring && !commutes { Reduce::Transpose } else { way }
    }

    /// The same of a reduction to all.
    fn usual_allreduce<L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        v: Vector,
        commutes: bool,
    ) -> Allreduce {
        let way = self.preferences.allreduce.unwrap_or_else(|| {
            self.cheapest(ctx, (Collective::Allreduce, v, commutes), Allreduce::ALL, |way| {
                (commutes || way != Allreduce::Ring).then(|| way.supersteps(self.len(), v))
            })
        });
        if way == Allreduce::Ring && !commutes { Allreduce::Transpose } else { way }
    }

    /// The cheapest of some ways to do a collective on a vector; those that cannot be used have no cost.
    fn cheapest<L: Lpf, W: Copy>(
        &self,
        ctx: &Context<'s, L>,
        (kind, v, commutes): (Collective, Vector, bool),
        ways: &[W],
        cost: impl Fn(W) -> Option<Supersteps>,
    ) -> W {
        let small = (v.bytes as u64) << 5 | (kind as u64) << 1 | u64::from(commutes);
        let choice = self.choices.of(mixed(small, v.element as u64).max(1), || {
            let (machine, members) = (ctx.probe(), self.len());
            choose(ways, cost, |one| one.seconds(&machine, members))
        });
        ways[choice]
    }

    /// Copies the root's `x` to the `x` of every member.
    ///
    /// # Errors
    /// *Misuse* for a root that is not a member or a range outside its area; *fatal* if members called
    /// different collectives, or the section failed.
    #[track_caller]
    pub fn broadcast<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        x: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let (root, x) = (self.root(ctx, root)?, self.inside(ctx, x.view())?);
        // SAFETY: a view's memory is its section's, borrowed mutably during the call.
        unsafe { self.broadcast_place(ctx, root, x.place, (x.len, size_of::<T>())) }
    }

    /// # Safety
    /// The place is registered memory of this process, as long as the vector, which nobody else touches
    /// until it returns.
    #[track_caller]
    unsafe fn broadcast_place<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        x: Place,
        (len, element): (usize, usize),
    ) -> Result<()> {
        let v = Vector { bytes: len * element, element };
        let way = self.preferences.broadcast.unwrap_or_else(|| {
            self.cheapest(ctx, (Collective::Broadcast, v, true), Broadcast::ALL, |way| {
                Some(way.supersteps(self.len(), v))
            })
        });
        let what = Signature {
            root,
            ..Signature::new(Collective::Broadcast, way as usize, v.bytes, v.element)
        };
        let plan = Plan { what, len, scratch: way.scratch() };
        // SAFETY: the caller's promise.
        unsafe {
            let buffers = |_, first| {
                let x = x.from(first * v.element);
                Buffers { input: x, output: x }
            };
            self.carry_out(ctx, plan, &mut nothing(), buffers, |s, m, _, len| {
                let v = Vector { bytes: len * v.element, ..v };
                by_way::broadcast(way, s, m, root, v);
            })
        }
    }

    /// Combines the `x` of all members into the root's `y`. The others' `y` is not touched.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* if `y` is not as long as `x`, or elements are
    /// longer than a cell.
    #[track_caller]
    pub fn reduce<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        operator: &impl Operator<T>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let (root, x) = (self.root(ctx, root)?, self.inside(ctx, x.view())?);
        let y = if root == self.me() { self.as_long(ctx, y.view(), x.len)? } else { y.view() };
        let combine = &mut combining::<T, _>(operator);
        let operator = RawOperator::of(operator, combine);
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe { self.reduce_places(ctx, (root, [0; 2]), operator, (x.place, y.place, x.len)) }
    }

    /// # Safety
    /// The places are registered memory of this process, as long as the vectors, which nobody else touches
    /// until it returns.
    #[track_caller]
    unsafe fn reduce_places<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        (root, [site, pattern]): (usize, [u64; 2]),
        RawOperator { element, commutes, name, combine }: RawOperator<'_>,
        (x, y, len): (Place, Place, usize),
    ) -> Result<()> {
        self.fits(ctx, element)?;
        let v = Vector { bytes: len * element, element };
        let way = self.usual_reduce(ctx, v, commutes);
        let what = Signature::new(Collective::Reduce, way as usize, len * element, element);
        let what =
            Signature { root, commutes, operator: OperatorName(name), site, pattern, ..what };
        let cut = Cut { v, members: self.len(), of_blocks: way.scratch(self.len()).of_blocks };
        let plan = Plan { what, len: cut.len(), scratch: way.scratch(self.len()) };
        // SAFETY: the caller's promise; pieces lie in the vectors.
        unsafe {
            let buffers = |_, first| cut.buffers(x, y, first);
            self.carry_out(ctx, plan, combine, buffers, |s, m, first, len| {
                by_way::reduce((way, commutes), s, m, root, cut.piece(first, len));
            })
        }
    }

    /// Combines the `x` of all members into the `y` of every member.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    #[track_caller]
    pub fn allreduce<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let x = self.inside(ctx, x.view())?;
        let y = self.as_long(ctx, y.view(), x.len)?;
        self.allreduce_typed(ctx, operator, (x.place, y.place, x.len))
    }

    /// Combines the `x` of all members into the `x` of every member.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    #[track_caller]
    pub fn allreduce_in_place<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        x: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let x = self.inside(ctx, x.view())?;
        self.allreduce_typed(ctx, operator, (x.place, x.place, x.len))
    }

    #[track_caller]
    fn allreduce_typed<L: Lpf, T: Pod, O: Operator<T>>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &O,
        places: (Place, Place, usize),
    ) -> Result<()> {
        let combine = &mut combining::<T, _>(operator);
        let operator = RawOperator::of(operator, combine);
        // SAFETY: views' memory is their section's, borrowed during the call; a single element's is this
        // object's.
        unsafe { self.allreduce_places(ctx, [0; 2], operator, places) }
    }

    /// # Safety
    /// As [`reduce_places`](Self::reduce_places).
    #[track_caller]
    unsafe fn allreduce_places<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        [site, pattern]: [u64; 2],
        RawOperator { element, commutes, name, combine }: RawOperator<'_>,
        (x, y, len): (Place, Place, usize),
    ) -> Result<()> {
        self.fits(ctx, element)?;
        let v = Vector { bytes: len * element, element };
        let way = self.usual_allreduce(ctx, v, commutes);
        let what = Signature::new(Collective::Allreduce, way as usize, len * element, element);
        let what = Signature { commutes, operator: OperatorName(name), site, pattern, ..what };
        let cut = Cut { v, members: self.len(), of_blocks: way.scratch(self.len()).of_blocks };
        let plan = Plan { what, len: cut.len(), scratch: way.scratch(self.len()) };
        // SAFETY: the caller's promise; pieces lie in the vectors.
        unsafe {
            let buffers = |_, first| cut.buffers(x, y, first);
            self.carry_out(ctx, plan, combine, buffers, |s, m, first, len| {
                by_way::allreduce(way, s, m, cut.piece(first, len));
            })
        }
    }

    /// Combines one element of every member; every member gets the result.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce), and *misuse* for an element of more than 4096 bytes.
    #[track_caller]
    pub fn allreduce_value<L: Lpf, T: Element>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        value: T,
    ) -> Result<T> {
        let (place, _) = self.value_places::<L, T>(ctx)?;
        // SAFETY: the place is aligned to a cache line, long enough, and this object's.
        unsafe { place.data.cast::<T>().write(value) };
        self.allreduce_typed(ctx, operator, (place, place, 1))?;
        // SAFETY: as above; the call has written it.
        Ok(unsafe { place.data.cast::<T>().read() })
    }

    /// Combines the `x` of all members. Block i of the result, a p-th of it, becomes member i's `y`.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce), and *misuse* if `x` is not p times as long as `y`.
    #[track_caller]
    pub fn reduce_scatter<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let x = self.inside(ctx, x.view())?;
        let block = self.block(ctx, x.len)?;
        let y = self.as_long(ctx, y.view(), block)?;
        let combine = &mut combining::<T, _>(operator);
        let operator = RawOperator::of(operator, combine);
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe { self.reduce_scatter_places(ctx, operator, (x.place, y.place, block)) }
    }

    /// # Safety
    /// As [`reduce_places`](Self::reduce_places), for vectors of a block of `block` elements each.
    #[track_caller]
    unsafe fn reduce_scatter_places<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        RawOperator { element, commutes, name, combine }: RawOperator<'_>,
        (x, y, block): (Place, Place, usize),
    ) -> Result<()> {
        self.fits(ctx, element)?;
        let total = block * element * self.len();
        let v = Vector { bytes: total, element };
        let way = self.preferences.reduce_scatter.unwrap_or_else(|| {
            self.cheapest(ctx, (Collective::ReduceScatter, v, true), ReduceScatter::ALL, |way| {
                Some(way.supersteps(self.len(), v))
            })
        });
        let way = if commutes { way } else { ReduceScatter::Direct };
        let what = Signature::new(Collective::ReduceScatter, way as usize, total, element);
        let what = Signature { operator: OperatorName(name), ..what };
        let plan = Plan { what, len: block, scratch: way.scratch(self.len()) };
        // SAFETY: the caller's promise; pieces lie in the vectors.
        unsafe {
            let buffers = |_, first| Buffers { input: x, output: y.from(first * element) };
            self.carry_out(ctx, plan, combine, buffers, |s, m, first, len| {
                let (first, bytes) = (first * element, len * element);
                let blocks = Blocks::Equal { first, stride: block * element, bytes };
                by_way::reduce_scatter(way, s, m, blocks, Results::Front);
            })
        }
    }

    /// Combines the `x` of members 0 to i into member i's `y`.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    #[track_caller]
    pub fn scan<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let x = self.inside(ctx, x.view())?;
        let y = self.as_long(ctx, y.view(), x.len)?;
        self.scan_typed(ctx, operator, (x.place, y.place, x.len), false)
    }

    /// Combines the `x` of members 0 to i-1 into member i's `y`. Member 0 gets the operator's identity.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    #[track_caller]
    pub fn exscan<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let x = self.inside(ctx, x.view())?;
        let y = self.as_long(ctx, y.view(), x.len)?;
        self.scan_typed(ctx, operator, (x.place, y.place, x.len), true)
    }

    /// Combines the elements of members 0 to i; member i gets the result.
    ///
    /// # Errors
    /// As [`allreduce_value`](Self::allreduce_value).
    #[track_caller]
    pub fn scan_value<L: Lpf, T: Element>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        value: T,
    ) -> Result<T> {
        self.scan_one(ctx, operator, value, false)
    }

    /// Combines the elements of members 0 to i-1; member i gets the result, and member 0 the operator's identity. With a
    /// pass over each member's own elements before and after it, this is a scan of a distributed vector.
    ///
    /// # Errors
    /// As [`allreduce_value`](Self::allreduce_value).
    #[track_caller]
    pub fn exscan_value<L: Lpf, T: Element>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        value: T,
    ) -> Result<T> {
        self.scan_one(ctx, operator, value, true)
    }

    #[track_caller]
    fn scan_one<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        value: T,
        exclusive: bool,
    ) -> Result<T> {
        let (x, y) = self.value_places::<L, T>(ctx)?;
        // SAFETY: both places are aligned to a cache line, long enough, and this object's; the call writes
        // the result but at the first member of an exscan.
        unsafe {
            x.data.cast::<T>().write(value);
            self.scan_typed(ctx, operator, (x, y, 1), exclusive)?;
            Ok(y.data.cast::<T>().read())
        }
    }

    #[track_caller]
    fn scan_typed<L: Lpf, T: Pod, O: Operator<T>>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &O,
        places: (Place, Place, usize),
        exclusive: bool,
    ) -> Result<()> {
        let combine = &mut combining::<T, _>(operator);
        // It may panic: before the call has begun.
        let identity = (exclusive && self.me() == 0).then(|| operator.identity());
        let write = || {
            let (_, y, len) = places;
            let to = y.data.cast::<T>();
            if let Some(identity) = identity {
                // SAFETY: the place is memory of this process for so many elements, and nobody else's in the call.
                (0..len).for_each(|nth| unsafe { to.add(nth).write(identity) });
            }
        };
        let way = if exclusive { Way::Exclusive(&write) } else { Way::Inclusive };
        let operator = RawOperator::of(operator, combine);
        // SAFETY: views' memory is their section's, borrowed during the call, or this object's; as long, aligned.
        unsafe { self.scan_places(ctx, operator, places, way) }
    }

    /// # Safety
    /// As [`reduce_places`](Self::reduce_places).
    #[track_caller]
    unsafe fn scan_places<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        RawOperator { element, name, combine, .. }: RawOperator<'_>,
        (x, y, len): (Place, Place, usize),
        inclusive: Way<'_>,
    ) -> Result<()> {
        self.fits(ctx, element)?;
        let exclusive = matches!(inclusive, Way::Exclusive(_));
        let kind = if exclusive { Collective::Exscan } else { Collective::Scan };
        let v = Vector { bytes: len * element, element };
        let way = self.preferences.scan.unwrap_or_else(|| {
            self.cheapest(ctx, (kind, v, true), Scan::ALL, |way| {
                Some(way.supersteps(self.len(), v, exclusive))
            })
        });
        let what = Signature::new(kind, way as usize, len * element, element);
        let what = Signature { operator: OperatorName(name), ..what };
        let plan = Plan { what, len, scratch: way.scratch(self.len()) };
        // SAFETY: the caller's promise; pieces lie in the vectors.
        unsafe {
            let buffers = |_, first| {
                if let (Way::Exclusive(begin), 0) = (&inclusive, first) {
                    begin();
                }
                Buffers { input: x.from(first * element), output: y.from(first * element) }
            };
            self.carry_out(ctx, plan, combine, buffers, |s, m, _, len| {
                let v = Vector { bytes: len * element, element };
                by_way::scan(way, s, m, v, exclusive);
            })
        }
    }
}
