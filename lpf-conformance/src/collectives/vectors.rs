//! Where a call's elements lie: in either handle, in a range with others around it, or in the whole of it.

use std::ops::Range;

use lpf_collectives::{Source, Target, View, sealed};
use lpf_core::{Area, Context, Local, Lpf, Result};

use super::elements::Element;

#[derive(Debug)]
enum Handle<'s, T> {
    Area(Area<'s, T>),
    Local(Local<'s, T>),
}

/// A handle, and the range of it that the next call is about.
#[derive(Debug)]
pub(super) struct Vector<'s, T> {
    handle: Handle<'s, T>,
    range: Range<usize>,
}

impl<'s, T: Element> Vector<'s, T> {
    /// Of `most` elements, in one handle or the other. Collective; to be used after a full sync.
    pub(super) fn new<L: Lpf>(
        ctx: &mut Context<'s, L>,
        is_local: bool,
        most: usize,
    ) -> Result<Self> {
        let handle = match is_local {
            true => Handle::Local(ctx.local(most)?),
            false => Handle::Area(ctx.area(most)?),
        };
        Ok(Vector { handle, range: 0..most })
    }

    /// The next call is about `len` elements from `at` on, or as near behind the front as they fit.
    pub(super) fn choose(&mut self, at: usize, len: usize) {
        let most = match &self.handle {
            Handle::Area(area) => lpf_core::Memory::len(area),
            Handle::Local(local) => lpf_core::Memory::len(local),
        };
        let at = at.min(most - len);
        self.range = at..at + len;
    }

    pub(super) fn all<'a, L: Lpf>(&'a self, ctx: &'a Context<'s, L>) -> &'a [T] {
        match &self.handle {
            Handle::Area(area) => ctx.read(area),
            Handle::Local(local) => ctx.read(local),
        }
    }

    fn all_mut<'a, L: Lpf>(&'a mut self, ctx: &'a mut Context<'s, L>) -> &'a mut [T] {
        match &mut self.handle {
            Handle::Area(area) => ctx.write(area),
            Handle::Local(local) => ctx.write(local),
        }
    }

    /// The range and a few elements around it.
    fn around(&self, len: usize) -> Range<usize> {
        const BESIDE: usize = 9;
        self.range.start.saturating_sub(BESIDE)..(self.range.end + BESIDE).min(len)
    }

    /// Fills the range, and what is around it with something else.
    pub(super) fn fill<L: Lpf>(&mut self, ctx: &mut Context<'s, L>, f: impl Fn(usize) -> T) {
        let range = self.range.clone();
        let len = self.all(ctx).len();
        let around = self.around(len);
        let all = self.all_mut(ctx);
        for at in around {
            all[at] = if range.contains(&at) { f(at - range.start) } else { beside(at) };
        }
    }

    /// Fills the range alone.
    pub(super) fn refill<L: Lpf>(&mut self, ctx: &mut Context<'s, L>, f: impl Fn(usize) -> T) {
        let range = self.range.clone();
        let all = self.all_mut(ctx);
        (0..).zip(&mut all[range]).for_each(|(nth, element)| *element = f(nth));
    }

    /// Panics where the range holds anything else, or what is around it was written.
    pub(super) fn check<L: Lpf>(&self, ctx: &Context<'s, L>, f: impl Fn(usize) -> T, story: &str) {
        let all = self.all(ctx);
        for at in self.around(all.len()) {
            let is_in = self.range.contains(&at);
            let expected = if is_in { f(at - self.range.start) } else { beside(at) };
            assert!(
                all[at] == expected,
                "{story}: element {at}, {:?} asked for: {:?} and not {expected:?}",
                self.range,
                all[at],
            );
        }
    }

    pub(super) fn deregister<L: Lpf>(self, ctx: &mut Context<'s, L>) -> Result<()> {
        match self.handle {
            Handle::Area(area) => ctx.deregister(area),
            Handle::Local(local) => ctx.deregister(local),
        }
    }

    fn as_view(&self) -> View {
        let all = self.range.clone();
        match &self.handle {
            Handle::Area(area) if lpf_core::Memory::len(area) == all.len() => area.view(),
            Handle::Area(area) => (area, all).view(),
            Handle::Local(local) if lpf_core::Memory::len(local) == all.len() => local.view(),
            Handle::Local(local) => (local, all).view(),
        }
    }
}

fn beside<T: Element>(at: usize) -> T {
    T::of(0x5a5a_5a5a_5a5a_5a5a ^ at as u64)
}

impl<T> sealed::Sealed for &Vector<'_, T> {}
impl<T> sealed::Sealed for &mut Vector<'_, T> {}

impl<'s, T: Element> Source<'s> for &Vector<'s, T> {
    type Element = T;

    fn view(&self) -> View {
        self.as_view()
    }
}

impl<'s, T: Element> Target<'s> for &mut Vector<'s, T> {
    type Element = T;

    fn view(&self) -> View {
        self.as_view()
    }
}

/// What calls of elements T read from and write to: each in both handles.
#[derive(Debug)]
pub(super) struct Room<'s, T> {
    pub(super) x: [Vector<'s, T>; 2],
    pub(super) y: [Vector<'s, T>; 2],
}

/// Slots that a room takes.
pub(super) const SLOTS: usize = 4;

impl<'s, T: Element> Room<'s, T> {
    /// For vectors of up to `most` elements. Collective; one full sync.
    pub(super) fn new<L: Lpf>(ctx: &mut Context<'s, L>, most: usize) -> Result<Self> {
        let mut one = |is_local| Vector::new(ctx, is_local, most);
        let room = Room { x: [one(false)?, one(true)?], y: [one(false)?, one(true)?] };
        ctx.sync()?;
        Ok(room)
    }
}
