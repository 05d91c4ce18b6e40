//! A job whose processes MPI started: data over MPI, the control plane over TCP.
//!
//! MPI tells nobody of a death: the control plane does. Its meeting point and secret are process 0's, and
//! reach the others by MPI.

use std::time::{Duration, Instant};

use lpf_control::Job;
use lpf_control::plane::{Beats, ControlPlane};
use lpf_control::rendezvous::{By, Meeting, Secret, bind_everywhere, bind_first};
use lpf_core::runtime::Process;
use lpf_core::{Cause, Error, Result};
use lpf_messages::{Broken, Messages};
use mpi::topology::Communicator;
use serde::{Deserialize, Serialize};

use super::World;
use super::transport::Mpi;

/// A process that has joined a job on MPI.
pub type MpiJob = Job<Mpi<ControlPlane>>;

/// One process of a section on MPI.
pub type MpiProcess = Process<Messages<Mpi<ControlPlane>>>;

impl World {
    /// As [`hook`](Self::hook), for a communicator of rsmpi, the crate `mpi`.
    ///
    /// # Errors
    /// *Mitigable* if MPI allows no second thread in the process or fails, and if another process does not arrive in
    /// time.
    pub fn of_communicator(communicator: &impl Communicator, within: Duration) -> Result<World> {
        // SAFETY: a communicator of one group, as long as it is borrowed.
        unsafe { World::hook(communicator.as_raw(), within) }.map_err(refused)
    }
}

/// Where the control plane's processes meet, as process 0 says it.
#[derive(Serialize, Deserialize)]
struct Invitation {
    address: String,
    secret: String,
}

/// Joins the processes of a world into a job. Collective. It fails if not all arrive within `within`.
/// Process 0 decides whether they beat. All processes use the same `by`.
///
/// # Errors
/// *Mitigable* if MPI or the system refuses something, or another process does not arrive in time; *misuse* if
/// process 0 uses another `by`.
pub fn join(mut world: World, by: By, beats: Beats, within: Duration) -> Result<MpiJob> {
    let began = Instant::now();
    let left = || within.saturating_sub(began.elapsed());
    let (rank, size) = (world.rank(), world.size());
    let hosts = world.hosts(left()).map_err(refused)?;
    world.share_memory(&hosts, left()).map_err(refused)?;
    let mut listener = None;
    let mut invitation = Vec::new();
    if rank == 0 {
        let is_one_host = hosts.numbers.iter().all(|&host| host == 0);
        let (bound, address) = match is_one_host {
            true => {
                let bound = bind_first("127.0.0.1").map_err(Error::from)?;
                let address = bound.local_addr().map_err(|error| unusable(error.to_string()))?;
                (bound, address.to_string())
            }
            false => bind_everywhere().map_err(Error::from)?,
        };
        listener = Some(bound);
        let secret = Secret::random().map_err(Error::from)?.text().into();
        invitation = bytes_of(&Invitation { address, secret })?;
    }
    let invitation = world.broadcast(&invitation, left()).map_err(refused)?;
    let Invitation { address, secret } = postcard::from_bytes(&invitation).map_err(unreadable)?;
    let mut meeting = Meeting::new(address, rank, size);
    meeting.secret = Some(Secret::new(secret).map_err(Error::from)?);
    meeting.time = left();
    meeting.by = by;
    meeting.beats = beats;
    meeting.listener = listener;
    let control = meeting.join_without_streams().map_err(Error::from)?.control;
    let switch = world.switch();
    control.on_death(move |dead, reason| {
        let is_first = switch.reason().is_none();
        switch.throw(format!("process {dead} died: {reason}"));
        if is_first {
            switch.end_if_stuck(rank);
        }
    });
    Ok(Job::new(world.network(control).map_err(refused)?, hosts.own))
}

fn bytes_of(invitation: &Invitation) -> Result<Vec<u8>> {
    postcard::to_stdvec(invitation).map_err(unreadable)
}

fn unreadable(error: postcard::Error) -> Error {
    unusable(error.to_string())
}

fn unusable(reason: String) -> Error {
    refused(Broken { peer: None, reason })
}

/// An error of MPI's before there is a section: *mitigable*.
pub fn refused(broken: Broken) -> Error {
    Error::refused(Cause::Refused { what: "MPI".into(), reason: broken.reason })
}
