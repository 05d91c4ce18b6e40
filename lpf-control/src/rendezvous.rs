//! How processes that were started separately find each other.
//!
//! All know the address of process 0, their own rank, the size of the job and, unless they share a
//! machine, a secret. [`Meeting::join`] connects each of them with process 0 for the
//! [control plane](crate::plane) and each pair for data.
//!
//! ```no_run
//! use std::time::Duration;
//! use lpf_control::rendezvous::{Meeting, Secret};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut meeting = Meeting::new("node3:4000", 1, 8);
//! meeting.secret = Some(Secret::new(std::env::var("JOB_SECRET")?)?);
//! meeting.time = Duration::from_secs(20);
//! let joined = meeting.join()?;
//! assert_eq!(joined.control.size(), 8);
//! # Ok(())
//! # }
//! ```
//!
//! # The course
//! 1. Process 0 listens at all addresses that its name stands for. The others call it repeatedly until it answers, open a
//!    listener of their own, and say hello.
//! 2. Each connection is authenticated in both directions (`handshake.rs`).
//! 3. When all processes have arrived, process 0 sends each the addresses of all, as it sees them itself, and random
//!    bytes. A process on the machine of process 0 has the address by which process 0 was found.
//! 4. Each process calls all of lower rank, and reports when it is connected to all. A caller without these bytes is of
//!    another job, and a stranger.
//! 5. When all have reported, all begin together.
//!
//! # Strangers
//! A connection has five seconds for its handshake, at most 512 bytes a frame, and no effect on others:
//! one thread serves all of them, and waits for none. A connection that does not prove that it knows the
//! secret is closed without an answer. A process that knows it, but belongs to another job, has another size,
//! version or build, joins [by](By) other means, or has a rank that is taken is refused, with the reason. It
//! fails at once. A process that finds no listener, or gets an answer without proof of the secret, tries again until
//! its time is up.
//!
//! Every connection is sealed with keys from its handshake: those of the control plane always, those for data if the
//! processes have a secret and process 0 does not exclude it ([`Meeting::seal_data`]).
//!
//! # The end
//! The time of a process begins anew with each step: when another process has arrived, and when pairs have connected
//! (`patience.rs`). When it is up, process 0 sends the missing ranks, and what it saw of them, to all that arrived. All
//! fail with the same list. An admitted process waits a little longer than its own time, so that it gets the list even
//! if process 0 began last. A process that has to leave earlier asks for the list. When all have arrived, a process that
//! ends fails the rendezvous for all: no process stays half connected.

mod address;
mod call;
mod course;
mod error;
mod guest;
mod handshake;
mod host;
mod patience;
mod reception;
mod secret;
#[cfg(test)]
mod tests;
mod words;

pub use error::MeetError;
pub use patience::deadline;
pub use secret::Secret;
pub use words::By;

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::time::{Duration, Instant};

use lpf_core::settings;
use lpf_messages::Rank;

use crate::connection::Stream;
use crate::files;
use crate::plane::{Beats, ControlPlane};
use course::{Connected, Plan};
use guest::Guest;
use handshake::Identity;
use host::Host;
use words::Begin;

/// The data by which a process joins a job.
#[derive(Debug)]
pub struct Meeting {
    /// The address of process 0, `host:port`; or several, separated by commas. One that works is enough.
    pub address: String,
    /// This process.
    pub rank: Rank,
    /// Processes of the job.
    pub size: Rank,
    /// What only processes of the job know; without it, only loopback addresses may be used.
    pub secret: Option<Secret>,
    /// After this time without progress, joining fails. It begins anew when a process has arrived, or has connected to
    /// others.
    pub time: Duration,
    /// A number that distinguishes jobs.
    pub job: u64,
    /// How this process takes part: processes that differ do not join each other.
    pub by: By,
    /// Names the program, in at most 64 bytes: processes that both have a name and differ do not join each other.
    pub build: Option<Vec<u8>>,
    /// Whether processes beat; process 0 decides for all.
    pub beats: Beats,
    /// Whether data is sealed if there is a secret; process 0 decides for all. Without a seal, processes on the path
    /// between two hosts can read and change it.
    pub seal_data: bool,
    /// For process 0: listen here, and not at `address`. See [`bind_first`].
    pub listener: Option<TcpListener>,
}

/// A process that has joined.
#[derive(Debug)]
pub struct Joined {
    /// This process.
    pub rank: Rank,
    /// Processes of the job.
    pub size: Rank,
    /// Failures, the board, orders.
    pub control: ControlPlane,
    /// A connection to each other process, by rank, for data: non-blocking, without delay for small
    /// messages, nothing read or written yet. Empty where none were asked for.
    pub streams: Vec<Option<Stream>>,
}

/// Listens at a free port of `host`, so that the port is known before any process is started: process 0
/// takes the listener as [`Meeting::listener`].
///
/// # Errors
/// For a name that stands for no address of this machine.
pub fn bind_first(host: &str) -> Result<TcpListener, MeetError> {
    let name = match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]:0"),
        false => format!("{host}:0"),
    };
    let unknown = |error| MeetError::Setting(format!("\"{host}\" is not known here: {error}"));
    address::listen(&name.to_socket_addrs().map_err(unknown)?.collect::<Vec<_>>())
}

