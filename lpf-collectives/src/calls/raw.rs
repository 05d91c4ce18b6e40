//! The collectives on bytes: for interfaces without types.

use bytemuck::Pod;
use lpf_core::{Context, Lpf, Result};

use crate::calls::Way;
use crate::calls::blocks::{Layout, Rooted};
use crate::collectives::Collectives;
use crate::operators::Operator;
use crate::run::Combine;
use crate::shared::Place;

/// An operator on elements of some bytes.
pub struct RawOperator<'a> {
    /// Bytes of an element.
    pub element: usize,
    /// Whether operands may change places.
    pub commutes: bool,
    /// Members that call with another one differ, which is *fatal*. May be empty.
    pub name: &'static str,
    /// `combine(left, right, into, bytes)`, on whole elements: `into` is one of the operands or overlaps
    /// neither. They are as aligned as the buffers are, up to 32.
    pub combine: &'a mut dyn FnMut(*const u8, *const u8, *mut u8, usize),
}

impl<'a> RawOperator<'a> {
    /// Of a typed operator, for which `combine` is made of it.
    pub(super) fn of<T: Pod, O: Operator<T>>(operator: &O, combine: Combine<'a>) -> Self {
        let name = std::any::type_name::<(&O, T)>();
        RawOperator { element: size_of::<T>(), commutes: operator.commutes(), name, combine }
    }
}

/// On bytes: lengths are in elements. Each function is its typed namesake otherwise, errors included.
///
/// # Safety
/// Of every function: buffers are registered memory of this process, as long as the collective reads or
/// writes them, aligned as the operator needs it. No other code touches them until it returns. After a *fatal*
/// error no other process does while [`Runtime::memory_is_quiet`](lpf_core::Runtime::memory_is_quiet) holds.
#[allow(clippy::missing_safety_doc)] // above, once for all
impl<'s> Collectives<'s> {
    /// [`broadcast`](Self::broadcast) of `bytes` bytes.
    #[track_caller]
    pub unsafe fn broadcast_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        x: Place,
        bytes: usize,
    ) -> Result<()> {
        let root = self.root(ctx, root)?;
        // SAFETY: the caller's promise.
        unsafe { self.broadcast_place(ctx, root, x, (bytes, 1)) }
    }

    /// [`reduce`](Self::reduce) of `len` elements.
    #[track_caller]
    pub unsafe fn reduce_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        operator: RawOperator<'_>,
        (x, y, len): (Place, Place, usize),
    ) -> Result<()> {
        let root = self.root(ctx, root)?;
        // SAFETY: the caller's promise.
        unsafe { self.reduce_places(ctx, (root, [0; 2]), operator, (x, y, len)) }
    }

    /// [`allreduce`](Self::allreduce) of `len` elements; `x` may be `y`.
    #[track_caller]
    pub unsafe fn allreduce_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: RawOperator<'_>,
        (x, y, len): (Place, Place, usize),
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.allreduce_places(ctx, [0; 2], operator, (x, y, len)) }
    }

    /// [`reduce_scatter`](Self::reduce_scatter) of blocks of `block` elements.
    #[track_caller]
    pub unsafe fn reduce_scatter_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: RawOperator<'_>,
        (x, y, block): (Place, Place, usize),
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.reduce_scatter_places(ctx, operator, (x, y, block)) }
    }

    /// [`scan`](Self::scan) of `len` elements, or [`exscan`](Self::exscan), which leaves the first member's
    /// `y` as it is.
    #[track_caller]
    pub unsafe fn scan_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: RawOperator<'_>,
        (x, y, len): (Place, Place, usize),
        exclusive: bool,
    ) -> Result<()> {
        let way = if exclusive { Way::Exclusive(&|| {}) } else { Way::Inclusive };
        // SAFETY: the caller's promise.
        unsafe { self.scan_places(ctx, operator, (x, y, len), way) }
    }

    /// [`gather`](Self::gather) of `bytes` bytes of every member.
    #[track_caller]
    pub unsafe fn gather_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        (x, y, bytes): (Place, Place, usize),
    ) -> Result<()> {
        let root = self.root(ctx, root)?;
        // SAFETY: the caller's promise.
        unsafe { self.rooted_places(ctx, (root, Rooted::Gather), (x, y), Layout::Equal(bytes), 1) }
    }

    /// [`scatter`](Self::scatter) of `bytes` bytes to every member.
    #[track_caller]
    pub unsafe fn scatter_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        (x, y, bytes): (Place, Place, usize),
    ) -> Result<()> {
        let root = self.root(ctx, root)?;
        // SAFETY: the caller's promise.
        unsafe { self.rooted_places(ctx, (root, Rooted::Scatter), (x, y), Layout::Equal(bytes), 1) }
    }

    /// [`allgather`](Self::allgather) of `bytes` bytes of every member.
    #[track_caller]
    pub unsafe fn allgather_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        (x, y, bytes): (Place, Place, usize),
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.allgather_places(ctx, (x, y), Layout::Equal(bytes), 1) }
    }

    /// [`alltoall`](Self::alltoall) of `bytes` bytes from every member to every member.
    #[track_caller]
    pub unsafe fn alltoall_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        (x, y, bytes): (Place, Place, usize),
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.alltoall_places(ctx, (x, y), bytes, 1) }
    }

    /// [`gather_v`](Self::gather_v) of `counts[i]` bytes of member i.
    #[track_caller]
    pub unsafe fn gather_v_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        (x, y, counts): (Place, Place, &[usize]),
    ) -> Result<()> {
        let (root, ends) = (self.root(ctx, root)?, self.ends(ctx, counts, 1)?);
        // SAFETY: the caller's promise.
        unsafe { self.rooted_places(ctx, (root, Rooted::Gather), (x, y), ends.layout(), 1) }
    }

    /// [`scatter_v`](Self::scatter_v) of `counts[i]` bytes to member i.
    #[track_caller]
    pub unsafe fn scatter_v_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        (x, y, counts): (Place, Place, &[usize]),
    ) -> Result<()> {
        let (root, ends) = (self.root(ctx, root)?, self.ends(ctx, counts, 1)?);
        // SAFETY: the caller's promise.
        unsafe { self.rooted_places(ctx, (root, Rooted::Scatter), (x, y), ends.layout(), 1) }
    }

    /// [`allgather_v`](Self::allgather_v) of `counts[i]` bytes of member i.
    #[track_caller]
    pub unsafe fn allgather_v_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        (x, y, counts): (Place, Place, &[usize]),
    ) -> Result<()> {
        let ends = self.ends(ctx, counts, 1)?;
        // SAFETY: the caller's promise.
        unsafe { self.allgather_places(ctx, (x, y), ends.layout(), 1) }
    }

    /// [`alltoall_v`](Self::alltoall_v) of `sends[j]` bytes to member j and `receives[j]` from it.
    #[track_caller]
    pub unsafe fn alltoall_v_raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        (x, y): (Place, Place),
        sends: &[usize],
        receives: &[usize],
    ) -> Result<()> {
        let (leaves, comes) = self.both_ends(ctx, (sends, receives), 1)?;
        // SAFETY: the caller's promise.
        unsafe { self.uneven_places(ctx, (x, y), (leaves.layout(), comes.layout()), 1) }
    }
}
