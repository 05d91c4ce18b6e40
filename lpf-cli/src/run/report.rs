//! What the processes of a job report: see [`lpf::launcher`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use lpf::launcher::{LONGEST, Letter, Report};
use lpf::tcp::rendezvous::Secret;

/// Where reports come in.
#[derive(Debug)]
pub(super) struct Reports {
    socket: UnixDatagram,
    name: String,
    token: String,
}

impl Reports {
    pub(super) fn open() -> io::Result<Self> {
        let token = Secret::random().map_err(|error| io::Error::other(error.to_string()))?;
        let token = token.text().to_owned();
        let name = format!("lpf-run-{}-{}", std::process::id(), &token[..8]);
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        socket.set_nonblocking(true)?;
        Ok(Reports { socket, name, token })
    }

    /// What a process has to know.
    pub(super) fn address(&self) -> String {
        format!("{} {}", self.name, self.token)
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The next that has come, if any.
    pub(super) fn next(&self) -> Option<Report> {
        let mut bytes = [0; LONGEST];
        loop {
            let length = self.socket.recv(&mut bytes).ok()?;
            match serde_json::from_slice::<Letter>(&bytes[..length]) {
                Ok(letter) if letter.token == self.token => return Some(letter.report),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lpf::launcher::send;

    use super::*;

    #[test]
    fn a_report_arrives_and_a_forged_one_does_not() {
        let reports = Reports::open().unwrap();
        assert_eq!(reports.next(), None);
        let report = Report::Ended { rank: 65_535, pid: i32::MAX, status: 0x7f00 };
        let forged = format!("{} {}", reports.name, "0".repeat(64));
        send(&forged, Report::Joined { rank: 1 }).unwrap();
        send(&reports.address(), report.clone()).unwrap();
        assert_eq!(reports.next(), Some(report));
        assert_eq!(reports.next(), None);
        assert!(send("nowhere", Report::Joined { rank: 1 }).is_err());
    }
}
