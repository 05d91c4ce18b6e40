//! Collectives that move blocks and combine nothing.

use bytemuck::Pod;
use lpf_core::{Context, Lpf, Result};

use super::{What, nothing};
use crate::algorithms::*;
use crate::blocks::Blocks;
use crate::collectives::Collectives;
use crate::memory::{Source, Target, View};
use crate::run::Buffers;
use crate::shared::Place;
use crate::ways::*;

/// Blocks of `bytes` bytes, one behind the other.
fn equal(bytes: usize) -> Blocks<'static> {
    Blocks::Equal { first: 0, stride: bytes, bytes }
}

impl<'s> Collectives<'s> {
    /// Where blocks of these many elements end, in a vector kept for it.
    fn ends<L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        which: usize,
        counts: &[usize],
    ) -> Result<Vec<usize>> {
        if counts.len() != self.len() {
            let text = format!("{} counts for a group of {}", counts.len(), self.len());
            return Err(self.misuse(ctx, text));
        }
        let mut ends = std::mem::take(&mut self.shared.borrow_mut().ends[which]);
        ends.clear();
        ends.extend(counts.iter().scan(0usize, |sum, &count| {
            *sum = sum.saturating_add(count);
            Some(*sum)
        }));
        Ok(ends)
    }

    fn give_back(&self, which: usize, ends: Vec<usize>) {
        self.shared.borrow_mut().ends[which] = ends;
    }

    /// Runs `f` with blocks of these many elements of T, and their sum.
    fn with_counts<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        counts: &[usize],
        f: impl FnOnce(&mut Self, &mut Context<'s, L>, Blocks<'_>, usize) -> Result<()>,
    ) -> Result<()> {
        let ends = self.ends(ctx, 0, counts)?;
        let total = ends.last().copied().unwrap_or(0);
        let blocks = Blocks::Any { ends: &ends, element: size_of::<T>() };
        let done = f(self, ctx, blocks, total);
        self.give_back(0, ends);
        done
    }

    /// Everybody's `x`, one behind the other in the members' order, becomes everybody's `y`.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* where `y` is not p times as long as `x`.
    pub fn allgather<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let x = self.inside(ctx, x.view())?;
        let y = self.as_long(ctx, y.view(), x.len.saturating_mul(self.len()))?;
        let bytes = x.len * size_of::<T>();
        self.allgather_places(ctx, (x.place, y.place), equal(bytes), y.len * size_of::<T>(), 0)
    }

    /// As [`allgather`](Self::allgather), where member i contributes `counts[i]` elements: the same counts at
    /// every member.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* where `x` is not as long as its count, or `y` as all.
    pub fn allgather_v<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        x: impl Source<'s, Element = T>,
        counts: &[usize],
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        self.with_counts::<L, T>(ctx, counts, |this, ctx, blocks, total| {
            let x = this.as_long(ctx, x.view(), counts[this.me()])?;
            let y = this.as_long(ctx, y.view(), total)?;
            let bytes = total * size_of::<T>();
            this.allgather_places(ctx, (x.place, y.place), blocks, bytes, stamp(counts))
        })
    }

    fn allgather_places<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        (x, y): (Place, Place),
        blocks: Blocks<'_>,
        total: usize,
        counts: usize,
    ) -> Result<()> {
        let way = self.preferences.allgather.unwrap_or_else(|| {
            self.cheapest(ctx, Allgather::ALL, |way| Some(way.supersteps(self.len(), total)))
        });
        let what = What::new("allgather", way.name()).and(total).and(counts);
        let own = blocks.of(self.me());
        // SAFETY: views' memory is their section's, borrowed during the call: the own block is no other's.
        unsafe {
            std::ptr::copy(x.data.cast_const(), y.data.add(own.start), own.bytes);
            let buffers = Buffers { input: x, output: y };
            self.call(ctx, what, buffers, (1, &mut nothing()), |s, m| match way {
                Allgather::Direct => allgather_direct(s, m, blocks),
                Allgather::Bruck => allgather_bruck(s, m, blocks),
                Allgather::Ring => allgather_ring(s, m, blocks),
            })
        }
    }

    /// Everybody's `x`, one behind the other in the members' order, becomes the root's `y`. The others' `y` is
    /// not touched.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* where the root's `y` is not p times as long as `x`.
    pub fn gather<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let (root, x) = (self.root(ctx, root)?, self.inside(ctx, x.view())?);
        let total = x.len.saturating_mul(self.len());
        let y = if self.me() == root { self.as_long(ctx, y.view(), total)? } else { y.view() };
        let (bytes, element) = (x.len * size_of::<T>(), size_of::<T>());
        self.gather_places(ctx, root, (x.place, y.place), equal(bytes), total * element, 0)
    }

    /// As [`gather`](Self::gather), where member i contributes `counts[i]` elements: the same counts at every
    /// member.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* where `x` is not as long as its count, or the root's `y`
    /// as all.
    pub fn gather_v<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        x: impl Source<'s, Element = T>,
        counts: &[usize],
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let root = self.root(ctx, root)?;
        self.with_counts::<L, T>(ctx, counts, |this, ctx, blocks, total| {
            let x = this.as_long(ctx, x.view(), counts[this.me()])?;
            let y = if this.me() == root { this.as_long(ctx, y.view(), total)? } else { y.view() };
            let bytes = total * size_of::<T>();
            this.gather_places(ctx, root, (x.place, y.place), blocks, bytes, stamp(counts))
        })
    }

    fn gather_places<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        (x, y): (Place, Place),
        blocks: Blocks<'_>,
        total: usize,
        counts: usize,
    ) -> Result<()> {
        let way = self.gather_way(ctx, self.preferences.gather, total);
        let what = What::new("gather", way.name()).and(root).and(total).and(counts);
        let buffers = Buffers { input: x, output: y };
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe {
            self.call(ctx, what, buffers, (1, &mut nothing()), |s, m| match way {
                Gather::Direct => gather_direct(s, m, root, blocks),
                Gather::Binomial => gather_binomial(s, m, root, blocks),
            })
        }
    }

    /// The tree passes what it carries through scratch.
    fn gather_way<L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        preferred: Option<Gather>,
        total: usize,
    ) -> Gather {
        if total > self.shared.borrow().scratch_bytes {
            return Gather::Direct;
        }
        preferred.unwrap_or_else(|| {
            self.cheapest(ctx, Gather::ALL, |way| Some(way.supersteps(self.len(), total)))
        })
    }

    /// Block i of the root's `x`, a p-th of it, becomes member i's `y`. The others' `x` is not read.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* where the root's `x` is not p times as long as `y`.
    pub fn scatter<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let (root, y) = (self.root(ctx, root)?, self.inside(ctx, y.view())?);
        let total = y.len.saturating_mul(self.len());
        let x = if self.me() == root { self.as_long(ctx, x.view(), total)? } else { x.view() };
        let (bytes, element) = (y.len * size_of::<T>(), size_of::<T>());
        self.scatter_places(ctx, root, (x.place, y.place), equal(bytes), total * element, 0)
    }

    /// As [`scatter`](Self::scatter), where member i gets `counts[i]` elements: the same counts at every member.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* where `y` is not as long as its count, or the root's `x`
    /// as all.
    pub fn scatter_v<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        x: impl Source<'s, Element = T>,
        counts: &[usize],
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let root = self.root(ctx, root)?;
        self.with_counts::<L, T>(ctx, counts, |this, ctx, blocks, total| {
            let y = this.as_long(ctx, y.view(), counts[this.me()])?;
            let x = if this.me() == root { this.as_long(ctx, x.view(), total)? } else { x.view() };
            let bytes = total * size_of::<T>();
            this.scatter_places(ctx, root, (x.place, y.place), blocks, bytes, stamp(counts))
        })
    }

    fn scatter_places<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        (x, y): (Place, Place),
        blocks: Blocks<'_>,
        total: usize,
        counts: usize,
    ) -> Result<()> {
        let way = self.gather_way(ctx, self.preferences.scatter, total);
        let what = What::new("scatter", way.name()).and(root).and(total).and(counts);
        let buffers = Buffers { input: x, output: y };
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe {
            self.call(ctx, what, buffers, (1, &mut nothing()), |s, m| match way {
                Gather::Direct => scatter_direct(s, m, root, blocks),
                Gather::Binomial => scatter_binomial(s, m, root, blocks),
            })
        }
    }

    /// Block j of member i's `x` becomes block i of member j's `y`, where a block is a p-th of either.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* where `y` is not as long as `x`, or that is no
    /// multiple of p.
    pub fn alltoall<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let x = self.inside(ctx, x.view())?;
        let y = self.as_long(ctx, y.view(), x.len)?;
        let block = self.block(ctx, x)?;
        let (total, members) = (x.len * size_of::<T>(), self.len());
        let blocks = equal(block * size_of::<T>());
        let fits = bruck_scratch(members, total / members) <= self.shared.borrow().scratch_bytes;
        let way = self.preferences.alltoall.unwrap_or_else(|| {
            self.cheapest(ctx, Alltoall::ALL, |way| Some(way.supersteps(self.len(), total)))
        });
        let way = if fits { way } else { Alltoall::Direct };
        let what = What::new("alltoall", way.name()).and(total);
        let buffers = Buffers { input: x.place, output: y.place };
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe {
            self.call(ctx, what, buffers, (1, &mut nothing()), |s, m| match way {
                Alltoall::Direct => alltoall_direct(s, m, blocks, blocks),
                Alltoall::Bruck => alltoall_bruck(s, m, blocks, blocks),
            })
        }
    }

    /// The elements of a block, a p-th of a vector.
    pub(super) fn block<L: Lpf>(&self, ctx: &Context<'s, L>, x: View) -> Result<usize> {
        if !x.len.is_multiple_of(self.len()) {
            let text =
                format!("{} elements are no block for each of {} members", x.len, self.len());
            return Err(self.misuse(ctx, text));
        }
        Ok(x.len / self.len())
    }

    /// As [`alltoall`](Self::alltoall), where `sends[j]` elements go to member j and `receives[j]` come from
    /// it, one behind the other in the members' order.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* where `x` or `y` are not as long as their counts; *fatal*
    /// where a member sends another number than its receiver awaits.
    pub fn alltoall_v<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        x: impl Source<'s, Element = T>,
        sends: &[usize],
        y: impl Target<'s, Element = T>,
        receives: &[usize],
    ) -> Result<()> {
        self.with_counts::<L, T>(ctx, sends, |this, ctx, leaves, total| {
            let x = this.as_long(ctx, x.view(), total)?;
            let ends = this.ends(ctx, 1, receives)?;
            let y = this.as_long(ctx, y.view(), ends.last().copied().unwrap_or(0));
            let comes = Blocks::Any { ends: &ends, element: size_of::<T>() };
            let what = What::new("alltoall-v", "direct");
            let done = y.and_then(|y| {
                let buffers = Buffers { input: x.place, output: y.place };
                // SAFETY: views' memory is their section's, borrowed during the call.
                unsafe {
                    this.call(ctx, what, buffers, (1, &mut nothing()), |s, m| {
                        alltoall_direct(s, m, leaves, comes);
                    })
                }
            });
            this.give_back(1, ends);
            done
        })
    }

    /// One element of the root's, at everybody.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* for an element longer than scratch.
    pub fn broadcast_value<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        value: T,
    ) -> Result<T> {
        let root = self.root(ctx, root)?;
        let place = self.value_place::<L, T>(ctx)?;
        let v = Vector { bytes: size_of::<T>(), element: size_of::<T>() };
        // SAFETY: scratch is aligned to a cache line, long enough, and this object's.
        unsafe {
            place.data.cast::<T>().write(value);
            self.broadcast_place(ctx, root, place, v)?;
            Ok(place.data.cast::<T>().read())
        }
    }

    /// Where a single element is worked on.
    pub(super) fn value_place<L: Lpf, T: Pod>(&self, ctx: &Context<'s, L>) -> Result<Place> {
        let shared = self.shared.borrow();
        if size_of::<T>() > shared.scratch_bytes {
            let (bytes, room) = (size_of::<T>(), shared.scratch_bytes);
            drop(shared);
            return Err(
                self.misuse(ctx, format!("an element of {bytes} bytes in scratch of {room}"))
            );
        }
        Ok(shared.scratch)
    }
}

/// Counts as a word of the stamp.
fn stamp(counts: &[usize]) -> usize {
    counts
        .iter()
        .fold(1, |hash, &count| crate::collectives::mixed(hash as u64, count as u64) as usize)
}
