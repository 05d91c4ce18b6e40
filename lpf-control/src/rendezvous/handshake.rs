//! Two processes recognise each other, without a socket: frames go in, frames come out.
//!
//! ```text
//! caller                                            acceptor
//!   first message of Noise: who, of which job   ──▶
//!                                               ◀──  second message of Noise: who
//!   sealed: a word                              ──▶
//!                                               ◀──  sealed: welcome, or why not
//! ```
//!
//! This is `NNpsk0` of the Noise protocol framework: fresh keys of both sides, mixed with a key that is made
//! of the secret. Who does not know the secret cannot read or make any of these messages, so strangers get no
//! answer, and what a stranger answers is not believed. With the third one the caller shows that it has read
//! the second: the first alone may be one that was heard earlier. What follows on a connection is sealed
//! with the keys that come of the handshake.
//!
//! The first message is made with the secret alone, so that guesses at the secret can be tried on it.

use lpf_messages::Rank;
use snow::{Builder, HandshakeState};

use super::secret::{Secret, key};
use super::words::{
    By, Hello, LONGEST_GREETING, Occasion, Purpose, Reply, Unread, already_there, printable, read,
    written,
};
use crate::connection::seal::Seal;

/// The pattern, and what it is made of.
const NOISE: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";

/// What both sides have to say the handshake is for.
const PROLOGUE: &[u8] = b"lpf rendezvous";

/// Why a connection is not taken, in words.
pub(super) type Refusal = String;

pub(super) fn begin(secret: Option<&Secret>, calls: bool) -> Result<HandshakeState, snow::Error> {
    let params = NOISE.parse()?;
    let key = key(secret);
    let builder = Builder::new(params).psk(0, &key)?.prologue(PROLOGUE)?;
    if calls { builder.build_initiator() } else { builder.build_responder() }
}

/// The next message of a handshake, with a word.
pub(super) fn say(noise: &mut HandshakeState, word: &[u8]) -> Result<Vec<u8>, snow::Error> {
    let mut message = vec![0; LONGEST_GREETING];
    let bytes = noise.write_message(word, &mut message)?;
    message.truncate(bytes);
    Ok(message)
}

/// The word in a message of the other side.
pub(super) fn understand(
    noise: &mut HandshakeState,
    message: &[u8],
) -> Result<Vec<u8>, snow::Error> {
    let mut word = vec![0; message.len()];
    let bytes = noise.read_message(message, &mut word)?;
    word.truncate(bytes);
    Ok(word)
}

/// What an acceptor does next.
#[derive(Debug)]
pub(super) enum Heard {
    /// Send this as it is; all that follows is sealed. Hear on.
    Answer(Vec<u8>, Seal),
    /// Send this as it is, and close: the caller knows the secret, and is not taken.
    Refuse(Vec<u8>, Refusal),
    /// The caller knows the secret. Once it is admitted, send the welcome.
    Proven(Hello),
}

/// Who accepts, and what is asked of those who call.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) rank: Rank,
    pub(super) size: Rank,
    pub(super) job: u64,
    pub(super) by: By,
    pub(super) secret: Option<Secret>,
    pub(super) build: Option<Vec<u8>>,
    pub(super) streams: bool,
    pub(super) occasion: Occasion,
}

/// The acceptor's side of one handshake.
#[derive(Debug)]
pub(super) enum Acceptor {
    Fresh,
    Answered(Hello),
    Done,
}

impl Acceptor {
    /// Takes a frame, which after the first is one that was sealed.
    ///
    /// # Errors
    /// Why the caller is a stranger, who gets no answer.
    pub(super) fn hear(&mut self, frame: &[u8], me: &Identity) -> Result<Heard, Refusal> {
        match std::mem::replace(self, Acceptor::Done) {
            Acceptor::Fresh => {
                let own = |error: snow::Error| format!("this process cannot answer: {error}");
                let mut noise = begin(me.secret.as_ref(), false).map_err(own)?;
                let word = understand(&mut noise, frame);
                let word =
                    word.map_err(|_| "it does not prove that it knows the secret".to_owned())?;
                match read::<Hello>(&word) {
                    // It has called the wrong address, or was led astray: it may try another one.
                    Ok(Hello { purpose: Purpose::Data(occasion), .. })
                        if occasion != me.occasion =>
                    {
                        Err("it is of another job, which has the same secret".into())
                    }
                    Ok(hello) => {
                        let reply = written(&Reply::Challenge { rank: me.rank });
                        let answer = say(&mut noise, &reply).map_err(own)?;
                        let seal = Seal::new(noise.into_transport_mode().map_err(own)?);
                        *self = Acceptor::Answered(hello);
                        Ok(Heard::Answer(answer, seal))
                    }
                    Err(fault) => {
                        let reason = fault.of("it");
                        let reply = written(&Reply::refused(&reason));
                        Ok(Heard::Refuse(say(&mut noise, &reply).map_err(own)?, reason))
                    }
                }
            }
            Acceptor::Answered(hello) if frame.is_empty() => Ok(Heard::Proven(hello)),
            Acceptor::Answered(_) | Acceptor::Done => {
                Err("it does not keep to the protocol".into())
            }
        }
    }

