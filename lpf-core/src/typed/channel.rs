//! Typed links: send a part, expect a message.

use std::marker::PhantomData;
use std::ops::RangeBounds;

use bytemuck::Pod;

use crate::Pid;
use crate::arrivals::{Expect, InboxShape, InboxSlot, Link, Travel};
use crate::attr::SyncAttr;
use crate::context::{Context, byte_range};
use crate::error::{Cause, Error, Result};
use crate::lpf::Lpf;
use crate::slot::Registrant;
use crate::typed::area::{Local, Memory};
use crate::typed::element::Element;
use crate::typed::message::Message;
use crate::typed::outbox::{Flushed, Part, Sent};

/// This process's end of a link whose messages are slices of `T`. It sends on one channel of the link, and receives on
/// the other.
#[derive(Debug)]
pub struct Channel<'s, T> {
    link: Link,
    peer: Pid,
    elements: PhantomData<T>,
    section: PhantomData<fn(&'s ()) -> &'s ()>,
}

impl<T> Channel<'_, T> {
    /// The process at the other end.
    pub fn peer(&self) -> Pid {
        self.peer
    }
}

/// An area offered for one large message; the runtime's until [`Context::land`].
#[derive(Debug)]
pub struct Landing<'s, T> {
    area: Local<'s, T>,
    link: Link,
    offer: u64,
}

impl<'s, L: Lpf> Context<'s, L> {
    /// Registers an inbox at every process; links can be opened on it after the next sync.
    /// Collective.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, *misuse* for a window of 0 or above 64.
    pub fn inbox(&mut self, shape: InboxShape) -> Result<InboxSlot> {
        self.raw.register_inbox(shape)
    }

