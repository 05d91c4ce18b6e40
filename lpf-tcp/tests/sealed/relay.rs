//! What stands between two processes: it passes on what it reads, and changes some of it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;

use lpf_control::rendezvous::bind_first;

/// The connections of process 1 to process 0, in the order in which it makes them.
pub(crate) const CONTROL: usize = 0;
pub(crate) const DATA: usize = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToFirst,
    FromFirst,
}

/// What is done once to what passes after the processes have joined.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// Changes the bit of this number.
    Flip(usize),
    /// Leaves out bytes of these numbers, from the first to before the second.
    LeaveOut(usize, usize),
    /// Passes only the first bytes on, and closes the connection.
    Cut(usize),
    /// Passes the first bytes on twice.
    Repeat(usize),
    /// Exchanges the first bytes with as many behind them.
    Exchange(usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) connection: usize,
    pub(crate) direction: Direction,
    pub(crate) change: Change,
}

/// A relay, which ends with its connections.
pub(crate) struct Relay {
    listener: Mutex<Option<TcpListener>>,
    /// Where process 0 is told to be,
    pub(crate) address: SocketAddr,
    /// and where it is.
    shared: Arc<Shared>,
}

struct Shared {
    first: SocketAddr,
    /// Where data goes: to process 0, too, or to that of another job.
    data: Mutex<SocketAddr>,
    fault: Option<Fault>,
    is_armed: AtomicBool,
    bytes: AtomicU64,
    seen: Mutex<Vec<u8>>,
}

impl Relay {
    pub(crate) fn start(fault: Option<Fault>) -> Relay {
        let (first, here) = (bind_first("127.0.0.1").unwrap(), bind_first("127.0.0.1").unwrap());
        let address = here.local_addr().unwrap();
        let at = first.local_addr().unwrap();
        let shared = Arc::new(Shared {
            first: at,
            data: Mutex::new(at),
            fault,
            is_armed: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
            seen: Mutex::default(),
        });
        let relay = Arc::clone(&shared);
        thread::spawn(move || {
            for (nth, caller) in here.incoming().take(2).enumerate() {
                let to = if nth == DATA { *relay.data.lock().unwrap() } else { relay.first };
                let (caller, first) = (caller.unwrap(), TcpStream::connect(to).unwrap());
                for (from, to, direction) in [
                    (caller.try_clone(), first.try_clone(), Direction::ToFirst),
                    (first.try_clone(), caller.try_clone(), Direction::FromFirst),
                ] {
                    let (from, to, relay) = (from.unwrap(), to.unwrap(), Arc::clone(&relay));
                    to.set_nodelay(true).unwrap();
                    thread::spawn(move || relay.pass_on(nth, direction, from, to));
                }
            }
        });
        Relay { listener: Mutex::new(Some(first)), address, shared }
    }

    /// The listener of process 0, once.
    pub(crate) fn listener(&self) -> TcpListener {
        self.listener.lock().unwrap().take().unwrap()
    }

    /// Connects each of two jobs with process 0 of the other for data.
    pub(crate) fn cross(one: &Relay, other: &Relay) {
        *one.shared.data.lock().unwrap() = other.shared.first;
        *other.shared.data.lock().unwrap() = one.shared.first;
    }

    /// The processes have joined.
    pub(crate) fn arm(&self) {
        self.shared.is_armed.store(true, SeqCst);
    }

    /// Bytes that have passed since then.
    pub(crate) fn bytes(&self) -> u64 {
        self.shared.bytes.load(SeqCst)
    }

    /// Whether some bytes have passed since then.
    pub(crate) fn has_seen(&self, bytes: &[u8]) -> bool {
        self.shared.seen.lock().unwrap().windows(bytes.len()).any(|seen| seen == bytes)
    }
}

impl Shared {
    fn pass_on(&self, nth: usize, direction: Direction, mut from: TcpStream, mut to: TcpStream) {
        let fault = self.fault.filter(|one| (one.connection, one.direction) == (nth, direction));
        let mut change = fault.map(|fault| fault.change);
        let (mut buffer, mut passed, mut held) = ([0; 1 << 16], 0, Vec::new());
        while let Ok(bytes @ 1..) = from.read(&mut buffer) {
            let read = &mut buffer[..bytes];
            if !self.is_armed.load(SeqCst) {
                if to.write_all(read).is_err() {
                    break;
                }
                continue;
            }
            self.bytes.fetch_add(bytes as u64, SeqCst);
            self.seen.lock().unwrap().extend_from_slice(read);
            held.extend_from_slice(read);
            let wanted = match change {
                None => 0,
                Some(Change::Flip(bit)) => bit / 8 + 1 - passed,
                Some(Change::LeaveOut(_, bytes) | Change::Cut(bytes) | Change::Repeat(bytes)) => {
                    bytes
                }
                Some(Change::Exchange(bytes)) => 2 * bytes,
            };
            match change {
                // What is before the bit does not wait for it.
                Some(Change::Flip(_)) if held.len() < wanted => {}
                _ if held.len() < wanted => continue,
                Some(Change::Cut(bytes)) => {
                    // The other process may have closed it before.
                    let _ = to.write_all(&held[..bytes]);
                    break;
                }
                Some(_) => apply(change.take(), passed, &mut held),
                None => {}
            }
            if to.write_all(&held).is_err() {
                break;
            }
            passed += held.len();
            held.clear();
        }
        // Either may be closed already.
        let _ = (to.shutdown(Shutdown::Write), from.shutdown(Shutdown::Read));
    }
}

/// Changes what has passed, of which `passed` bytes are gone.
fn apply(change: Option<Change>, passed: usize, held: &mut Vec<u8>) {
    match change {
        None | Some(Change::Cut(_)) => {}
        Some(Change::Flip(bit)) => held[bit / 8 - passed] ^= 1 << (bit % 8),
        Some(Change::LeaveOut(from, to)) => drop(held.drain(from..to)),
        Some(Change::Repeat(bytes)) => {
            let again = [&held[..bytes], held].concat();
            *held = again;
        }
        Some(Change::Exchange(bytes)) => held[..2 * bytes].rotate_left(bytes),
    }
}
