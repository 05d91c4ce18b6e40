//! Memory for the calls on slices and vectors, which are not registered: what a call works on lies here while it runs.

use std::marker::PhantomData;

use bytemuck::{Pod, cast_slice};
use lpf_core::{Context, Local, Lpf, Memory, Pid, Result};

use crate::memory::{Source, Target, View, sealed};
use crate::shared::{LINE, Place};

/// One local area, which grows with the longest call. It keeps its slot from the beginning, so that no program takes it.
#[derive(Debug)]
pub(crate) struct Staging<'s> {
    /// Nothing after memory was refused, until the next call.
    area: Option<Local<'s, u8>>,
    /// Bytes that every process has.
    pub(crate) least: usize,
}

impl<'s> Staging<'s> {
    /// The bytes at the beginning: at least a word for each process, and a word from each.
    pub(crate) fn least(nprocs: Pid) -> usize {
        (16 << 10).max(16 * nprocs + LINE)
    }

    pub(crate) fn new<L: Lpf>(ctx: &mut Context<'s, L>) -> Result<Self> {
        let least = Self::least(ctx.nprocs());
        Ok(Staging { area: Some(ctx.local(least)?), least })
    }

    /// Makes room for `bytes`; their values are lost.
    #[track_caller]
    pub(crate) fn grow<L: Lpf>(&mut self, ctx: &mut Context<'s, L>, bytes: usize) -> Result<()> {
        let has = self.area.as_ref().map_or(0, |area| area.len());
        if has >= bytes.max(1) {
            return Ok(());
        }
        if let Some(area) = self.area.take() {
            // Between calls no message names it. Its slot is free at once; its memory at the next full sync, so it
            // grows by doubling.
            let _ = ctx.deregister(area);
        }
        self.area = Some(ctx.local(bytes.max(self.least).max(has.saturating_mul(2)))?);
        Ok(())
    }

    /// `len` elements, `offset` bytes from the beginning.
    ///
    /// # Panics
    /// If they are outside.
    pub(crate) fn part<T: Pod>(&self, offset: usize, len: usize) -> Part<T> {
        let area = self.area.as_ref().expect("memory after `grow`");
        assert!(offset + len * size_of::<T>() <= area.len(), "a part outside the staging memory");
        let data = area.data().wrapping_add(offset);
        Part { place: Place { slot: area.slot(), offset, data }, len, element: PhantomData }
    }

    /// Copies elements to the beginning of a part.
    pub(crate) fn write<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        part: Part<T>,
        elements: &[impl AsRef<[T]>],
    ) {
        if !ctx.raw().memory_is_quiet() {
            // After a fatal error another process may still write here. The call returns that error.
            return;
        }
        let area = self.area.as_mut().expect("memory after `grow`");
        let mut rest = &mut ctx.write(area)[part.place.offset..];
        for elements in elements {
            let bytes: &[u8] = cast_slice(elements.as_ref());
            let (to, behind) = rest.split_at_mut(bytes.len());
            to.copy_from_slice(bytes);
            rest = behind;
        }
    }

    /// Moves the elements of a part into vectors of these lengths, which have room for them.
    pub(crate) fn read<L: Lpf, T: Pod>(
        &self,
        ctx: &Context<'s, L>,
        part: Part<T>,
        lens: &[usize],
        vectors: &mut [Vec<T>],
    ) {
        let area = self.area.as_ref().expect("memory after `grow`");
        let mut rest = &ctx.read(area)[part.place.offset..];
        for (vector, &len) in vectors.iter_mut().zip(lens) {
            let (bytes, behind) = rest.split_at(len * size_of::<T>());
            vector.extend_from_slice(cast_slice(bytes));
            // Elements of zero bytes are not in the memory.
            vector.resize(len, T::zeroed());
            rest = behind;
        }
    }
}

/// Elements in the staging memory.
#[derive(Debug)]
pub(crate) struct Part<T> {
    place: Place,
    len: usize,
    element: PhantomData<T>,
}

impl<T> Clone for Part<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Part<T> {}

impl<T> Part<T> {
    fn as_view(&self) -> View {
        View { place: self.place, len: self.len, active_from: 0, outside: None }
    }
}

impl<T> sealed::Sealed for Part<T> {}

impl<T> Source<'_> for Part<T> {
    type Element = T;

    fn view(&self) -> View {
        self.as_view()
    }
}

impl<T> Target<'_> for Part<T> {
    type Element = T;

    fn view(&self) -> View {
        self.as_view()
    }
}
