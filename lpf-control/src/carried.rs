//! Descriptors that a message between two processes of a machine carries. Those that a process inherits do
//! not survive every program in between: many close all that they do not know.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr, recvmsg, sendmsg};

/// Descriptors in one message, at most.
pub const MOST: usize = 3;

/// Sends a message with descriptors on a Unix socket: to its peer, or to the socket of this abstract name.
///
/// # Errors
/// The system's.
pub fn send(
    socket: &impl AsRawFd,
    name: Option<&str>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let descriptors: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let carried = [ControlMessage::ScmRights(&descriptors)];
    let carried = if descriptors.is_empty() { &[][..] } else { &carried };
    let to = name.map(|name| UnixAddr::new_abstract(name.as_bytes())).transpose()?;
    let (bytes, flags) = ([IoSlice::new(bytes)], MsgFlags::MSG_NOSIGNAL);
    uninterrupted(|| sendmsg(socket.as_raw_fd(), &bytes, carried, flags, to.as_ref()))?;
    Ok(())
}

/// A system call, made again if a signal interrupts it: a receive with a time limit ends then, whatever the handler asks
/// for.
fn uninterrupted<R>(mut call: impl FnMut() -> nix::Result<R>) -> nix::Result<R> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            done => return done,
        }
    }
}

/// Receives a message: its length, which is 0 at the end of a stream, and the descriptors that it carries.
///
/// # Errors
/// The system's; EMFILE if this process may not have all of the descriptors.
pub fn receive(socket: &impl AsRawFd, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let (length, flags, descriptors) = uninterrupted(|| {
        let mut room = nix::cmsg_space!([RawFd; MOST]);
        let (mut parts, flags) = ([IoSliceMut::new(bytes)], MsgFlags::MSG_CMSG_CLOEXEC);
        let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut room), flags)?;
        let mut descriptors = Vec::new();
        for carried in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(these) = carried {
                // SAFETY: the system has opened each of them for this call, so they are open, and nothing else
                // owns them.
                descriptors.extend(these.iter().map(|&one| unsafe { OwnedFd::from_raw_fd(one) }));
            }
        }
        Ok((message.bytes, message.flags, descriptors))
    })?;
    match flags.contains(MsgFlags::MSG_CTRUNC) {
        true => Err(Errno::EMFILE.into()),
        false => Ok((length, descriptors)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_message_carries_descriptors_or_none() {
        let (one, other) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        send(&one, None, b"two", &[writer.as_fd(), reader.as_fd()]).unwrap();
        send(&one, None, b"none", &[]).unwrap();
        drop((one, writer));
        let mut bytes = [0; 3];
        let (length, carried) = receive(&other, &mut bytes).unwrap();
        assert_eq!((length, &bytes, carried.len()), (3, b"two", 2));
        File::from(carried.into_iter().next().unwrap()).write_all(b"text").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        assert_eq!(receive(&other, &mut [0; 9]).unwrap().0, 4);
        assert_eq!(receive(&other, &mut bytes).unwrap().0, 0, "the end");
    }
}
