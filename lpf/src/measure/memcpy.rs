//! r: the speed of a memcpy in words, on one process, out of cache.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::stats::Samples;
use super::superstep::nanoseconds;

/// Nanoseconds per byte of copying areas of `bytes` bytes in words of `word` bytes, one memcpy per
/// word, for about `time` or until `stop` is true (at least three times over).
pub fn memcpy_ns_per_byte(
    word: usize,
    bytes: usize,
    time: Duration,
    stop: &dyn Fn() -> bool,
) -> Samples {
    let bytes = bytes.max(word) / word * word;
    let (source, mut destination) = (vec![1u8; bytes], vec![2u8; bytes]);
    let start = Instant::now();
    let mut samples = Samples::default();
    while samples.len() < 3 || start.elapsed() < time && !stop() {
        // A length that the compiler does not know: a call of the C library's memcpy per word.
        let word = black_box(word);
        let pass = Instant::now();
        for (from, to) in source.chunks_exact(word).zip(destination.chunks_exact_mut(word)) {
            to.copy_from_slice(from);
        }
        samples.push(nanoseconds(pass) / bytes as f64);
        black_box(&mut destination);
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_takes_time_and_less_per_byte_in_larger_words() {
        let speed =
            |word| memcpy_ns_per_byte(word, 1 << 20, Duration::from_millis(20), &|| false).min();
        assert!(speed(4096) > 0.0);
        assert!(speed(8) > speed(4096));
    }
}
