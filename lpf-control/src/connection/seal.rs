//! What makes a connection's bytes unreadable for others, and unchangeable: records of Noise.
//!
//! A record is one or two messages of Noise. Its *head* has always [`HEAD`] bytes. Opened, these are the number of
//! bytes in the record (least significant first), the first [`SHORT`] of them, and zeros up to there. If the record
//! holds more, its *tail* holds the rest. A record that only fills its place holds nothing, and has a tail of zeros. So
//! every length is authenticated, and a process never waits for bytes that only a changed length announces.
//!
//! Both ends count heads and tails: one that was changed, left out, repeated, or moved does not open. After
//! `PER_KEY` of a direction its key is replaced.

use std::fmt;

use snow::TransportState;

/// Bytes that each of Noise's messages has beside its contents.
const TAG: usize = 16;

/// Bytes of the number in a head. Four would do; so the bytes of a message keep their places in blocks of 16, in which
/// memory is copied and sealed.
const NUMBER: usize = 16;

/// The most bytes that a head holds: a word and its frame, with room for what a superstep adds.
pub const SHORT: usize = 48;

/// Bytes of a head.
pub const HEAD: usize = NUMBER + SHORT + TAG;

/// The most bytes that a record holds: whole pages, so that all records of a long message are copied between the same
/// places in pages. (Noise's messages have at most 65535 bytes.)
pub const MOST: usize = 1 << 16;

/// Bytes of the longest record.
pub const LONGEST: usize = length(MOST);

/// In a head, the number of zeros in the tail of a record that holds nothing has this added.
const FILLING: u128 = 1 << 64;

/// The number of heads and tails that are sealed with one key. They hold at most 64 GiB, far below what AES-GCM allows.
const PER_KEY: u64 = 1 << 20;

/// A record does not open: it was changed on its way, or is not the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Altered;

impl fmt::Display for Altered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message was altered on its way")
    }
}

impl std::error::Error for Altered {}

/// Bytes of the record that holds `bytes` bytes.
pub const fn length(bytes: usize) -> usize {
    if bytes > SHORT { HEAD + bytes - SHORT + TAG } else { HEAD }
}

/// The keys of one connection, of both directions.
#[derive(Debug)]
pub struct Seal {
    keys: Box<TransportState>,
    /// Bytes in the tail of the record whose head was opened last, until that tail is opened.
    tail: usize,
    /// Whether that tail only fills its place.
    is_filling: bool,
}

impl Seal {
    pub(crate) fn new(keys: TransportState) -> Self {
        Seal { keys: Box::new(keys), tail: 0, is_filling: false }
    }

    /// Seals `first` and `rest` into one record, whose length is returned. `first` has at most [`SHORT`] bytes, and
    /// exactly that many if there is a rest; both have at most [`MOST`].
    ///
    /// # Panics
    /// If `record` is shorter than the [`length`] of both.
    pub fn seal(&mut self, first: &[u8], rest: &[u8], record: &mut [u8]) -> usize {
        debug_assert!(first.len() == SHORT || rest.is_empty(), "{} bytes, then more", first.len());
        self.seal_parts((first.len() + rest.len()) as u128, first, rest, record);
        length(first.len() + rest.len())
    }

    /// Seals a record that holds nothing and has these zeros in its tail, at most [`LONGEST`] less [`HEAD`]; its length
    /// is returned.
    ///
    /// # Panics
    /// If `record` is shorter than that.
    pub fn seal_nothing(&mut self, zeros: &[u8], record: &mut [u8]) -> usize {
        self.seal_parts(FILLING + zeros.len() as u128, &[], zeros, record);
        length(SHORT + zeros.len())
    }

    fn seal_parts(&mut self, number: u128, first: &[u8], rest: &[u8], record: &mut [u8]) {
        let mut head = [0; HEAD - TAG];
        head[..NUMBER].copy_from_slice(&number.to_le_bytes());
        head[NUMBER..][..first.len()].copy_from_slice(first);
        self.seal_part(&head, &mut record[..HEAD]);
        if !rest.is_empty() {
            self.seal_part(rest, &mut record[HEAD..]);
        }
    }

    fn seal_part(&mut self, bytes: &[u8], part: &mut [u8]) {
        let sealed = self.keys.write_message(bytes, part);
        // It fails where too many bytes are given, where the part is too short, and after 2^64 parts.
        sealed.expect("a record has room for what it may hold");
        if self.keys.sending_nonce().is_multiple_of(PER_KEY) {
            self.keys.rekey_outgoing();
        }
    }

    /// Bytes of what is to be opened next: a head, or a tail.
    pub fn expected(&self) -> usize {
        if self.tail > 0 { self.tail + TAG } else { HEAD }
    }

