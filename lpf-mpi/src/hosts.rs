//! Which processes share a host, and its cores.

use lpf_core::settings::cores;
use lpf_messages::Host;

/// The processes by host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// By process, the number of its host. Hosts are numbered from 0, in the order of their first
    /// processes.
    pub numbers: Vec<u32>,
    /// This process's own.
    pub own: Host,
}

/// Cores that can be told apart.
const CORES: usize = 1024;
type Cores = [u8; CORES / 8];

/// Where a process is: its host, and the cores it may use there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lodging {
    host: u64,
    cores: Cores,
    /// How many it may use at a time, which may be less.
    quota: u32,
}

impl Lodging {
    pub(crate) const BYTES: usize = 8 + 4 + CORES / 8;

    /// This process's.
    pub(crate) fn own(host: u64) -> Self {
        let mut own = Lodging { host, cores: [0; CORES / 8], quota: cores() as u32 };
        // SAFETY: the mask is room for so many bytes.
        unsafe { libc::sched_getaffinity(0, CORES / 8, own.cores.as_mut_ptr().cast()) };
        own
    }

    pub(crate) fn bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.host.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.quota.to_le_bytes());
        bytes[12..].copy_from_slice(&self.cores);
        bytes
    }

    /// # Panics
    /// Where there are not [`BYTES`](Self::BYTES).
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let ([host @ .., _, _, _, _], cores) =
            bytes.split_first_chunk::<12>().expect("the length is BYTES");
        let quota = &bytes[8..12];
        Lodging {
            host: u64::from_le_bytes(*host),
            cores: cores.try_into().expect("the length is BYTES"),
            quota: u32::from_le_bytes(quota.try_into().expect("the length is BYTES")),
        }
    }

    fn count(cores: &Cores) -> usize {
        cores.iter().map(|byte| byte.count_ones() as usize).sum()
    }
}

impl Hosts {
    pub(crate) fn of(all: &[Lodging], rank: usize) -> Self {
        let mut known = Vec::new();
        let number = |lodging: &Lodging| {
            let nth = known.iter().position(|host| *host == lodging.host).unwrap_or(known.len());
            if nth == known.len() {
                known.push(lodging.host);
            }
            nth as u32
        };
        let numbers: Vec<u32> = all.iter().map(number).collect();
        let here: Vec<&Lodging> = all.iter().filter(|other| other.host == all[rank].host).collect();
        // A launcher may have given each process cores of its own.
        let mut together = [0; CORES / 8];
        for lodging in &here {
            together.iter_mut().zip(lodging.cores).for_each(|(all, own)| *all |= own);
        }
        // A container may be allowed less than its cores. All processes of a host count alike.
        let is_limited = |one: &&&Lodging| (one.quota as usize) < Lodging::count(&one.cores);
        let quota = here.iter().filter(is_limited).map(|one| one.quota as usize).min();
        let count = Lodging::count(&together);
        // Nought where the system did not say.
        let cores = quota.unwrap_or(if count == 0 { all[rank].quota as usize } else { count });
        let (processes, world) = (here.len(), all.len());
        Hosts { numbers, own: Host { processes, cores, is_agreed: count > 0, world } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lodging(host: u64, mask: u8, quota: u32) -> Lodging {
        let mut cores = [0; CORES / 8];
        cores[3] = mask;
        Lodging { host, cores, quota }
    }

    #[test]
    fn a_lodging_travels() {
        let own = Lodging::own(0x1234_5678_9abc_def0);
        assert_eq!(Lodging::read(&own.bytes()), own);
        let (own, here) = (Hosts::of(&[own], 0), cores());
        assert_eq!(
            own,
            Hosts {
                numbers: vec![0],
                own: Host { processes: 1, cores: here, is_agreed: true, world: 1 }
            }
        );
    }

    #[test]
    fn processes_with_a_core_each_share_all_of_them() {
        let all = [
            lodging(9, 0b1, 1),
            lodging(7, 0b11, 2),
            lodging(9, 0b10, 1),
            lodging(7, 0b1100, 2),
            lodging(9, 0b10, 1),
        ];
        let hosts: Vec<Hosts> = (0..5).map(|rank| Hosts::of(&all, rank)).collect();
        assert!(hosts.iter().all(|hosts| hosts.numbers == [0, 1, 0, 1, 0]));
        assert_eq!(hosts[0].own, Host { processes: 3, cores: 2, is_agreed: true, world: 5 });
        assert_eq!(hosts[1].own, Host { processes: 2, cores: 4, is_agreed: true, world: 5 });
    }

    #[test]
    fn a_quota_is_less_than_the_cores() {
        let all = [lodging(1, 0xff, 2), lodging(1, 0xff, 2)];
        assert_eq!(
            Hosts::of(&all, 1).own,
            Host { processes: 2, cores: 2, is_agreed: true, world: 2 }
        );
    }
}
