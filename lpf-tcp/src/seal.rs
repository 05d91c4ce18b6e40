//! What makes a connection's bytes unreadable for others, and unchangeable: records of Noise.
//!
//! A record is two bytes of length, least significant first, and so many bytes of ciphertext, whose last 16
//! are the tag. Both ends count their records: one that was changed, left out, repeated, or moved does not
//! open. After [`PER_KEY`] records of a direction its key is replaced.

use std::fmt;

use snow::TransportState;

/// Bytes of a record's length.
pub(crate) const HEAD: usize = 2;

/// Bytes of a record's tag.
pub(crate) const TAG: usize = 16;

/// The most bytes that a record holds.
pub(crate) const MOST: usize = u16::MAX as usize - TAG;

/// So many records are sealed with one key, 64 GiB at the most: far below what AES-GCM allows.
const PER_KEY: u64 = 1 << 20;

/// What arrived is not what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Altered;

impl fmt::Display for Altered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message was altered on its way")
    }
}

/// The keys of one connection, of both directions.
#[derive(Debug)]
pub(crate) struct Seal {
    keys: Box<TransportState>,
}

impl Seal {
    pub(crate) fn new(keys: TransportState) -> Self {
        Seal { keys: Box::new(keys) }
    }

    /// Seals up to [`MOST`] bytes into a record, whose length is returned.
    pub(crate) fn seal(&mut self, bytes: &[u8], record: &mut [u8]) -> usize {
        let (head, rest) = record.split_at_mut(HEAD);
        let sealed = self.keys.write_message(bytes, rest);
        // It fails where too many bytes are given, where the record is too short, and after 2^64 records.
        let sealed = sealed.expect("a record has room for what it may hold");
        head.copy_from_slice(&(sealed as u16).to_le_bytes());
        if self.keys.sending_nonce().is_multiple_of(PER_KEY) {
            self.keys.rekey_outgoing();
        }
        HEAD + sealed
    }

    /// Opens a record without its length. Of `into`, which is as long as the record, so many bytes are then
    /// its contents.
    pub(crate) fn open(&mut self, record: &[u8], into: &mut [u8]) -> Result<usize, Altered> {
        let opened = self.keys.read_message(record, into).map_err(|_| Altered)?;
        if self.keys.receiving_nonce().is_multiple_of(PER_KEY) {
            self.keys.rekey_incoming();
        }
        Ok(opened)
    }
}

/// The first record of `bytes` that is there as a whole, without its length, and what follows it.
pub(crate) fn first_record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
    rest.split_at_checked(u16::from_le_bytes(*head).into())
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

    #[test]
    fn a_record_opens_once_in_its_turn_and_unchanged() {
        let (mut one, mut other) = pair();
        let mut records = [vec![0; 1 << 10], vec![0; 1 << 10]];
        for (nth, record) in records.iter_mut().enumerate() {
            let length = one.seal(&[nth as u8; 100], record);
            record.truncate(length);
        }
        let mut into = [0; 1 << 10];
        let [first, second] = records;
        assert_eq!(other.open(&second[HEAD..], &mut into), Err(Altered), "not its turn");
        for bit in 0..8 * (first.len() - HEAD) {
            let mut changed = first[HEAD..].to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(other.open(&changed, &mut into), Err(Altered), "bit {bit}");
        }
        let (record, rest) = first_record(&first).unwrap();
        assert!(rest.is_empty() && first_record(&first[..first.len() - 1]).is_none());
        assert_eq!(other.open(record, &mut into), Ok(100));
        assert_eq!(into[..100], [0; 100]);
        assert_eq!(other.open(record, &mut into), Err(Altered), "it was opened before");
        assert_eq!(one.open(record, &mut into), Err(Altered), "it was sealed by this side");
        assert_eq!(other.open(&second[HEAD..], &mut into), Ok(100));
    }

    #[test]
    fn keys_are_replaced_on_both_sides_at_once() {
        let (mut one, mut other) = pair();
        let (mut record, mut into) = ([0; 64], [0; 64]);
        for nth in 0..PER_KEY + 3 {
            let length = one.seal(&nth.to_le_bytes(), &mut record);
            assert_eq!(other.open(&record[HEAD..length], &mut into), Ok(8));
            assert_eq!(into[..8], nth.to_le_bytes());
        }
    }

    #[test]
    fn the_longest_record_is_as_long_as_its_length_can_say() {
        let (mut one, mut other) = pair();
        let mut record = vec![0; HEAD + MOST + TAG];
        assert_eq!(one.seal(&vec![3; MOST], &mut record), record.len());
        let mut into = vec![0; MOST + TAG];
        assert_eq!(other.open(&record[HEAD..], &mut into), Ok(MOST));
        assert!(into[..MOST].iter().all(|&byte| byte == 3));
    }
}
