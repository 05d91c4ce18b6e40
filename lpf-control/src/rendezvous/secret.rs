//! The shared secret.

use std::fmt;

use lpf_core::settings::check_secret;
use ring::digest::{Context, SHA256};

use super::error::MeetError;

/// The secret that the processes of a job share: text, so that it can travel in an environment variable or a file. A
/// process that has it may order the others to run any function of the program.
///
/// Take a random one ([`random`](Self::random), `lpf secret`). A process that hears a handshake, or is called by
/// mistake, can try guesses at the secret as fast as it computes.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A secret chosen by the caller.
    ///
    /// # Errors
    /// For text shorter than 16 bytes.
    pub fn new(text: impl Into<String>) -> Result<Self, MeetError> {
        let text = text.into();
        check_secret(&text).map_err(MeetError::Setting)?;
        Ok(Secret(text))
    }

    /// A new secret of 128 random bits, in hexadecimal digits.
    ///
    /// # Errors
    /// Where the system has no random numbers.
    pub fn random() -> Result<Self, MeetError> {
        Ok(Secret(random()?.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The text, to be passed to the other processes.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// 128 random bits.
pub(super) fn random() -> Result<[u8; 16], MeetError> {
    let mut bytes = [0; 16];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|error| MeetError::System(format!("no random numbers: {error}")))?;
    Ok(bytes)
}

/// The key that both ends of a handshake have to have. Without a secret it is one that everybody knows.
pub(super) fn key(secret: Option<&Secret>) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    context.update(b"lpf rendezvous");
    context.update(secret.map_or("", Secret::text).as_bytes());
    context.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed_and_not_short() {
        let secret = Secret::random().unwrap();
        assert_eq!(secret.text().len(), 32);
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert_ne!(secret, Secret::random().unwrap());
        assert_ne!(key(Some(&secret)), key(None));
        let error = Secret::new("password").unwrap_err().to_string();
        assert!(error.starts_with("the secret (LPF_SECRET) has 8 bytes; it needs at least 16"));
    }
}
