//! The words of the rendezvous.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use lpf_messages::Rank;
use serde::{Deserialize, Serialize};

/// The version of this protocol and of what follows it, the control plane and the data network.
pub(super) const VERSION: u32 = 6;

/// The longest frame of a handshake.
pub(super) const LONGEST_GREETING: usize = 512;

/// The longest build id.
pub(super) const LONGEST_BUILD: usize = 64;

/// The most addresses of one process.
pub(super) const MOST_ADDRESSES: usize = 8;

/// The longest reason that is told, in bytes.
const LONGEST_REASON: usize = 256;

/// The longest text on who is missing, in bytes: some reasons.
const LONGEST_NOTES: usize = 4 * LONGEST_REASON;

/// The longest word of process 0 to who was let in, but for what it says of each process.
pub(super) const LONGEST_ANSWER: usize = 64 + LONGEST_NOTES;

/// Random bytes of process 0, which tell this rendezvous from all others of processes that know the same secret.
pub(super) type Occasion = [u8; 16];

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Purpose {
    /// The control plane, at process 0.
    Control,
    /// The data of a pair, which process 0 has told to connect.
    Data(Occasion),
}

/// How a process takes part in its job. All must use the same. If one process waits for orders and another for all to do
/// the same, they wait for each other for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// `lpf::run`: process 0 orders, the others serve.
    Run,
    /// A `Member`, which hooks together with the others, or gives and takes orders as its program says.
    Member,
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            By::Run => "by lpf::run",
            By::Member => "as a Member",
        })
    }
}

/// The first word of who calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) purpose: Purpose,
    pub(super) rank: Rank,
    pub(super) size: Rank,
    pub(super) job: u64,
    pub(super) by: By,
    /// Whether pairs are to be connected.
    pub(super) streams: bool,
    pub(super) build: Option<Vec<u8>>,
    /// Where processes of higher rank find this one,
    pub(super) port: Option<u16>,
    /// and at which addresses of its machine, beside the one that process 0 sees.
    pub(super) addresses: Vec<IpAddr>,
}

/// The answers of who accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Reply {
    /// Show that you can read this; I am this process.
    Challenge { rank: Rank },
    /// You are in.
    Welcome,
    /// You are not.
    Refused(String),
}

impl Reply {
    /// A refusal that is no longer than may be told.
    pub(super) fn refused(reason: &str) -> Self {
        Reply::Refused(short(reason))
    }
}

/// Where a process is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Place {
    /// There.
    At(IpAddr, u16),
    /// On the machine of process 0, by the address that you found that at.
    WithHost(u16),
}

/// The longest place, in bytes.
pub(super) const LONGEST_PLACE: usize = 24;

/// What process 0 decides for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Begin {
    /// Whether processes beat.
    pub(super) beats: bool,
    /// Whether data is sealed.
    pub(super) seals: bool,
}

/// From process 0 to those that it let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ToGuest {
    /// All are there, on this occasion; by rank, process 0 apart, each with the places where it may be found.
    Roster(Occasion, Vec<Vec<Place>>),
    /// These have not come, and what was seen of them. The meeting is over, for you at least.
    Missing { ranks: Vec<Rank>, notes: String },
    /// The meeting is over, for all.
    Failed(String),
    /// All are connected. This is the last word; what follows is the control plane's.
    Go(Begin),
    /// This number of steps is done.
    Progress(u64),
}

/// To process 0, once let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ToHost {
    /// I am connected to all.
    Ready,
    /// I am connected to this number of processes.
    Connected(Rank),
    /// Whom I do not reach, where, and why.
    Trouble(String),
    /// My time is up: who is missing?
    Who,
    /// I leave.
    GaveUp(String),
}

/// A word of a handshake: version, word.
pub(super) fn written<T: Serialize>(word: &T) -> Vec<u8> {
    let payload = VERSION.to_le_bytes().to_vec();
    postcard::to_extend(word, payload).expect("every word can be written")
}

/// Why a word of a handshake cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is no word.
    Nonsense,
    /// It is of another version.
    Version(u32),
}

impl Unread {
    /// Why the other side cannot be understood.
    pub(super) fn of(self, who: &str) -> String {
        match self {
            Unread::Nonsense => format!("{who} does not keep to the protocol"),
            Unread::Version(other) => {
                format!(
                    "{who} speaks version {other} of the protocol, and this is version {VERSION}"
                )
            }
        }
    }
}

/// A word of a handshake.
pub(super) fn read<T: for<'de> Deserialize<'de>>(payload: &[u8]) -> Result<T, Unread> {
    let (version, word) = payload.split_first_chunk::<4>().ok_or(Unread::Nonsense)?;
    match u32::from_le_bytes(*version) {
        VERSION => crate::connection::frame::decode(word).ok_or(Unread::Nonsense),
        other => Err(Unread::Version(other)),
    }
}

/// A reason no longer than may be told.
pub(super) fn short(reason: &str) -> String {
    reason[..reason.floor_char_boundary(LONGEST_REASON)].into()
}

/// Notes on who is missing, no longer than may be told.
pub(super) fn short_notes(notes: &str) -> String {
    notes[..notes.floor_char_boundary(LONGEST_NOTES)].into()
}

/// That another process, which called from `at` if that is known, has this number already.
pub(super) fn already_there(rank: Rank, at: Option<SocketAddr>) -> String {
    let at = at.map_or_else(String::new, |at| format!(", one of them at {}", canonical(at)));
    format!(
        "two processes have rank {rank}{at}: each process of a job needs its own LPF_RANK, and each job at one \
         port its own LPF_JOB or LPF_SECRET"
    )
}

/// What somebody said, in a frame no longer than was allowed, fit for printing.
pub(super) fn printable(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).collect()
}

/// An address that is the same for all who see the machine by IPv4.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::from((ip, address.port())),
        IpAddr::V6(_) => address,
    }
}
