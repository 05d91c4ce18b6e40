//! A collective call as one value, and the calls on bytes, for interfaces without types.

use bytemuck::Pod;
use lpf_core::{Context, Lpf, Result};

use super::lens::Lens;
use crate::algorithms::Member;
use crate::collectives::Collectives;
use crate::kinds::Collective;
use crate::operators::Operator;
use crate::run::{Buffers, Combine};
use crate::schedule::Schedule;
use crate::shared::Place;
use crate::signature::{OperatorName, Signature};

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
        let OperatorName(name) = Self::name_of::<T, O>();
        RawOperator { element: size_of::<T>(), commutes: operator.commutes(), name, combine }
    }

    /// The name of a typed operator with that of its elements.
    pub(super) fn name_of<T, O>() -> OperatorName<'static> {
        OperatorName(std::any::type_name::<fn(O) -> T>())
    }
}

/// Writes a member's schedule.
pub(super) type Write<'a> = &'a dyn Fn(&mut Schedule, Member);

/// A collective on bytes, for [`Collectives::raw`]: what it does, and on which memory of this process. Each constructor
/// has the name of the typed function that does the same. Lengths are in elements of the operator, or else in bytes.
pub struct RawCall<'a> {
    /// What all members agree on. It has the number of its algorithm only if this is in `given`.
    pub(super) what: Signature,
    pub(super) memory: Buffers,
    pub(super) lens: Lens<'a>,
    pub(super) combine: Option<Combine<'a>>,
    /// The algorithm, if it is not chosen by its cost.
    pub(super) given: Option<Write<'a>>,
}

impl<'a> RawCall<'a> {
    /// A call that combines vectors, or blocks, of `len` elements.
    #[inline]
    pub(super) fn combining(
        collective: Collective,
        root: usize,
        operator: RawOperator<'a>,
        (x, y, len): (Place, Place, usize),
    ) -> Self {
        let RawOperator { element, commutes, name, combine } = operator;
        let memory = Buffers { input: x, output: y };
        let what = Signature::new(collective, len * element, element);
        let what = Signature { root, commutes, operator: OperatorName(name), ..what };
        RawCall { what, memory, lens: Lens::Equal(len), combine: Some(combine), given: None }
    }

    /// A call that moves elements of `element` bytes.
    #[inline]
    pub(super) fn moving(
        collective: Collective,
        root: usize,
        (x, y): (Place, Place),
        lens: Lens<'a>,
        element: usize,
    ) -> Self {
        let memory = Buffers { input: x, output: y };
        let has_counts = !matches!(lens, Lens::Equal(_));
        let what = Signature::new(collective, lens.size(element), element);
        let what = Signature { root, has_counts, ..what };
        RawCall { what, memory, lens, combine: None, given: None }
    }

    /// The same call by an algorithm with this number, whose schedule depends on `pattern`.
    pub(super) fn by<'b>(
        self,
        number: usize,
        [site, pattern]: [u64; 2],
        write: Write<'b>,
    ) -> RawCall<'b>
    where
        'a: 'b,
    {
        let RawCall { what, memory, lens, combine, .. } = self;
        let what = Signature { algorithm: number, site, pattern, ..what };
        let combine = combine.map(|combine| combine as Combine<'b>);
        RawCall { what, memory, lens, combine, given: Some(write) }
    }

    /// Of `bytes` bytes.
    pub fn broadcast(root: usize, x: Place, bytes: usize) -> Self {
        Self::moving(Collective::Broadcast, root, (x, x), Lens::Equal(bytes), 1)
    }

    /// Of `len` elements.
    pub fn reduce(root: usize, operator: RawOperator<'a>, memory: (Place, Place, usize)) -> Self {
        Self::combining(Collective::Reduce, root, operator, memory)
    }

    /// Of `len` elements; `x` may be `y`.
    pub fn allreduce(operator: RawOperator<'a>, memory: (Place, Place, usize)) -> Self {
        Self::combining(Collective::Allreduce, 0, operator, memory)
    }

    /// Of blocks of `len` elements.
    pub fn reduce_scatter(operator: RawOperator<'a>, memory: (Place, Place, usize)) -> Self {
        Self::combining(Collective::ReduceScatter, 0, operator, memory)
    }

    /// Of `len` elements.
    pub fn scan(operator: RawOperator<'a>, memory: (Place, Place, usize)) -> Self {
        Self::combining(Collective::Scan, 0, operator, memory)
    }

    /// Of `len` elements. It leaves the first member's `y` as it is.
    pub fn exscan(operator: RawOperator<'a>, memory: (Place, Place, usize)) -> Self {
        Self::combining(Collective::Exscan, 0, operator, memory)
    }

    /// Of `bytes` bytes of every member.
    pub fn gather(root: usize, (x, y, bytes): (Place, Place, usize)) -> Self {
        Self::moving(Collective::Gather, root, (x, y), Lens::Equal(bytes), 1)
    }

    /// Of `counts[i]` bytes of member i.
    pub fn gather_v(root: usize, (x, y, counts): (Place, Place, &'a [usize])) -> Self {
        Self::moving(Collective::Gather, root, (x, y), Lens::Counts(counts), 1)
    }

    /// Of `bytes` bytes to every member.
    pub fn scatter(root: usize, (x, y, bytes): (Place, Place, usize)) -> Self {
        Self::moving(Collective::Scatter, root, (x, y), Lens::Equal(bytes), 1)
    }

    /// Of `counts[i]` bytes to member i.
    pub fn scatter_v(root: usize, (x, y, counts): (Place, Place, &'a [usize])) -> Self {
        Self::moving(Collective::Scatter, root, (x, y), Lens::Counts(counts), 1)
    }

    /// Of `bytes` bytes of every member.
    pub fn allgather((x, y, bytes): (Place, Place, usize)) -> Self {
        Self::moving(Collective::Allgather, 0, (x, y), Lens::Equal(bytes), 1)
    }

    /// Of `counts[i]` bytes of member i.
    pub fn allgather_v((x, y, counts): (Place, Place, &'a [usize])) -> Self {
        Self::moving(Collective::Allgather, 0, (x, y), Lens::Counts(counts), 1)
    }

    /// Of `bytes` bytes from every member to every member.
    pub fn alltoall((x, y, bytes): (Place, Place, usize)) -> Self {
        Self::moving(Collective::Alltoall, 0, (x, y), Lens::Equal(bytes), 1)
    }

    /// Of `sends[j]` bytes to member j and `receives[j]` bytes from it.
    pub fn alltoall_v((x, y): (Place, Place), sends: &'a [usize], receives: &'a [usize]) -> Self {
        Self::moving(Collective::Alltoall, 0, (x, y), Lens::Exchange { sends, receives }, 1)
    }
}

impl<'s> Collectives<'s> {
    /// Carries out a collective on bytes. It does what the typed function of the same name does, with the same errors.
    ///
    /// # Errors
    /// As the typed function.
    ///
    /// # Safety
    /// The memory of the call is registered memory of this process, as long as the collective reads or writes it, and
    /// aligned as the operator needs it. No other code touches it until this function returns. After a *fatal* error no
    /// other process touches it while [`Runtime::memory_is_quiet`](lpf_core::Runtime::memory_is_quiet) holds.
    #[track_caller]
    pub unsafe fn raw<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        call: RawCall<'_>,
    ) -> Result<()> {
        self.root(ctx, call.what.root)?;
        self.check_lens(ctx, call.lens, 1)?;
        // SAFETY: the memory is as this function's caller promises it; root and counts are those of this group.
        unsafe { self.carry_out(ctx, call) }
    }
}
