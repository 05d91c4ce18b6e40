//! Collective allocation: areas that are ready to use when the call returns.

use crate::context::Context;
use crate::error::{Cause, Error, Result};
use crate::lpf::Lpf;
use crate::raw::Suspension;
use crate::typed::area::Area;
use crate::typed::element::Element;

mod sealed {
    pub trait Sealed {}
}

/// What [`Context::alloc`] takes: one length, a tuple of two to six lengths, or an array of lengths. For a tuple, `T` is
/// the tuple of the element types; otherwise all areas have elements `T`. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the length of an area of `{T}`, and not a tuple or an array of lengths",
    label = "expected a `usize`, a tuple of two to six of them, or an array of them"
)]
pub trait Lengths<'s, T>: sealed::Sealed {
    /// An area, or a tuple or an array of areas.
    type Areas;

    /// Adds a block to `blocks` for each area, in order.
    #[doc(hidden)]
    #[track_caller]
    fn allocate<L: Lpf>(&self, ctx: &mut Context<'s, L>, blocks: &mut Vec<usize>) -> Result<()>;

    /// Makes the areas of the same blocks and takes these from the front of `blocks`.
    #[doc(hidden)]
    #[track_caller]
    fn register<L: Lpf>(
        &self,
        ctx: &mut Context<'s, L>,
        blocks: &mut std::vec::IntoIter<usize>,
    ) -> Result<Self::Areas>;
}

impl sealed::Sealed for usize {}

impl<'s, T: Element> Lengths<'s, T> for usize {
    type Areas = Area<'s, T>;

    #[track_caller]
    fn allocate<L: Lpf>(&self, ctx: &mut Context<'s, L>, blocks: &mut Vec<usize>) -> Result<()> {
        if blocks.try_reserve(1).is_err() {
            let cause = Cause::OutOfMemory { what: "an area".into(), bytes: size_of::<usize>() };
            return Err(Error::mitigable(ctx.pid(), ctx.superstep(), cause));
        }
        blocks.push(ctx.allocate_beside::<T>(*self, blocks.len())?);
        Ok(())
    }

    #[track_caller]
    fn register<L: Lpf>(
        &self,
        ctx: &mut Context<'s, L>,
        blocks: &mut std::vec::IntoIter<usize>,
    ) -> Result<Area<'s, T>> {
        let &[block, ..] = blocks.as_slice() else { unreachable!("each length has its block") };
        let area = ctx.register_block(block, *self)?;
        // After an error the block is still among those that the caller frees.
        blocks.next();
        ctx.heap.occupy_room(block);
        Ok(area)
    }
}

impl<const N: usize> sealed::Sealed for [usize; N] {}

