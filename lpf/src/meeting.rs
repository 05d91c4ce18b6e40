//! Where the processes of a job meet, as the program that started this one said.

use std::io::ErrorKind;
use std::net::TcpListener;

use lpf_control::rendezvous::{Meeting, Secret};
use lpf_core::settings::{Launched, Settings, Source, by_mpi_launcher};
use lpf_core::{Error, Result};

use crate::claim::claim;
use crate::launcher::{Report, WHERE, ask};

/// The job that the environment describes, for a process over TCP.
pub(crate) fn meeting() -> Result<Meeting> {
    let Some(launched) = Launched::from_environment()? else {
        return Err(Error::setting(match by_mpi_launcher() {
            None => {
                "backend \"tcp\" runs on several processes: start them with lpf run -n 4 PROGRAM"
            }
            Some(_) => {
                "a launcher of MPI started this process, and LPF_MEET=HOST:PORT, the address of process 0 over TCP, is not set: set it, or use MPI (lpf::run, or Member::of_world)"
            }
        }));
    };
    claim(&launched)?;
    let mut meeting = Meeting::new(launched.meet, launched.rank, launched.size);
    let settings = Settings::from_environment()?;
    meeting.time = settings.meet_timeout.value.unwrap_or(meeting.time);
    meeting.job = launched.job;
    meeting.secret = launched.secret.map(Secret::new).transpose().map_err(Error::from)?;
    if launched.rank == 0 {
        meeting.listener = listener(&meeting.address)?;
        // Data of a job of lpf run stays on this machine.
        let is_told = settings.seal_data.source != Source::Default;
        meeting.seal_data = meeting.listener.is_none() || is_told;
    }
    Ok(meeting)
}

/// The socket that `lpf run` listens with for process 0, if it has started this process. It goes on to listen
/// after a meeting.
fn listener(meet: &str) -> Result<Option<TcpListener>> {
    let Ok(address) = std::env::var(WHERE) else { return Ok(None) };
    match ask(&address, Report::AsksForListener { meet: meet.into() }) {
        Ok([socket, ..]) => Ok(socket.map(Into::into)),
        // It has ended, and this process has begun a job of its own.
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(None),
        Err(error) => Err(Error::setting(format!(
            "lpf run did not hand over the socket for {meet} ({error}): {WHERE} names where it is asked, and has to come from the lpf run that runs now, on this machine"
        ))),
    }
}
