//! What the processes of a job report: see [`lpf::launcher`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use lpf::control::carried::receive;
use lpf::control::rendezvous::Secret;
use lpf::launcher::{LONGEST, Letter, Report};

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

    /// The next that has come, if any, with the socket on which what it asks for is answered.
    pub(super) fn next(&self) -> Option<(Report, Option<OwnedFd>)> {
        let mut bytes = [0; LONGEST];
        loop {
            let (length, mut carried) = match receive(&self.socket, &mut bytes) {
                Ok(received) => received,
                // There is no descriptor left for the answer: who has asked learns that there is none.
                Err(error) if error.raw_os_error() == Some(libc::EMFILE) => continue,
                Err(_) => return None,
            };
            match serde_json::from_slice::<Letter>(&bytes[..length]) {
                Ok(letter) if letter.token == self.token => {
                    return Some((letter.report, carried.pop()));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use lpf::launcher::{answer, ask, send};

    use super::*;

    #[test]
    fn a_report_arrives_and_a_forged_one_does_not() {
        let reports = Reports::open().unwrap();
        assert!(reports.next().is_none());
        let report = Report::Ended { rank: 65_535, pid: i32::MAX, status: 0x7f00 };
        let forged = format!("{} {}", reports.name, "0".repeat(64));
        send(&forged, Report::Joined { rank: 1 }).unwrap();
        send(&reports.address(), report.clone()).unwrap();
        assert_eq!(reports.next().unwrap().0, report);
        assert!(reports.next().is_none());
        assert!(send("nowhere", Report::Joined { rank: 1 }).is_err());
    }

    #[test]
    fn who_asks_is_given_descriptors_and_learns_that_there_are_none() {
        let reports = Reports::open().unwrap();
        let (address, forged) = (reports.address(), format!("{} {}", reports.name, "0".repeat(64)));
        let asking = std::thread::spawn(move || {
            let refused = ask(&forged, Report::AsksForStreams { rank: 7 });
            (refused.is_err(), ask(&address, Report::AsksForStreams { rank: 7 }).unwrap())
        });
        let (report, socket) = loop {
            match reports.next() {
                Some(next) => break next,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(report, Report::AsksForStreams { rank: 7 });
        let (mut reader, writer) = io::pipe().unwrap();
        answer(&socket.unwrap(), [None, Some(writer.as_fd()), None]).unwrap();
        drop(writer);
        let (is_refused, given) = asking.join().unwrap();
        assert!(is_refused);
        let [None, Some(given), None] = given else { panic!("{given:?}") };
        std::fs::File::from(given).write_all(b"text").unwrap();
        assert_eq!(io::read_to_string(&mut reader).unwrap(), "text");
    }
}
