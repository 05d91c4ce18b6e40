//! How the end of a connection is reported: in the same words, whether the control plane or the network
//! finds it.

use std::io::{self, ErrorKind};

/// The other process closed it, or something on the path did. Text is appended if more is known.
pub const CLOSED: &str = "its connection was closed";

/// Why a connection has ended, by the error of a read or a write.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        // A process that ends with something unread resets its connections.
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
            CLOSED.into()
        }
        // A seal does not fit: see [`Altered`](super::seal::Altered).
        ErrorKind::InvalidData => error.to_string(),
        _ => format!("its connection broke: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_is_reported_as_the_end_that_it_is() {
        for kind in [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe] {
            assert_eq!(reason(&kind.into()), CLOSED);
        }
        let refused = io::Error::from_raw_os_error(libc::EHOSTUNREACH);
        assert!(reason(&refused).starts_with("its connection broke: No route to host"));
        let altered = io::Error::new(ErrorKind::InvalidData, super::super::seal::Altered);
        assert_eq!(reason(&altered), "a message was altered on its way");
    }
}
