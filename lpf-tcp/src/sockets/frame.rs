//! What travels on a connection: frames, each a header of fixed length and then the message.
//!
//! | bytes | little-endian |
//! |---|---|
//! | 4 | context |
//! | 3 | channel |
//! | 1 | `L`; `E` where an end follows the message |
//! | 6 | length of the message |
//! | 2 | `PF` |
//!
//! The letters are there so that a stream out of step is noticed. The header's length is a multiple
//! of 16 for a reason. The system copies a message into pages that begin with its header, with
//! `rep movsb`, and on AMD's processors that is three times slower between places whose offsets in
//! their pages differ by less than 16 and not by 0 (256 KiB there and back: 106 µs, and 34 else).
//! What has been allocated begins at a multiple of 16, often right at the beginning of a page.
//!
//! A long message that stays with its sender until it is out can be cancelled halfway. Behind it follows an
//! *end*, a header once more, which says whether the message is all that it should be: `E` for yes, `X` for
//! no. The receiver waits for it before it takes the message for one.

use lpf_messages::Tag;

/// Length of a header.
pub(super) const HEADER: usize = 16;

/// The longest message: no memory holds more.
pub(super) const LONGEST: usize = (1 << 48) - 1;

/// A send that is longer has an end; of a shorter one the rest is copied where it is cancelled.
pub(super) const LONG: usize = 64 << 10;

/// The tag of nothing.
pub(super) const NO_TAG: Tag = Tag { context: 0, channel: 0 };

/// The letter that says what it begins or ends: its place, and the others where they are in a header's
/// second word.
const LETTER: usize = 7;
const PF: u64 = (b'P' as u64) << 48 | (b'F' as u64) << 56;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) tag: Tag,
    pub(super) bytes: usize,
    pub(super) kind: Kind,
}

/// What a header begins, or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// A message.
    Plain = b'L',
    /// A message with an end; or its end, and it is whole.
    Ended = b'E',
    /// The end of a message that was given up.
    GivenUp = b'X',
}

impl Header {
    pub(super) fn encode(self) -> [u8; HEADER] {
        let Header { tag: Tag { context, channel }, bytes, kind } = self;
        debug_assert!(channel < 1 << 24 && bytes <= LONGEST, "{self:?}");
        let letter = u64::from(kind as u8) << (8 * LETTER);
        let first = u64::from(context) | u64::from(channel) << 32 | letter;
        let second = bytes as u64 | PF;
        (u128::from(first) | u128::from(second) << 64).to_le_bytes()
    }

    /// What a header says, or that it is none.
    pub(super) fn decode(header: [u8; HEADER]) -> Result<Self, String> {
        let words = u128::from_le_bytes(header);
        let (first, second) = (words as u64, (words >> 64) as u64);
        let bytes = (second ^ PF) as usize;
        let kind = match header[LETTER] {
            b'L' => Kind::Plain,
            b'E' => Kind::Ended,
            b'X' => Kind::GivenUp,
            _ => return Err(no_frame(header)),
        };
        if bytes > LONGEST {
            return Err(no_frame(header));
        }
        let channel = (first >> 32) as u32 & 0xff_ffff;
        Ok(Header { tag: Tag { context: first as u32, channel }, bytes, kind })
    }
}

/// Whether an end follows the message of a header: the same once more.
pub(super) fn has_end(header: &[u8; HEADER]) -> bool {
    header[LETTER] == Kind::Ended as u8
}

/// The end of a message that was given up.
pub(super) fn given_up(mut header: [u8; HEADER]) -> [u8; HEADER] {
    header[LETTER] = Kind::GivenUp as u8;
    header
}

#[cold]
pub(super) fn no_frame(header: [u8; HEADER]) -> String {
    format!("{header:02x?} begins no frame")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_what_was_put_into_it() {
        for (context, channel, bytes) in
            [(0, 0, 0), (1, (1 << 24) - 1, 1), (u32::MAX, 77, LONGEST), (1, 1, 1 << 40)]
        {
            for kind in [Kind::Plain, Kind::Ended, Kind::GivenUp] {
                let header = Header { tag: Tag { context, channel }, bytes, kind };
                assert_eq!(Header::decode(header.encode()), Ok(header));
            }
        }
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let tag = Tag { context: 1, channel: 2 };
        let good = Header { tag, bytes: 3, kind: Kind::Plain }.encode();
        assert_eq!(&good, b"\x01\0\0\0\x02\0\0L\x03\0\0\0\0\0PF");
        for letter in [7, 14, 15] {
            let mut bad = good;
            bad[letter] ^= 1;
            assert!(Header::decode(bad).unwrap_err().contains("begins no frame"));
        }
    }
}
