//! Two processes recognise each other, without a socket: frames go in, frames come out.
//!
//! ```text
//! caller                                 acceptor
//!   Hello: who, of which job, nonce  ──▶
//!                                    ◀──  Challenge: who, nonce
//!   Proof: HMAC as caller            ──▶
//!                                    ◀──  Welcome: HMAC as acceptor
//! ```
//!
//! Each HMAC is over both first frames. The caller proves first, so that nobody who merely connects gets
//! an HMAC to try secrets on. At any place the acceptor may answer `Refused`, in words.

use lpf_core::messages::Rank;

use super::secret::{Nonce, Secret, Side, Tag};
use super::words::{
    By, Hello, Proof, Reply, Unsealed, VERSION, already_there, printable, sealed, short, unsealed,
};

/// Why a connection is not taken, in words for the other side.
pub(super) type Refusal = String;

/// What an acceptor says next.
#[derive(Debug)]
pub(super) enum Heard {
    /// Send this, and hear on.
    Answer(Vec<u8>),
    /// The caller knows the secret. Once it is admitted, send the welcome.
    Proven { hello: Hello, welcome: Vec<u8> },
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
}

/// The acceptor's side of one handshake.
#[derive(Debug)]
pub(super) enum Acceptor {
    Fresh,
    Challenged { hello: Hello, hello_frame: Vec<u8>, challenge: Vec<u8> },
    Done,
}

impl Acceptor {
    /// Takes a frame.
    pub(super) fn hear(&mut self, frame: &[u8], me: &Identity) -> Result<Heard, Refusal> {
        match std::mem::replace(self, Acceptor::Done) {
            Acceptor::Fresh => {
                let hello: Hello = open(frame)?;
                before_proof(&hello, me)?;
                let nonce = Nonce::new().map_err(|error| error.to_string())?;
                let challenge = sealed(&Reply::Challenge { rank: me.rank, nonce });
                let hello_frame = frame.to_vec();
                *self = Acceptor::Challenged { hello, hello_frame, challenge: challenge.clone() };
                Ok(Heard::Answer(challenge))
            }
            Acceptor::Challenged { hello, hello_frame, challenge } => {
                let Proof(tag) = open(frame)?;
                let secret = me.secret.as_ref();
                if !tag.verify(secret, Side::Caller, &hello_frame, &challenge) {
                    return Err("the secrets differ".into());
                }
                after_proof(&hello, me)?;
                let tag = Tag::new(secret, Side::Acceptor, &hello_frame, &challenge);
                Ok(Heard::Proven { hello, welcome: sealed(&Reply::Welcome(tag)) })
            }
            Acceptor::Done => Err("nothing more was to be said".into()),
        }
    }

    /// The words of a refusal.
    pub(super) fn refuse(reason: &str) -> Vec<u8> {
        sealed(&Reply::Refused(short(reason)))
    }
}

fn open<T: for<'de> serde::Deserialize<'de>>(frame: &[u8]) -> Result<T, Refusal> {
    unsealed(frame).map_err(|fault| match fault {
        Unsealed::Stranger => "it does not speak the protocol of this rendezvous".into(),
        Unsealed::Version(other) => {
            format!("it speaks version {other} of the protocol, and this is version {VERSION}")
        }
    })
}

/// What a stranger may learn: that it is one.
fn before_proof(hello: &Hello, me: &Identity) -> Result<(), Refusal> {
    match (hello.secret, &me.secret) {
        _ if hello.job != me.job => {
            Err("another job meets here (LPF_JOB differs); choose another port, \
                                         or wait until it has met"
                .into())
        }
        (false, Some(_)) => Err("this meeting has a secret, and it has none (LPF_SECRET)".into()),
        (true, None) => Err("this meeting has no secret, and it has one (LPF_SECRET)".into()),
        _ => Ok(()),
    }
}

/// What does not fit of one who knows the secret.
fn after_proof(hello: &Hello, me: &Identity) -> Result<(), Refusal> {
    let Identity { size, rank, .. } = *me;
    if hello.size != size {
        return Err(format!("the job has {size} processes here and {} there", hello.size));
    }
    if hello.rank >= size {
        return Err(format!("rank {} is none of 0 to {}", hello.rank, size - 1));
    }
    if hello.rank == rank {
        return Err(already_there(rank));
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
    match (&hello.build, &me.build) {
        (Some(theirs), Some(ours)) if theirs != ours => {
            Err("it is another build of the program".into())
        }
        _ => Ok(()),
    }
}

/// What a caller does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Called {
    /// Send this, and hear on.
    Answer(Vec<u8>),
    /// Both know the secret.
    Welcome,
}

/// Why a call fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The other side refused, in these words.
    Refused(String),
    /// What answers is not who was called.
    Stranger(String),
}

/// The caller's side of one handshake.
#[derive(Debug)]
pub(super) struct Caller {
    hello: Vec<u8>,
    challenge: Option<Vec<u8>>,
    wanted: Rank,
}

impl Caller {
    /// Calls process `wanted`; the first frame.
    pub(super) fn new(hello: &Hello, wanted: Rank) -> (Self, Vec<u8>) {
        let hello = sealed(hello);
        (Caller { hello: hello.clone(), challenge: None, wanted }, hello)
    }

    /// Takes a frame.
    pub(super) fn hear(&mut self, frame: &[u8], secret: Option<&Secret>) -> Result<Called, Fault> {
        let reply: Reply = unsealed(frame).map_err(|fault| match fault {
            Unsealed::Stranger => Fault::Stranger("what answers there is no process of LPF".into()),
            Unsealed::Version(other) => Fault::Stranger(format!(
                "what answers there speaks version {other} of the protocol, and this is version \
                 {VERSION}"
            )),
        })?;
        match (reply, &self.challenge) {
            (Reply::Refused(reason), _) => Err(Fault::Refused(printable(&reason))),
            (Reply::Challenge { rank, .. }, None) if rank == self.wanted => {
                let tag = Tag::new(secret, Side::Caller, &self.hello, frame);
                self.challenge = Some(frame.to_vec());
                Ok(Called::Answer(sealed(&Proof(tag))))
            }
            (Reply::Challenge { rank, .. }, None) => {
                let wanted = self.wanted;
                Err(Fault::Stranger(format!("process {rank} answers where {wanted} should")))
            }
            (Reply::Welcome(tag), Some(challenge)) => {
                match tag.verify(secret, Side::Acceptor, &self.hello, challenge) {
                    true => Ok(Called::Welcome),
                    false => {
                        Err(Fault::Stranger("what answers there does not know the secret".into()))
                    }
                }
            }
            _ => Err(Fault::Stranger("what answers there does not keep to the protocol".into())),
        }
    }
}