impl<'s, T: Element, const N: usize> Lengths<'s, T> for [usize; N] {
    type Areas = [Area<'s, T>; N];

    #[track_caller]
    fn allocate<L: Lpf>(&self, ctx: &mut Context<'s, L>, blocks: &mut Vec<usize>) -> Result<()> {
        for len in self {
            Lengths::<T>::allocate(len, ctx, blocks)?;
        }
        Ok(())
    }

    #[track_caller]
    fn register<L: Lpf>(
        &self,
        ctx: &mut Context<'s, L>,
        blocks: &mut std::vec::IntoIter<usize>,
    ) -> Result<[Area<'s, T>; N]> {
        // A closure would hide the caller's source location, which checked mode reports.
        let mut areas = Vec::with_capacity(N);
        for len in self {
            areas.push(len.register(ctx, blocks)?);
        }
        Ok(areas.try_into().expect("each length has its area"))
    }
}

macro_rules! tuple {
    ($($len:ident $element:ident $usize:ident),+) => {
        impl sealed::Sealed for ($($usize,)+) {}

        impl<'s, $($element: Element),+> Lengths<'s, ($($element,)+)> for ($($usize,)+) {
            type Areas = ($(Area<'s, $element>,)+);

            #[track_caller]
            fn allocate<L: Lpf>(
                &self,
                ctx: &mut Context<'s, L>,
                blocks: &mut Vec<usize>,
            ) -> Result<()> {
                let ($($len,)+) = self;
                $(Lengths::<$element>::allocate($len, ctx, blocks)?;)+
                Ok(())
            }

            #[track_caller]
            fn register<L: Lpf>(
                &self,
                ctx: &mut Context<'s, L>,
                blocks: &mut std::vec::IntoIter<usize>,
            ) -> Result<Self::Areas> {
                let ($($len,)+) = self;
                Ok(($(Lengths::<$element>::register($len, ctx, blocks)?,)+))
            }
        }
    };
}

tuple!(a A usize, b B usize);
tuple!(a A usize, b B usize, c C usize);
tuple!(a A usize, b B usize, c C usize, d D usize);
tuple!(a A usize, b B usize, c C usize, d D usize, e E usize);
tuple!(a A usize, b B usize, c C usize, d D usize, e E usize, f F usize);

impl<'s, L: Lpf> Context<'s, L> {
    /// Global areas of zeroed elements at every process, usable at once, with their slots and room for requests:
    ///
    /// ```
    /// # use lpf_core::{Context, Lpf, Result};
    /// # fn areas<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    /// let mut sums = ctx.alloc::<f64, _>(100)?; // one area
    /// let (keys, values) = ctx.alloc::<(u32, f64), _>((100, 200))?; // a tuple of areas
    /// let [even, odd] = ctx.alloc::<u64, _>([10, 10])?; // an array of areas
    /// # ctx.write(&mut sums)[0] = 1.0;
    /// # drop((keys, values, even, odd));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The compiler infers the element types if the areas are used.
    ///
    /// Each area comes with room for 2p more requests, which all requests may use: a process can make one to every
    /// process and receive one from every process. The room is on top of that of [`resize`](Self::resize), which a
    /// program with more requests calls. It stays when the area is given back, and the next areas of `alloc` use it
    /// again. So a program that allocates and drops in a loop needs no more room than for the areas that exist at the same
    /// time. A dropped area exists until a [`sync`](Self::sync) of the program gives it back; `alloc` does not.
    ///
    /// Collective. The requests, registrations and resizes that are pending here stay pending. Lengths and element sizes
    /// are the same everywhere, or the call is fatal. One full sync; two if more areas of `alloc` exist than ever before
    /// in this context. O(length) for the zeros, and O(p) for each area that needs new room.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, without any trace: the other processes wait until the call is made again.
    /// *Misuse* if areas of [`area`](Self::area) or [`local`](Self::local) occupy the slots. *Fatal* if any process of
    /// the section failed.
    #[track_caller]
    pub fn alloc<T, N: Lengths<'s, T>>(&mut self, lengths: N) -> Result<N::Areas> {
        let mut blocks = Vec::new();
        let allocated = lengths.allocate(self, &mut blocks);
        let count = blocks.len();
        let mut blocks = blocks.into_iter();
        let areas = match allocated {
            Ok(()) => self.register_ready(&lengths, count, &mut blocks),
            Err(error) => Err(error),
        };
        for unused in blocks {
            self.heap.free(unused);
        }
        areas
    }

    #[track_caller]
    fn register_ready<T, N: Lengths<'s, T>>(
        &mut self,
        lengths: &N,
        count: usize,
        blocks: &mut std::vec::IntoIter<usize>,
    ) -> Result<N::Areas> {
        let suspension = Suspension::begin(self, |ctx| &mut ctx.raw)?;
        let ctx = &mut *suspension.lent;
        let needed = ctx.heap.occupied_room() + count;
        let more = needed.saturating_sub(ctx.alloc_room);
        if more > 0 {
            let requests = 2 * ctx.nprocs() * more;
            ctx.raw.reserve(more, requests)?;
            ctx.alloc_room = needed;
            ctx.sync()?;
        }
        let areas = lengths.register(ctx, blocks)?;
        ctx.sync()?;
        Ok(areas)
    }
}
