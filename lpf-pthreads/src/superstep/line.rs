//! Requests that travel in lines: word 0 is their number; each is a head word (target, length), its place at the target,
//! and the bytes of a put.

use std::sync::atomic::Ordering::Relaxed;

use lpf_core::Pid;
use lpf_core::request::{Request, Way};
use lpf_core::runtime::LocalState;

use crate::barrier::{Line, PAYLOAD};

/// More requests than these are never worth looking whether they fit.
pub(super) const MOST: usize = (PAYLOAD - 1) / HEAD;
const HEAD: usize = 2;

/// The requests do not all fit into a line.
pub(super) struct TooLarge;

/// The words of a line.
pub(super) struct Words {
    words: [u64; PAYLOAD],
    at: usize,
}

impl Words {
    /// All requests, if they fit and are of one way; `append` takes each.
    pub(super) fn of(
        local: &mut LocalState,
        way: Way,
        mut append: impl FnMut(&mut Self, Pid, Request) -> Result<(), TooLarge>,
    ) -> Result<Self, TooLarge> {
        let mut words = Words { words: [0; PAYLOAD], at: 1 };
        for place in 0..local.queue.places() {
            let Some((is, other)) = local.queue.list_at(place) else { continue };
            if is != way {
                return Err(TooLarge);
            }
            let requests = local.queue.count(way, other);
            let list = local.queue.finish(way, other);
            let mut moved = 0;
            // SAFETY: the list was just finished by this thread.
            unsafe {
                list.for_each(|request| {
                    moved += 1;
                    append(&mut words, other, request)
                })
            }?;
            // Requests that move nothing count at their target too.
            for _ in moved..requests {
                let address = std::ptr::null_mut();
                words.describe(other, Request { address, bytes: 0, slot: 0, offset: 0 })?;
            }
            words.words[0] += u64::from(requests);
        }
        Ok(words)
    }

    /// Appends the head of a request.
    pub(super) fn describe(&mut self, to: Pid, request: Request) -> Result<(), TooLarge> {
        let Request { bytes, slot, offset, .. } = request;
        if bytes > size_of_val(&self.words) || slot >= 1 << 24 || offset >= 1 << 40 {
            return Err(TooLarge);
        }
        let [head, place] = self.take(HEAD)? else { return Err(TooLarge) };
        *head = (to as u64) << 32 | bytes as u64;
        *place = offset as u64 | (slot as u64) << 40;
        Ok(())
    }

    /// The next words.
    pub(super) fn take(&mut self, words: usize) -> Result<&mut [u64], TooLarge> {
        let taken = self.words.get_mut(self.at..self.at + words).ok_or(TooLarge)?;
        self.at += words;
        Ok(taken)
    }

    /// Writes them into a line that is not shown yet.
    pub(super) fn write(&self, line: &Line) {
        for (place, &word) in line.payload.iter().zip(&self.words[..self.at]) {
            place.store(word, Relaxed);
        }
    }
}

/// A request in a line.
pub(super) struct Described {
    pub(super) to: Pid,
    /// With the address of its bytes if the line has them.
    pub(super) request: Request,
}

/// The words that hold `bytes` bytes.
pub(super) fn words_for(bytes: usize) -> usize {
    bytes.div_ceil(size_of::<u64>())
}

/// The requests in a line, which has their bytes or not.
pub(super) fn described(line: &Line, has_bytes: bool) -> impl Iterator<Item = Described> {
    let mut at = 1;
    (0..line.payload[0].load(Relaxed)).map(move |_| {
        let head = line.payload[at].load(Relaxed);
        let place = line.payload[at + 1].load(Relaxed);
        let (to, bytes) = ((head >> 32) as Pid, head as u32 as usize);
        at += HEAD;
        let data = &line.payload[at..];
        at += if has_bytes { words_for(bytes) } else { 0 };
        let request = Request {
            address: data.as_ptr().cast_mut().cast(),
            bytes,
            slot: (place >> 40) as usize,
            offset: (place & ((1 << 40) - 1)) as usize,
        };
        Described { to, request }
    })
}
