//! A job whose data goes over the connections of its rendezvous.

use lpf_control::Job;
use lpf_control::connection::Stream;
use lpf_control::plane::ControlPlane;
use lpf_control::rendezvous::Joined;
use lpf_core::runtime::Process;
use lpf_core::settings::cores;
use lpf_core::{Cause, Error, Result};
use lpf_messages::{Host, Messages};

use crate::sockets::Sockets;

/// A process that has joined a job on sockets.
pub type TcpJob = Job<Sockets<ControlPlane>>;

/// One process of a section on sockets.
pub type TcpProcess = Process<Messages<Sockets<ControlPlane>>>;

/// Takes over what a [`Meeting`](lpf_control::rendezvous::Meeting) has connected.
///
/// # Errors
/// *Mitigable* if the system refuses what a network needs.
pub fn job(joined: Joined) -> Result<TcpJob> {
    let Joined { rank, size, control, mut streams } = joined;
    // A job of one process has no connections.
    streams.resize_with(size, || None);
    let address = |stream: &Stream| (stream.tcp().local_addr(), stream.tcp().peer_addr());
    let is_on_this_host = |stream: &Stream| match address(stream) {
        (Ok(here), Ok(there)) => here.ip() == there.ip() || there.ip().is_loopback(),
        _ => false,
    };
    let others = streams.iter().flatten().filter(|stream| is_on_this_host(stream)).count();
    let host = Host { processes: others + 1, cores: cores(), is_agreed: false, world: size };
    let sockets = Sockets::new(rank, streams, control).map_err(|error| {
        let what = "the network".into();
        Error::refused(Cause::Refused { what, reason: error.to_string() })
    })?;
    Ok(Job::new(sockets, host))
}