    /// Opens a head or a tail, of [`expected`](Self::expected) bytes, into the beginning of `into`, which is at least as
    /// long. Returns the number of bytes in it.
    ///
    /// # Errors
    /// If it is not the next head or tail that the other end has sealed.
    pub fn open(&mut self, part: &[u8], into: &mut [u8]) -> Result<usize, Altered> {
        if self.tail > 0 {
            self.open_part(part, into)?;
            let bytes = std::mem::take(&mut self.tail);
            return Ok(if self.is_filling { 0 } else { bytes });
        }
        let mut head = [0; HEAD];
        self.open_part(part, &mut head)?;
        let (number, first) = head.split_first_chunk::<NUMBER>().expect("a head has a number");
        let number = u128::from_le_bytes(*number);
        self.is_filling = number >= FILLING;
        let bytes = if self.is_filling { number - FILLING } else { number };
        let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes <= MOST).ok_or(Altered)?;
        let here = if self.is_filling { 0 } else { bytes.min(SHORT) };
        into[..here].copy_from_slice(&first[..here]);
        self.tail = bytes - here;
        Ok(here)
    }

    fn open_part(&mut self, part: &[u8], into: &mut [u8]) -> Result<(), Altered> {
        self.keys.read_message(part, into).map_err(|_| Altered)?;
        if self.keys.receiving_nonce().is_multiple_of(PER_KEY) {
            self.keys.rekey_incoming();
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The seals of both ends of a connection.
    pub(crate) fn pair() -> (Seal, Seal) {
        let params = || "Noise_NNpsk0_25519_AESGCM_SHA256".parse().unwrap();
        let builder = || snow::Builder::new(params()).psk(0, &[7; 32]).unwrap();
        let mut caller = builder().build_initiator().unwrap();
        let mut acceptor = builder().build_responder().unwrap();
        let (mut message, mut payload) = ([0; 256], [0; 256]);
        let bytes = caller.write_message(&[], &mut message).unwrap();
        acceptor.read_message(&message[..bytes], &mut payload).unwrap();
        let bytes = acceptor.write_message(&[], &mut message).unwrap();
        caller.read_message(&message[..bytes], &mut payload).unwrap();
        let seal = |noise: snow::HandshakeState| Seal::new(noise.into_transport_mode().unwrap());
        (seal(caller), seal(acceptor))
    }

    /// A record of bytes.
    pub(crate) fn record(seal: &mut Seal, bytes: &[u8]) -> Vec<u8> {
        let (first, rest) = bytes.split_at(bytes.len().min(SHORT));
        let mut record = vec![0; length(bytes.len())];
        assert_eq!(seal.seal(first, rest, &mut record), record.len());
        record
    }

    /// What is in a record.
    fn opened(seal: &mut Seal, mut record: &[u8]) -> Result<Vec<u8>, Altered> {
        let (mut bytes, mut into) = (Vec::new(), vec![0; LONGEST]);
        while !record.is_empty() {
            let (part, later) = record.split_at(seal.expected());
            let length = seal.open(part, &mut into)?;
            bytes.extend_from_slice(&into[..length]);
            record = later;
        }
        assert_eq!(seal.expected(), HEAD);
        Ok(bytes)
    }

    #[test]
    fn what_goes_in_comes_out_whatever_its_length() {
        let (mut one, mut other) = pair();
        for bytes in [0, 1, SHORT - 1, SHORT, SHORT + 1, 1000, MOST] {
            let bytes = vec![7; bytes];
            let record = record(&mut one, &bytes);
            assert_eq!(opened(&mut other, &record), Ok(bytes));
        }
    }

    #[test]
    fn a_record_that_holds_nothing_is_as_long_as_it_has_to_be() {
        let (mut one, mut other) = pair();
        for zeros in [0, 1, SHORT, SHORT + 1, 1000, MOST - SHORT + TAG] {
            let mut record = vec![0; HEAD + TAG + zeros];
            let length = one.seal_nothing(&vec![0; zeros], &mut record);
            assert_eq!(length, HEAD + if zeros > 0 { zeros + TAG } else { 0 });
            assert_eq!(opened(&mut other, &record[..length]), Ok(Vec::new()));
        }
        let later = record(&mut one, &[7; 100]);
        assert_eq!(opened(&mut other, &later), Ok(vec![7; 100]));
    }

    #[test]
    fn a_record_opens_once_in_its_turn_and_unchanged() {
        let (mut one, mut other) = pair();
        let [first, second] = [0, 1].map(|nth| record(&mut one, &[nth; 100]));
        let mut into = [0; 1 << 10];
        assert_eq!(other.open(&second[..HEAD], &mut into), Err(Altered), "not its turn");
        let every_bit_counts = |seal: &mut Seal, part: &[u8]| {
            for bit in 0..8 * part.len() {
                let mut changed = part.to_vec();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(seal.open(&changed, &mut [0; 1 << 10]), Err(Altered), "bit {bit}");
            }
        };
        every_bit_counts(&mut other, &first[..HEAD]);
        assert_eq!(other.open(&first[..HEAD], &mut into), Ok(SHORT));
        assert_eq!(other.expected(), first.len() - HEAD);
        every_bit_counts(&mut other, &first[HEAD..]);
        assert_eq!(other.open(&first[..HEAD], &mut into), Err(Altered), "it was opened before");
        assert_eq!(other.open(&first[HEAD..], &mut into), Ok(100 - SHORT));
        assert_eq!(into[..100 - SHORT], [0; 100 - SHORT]);
        assert_eq!(one.open(&first[..HEAD], &mut into), Err(Altered), "it was sealed by this side");
        assert_eq!(opened(&mut other, &second), Ok(vec![1; 100]));
    }

    #[test]
    fn keys_are_replaced_on_both_sides_at_once() {
        let (mut one, mut other) = pair();
        let (mut record, mut into) = ([0; HEAD], [0; HEAD]);
        for nth in 0..PER_KEY + 3 {
            assert_eq!(one.seal(&nth.to_le_bytes(), &[], &mut record), HEAD);
            assert_eq!(other.open(&record, &mut into), Ok(8));
            assert_eq!(into[..8], nth.to_le_bytes());
        }
    }
}