    /// Whether the caller has shown that it knows the secret, or has heard somebody who does.
    pub(super) fn has_answered(&self) -> bool {
        matches!(self, Acceptor::Answered(_))
    }
}

/// Whether one who knows the secret fits into the job.
///
/// # Errors
/// What does not fit.
pub(super) fn fits(hello: &Hello, me: &Identity) -> Result<(), Refusal> {
    let Identity { size, rank, .. } = *me;
    if hello.job != me.job {
        return Err("another job uses this port (LPF_JOB differs); choose another port, or wait until that job is complete"
            .into());
    }
    if hello.size != size {
        return Err(format!("the job has {size} processes here and {} there", hello.size));
    }
    if hello.rank >= size {
        return Err(format!("rank {} is not one of 0 to {}", hello.rank, size - 1));
    }
    if hello.rank == rank {
        return Err(already_there(rank, None));
    }
    if hello.by != me.by {
        return Err(format!(
            "process {} comes {} and process {rank} {}: let all processes of the job use one of the two",
            hello.rank, hello.by, me.by
        ));
    }
    if hello.streams != me.streams {
        return Err("one side connects pairs, and the other does not".into());
    }
    let is_called = hello.rank + 1 < size && hello.purpose == Purpose::Control;
    if me.streams && is_called && hello.port.is_none() {
        return Err(format!(
            "process {} announces no port, and processes of higher rank call it",
            hello.rank
        ));
    }
    match (&hello.build, &me.build) {
        (Some(theirs), Some(ours)) if theirs != ours => {
            Err("it is another build of the program".into())
        }
        _ => Ok(()),
    }
}

/// What a caller does next.
#[derive(Debug)]
pub(super) enum Called {
    /// All that follows is sealed; send an empty frame, and hear on.
    Answer(Seal),
    /// Both know the secret.
    Welcome,
}

/// Why a call fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The other side, which knows the secret, refuses in these words.
    Refused(String),
    /// What answers is not who was called.
    Stranger(String),
}

/// The caller's side of one handshake.
#[derive(Debug)]
pub(super) struct Caller {
    /// Until the other side has answered.
    noise: Option<Box<HandshakeState>>,
    wanted: Rank,
}

impl Caller {
    /// Calls process `wanted`; the first frame.
    ///
    /// # Errors
    /// Where the system has no random numbers.
    pub(super) fn new(
        hello: &Hello,
        wanted: Rank,
        secret: Option<&Secret>,
    ) -> Result<(Self, Vec<u8>), String> {
        let own = |error: snow::Error| format!("this process cannot call: {error}");
        let mut noise = begin(secret, true).map_err(own)?;
        let first = say(&mut noise, &written(hello)).map_err(own)?;
        Ok((Caller { noise: Some(Box::new(noise)), wanted }, first))
    }

    /// Takes a frame, which after the first is one that was sealed.
    pub(super) fn hear(&mut self, frame: &[u8]) -> Result<Called, Fault> {
        let stranger = |text: &str| Fault::Stranger(text.into());
        let Some(mut noise) = self.noise.take() else {
            return match reply(frame)? {
                Reply::Welcome => Ok(Called::Welcome),
                _ => Err(stranger("the process there does not keep to the protocol")),
            };
        };
        let word = understand(&mut noise, frame).map_err(|_| {
            stranger("the process there does not know the secret, or is not one of LPF")
        })?;
        match reply(&word)? {
            Reply::Challenge { rank } if rank == self.wanted => {
                let keys = noise.into_transport_mode();
                keys.map(|keys| Called::Answer(Seal::new(keys)))
                    .map_err(|error| Fault::Stranger(error.to_string()))
            }
            Reply::Challenge { rank } => {
                let wanted = self.wanted;
                Err(Fault::Stranger(format!("process {rank} answers where {wanted} should")))
            }
            _ => Err(stranger("the process there does not keep to the protocol")),
        }
    }
}

/// What one who knows the secret replies, unless it refuses.
fn reply(word: &[u8]) -> Result<Reply, Fault> {
    match read(word).map_err(|fault: Unread| Fault::Stranger(fault.of("the process there")))? {
        Reply::Refused(reason) => Err(Fault::Refused(printable(&reason))),
        reply => Ok(reply),
    }
}
