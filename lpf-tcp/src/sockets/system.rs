//! The system calls that the standard library does not have.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use mio::net::TcpStream;

use super::vectors::Vectors;

/// Calls again what a signal interrupted; `None` where it would have to wait.
pub(super) fn unless_blocked(
    mut call: impl FnMut() -> io::Result<usize>,
) -> io::Result<Option<usize>> {
    loop {
        match call() {
            Ok(bytes) => return Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// What a system call returned: a number of bytes, or -1 and the reason in `errno`.
fn counted(bytes: isize) -> io::Result<usize> {
    usize::try_from(bytes).map_err(|_| io::Error::last_os_error())
}

/// Reads what is there into the pieces; 0 at the end of the stream, `None` if nothing is there.
///
/// # Safety
/// The pieces are valid for writes.
pub(super) unsafe fn receive(stream: &TcpStream, vectors: &Vectors) -> io::Result<Option<usize>> {
    let descriptor = stream.as_raw_fd();
    unless_blocked(|| {
        counted(match vectors.list()[..] {
            // The plain call is quicker by a tenth of a microsecond.
            // SAFETY: the piece is valid for writes by the caller's promise.
            [piece] => unsafe { libc::recv(descriptor, piece.iov_base, piece.iov_len, 0) },
            // SAFETY: the list holds that many pieces, valid for writes by the caller's promise.
            ref list => unsafe {
                libc::readv(descriptor, list.as_ptr(), list.len() as libc::c_int)
            },
        })
    })
}

/// Writes what there is room for; `None` where there is none.
///
/// # Safety
/// The pieces are valid for reads.
pub(super) unsafe fn send(stream: &TcpStream, vectors: &Vectors) -> io::Result<Option<usize>> {
    // A broken connection is an error here and no signal: a program in another language may not
    // ignore SIGPIPE as Rust's do. (Elsewhere the standard library has set this for the socket.)
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const FLAGS: libc::c_int = libc::MSG_NOSIGNAL;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const FLAGS: libc::c_int = 0;
    let descriptor = stream.as_raw_fd();
    if let [piece] = vectors.list()[..] {
        return unless_blocked(|| {
            // SAFETY: the piece is valid for reads by the caller's promise.
            counted(unsafe { libc::send(descriptor, piece.iov_base, piece.iov_len, FLAGS) })
        });
    }
    // SAFETY: all zero is a message header without name, pieces and control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vectors.list().as_ptr().cast_mut();
    message.msg_iovlen = vectors.list().len() as _;
    // SAFETY: the header names the list's pieces, which the caller promises to be valid for reads;
    // none of them is written.
    unless_blocked(|| counted(unsafe { libc::sendmsg(descriptor, &raw const message, FLAGS) }))
}

/// Sleeps until the descriptor is readable, or writable if `writable`, for `time` at most. Without
/// a descriptor it only sleeps. May return early.
pub(super) fn wait(descriptor: Option<RawFd>, writable: bool, time: Duration) {
    let events = if writable { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
    // A negative descriptor is one that is not looked at.
    let mut wanted = libc::pollfd { fd: descriptor.unwrap_or(-1), events, revents: 0 };
    // SAFETY: one entry that lives through the call; an error of any kind is an early return.
    unsafe { wait_for(&raw mut wanted, time) };
}

/// # Safety
/// `wanted` is one entry, valid for reads and writes.
#[cfg(any(target_os = "linux", target_os = "android"))]
unsafe fn wait_for(wanted: *mut libc::pollfd, time: Duration) {
    let time = libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos() as libc::c_long,
    };
    // SAFETY: the entry by the caller's promise; no set of signals is given.
    unsafe { libc::ppoll(wanted, 1, &raw const time, std::ptr::null()) };
}

/// # Safety
/// `wanted` is one entry, valid for reads and writes.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
unsafe fn wait_for(wanted: *mut libc::pollfd, time: Duration) {
    let milliseconds = time.as_micros().div_ceil(1000);
    // SAFETY: the caller's promise.
    unsafe {
        libc::poll(wanted, 1, libc::c_int::try_from(milliseconds).unwrap_or(libc::c_int::MAX))
    };
}
