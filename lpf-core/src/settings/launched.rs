//! How this process was started: as one of several, by `lpf run`, by a user, or by MPI's and Slurm's
//! launchers.

use super::{ADDRESS, MAX_PROCS, Setting, addresses, check_secret, read};
use crate::{Error, Pid, Result};

/// Variables that launchers set in every process that they start: its number, and how many there are.
const LAUNCHERS: [(&str, &str); 3] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    // Of a step: a batch script has others.
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
];

/// What the launcher of an MPI, or Slurm's, says of this process; `None` where none started it, or where
/// Slurm started one alone.
pub fn by_mpi_launcher() -> Option<(Pid, Pid)> {
    let number = |name: &str| std::env::var(name).ok()?.trim().parse::<Pid>().ok();
    LAUNCHERS.iter().find_map(|&(rank, size)| {
        let (rank, size, is_slurm) = (number(rank)?, number(size)?, rank.starts_with("SLURM"));
        (rank < size && !(is_slurm && size == 1)).then_some((rank, size))
    })
}

/// This process's position in a job, as given by its launcher: `lpf run`, or the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// `LPF_RANK`, else the launcher's: this process, from 0.
    pub rank: Pid,
    /// `LPF_SIZE`, else the launcher's: processes of the job.
    pub size: Pid,
    /// `LPF_MEET`: where process 0 is found, as `host:port`.
    pub meet: String,
    /// `LPF_SECRET`: what only processes of the job know.
    pub secret: Option<String>,
    /// `LPF_JOB`: distinguishes jobs.
    pub job: u64,
}

impl Launched {
    /// What this environment says; `None` where it speaks of no job.
    ///
    /// # Errors
    /// *Misuse* for a value that cannot be understood, and for a job of which something is missing.
    pub fn from_environment() -> Result<Option<Self>> {
        let number = |text: &str| text.parse().ok().filter(|&n| n < MAX_PROCS).map(Some);
        let address = |text: &str| addresses(text).map(|_| Some(text.to_owned()));
        let text = |text: &str| (!text.is_empty()).then(|| Some(text.to_owned()));
        let size = |text: &str| text.parse().ok().filter(|&n| n > 0 && n <= MAX_PROCS).map(Some);
        let rank: Setting<Option<Pid>> =
            read("LPF_RANK", None, number, "the number of a process, from 0 to 65535")?;
        let size = read("LPF_SIZE", None, size, "a number of processes from 1 to 65536")?;
        let expected = format!("the address of process 0, as {ADDRESS}");
        let meet = read("LPF_MEET", None, address, &expected)?;
        let secret = read("LPF_SECRET", None, text, "a secret of at least 16 bytes")?;
        secret.value.as_deref().map_or(Ok(()), check_secret).map_err(Error::setting)?;
        let job =
            read("LPF_JOB", 0, |text| text.parse().ok(), "a whole number from 0 to 2^64 - 1")?;
        // Started by another launcher, a process need not be told twice which one it is.
        let (rank, size) = match (rank.value, size.value, by_mpi_launcher()) {
            (None, None, Some((rank, size))) if meet.value.is_some() => (Some(rank), Some(size)),
            (rank, size, _) => (rank, size),
        };
        let (rank, size, meet) = match (rank, size, meet.value) {
            (None, None, None) => return Ok(None),
            (Some(rank), Some(size), Some(meet)) if rank < size => (rank, size, meet),
            (Some(rank), Some(size), Some(_)) => {
                let text =
                    format!("LPF_RANK is {rank}; it has to be less than LPF_SIZE, which is {size}");
                return Err(Error::setting(text));
            }
            (rank, size, meet) => {
                return Err(Error::setting(incomplete(
                    rank.is_some(),
                    size.is_some(),
                    meet.is_some(),
                )));
            }
        };
        Ok(Some(Launched { rank, size, meet, secret: secret.value, job: job.value }))
    }
}

/// What is missing of a job of which something is said.
fn incomplete(rank: bool, size: bool, meet: bool) -> String {
    let all = [("LPF_RANK", rank), ("LPF_SIZE", size), ("LPF_MEET", meet)];
    let missing: Vec<_> =
        all.iter().filter(|(_, is_there)| !is_there).map(|(name, _)| *name).collect();
    let are = if missing.len() == 1 { "is" } else { "are" };
    let missing = missing.join(" and ");
    format!(
        "{missing} {are} missing: a job needs LPF_RANK, LPF_SIZE and LPF_MEET, all three; lpf run sets them"
    )
}