/// Listens at a free port of this machine's addresses, and returns these addresses as [`Meeting::address`] takes them.
/// It is for process 0 of a job on several machines, if the other processes get the address by other means. Without a
/// network it is the loopback address only.
///
/// # Errors
/// If the system refuses a socket.
pub fn bind_everywhere() -> Result<(TcpListener, String), MeetError> {
    let found = address::own()?;
    // A kernel may have no IPv6 although an interface has an address of it.
    let listener = address::listen(&address::everywhere(0))?;
    let port = listener.local_addr().map_err(MeetError::system)?.port();
    let is_v4 = listener.local_addr().is_ok_and(|address| address.is_ipv4());
    let usable = found.into_iter().filter(|ip| ip.is_ipv4() || !is_v4);
    let mut names: Vec<_> = usable.map(|ip| SocketAddr::new(ip, port).to_string()).collect();
    if names.is_empty() {
        names.push(SocketAddr::from(([127, 0, 0, 1], port)).to_string());
    }
    Ok((listener, names.join(",")))
}

impl Meeting {
    /// A rendezvous at `address`, for 30 seconds, without a secret, job 0, of a `Member`.
    pub fn new(address: impl Into<String>, rank: Rank, size: Rank) -> Self {
        Meeting {
            address: address.into(),
            rank,
            size,
            secret: None,
            time: Duration::from_secs(30),
            job: 0,
            by: By::Member,
            build: None,
            beats: Beats::On,
            seal_data: true,
            listener: None,
        }
    }

    /// Joins, with a connection to each other process for data.
    ///
    /// # Errors
    /// After [`time`](Self::time) without progress at the latest. If process 0 was found but others are missing, up to
    /// half as long again, and at most four seconds, to receive their list from it.
    pub fn join(self) -> Result<Joined, MeetError> {
        self.meet(true)
    }

    /// Joins for the control plane only, if data uses another network.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn join_without_streams(self) -> Result<Joined, MeetError> {
        self.meet(false)
    }

    fn check(&self) -> Result<(), MeetError> {
        let refuse = |text: String| Err(MeetError::Setting(text));
        let Meeting { rank, size, .. } = *self;
        if size == 0 || size > settings::MAX_PROCS {
            return refuse(format!("a job has 1 to {} processes, not {size}", settings::MAX_PROCS));
        }
        if rank >= size {
            return refuse(format!("rank {rank} is not one of 0 to {}", size - 1));
        }
        if self.build.as_ref().is_some_and(|build| build.len() > words::LONGEST_BUILD) {
            return refuse(format!("a build id has at most {} bytes", words::LONGEST_BUILD));
        }
        match self.listener.is_some() && rank > 0 {
            true => refuse("only process 0 is given a listener".into()),
            false => Ok(()),
        }
    }

    /// That this process may open as many connections as it will have. (Those of strangers, and calls that fail,
    /// take what is left.)
    fn make_room(&self, streams: bool) -> Result<(), MeetError> {
        /// Listeners, pending handshakes, what waits for events, and what a program may open beside.
        const BESIDE: usize = 32;
        let others = self.size - 1;
        let connections = match (self.rank, streams) {
            (0, true) => 2 * others,
            (0, false) => others,
            (_, true) => 1 + others,
            (_, false) => 1,
        };
        files::make_room(connections + BESIDE).map_err(|limit| MeetError::Files {
            rank: self.rank,
            size: self.size,
            limit,
        })
    }

    fn meet(self, streams: bool) -> Result<Joined, MeetError> {
        self.check()?;
        if self.size > 1 {
            self.make_room(streams)?;
        }
        let Meeting { rank, size, .. } = self;
        let began = Instant::now();
        let connected = match size {
            1 => self.alone()?,
            _ => self.connect(streams, began)?,
        };
        let begin = connected.begin;
        let streams = connected.streams.into_iter().map(|wire| match wire {
            None => Ok(None),
            Some(wire) => match wire.into_stream(begin.seals) {
                Some(stream) => Ok(Some(stream)),
                None => Err(MeetError::Failed("a process spoke before all were there".into())),
            },
        });
        let streams = streams.collect::<Result<Vec<_>, _>>()?;
        let beats = if begin.beats { Beats::On } else { Beats::Off };
        let control = ControlPlane::start(rank, size, connected.wires, beats);
        Ok(Joined { rank, size, control: control.map_err(MeetError::system)?, streams })
    }

    /// Nobody is to be found, but what would be wrong for two is wrong for one.
    fn alone(self) -> Result<Connected, MeetError> {
        if self.listener.is_none() {
            address::well_formed(&self.address)?;
        }
        Ok(Connected { wires: vec![None], streams: Vec::new(), begin: self.begin() })
    }

    /// What this process decides, if it is process 0.
    fn begin(&self) -> Begin {
        Begin { beats: self.beats == Beats::On, seals: self.seal_data && self.secret.is_some() }
    }

    fn connect(self, streams: bool, began: Instant) -> Result<Connected, MeetError> {
        let given = self.listener.as_ref().map(TcpListener::local_addr);
        let given = given.transpose().map_err(MeetError::system)?;
        let begin = self.begin();
        let plan = Plan {
            begin,
            began,
            address: given.map_or(self.address, |address| address.to_string()),
            time: self.time,
            me: Identity {
                rank: self.rank,
                size: self.size,
                job: self.job,
                by: self.by,
                secret: self.secret,
                build: self.build,
                streams,
                occasion: secret::random()?,
            },
        };
        if let Some(address) = given {
            address::may_use(address, plan.me.secret.as_ref())?;
        }
        match self.rank {
            0 => Host::new(&plan, self.listener)?.meet(),
            _ => Guest::new(&plan)?.meet(),
        }
    }
}
