//! A network to test, and what tests do with it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use lpf_conformance::NoControl;
use lpf_messages::{Piece, Rank, Tag, Ticket, Transport};
use lpf_mpi::{Mpi, World};
use mpi::ffi;

/// Nothing here waits longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) type Net = Mpi<NoControl>;

/// Whether networks take all processes to be on hosts of their own.
pub(crate) static APART: AtomicBool = AtomicBool::new(false);

/// A network of all processes on a communicator of its own.
pub(crate) fn new_network() -> Net {
    let mut world = new_world();
    if APART.load(Relaxed) {
        return world.as_if_apart().network(NoControl).unwrap();
    }
    let hosts = world.hosts(PATIENCE).unwrap();
    world.share_memory(&hosts, PATIENCE).unwrap();
    world.network(NoControl).unwrap()
}

pub(crate) fn new_world() -> World {
    // SAFETY: the world's communicator is one.
    unsafe { World::hook(ffi::RSMPI_COMM_WORLD, PATIENCE) }.unwrap()
}

pub(crate) fn tag(channel: u32) -> Tag {
    Tag { context: 1, channel }
}

/// The neighbours in a ring of all processes: to send to, and to receive from.
pub(crate) fn neighbours(net: &Net) -> (Rank, Rank) {
    let (rank, size) = (net.rank(), net.size());
    ((rank + 1) % size, (rank + size - 1) % size)
}

/// Bytes that tell where they belong.
pub(crate) fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let words = bytes.div_ceil(8);
    let mut all = Vec::with_capacity(8 * words);
    for _ in 0..words {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        all.extend_from_slice(&state.to_le_bytes());
    }
    all.truncate(bytes);
    all
}

pub(crate) fn send(net: &mut Net, to: Rank, channel: u32, bytes: &[u8]) -> Ticket {
    // SAFETY: all tests keep their sources until the ticket is finished or cancelled.
    unsafe { net.send(to, tag(channel), &[Piece::of(bytes)]) }.unwrap()
}

pub(crate) fn receive(net: &mut Net, from: Rank, channel: u32, bytes: &mut [u8]) -> Ticket {
    // SAFETY: all tests leave their targets alone until the ticket is finished or cancelled.
    unsafe { net.receive(from, tag(channel), &[Piece::of_mut(bytes)]) }.unwrap()
}

/// Waits for a ticket.
pub(crate) fn finish(net: &mut Net, ticket: &Ticket) -> usize {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(bytes) = net.test(ticket).unwrap() {
            return bytes;
        }
        assert!(Instant::now() < end, "nothing comes");
        std::thread::yield_now();
    }
}

pub(crate) fn receive_whole(net: &mut Net, from: Rank, channel: u32, room: usize) -> Vec<u8> {
    let mut bytes = vec![0xee; room];
    let ticket = receive(net, from, channel, &mut bytes);
    let came = finish(net, &ticket);
    assert!(bytes[came..].iter().all(|byte| *byte == 0xee), "beyond the message");
    bytes.truncate(came);
    bytes
}

/// Waits for everybody, on a channel of its own; drives the network meanwhile.
pub(crate) fn meet(net: &mut Net) {
    const CHANNEL: u32 = 999_999;
    let (rank, size) = (net.rank(), net.size());
    for other in (0..size).filter(|other| *other != rank) {
        net.send_copy(other, tag(CHANNEL), &[]).unwrap();
    }
    for other in (0..size).filter(|other| *other != rank) {
        receive_whole(net, other, CHANNEL, 0);
    }
}
