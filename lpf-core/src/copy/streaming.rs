//! Very large copies: ordinary or non-temporal stores, whichever this machine does faster.
//!
//! Non-temporal stores do not read the destination before they overwrite it; they gain 1.2 to 1.4
//! times on one put of 32 MiB and more each way on one machine, nothing on another, and lose below.
//! The C library does not switch by itself where a hypervisor reports a huge cache.
//! So the first large copies of a process are made in pieces, in turns one way and the other, and
//! the faster way is kept: no setting is needed, `LPF_COPY=memcpy|stream` overrules it.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use crate::process::PerProcess;

/// Copies below this never stream.
pub(super) const SMALLEST: usize = 16 << 20;
/// Pieces of a copy that is made both ways: large enough to be out of the private caches.
const PIECE: usize = 4 << 20;
/// Bytes each way is tried with before one is kept.
const TRIAL: u64 = 64 << 20;

/// How large copies are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streaming {
    /// Not decided yet: both ways are being timed.
    Measuring,
    /// The C library's copy.
    Never,
    /// Non-temporal stores.
    Large,
}

static CHOICE: AtomicU8 = AtomicU8::new(0);
static TIMES: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static TRIED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// How this process makes large copies at present.
pub fn streaming_choice() -> Streaming {
    static SETTING: PerProcess<Option<Streaming>> =
        PerProcess::inherited(|| match std::env::var("LPF_COPY").as_deref() {
            Ok("memcpy") => Some(Streaming::Never),
            Ok("stream") if can_stream() => Some(Streaming::Large),
            _ if !can_stream() => Some(Streaming::Never),
            _ => None,
        });
    let setting = *SETTING.get();
    setting.unwrap_or(match CHOICE.load(Relaxed) {
        0 => Streaming::Measuring,
        1 => Streaming::Never,
        _ => Streaming::Large,
    })
}

fn can_stream() -> bool {
    cfg!(target_arch = "x86_64")
}

/// # Safety
/// As [`copy`](super::copy).
#[cfg_attr(any(tsan, loom), allow(dead_code))]
pub(super) unsafe fn copy(src: *const u8, dst: *mut u8, bytes: usize) {
    let overlap = (src as usize).abs_diff(dst as usize) < bytes;
    let choice = if overlap { Streaming::Never } else { streaming_choice() };
    // SAFETY: the caller's promise; streaming is asked for only where the areas are apart.
    unsafe {
        match choice {
            Streaming::Never => {
                libc::memmove(dst.cast(), src.cast(), bytes);
            }
            Streaming::Large => stream(src, dst, bytes),
            Streaming::Measuring => both_ways(src, dst, bytes),
        }
    }
}

/// # Safety
/// As [`copy`](super::copy), and the areas do not overlap.
unsafe fn both_ways(src: *const u8, dst: *mut u8, bytes: usize) {
    let mut at = 0;
    let mut way = 0;
    while at < bytes {
        let piece = PIECE.min(bytes - at);
        let start = Instant::now();
        // SAFETY: the piece lies inside the caller's ranges.
        unsafe {
            if way == 0 {
                libc::memmove(dst.add(at).cast(), src.add(at).cast(), piece);
            } else {
                stream(src.add(at), dst.add(at), piece);
            }
        }
        TIMES[way].fetch_add(start.elapsed().as_nanos() as u64, Relaxed);
        TRIED[way].fetch_add(piece as u64, Relaxed);
        at += piece;
        way = 1 - way;
    }
    let [plain, streamed] = [0, 1].map(|way| {
        let tried = TRIED[way].load(Relaxed);
        (tried, TIMES[way].load(Relaxed) as f64 / tried.max(1) as f64)
    });
    if plain.0 >= TRIAL && streamed.0 >= TRIAL {
        CHOICE.store(if streamed.1 < plain.1 { 2 } else { 1 }, Relaxed);
    }
}

/// Copies with non-temporal stores, 64 bytes at a time.
///
/// # Safety
/// As [`copy`](super::copy), and the areas do not overlap.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn stream(src: *const u8, dst: *mut u8, bytes: usize) {
    use std::arch::x86_64::{
        __m128i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_sfence, _mm_stream_si128,
    };
    const LINE: usize = 64;
    let head = dst.align_offset(LINE).min(bytes);
    let lines = (bytes - head) / LINE;
    // SAFETY: SSE2 is part of x86-64; every access lies inside the caller's ranges, the streaming
    // stores are aligned because the head was cut off.
    unsafe {
        libc::memcpy(dst.cast(), src.cast(), head);
        for line in 0..lines {
            let (from, to) = (src.add(head + line * LINE), dst.add(head + line * LINE));
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(8 * LINE).cast());
            let words: [_; 4] =
                std::array::from_fn(|i| _mm_loadu_si128(from.cast::<__m128i>().add(i)));
            for (i, word) in words.into_iter().enumerate() {
                _mm_stream_si128(to.cast::<__m128i>().add(i), word);
            }
        }
        _mm_sfence();
        let done = head + lines * LINE;
        libc::memcpy(dst.add(done).cast(), src.add(done).cast(), bytes - done);
    }
}

/// # Safety
/// As [`copy`](super::copy), and the areas do not overlap.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn stream(src: *const u8, dst: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::memcpy(dst.cast(), src.cast(), bytes) };
}
