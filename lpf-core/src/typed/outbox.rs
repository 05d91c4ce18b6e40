//! Sources of messages: memory that stays untouched from the put to the flush.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::slot::LocalSlot;

/// A part of an outbox: `len` elements that are written here and sent as one message.
///
/// ```compile_fail
/// # use lpf_core::{Context, Lpf, Channel, Part, Result};
/// fn rewritten_before_the_flush<L: Lpf>(
///     ctx: &mut Context<'_, L>, to: &mut Channel<'_, u64>, mut part: Part<'_, u64>,
/// ) {
///     let sent = ctx.send(to, part, ..);
///     part[0] = 1; // moved: the flush gives it back
/// }
/// ```
#[derive(Debug)]
pub struct Part<'s, T> {
    pub(crate) slot: LocalSlot,
    pub(crate) offset: usize,
    pub(crate) data: *mut T,
    pub(crate) len: usize,
    pub(crate) section: PhantomData<fn(&'s ()) -> &'s ()>,
}

impl<T> Deref for Part<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the memory is the context's, which outlives 's; no request names it while a Part
        // exists, and a Part is the only handle of its elements.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl<T> DerefMut for Part<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}

/// A part on its way. [`part`](Sent::part) gives it back after a flush.
#[derive(Debug)]
pub struct Sent<'s, T> {
    pub(crate) part: Part<'s, T>,
    pub(crate) flush: u64,
}

/// The proof of a flush: [`Context::flush`](crate::Context::flush) returned.
#[derive(Debug)]
pub struct Flushed<'s> {
    pub(crate) flush: u64,
    pub(crate) section: PhantomData<fn(&'s ()) -> &'s ()>,
}

impl<'s, T> Sent<'s, T> {
    /// The part, writable again, if `flushed` came after it was sent.
    ///
    /// # Errors
    /// Itself, where the flush is an older one.
    pub fn part(self, flushed: &Flushed<'s>) -> Result<Part<'s, T>, Self> {
        if flushed.flush > self.flush { Ok(self.part) } else { Err(self) }
    }
}
