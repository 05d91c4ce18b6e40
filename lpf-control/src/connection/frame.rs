//! Frames: four bytes of length, least significant first, then so many bytes, one word in postcard.
//!
//! What comes in is kept as it comes: the length says how much may come, and reserves nothing.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of the length.
const HEAD: usize = 4;

/// An emptied buffer larger than this is given back.
const KEPT: usize = 64 << 10;

/// A word as it travels.
pub(crate) fn encode<T: Serialize>(word: &T) -> Vec<u8> {
    let framed = postcard::to_extend(word, vec![0; HEAD]);
    // postcard refuses only what does not say how long it is; all our words do.
    let mut bytes = framed.expect("every word can be written");
    let length = u32::try_from(bytes.len() - HEAD).expect("words are bounded by their senders");
    bytes[..HEAD].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// Appends a frame of bytes that are written already.
pub(crate) fn append(to: &mut Vec<u8>, payload: &[u8]) {
    let length = u32::try_from(payload.len()).expect("words are bounded by their senders");
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(payload);
}

/// A frame that several may have to be sent.
pub(crate) fn shared<T: Serialize>(word: &T) -> Arc<[u8]> {
    encode(word).into()
}

/// The word in a frame; `None` where it is none, or something follows it.
pub(crate) fn decode<T: DeserializeOwned>(frame: &[u8]) -> Option<T> {
    match postcard::take_from_bytes(frame) {
        Ok((word, [])) => Some(word),
        _ => None,
    }
}

/// A frame announced to be longer than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong(pub(crate) usize);

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it announced {} bytes at once", self.0)
    }
}

/// What has come and was not looked at yet.
#[derive(Debug, Default)]
pub(crate) struct Inflow {
    bytes: Vec<u8>,
    start: usize,
}

impl Inflow {
    /// Keeps what has come.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        if self.start == self.bytes.len() {
            self.start = 0;
            self.bytes.clear();
            if self.bytes.capacity() > KEPT {
                self.bytes = Vec::new();
            }
        } else if self.start > KEPT {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next frame that is there as a whole.
    pub(crate) fn next(&mut self, most: usize) -> Result<Option<&[u8]>, TooLong> {
        let there = &self.bytes[self.start..];
        let Some((head, rest)) = there.split_first_chunk::<HEAD>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length > most {
            return Err(TooLong(length));
        }
        if rest.len() < length {
            return Ok(None);
        }
        self.start += HEAD + length;
        Ok(Some(&rest[..length]))
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_whole_however_they_are_cut() {
        let words = ["", "one", "a longer word of the control plane"];
        let stream: Vec<u8> = words.iter().flat_map(encode).collect();
        for piece in 1..stream.len() {
            let mut inflow = Inflow::default();
            let mut read = Vec::new();
            for bytes in stream.chunks(piece) {
                inflow.extend(bytes);
                while let Some(frame) = inflow.next(64).unwrap() {
                    read.push(decode::<String>(frame).unwrap());
                }
            }
            assert_eq!(read, words);
            assert!(inflow.is_empty());
        }
    }

    #[test]
    fn a_length_beyond_the_bound_is_refused_before_anything_is_kept_for_it() {
        let mut inflow = Inflow::default();
        inflow.extend(&u32::MAX.to_le_bytes());
        assert_eq!(inflow.next(1 << 20).unwrap_err(), TooLong(u32::MAX as usize));
        assert!(inflow.bytes.capacity() < 100);
    }

    #[test]
    fn a_word_with_something_behind_it_is_none() {
        let mut frame = encode(&7u32)[HEAD..].to_vec();
        assert_eq!(decode::<u32>(&frame), Some(7));
        frame.push(0);
        assert_eq!(decode::<u32>(&frame), None);
    }
}
