//! A listening socket that whoever started this process made for it, so that the port was known before.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::rendezvous::MeetError;

/// A listening socket by its number: a second descriptor of it, so that the first stays whose it is, and
/// the processes may meet there again.
///
/// # Errors
/// For a number that is no listening socket of this process.
pub fn inherited(descriptor: RawFd) -> Result<TcpListener, MeetError> {
    let unusable = |reason: String| {
        let text = format!("LPF_MEET_FD is {descriptor}, which is no listening socket: {reason}");
        MeetError::Setting(text)
    };
    // SAFETY: plain numbers, and any of them may be asked about: one that is no descriptor is an error.
    let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
    if copy < 0 {
        return Err(unusable(io::Error::last_os_error().to_string()));
    }
    // SAFETY: the system made it just now, for this function alone.
    let copy = unsafe { OwnedFd::from_raw_fd(copy) };
    let mut listens: libc::c_int = 0;
    let mut bytes = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the system writes one int and its length; what is no socket is an error.
    let asked = unsafe {
        libc::getsockopt(
            copy.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ACCEPTCONN,
            (&raw mut listens).cast(),
            &raw mut bytes,
        )
    };
    match asked {
        0 if listens != 0 => {}
        0 => return Err(unusable("it is a socket that does not listen".into())),
        _ => return Err(unusable(io::Error::last_os_error().to_string())),
    }
    // What this process starts must not hold the port open.
    // SAFETY: plain numbers; all that changes is what programs that are started later have of it.
    unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    Ok(TcpListener::from(copy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_listening_socket_is_taken_over() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stream = std::net::TcpStream::connect(address).unwrap();
        let other = inherited(stream.as_raw_fd()).unwrap_err().to_string();
        assert!(other.contains("does not listen"), "{other}");
        assert!(inherited(987_654).unwrap_err().to_string().contains("987654"));
        let taken = inherited(listener.as_raw_fd()).unwrap();
        assert_eq!(taken.local_addr().unwrap(), address);
    }

    #[test]
    fn it_stays_whose_it_was_and_can_be_had_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        for _ in 0..3 {
            drop(inherited(listener.as_raw_fd()).unwrap());
        }
        std::net::TcpStream::connect(address).unwrap();
        assert!(listener.accept().is_ok());
    }
}
