//! Bare sockets: a TCP connection between each two processes, driven by the thread that computes.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use lpf::host::Host;
use lpf::{Context, Lpf};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};

use super::network::{Incoming, Network, Outgoing, Words, failed};

/// What a process does while nothing comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Idle {
    /// It looks again.
    Polling,
    /// It lets another process have the core, and looks again.
    Yielding,
    /// It sleeps in poll(2).
    Sleeping,
}

/// Looks, and yields, before a process sleeps nevertheless: about a millisecond.
const LOOKS: u32 = 2000;
/// The longest that processes wait for each other's connections.
const COMING: Duration = Duration::from_secs(20);

/// One process's connections.
pub(in crate::bench) struct Sockets {
    idle: Idle,
    /// By process; none to itself.
    streams: Vec<Option<TcpStream>>,
}

impl Sockets {
    /// Connects all processes of a section. Collective.
    pub(in crate::bench) fn connect<L: Lpf>(
        ctx: &mut Context<'_, L>,
        idle: Idle,
    ) -> lpf::Result<Self> {
        // To ask for the host reads hundreds of small files; this is called many times.
        static NAME: OnceLock<String> = OnceLock::new();
        let name = NAME.get_or_init(|| Host::this().name);
        let own = Address::of(name, 0, 0);
        let hosts = all_have(ctx, own)?;
        let near = hosts.iter().all(|host| host.0 == own.0);
        let ip = if near { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
        let listener = TcpListener::bind((ip, 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let own = Address::of(name, port, RandomState::new().hash_one(port));
        let all = all_have(ctx, own)?;
        let (pid, deadline) = (ctx.pid(), Instant::now() + COMING);
        let connected = connect_all(&all, pid, near, &listener, deadline);
        Ok(Sockets { idle, streams: connected.map_err(failed)? })
    }

    fn stream(&self, process: usize) -> io::Result<&TcpStream> {
        self.streams[process].as_ref().ok_or(ErrorKind::NotConnected.into())
    }

    /// Waits until one of `of` may have something, or room for something.
    fn wait(&self, of: &[(usize, PollFlags)], looks: &mut u32) -> io::Result<()> {
        *looks += 1;
        if *looks < LOOKS && self.idle != Idle::Sleeping {
            match self.idle {
                Idle::Yielding => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
            return Ok(());
        }
        let mut all = Vec::with_capacity(of.len());
        for &(process, flags) in of {
            all.push(PollFd::new(self.stream(process)?.as_fd(), flags));
        }
        wait(&mut all, PollTimeout::NONE)
    }
}

/// Waits for any of the descriptors, or a signal: each caller looks again.
fn wait(descriptors: &mut [PollFd<'_>], time: PollTimeout) -> io::Result<()> {
    match poll(descriptors, time) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Where a process is found: its host's name, port, and a number that only the others know.
#[derive(Clone, Copy)]
struct Address([u8; Address::NAME], u16, u64);

impl Address {
    const NAME: usize = 64;
    const BYTES: usize = Address::NAME + 2 + 8;

    fn of(name: &str, port: u16, secret: u64) -> Self {
        let mut bytes = [0; Address::NAME];
        let length = name.len().min(Address::NAME);
        bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
        Address(bytes, port, secret)
    }

    fn name(&self) -> String {
        String::from_utf8_lossy(&self.0).trim_end_matches('\0').to_string()
    }

    fn write(&self) -> [u8; Address::BYTES] {
        let mut bytes = [0; Address::BYTES];
        bytes[..Address::NAME].copy_from_slice(&self.0);
        bytes[Address::NAME..][..2].copy_from_slice(&self.1.to_le_bytes());
        bytes[Address::NAME + 2..].copy_from_slice(&self.2.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Self {
        let (mut name, mut port, mut secret) = ([0; Address::NAME], [0; 2], [0; 8]);
        name.copy_from_slice(&bytes[..Address::NAME]);
        port.copy_from_slice(&bytes[Address::NAME..][..2]);
        secret.copy_from_slice(&bytes[Address::NAME + 2..Address::BYTES]);
        Address(name, u16::from_le_bytes(port), u64::from_le_bytes(secret))
    }
}

/// The addresses of all.
fn all_have<L: Lpf>(ctx: &mut Context<'_, L>, own: Address) -> lpf::Result<Vec<Address>> {
    ctx.rehook(|ctx| gather(ctx, own))
}

fn gather<L: Lpf>(ctx: &mut Context<'_, L>, own: Address) -> lpf::Result<Vec<Address>> {
    let (own, p) = (own.write(), ctx.nprocs());
    ctx.resize(2, 2 * p)?;
    ctx.sync()?;
    let mut mine = ctx.local::<u8>(Address::BYTES)?;
    let all = ctx.area::<u8>(p * Address::BYTES)?;
    ctx.sync()?;
    ctx.write(&mut mine).copy_from_slice(&own);
    for to in 0..p {
        ctx.put(&mine, .., to, &all, ctx.pid() * Address::BYTES)?;
    }
    ctx.sync()?;
    Ok(ctx.read(&all).chunks_exact(Address::BYTES).map(Address::read).collect())
}

/// Each connects to those before it, and is connected to by those behind it.
fn connect_all(
    all: &[Address],
    own: usize,
    near: bool,
    listener: &TcpListener,
    deadline: Instant,
) -> io::Result<Vec<Option<TcpStream>>> {
    let mut streams: Vec<Option<TcpStream>> = all.iter().map(|_| None).collect();
    for (process, address) in all[..own].iter().enumerate() {
        let mut stream = match near {
            true => TcpStream::connect((Ipv4Addr::LOCALHOST, address.1))?,
            false => TcpStream::connect((&*address.name(), address.1))?,
        };
        stream.write_all(&address.2.to_le_bytes())?;
        stream.write_all(&(own as u64).to_le_bytes())?;
        streams[process] = Some(stream);
    }
    listener.set_nonblocking(true)?;
    while streams.iter().skip(own + 1).any(Option::is_none) {
        match listener.accept() {
            Ok((stream, _)) => {
                if let Ok(process) = introduced(&stream, all[own].2)
                    && let Some(place) = streams.get_mut(process).filter(|_| process > own)
                {
                    *place = Some(stream);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if Instant::now() > deadline {
                    return Err(ErrorKind::TimedOut.into());
                }
                let mut listening = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
                wait(&mut listening, PollTimeout::from(100u8))?;
            }
            Err(error) => return Err(error),
        }
    }
    for stream in streams.iter().flatten() {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
    }
    Ok(streams)
}

/// Who has connected, if it knows the secret.
fn introduced(mut stream: &TcpStream, secret: u64) -> io::Result<usize> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut words = [[0; 8]; 2];
    for word in &mut words {
        stream.read_exact(word)?;
    }
    let [said, process] = words.map(u64::from_le_bytes);
    if said == secret { Ok(process as usize) } else { Err(ErrorKind::PermissionDenied.into()) }
}

/// What a call on a socket that does not block has done; nothing where it would have.
fn done(moved: io::Result<usize>, what: ErrorKind) -> io::Result<usize> {
    match moved {
        Ok(0) => Err(what.into()),
        Ok(bytes) => Ok(bytes),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(0)
        }
        Err(error) => Err(error),
    }
}

impl Network for Sockets {
    fn meet(&mut self, out: &[Words], into: &mut [Words]) -> io::Result<()> {
        let (own, p) = (self.own(), out.len());
        // The socket's buffer has room for 16 bytes: what went before has been received.
        for distance in 1..p {
            let to = (own + distance) % p;
            let mut stream = self.stream(to)?;
            if done(stream.write(&out[to]), ErrorKind::WriteZero)? != size_of::<Words>() {
                return Err(ErrorKind::WriteZero.into());
            }
        }
        let (mut looks, mut come) = (0, vec![0; p]);
        come[own] = size_of::<Words>();
        loop {
            let (mut moved, mut open) = (0, Vec::new());
            for from in 0..p {
                if come[from] < size_of::<Words>() {
                    let mut stream = self.stream(from)?;
                    let bytes = stream.read(&mut into[from][come[from]..]);
                    let bytes = done(bytes, ErrorKind::UnexpectedEof)?;
                    moved += bytes;
                    come[from] += bytes;
                    if come[from] < size_of::<Words>() {
                        open.push((from, PollFlags::POLLIN));
                    }
                }
            }
            if open.is_empty() {
                return Ok(());
            }
            if moved == 0 {
                self.wait(&open, &mut looks)?;
            }
        }
    }

    fn exchange(
        &mut self,
        mut out: Vec<Outgoing<'_>>,
        mut into: Vec<Incoming<'_>>,
    ) -> io::Result<()> {
        let mut outgoing: Vec<_> = out.iter_mut().map(|m| (m.to, &mut m.pieces[..])).collect();
        let mut incoming: Vec<_> = into.iter_mut().map(|m| (m.from, &mut m.pieces[..])).collect();
        let mut looks = 0;
        loop {
            let mut moved = 0;
            for (to, pieces) in &mut outgoing {
                let bytes = self.stream(*to)?.write_vectored(first(pieces));
                let bytes = done(bytes, ErrorKind::WriteZero)?;
                IoSlice::advance_slices(pieces, bytes);
                moved += bytes;
            }
            outgoing.retain(|(_, pieces)| !pieces.is_empty());
            for (from, pieces) in &mut incoming {
                let many = pieces.len().min(MOST_PIECES);
                let bytes = self.stream(*from)?.read_vectored(&mut pieces[..many]);
                let bytes = done(bytes, ErrorKind::UnexpectedEof)?;
                IoSliceMut::advance_slices(pieces, bytes);
                moved += bytes;
            }
            incoming.retain(|(_, pieces)| !pieces.is_empty());
            if outgoing.is_empty() && incoming.is_empty() {
                return Ok(());
            }
            if moved > 0 {
                looks = 0;
                continue;
            }
            let out = outgoing.iter().map(|(to, _)| (*to, PollFlags::POLLOUT));
            let into = incoming.iter().map(|(from, _)| (*from, PollFlags::POLLIN));
            self.wait(&out.chain(into).collect::<Vec<_>>(), &mut looks)?;
        }
    }
}

/// Pieces that a system call takes at the most (IOV_MAX).
const MOST_PIECES: usize = 1024;

fn first<'a, 'b>(pieces: &'a [IoSlice<'b>]) -> &'a [IoSlice<'b>] {
    &pieces[..pieces.len().min(MOST_PIECES)]
}

impl Sockets {
    /// The only one without a connection.
    fn own(&self) -> usize {
        self.streams.iter().position(Option::is_none).unwrap_or(0)
    }
}
