//! The shared secret, and how two processes show each other that they know it.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::MeetError;

/// Shorter secrets could be tried out by whoever has heard one handshake.
const SHORTEST: usize = 16;

/// What the processes of a job know and strangers do not: text, so that it can travel in an environment
/// variable or a file. Two processes that hold it may order each other to run any function of the
/// program.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A secret that somebody chose.
    ///
    /// # Errors
    /// For text shorter than 16 bytes.
    pub fn new(text: impl Into<String>) -> Result<Self, MeetError> {
        let text = text.into();
        if text.len() < SHORTEST {
            let (bytes, least) = (text.len(), SHORTEST);
            let text =
                format!("the secret (LPF_SECRET) has {bytes} bytes; it needs at least {least}");
            return Err(MeetError::Setting(text));
        }
        Ok(Secret(text))
    }

    /// A new secret of 256 random bits, in hexadecimal digits.
    ///
    /// # Errors
    /// Where the system has no random numbers.
    pub fn random() -> Result<Self, MeetError> {
        Ok(Secret(Nonce::new()?.0.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The text, to be handed to the other processes.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A number used once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Nonce([u8; 32]);

impl Nonce {
    pub(super) fn new() -> Result<Self, MeetError> {
        let mut bytes = [0; 32];
        let filled = getrandom::fill(&mut bytes);
        filled.map_err(|error| MeetError::System(format!("no random numbers: {error}")))?;
        Ok(Nonce(bytes))
    }
}

/// Who speaks. A tag of one side is never one of the other, so nothing can be sent back as an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Who opened the connection.
    Caller,
    /// Who accepted it.
    Acceptor,
}

/// That its writer knows the secret, and has read the same two first frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tag([u8; 32]);

/// HMAC-SHA-256 over the side and both first frames, which hold both fresh numbers, the ranks, the job
/// and the purpose. Without a secret the key is empty, and a tag shows only that the frames are whole.
fn mac(secret: Option<&Secret>, side: Side, hello: &[u8], challenge: &[u8]) -> Hmac<Sha256> {
    let key = secret.map_or(&[][..], |secret| secret.0.as_bytes());
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(match side {
        Side::Caller => b"lpf rendezvous: caller  ",
        Side::Acceptor => b"lpf rendezvous: acceptor",
    });
    for frame in [hello, challenge] {
        mac.update(&(frame.len() as u64).to_le_bytes());
        mac.update(frame);
    }
    mac
}

impl Tag {
    pub(super) fn new(secret: Option<&Secret>, side: Side, hello: &[u8], challenge: &[u8]) -> Self {
        Tag(mac(secret, side, hello, challenge).finalize().into_bytes().into())
    }

    /// Whether it is what [`new`](Self::new) makes of the same; takes equally long either way.
    pub(super) fn verify(
        &self,
        secret: Option<&Secret>,
        side: Side,
        hello: &[u8],
        challenge: &[u8],
    ) -> bool {
        mac(secret, side, hello, challenge).verify_slice(&self.0).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_good_for_its_side_its_frames_and_its_secret_alone() {
        let secret = Secret::new("correct horse battery staple").unwrap();
        let other = Secret::random().unwrap();
        let tag = Tag::new(Some(&secret), Side::Caller, b"hello", b"challenge");
        assert!(tag.verify(Some(&secret), Side::Caller, b"hello", b"challenge"));
        assert!(!tag.verify(Some(&secret), Side::Acceptor, b"hello", b"challenge"));
        assert!(!tag.verify(Some(&other), Side::Caller, b"hello", b"challenge"));
        assert!(!tag.verify(None, Side::Caller, b"hello", b"challenge"));
        assert!(!tag.verify(Some(&secret), Side::Caller, b"hellochall", b"enge"));
    }

    #[test]
    fn a_secret_is_not_printed_and_not_short() {
        let secret = Secret::random().unwrap();
        assert_eq!(secret.text().len(), 64);
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert_ne!(secret, Secret::random().unwrap());
        let error = Secret::new("password").unwrap_err();
        assert_eq!(error.to_string(), "the secret (LPF_SECRET) has 8 bytes; it needs at least 16");
    }
}
