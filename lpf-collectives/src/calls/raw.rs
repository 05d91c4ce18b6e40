//! The collectives on bytes: for interfaces without types.

use lpf_core::{Context, Lpf, Result, Slot};

use super::Reduction;
use crate::algorithms::Vector;
use crate::calls::blocks::Layout;
use crate::collectives::Collectives;
use crate::shared::Place;

/// Where a buffer begins: an address in memory that a slot names, and its offset there.
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// Of memory of this process.
    pub slot: Slot,
    /// From the slot's beginning, in bytes.
    pub offset: usize,
    /// The address of that offset.
    pub data: *mut u8,
}

impl From<Bytes> for Place {
    fn from(Bytes { slot, offset, data }: Bytes) -> Self {
        Place { slot, offset, data }
    }
}

/// An operator on elements of some bytes.
pub struct RawOperator<'a> {
    /// Bytes of an element.
    pub element: usize,
    /// Whether operands may change places.
    pub commutes: bool,
    /// `combine(left, right, into, bytes)`, on whole elements: `into` is one of the operands or overlaps
    /// neither. They are as aligned as the buffers are, up to 32.
    pub combine: &'a mut dyn FnMut(*const u8, *const u8, *mut u8, usize),
}

impl<'a> From<RawOperator<'a>> for Reduction<'a> {
    fn from(RawOperator { element, commutes, combine }: RawOperator<'a>) -> Self {
        Reduction { element, commutes, combine }
    }
}

/// On bytes: lengths are in elements. Each is its typed namesake otherwise, errors included.
///
/// # Safety
/// Of every function: buffers are registered memory of this process, as long as the collective reads or
/// writes them, aligned as the operator needs it. Nobody else touches them until it returns; after a *fatal*
/// error nobody does while [`Lpf::memory_is_quiet`] holds.
#[allow(clippy::missing_safety_doc)] // above, once for all
impl<'s> Collectives<'s> {
    /// [`broadcast`](Self::broadcast) of `bytes` bytes.
    pub unsafe fn broadcast_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        x: Bytes,
        bytes: usize,
    ) -> Result<()> {
        let root = self.root(ctx, root)?;
        // SAFETY: the caller's promise.
        unsafe { self.broadcast_place(ctx, root, x.into(), Vector { bytes, element: 1 }) }
    }

    /// [`reduce`](Self::reduce) of `len` elements.
    pub unsafe fn reduce_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        operator: RawOperator<'_>,
        (x, y, len): (Bytes, Bytes, usize),
    ) -> Result<()> {
        let root = self.root(ctx, root)?;
        // SAFETY: the caller's promise.
        unsafe { self.reduce_places(ctx, root, operator.into(), (x.into(), y.into(), len)) }
    }

    /// [`allreduce`](Self::allreduce) of `len` elements; `x` may be `y`.
    pub unsafe fn allreduce_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: RawOperator<'_>,
        (x, y, len): (Bytes, Bytes, usize),
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.allreduce_places(ctx, operator.into(), (x.into(), y.into(), len)) }
    }

    /// [`reduce_scatter`](Self::reduce_scatter) of blocks of `block` elements.
    pub unsafe fn reduce_scatter_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: RawOperator<'_>,
        (x, y, block): (Bytes, Bytes, usize),
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.reduce_scatter_places(ctx, operator.into(), (x.into(), y.into(), block)) }
    }

    /// [`scan`](Self::scan) of `len` elements, or [`exscan`](Self::exscan), which leaves the first member's
    /// `y` as it is.
    pub unsafe fn scan_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: RawOperator<'_>,
        (x, y, len): (Bytes, Bytes, usize),
        exclusive: bool,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.scan_places(ctx, operator.into(), (x.into(), y.into(), len), exclusive) }
    }

    /// [`gather`](Self::gather) of `bytes` bytes of every member.
    pub unsafe fn gather_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        (x, y, bytes): (Bytes, Bytes, usize),
    ) -> Result<()> {
        let root = self.root(ctx, root)?;
        // SAFETY: the caller's promise.
        unsafe { self.gather_places(ctx, root, (x.into(), y.into()), Layout::Equal(bytes), 1) }
    }

    /// [`scatter`](Self::scatter) of `bytes` bytes to every member.
    pub unsafe fn scatter_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        (x, y, bytes): (Bytes, Bytes, usize),
    ) -> Result<()> {
        let root = self.root(ctx, root)?;
        // SAFETY: the caller's promise.
        unsafe { self.scatter_places(ctx, root, (x.into(), y.into()), Layout::Equal(bytes), 1) }
    }

    /// [`allgather`](Self::allgather) of `bytes` bytes of every member.
    pub unsafe fn allgather_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        (x, y, bytes): (Bytes, Bytes, usize),
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.allgather_places(ctx, (x.into(), y.into()), Layout::Equal(bytes), 1) }
    }

    /// [`alltoall`](Self::alltoall) of `bytes` bytes from every member to every member.
    pub unsafe fn alltoall_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        (x, y, bytes): (Bytes, Bytes, usize),
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.alltoall_places(ctx, (x.into(), y.into()), bytes, 1) }
    }
}