    /// Opens a link with `peer`: its messages end in ring `ring` here, ours in ring `peer_ring`
    /// there.
    ///
    /// # Errors
    /// *Misuse* if inbox, ring or peer do not exist or the ring is taken.
    pub fn open<T: Element>(
        &mut self,
        inbox: InboxSlot,
        ring: usize,
        peer: Pid,
        peer_ring: usize,
    ) -> Result<Channel<'s, T>> {
        // Cells are aligned to half a cache line at the least.
        const { assert!(align_of::<T>() <= 32, "elements of messages are aligned to at most 32") };
        if !self.releases.reserve_for_one_more() {
            let cause = Cause::OutOfMemory { what: "a link".into(), bytes: 0 };
            return Err(Error::mitigable(self.pid(), self.superstep(), cause));
        }
        let link = self.raw.open(inbox, ring, peer, peer_ring)?;
        self.releases.opened();
        Ok(Channel { link, peer, elements: PhantomData, section: PhantomData })
    }

    /// Closes a link.
    ///
    /// # Errors
    /// *Misuse* while messages are unreleased or puts unflushed; the channel is then given back.
    pub fn close<T>(
        &mut self,
        channel: Channel<'s, T>,
    ) -> std::result::Result<(), (Error, Channel<'s, T>)> {
        let closed = self.give_back().and_then(|()| self.raw.close(channel.link));
        if closed.is_ok() {
            self.releases.closed();
        }
        closed.map_err(|error| (error, channel))
    }

    /// An outbox of `parts` parts of `len` zeroed elements each, taking one slot, until the section
    /// ends.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, *misuse* if no slot is reserved.
    #[track_caller]
    pub fn outbox<T: Element>(&mut self, parts: usize, len: usize) -> Result<Vec<Part<'s, T>>> {
        let refused = |ctx: &Self, bytes| {
            let cause = Cause::OutOfMemory { what: "an outbox".into(), bytes };
            Error::mitigable(ctx.pid(), ctx.superstep(), cause)
        };
        let mut list = Vec::new();
        let bytes = parts.saturating_mul(size_of::<Part<'s, T>>());
        list.try_reserve_exact(parts).map_err(|_| refused(self, bytes))?;
        let elements = parts.checked_mul(len).ok_or_else(|| refused(self, usize::MAX))?;
        let block = self.allocate::<T>(elements)?;
        let (base, bytes) = self.heap.place(block);
        // SAFETY: the block is kept until the section ends; its parts are written through `Part`
        // alone, which a put takes and only a flush gives back.
        let slot = match unsafe { self.raw.register_local(base, bytes, Registrant::Outbox) } {
            Ok(slot) => slot,
            Err(error) => {
                self.heap.free(block);
                return Err(error);
            }
        };
        let part = |i: usize| Part {
            slot,
            offset: i * len * size_of::<T>(),
            data: base.cast::<T>().wrapping_add(i * len),
            len,
            section: PhantomData,
        };
        list.extend((0..parts).map(part));
        Ok(list)
    }

    /// Sends elements `range` of `part` as the next message of `to`, through a cell. It leaves as
    /// credits allow, in this call or in any later sync of any kind.
    ///
    /// # Errors
    /// *Misuse*: longer than a cell, more than W messages on the link between two syncs of any kind
    /// ([`expect`](Self::expect), [`land`](Self::land), [`flush`](Self::flush), [`sync`](Self::sync)), or 2W queued already.
    /// The part is given back.
    #[track_caller]
    pub fn send<T: Pod>(
        &mut self,
        to: &mut Channel<'s, T>,
        part: Part<'s, T>,
        range: impl RangeBounds<usize>,
    ) -> std::result::Result<Sent<'s, T>, (Error, Part<'s, T>)> {
        self.send_as(to.link, Travel::Cell, part, range)
    }

    /// Sends elements `range` of `part` as the next message of `to`, straight into the area that
    /// the peer offers for it.
    ///
    /// # Errors
    /// *Misuse*: more than W messages on the link between two syncs of any kind, or 2W queued already. The part is given
    /// back.
    #[track_caller]
    pub fn send_landing<T: Pod>(
        &mut self,
        to: &mut Channel<'s, T>,
        part: Part<'s, T>,
        range: impl RangeBounds<usize>,
    ) -> std::result::Result<Sent<'s, T>, (Error, Part<'s, T>)> {
        self.send_as(to.link, Travel::Landing, part, range)
    }

    #[track_caller]
    fn send_as<T: Pod>(
        &mut self,
        link: Link,
        travel: Travel,
        part: Part<'s, T>,
        range: impl RangeBounds<usize>,
    ) -> std::result::Result<Sent<'s, T>, (Error, Part<'s, T>)> {
        let (start, bytes) = byte_range::<T>(range, part.len);
        let size = part.len * size_of::<T>();
        if start.checked_add(bytes).is_none_or(|end| end > size) {
            let slot = "outbox part".into();
            let element = size_of::<T>();
            let cause = Cause::OutOfRange { slot, offset: start, bytes, len: size, element };
            return Err((Error::misuse(self.pid(), self.superstep(), cause), part));
        }
        let from = part.offset + start;
        match self.raw.send(link, part.slot.into(), from, bytes, travel) {
            Ok(()) => Ok(Sent { part, flush: self.flushes }),
            Err(error) => Err((error, part)),
        }
    }

    /// Waits until everything sent has left this process's memory.
    ///
    /// # Errors
    /// *Fatal* if the section failed.
    pub fn flush(&mut self) -> Result<Flushed<'s>> {
        self.sync_with(SyncAttr::Flush)?;
        self.flushes += 1;
        Ok(Flushed { flush: self.flushes, section: PhantomData })
    }

    /// Waits for one message from each channel, and for nothing else.
    ///
    /// # Errors
    /// *Misuse* for more than W unreleased messages of a channel; *fatal* if the section
    /// failed, the peer is in another call, or never sends.
    pub fn expect<T: Pod, const N: usize>(
        &mut self,
        from: [&mut Channel<'s, T>; N],
    ) -> Result<[Message<'s, T>; N]> {
        let expected = std::array::from_fn::<_, N, _>(|i| Expect::one(from[i].link));
        self.sync_with(SyncAttr::Expected(&expected))?;
        let mut messages = [const { None }; N];
        for (message, channel) in messages.iter_mut().zip(&from) {
            let nth = self.raw.awaited(channel.link)? - 1;
            *message = Some(self.message(channel.link, nth)?);
        }
        Ok(messages.map(|message| message.expect("every channel gave its message")))
    }

    /// Waits for `counts[i]` messages from `from[i]` and appends them to `into`, by channel and in
    /// the order they were sent.
    ///
    /// # Errors
    /// As [`expect`](Self::expect), and *misuse* if the lengths of the lists differ.
    pub fn expect_many<T: Pod>(
        &mut self,
        from: &mut [Channel<'s, T>],
        counts: &[u32],
        into: &mut Vec<Message<'s, T>>,
    ) -> Result<()> {
        if from.len() != counts.len() {
            let text = format!("{} channels but {} counts", from.len(), counts.len());
            let cause = Cause::Link(text);
            return Err(Error::misuse(self.pid(), self.superstep(), cause));
        }
        let expected: Vec<Expect> = from
            .iter()
            .zip(counts)
            .map(|(channel, &messages)| Expect { link: channel.link, messages })
            .collect();
        self.sync_with(SyncAttr::Expected(&expected))?;
        for expect in &expected {
            let end = self.raw.awaited(expect.link)?;
            for nth in end - u64::from(expect.messages)..end {
                into.push(self.message(expect.link, nth)?);
            }
        }
        Ok(())
    }

    fn message<T: Pod>(&mut self, link: Link, nth: u64) -> Result<Message<'s, T>> {
        let arrival = self.raw.arrival(link, nth)?;
        let elements = arrival.bytes.checked_div(size_of::<T>()).unwrap_or(0);
        if elements * size_of::<T>() != arrival.bytes || arrival.landed {
            let text = format!(
                "message {nth} on {link} has {} bytes{}, which is not a multiple of {}-byte elements",
                arrival.bytes,
                if arrival.landed { " in a landing" } else { "" },
                size_of::<T>()
            );
            return Err(Error::misuse(self.pid(), self.superstep(), Cause::Link(text)));
        }
        self.raw.hold(link, nth)?;
        let data = if elements == 0 { std::ptr::dangling() } else { arrival.data.cast::<T>() };
        // SAFETY: the cell is held: it is not written until the backend is told by `give_back`
        // that the message was dropped. Cells are aligned to 32, as `open` demands.
        Ok(unsafe { Message::new(data, elements, link, nth, self.releases.clone()) })
    }

    /// Offers an area for the next message that the peer sends as a landing; the area is the
    /// runtime's until [`land`](Self::land).
    ///
    /// # Errors
    /// *Misuse* for more than W open offers; the area is then given back.
    pub fn offer<T: Pod>(
        &mut self,
        from: &mut Channel<'s, T>,
        area: Local<'s, T>,
    ) -> std::result::Result<Landing<'s, T>, (Error, Local<'s, T>)> {
        let bytes = area.len() * size_of::<T>();
        match self.raw.offer(from.link, area.slot(), 0, bytes) {
            Ok(offer) => Ok(Landing { area, link: from.link, offer }),
            Err(error) => Err((error, area)),
        }
    }

    /// Waits for the next message of `from`, which arrives in `landing`. Returns the area and the number of elements that
    /// arrived.
    ///
    /// # Errors
    /// As [`expect`](Self::expect); *misuse* if the message is not the landing's. The area then
    /// stays the runtime's.
    pub fn land<T: Pod>(
        &mut self,
        from: &mut Channel<'s, T>,
        landing: Landing<'s, T>,
    ) -> Result<(Local<'s, T>, usize)> {
        self.sync_with(SyncAttr::Expected(&[Expect::one(from.link)]))?;
        let nth = self.raw.awaited(from.link)? - 1;
        let arrival = self.raw.arrival(from.link, nth)?;
        let is_its = arrival.landed && landing.link == from.link && landing.offer == arrival.offer;
        if !is_its {
            let text = format!("message {nth} on {} did not come into its landing", from.link);
            return Err(Error::misuse(self.pid(), self.superstep(), Cause::Link(text)));
        }
        self.raw.release(from.link, nth)?;
        Ok((landing.area, arrival.bytes.checked_div(size_of::<T>()).unwrap_or(0)))
    }

    /// Tells the backend which messages were dropped.
    #[inline]
    pub(crate) fn give_back(&mut self) -> Result<()> {
        while let Some((link, nth)) = self.releases.pop() {
            self.raw.release_held(link, nth)?;
        }
        self.close_given_up();
        Ok(())
    }

    /// Closes the links that libraries gave up.
    #[inline]
    pub(crate) fn close_given_up(&mut self) {
        while let Some(link) = self.releases.pop_closing() {
            // What cannot be closed is in a section that failed.
            let _ = self.raw.close(link);
        }
    }
}
