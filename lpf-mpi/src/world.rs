//! The processes that MPI has started, before anything runs on them.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use lpf_control::rendezvous::deadline;
use lpf_messages::{Control, Outcome, Rank};
use mpi::ffi;

use super::Mpi;
use super::hosts::{Hosts, Lodging};
use super::library::{Comm, Library, OffSwitch, Request, byte, check, no_request};
use super::near::{Identity, Near, Offer, Shared};
use super::network::Network;
use super::start::{broken, duplicate, is_over, is_up, is_whole, only_thread, tag_limit, wait};

/// The processes of a communicator, with a communicator of their own for the messages of LPF.
///
/// A collective call waits for all processes, but at most for the time given. When the time is
/// up, MPI is [not called any more](OffSwitch). Dropping a world calls nothing.
pub struct World {
    library: Library,
    rank: Rank,
    size: Rank,
    /// MPI was initialised here, and is to be finalised here.
    is_ours: bool,
    /// Who is known to be on another host, by rank.
    far: Vec<bool>,
    /// Between the processes of this host.
    near: Option<Near>,
}

// SAFETY: a communicator may be used by any thread, one at a time, and `Library` sees to it that no
// other uses it where MPI does not allow that.
unsafe impl Send for World {}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("rank", &self.rank).field("size", &self.size).finish()
    }
}

impl World {
    /// Initialises MPI and takes all its processes. `within` is the time that the others have to arrive
    /// here after MPI is initialised; the launcher determines how long the initialisation takes.
    ///
    /// # Errors
    /// If MPI is initialised already, does not allow a second thread in the process, or fails, and if another process
    /// does not arrive.
    pub fn init(within: Duration) -> Outcome<World> {
        if is_over() {
            return Err(broken("MPI was finalised, and cannot be initialised again"));
        }
        if is_up() {
            return Err(broken("MPI is initialised already: hook to one of its communicators"));
        }
        let (mut provided, none) = (0, ptr::null_mut());
        // SAFETY: it is not initialised; it need not see the program's arguments.
        unsafe {
            let wanted = ffi::RSMPI_THREAD_SERIALIZED;
            let code = ffi::MPI_Init_thread(none, none.cast(), wanted, &mut provided);
            check(code, "MPI_Init_thread")?;
            // What is about no communicator is told to these: nobody else uses them, so errors return.
            for comm in [ffi::RSMPI_COMM_WORLD, ffi::RSMPI_COMM_SELF] {
                let code = ffi::MPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN);
                check(code, "MPI_Comm_set_errhandler")?;
            }
            let world = Self::of(ffi::RSMPI_COMM_WORLD, provided, true, within)?;
            is_whole(world.size)?;
            Ok(world)
        }
    }

    /// Takes the processes of a communicator of a program that has initialised MPI, and will finalise
    /// it. All of them call this together. The communicator is only duplicated, and belongs to the program again on
    /// return.
    ///
    /// # Errors
    /// If MPI is not initialised, does not allow a second thread in the process, or fails. If its launcher started
    /// more processes than MPI knows. If another process does not arrive.
    ///
    /// # Safety
    /// `comm` is a communicator of this MPI, of one group.
    pub unsafe fn hook(comm: Comm, within: Duration) -> Outcome<World> {
        if !is_up() || is_over() {
            return Err(broken("MPI is not initialised: a hook needs a communicator of its"));
        }
        let (mut provided, mut all) = (0, 0);
        // SAFETY: MPI is initialised; the caller's promise.
        unsafe {
            check(ffi::MPI_Comm_size(ffi::RSMPI_COMM_WORLD, &mut all), "MPI_Comm_size")?;
            is_whole(all as Rank)?;
            check(ffi::MPI_Query_thread(&mut provided), "MPI_Query_thread")?;
            Self::of(comm, provided, false, within)
        }
    }

    /// # Safety
    /// As [`hook`](Self::hook).
    unsafe fn of(comm: Comm, provided: c_int, is_ours: bool, within: Duration) -> Outcome<World> {
        let end = deadline(Instant::now(), within);
        let only = only_thread(provided)?;
        // SAFETY: the caller's promise.
        let library = Library::new(unsafe { duplicate(comm, end) }?, only);
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the communicator is ours.
        unsafe {
            let handler = ffi::RSMPI_ERRORS_RETURN;
            let code = ffi::MPI_Comm_set_errhandler(library.comm, handler);
            library.judge(code, "MPI_Comm_set_errhandler", None)?;
            library.judge(ffi::MPI_Comm_rank(library.comm, &mut rank), "MPI_Comm_rank", None)?;
            library.judge(ffi::MPI_Comm_size(library.comm, &mut size), "MPI_Comm_size", None)?;
        }
        let far = vec![false; size as usize];
        Ok(World { library, rank: rank as Rank, size: size as Rank, is_ours, far, near: None })
    }

    /// This process.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Processes.
    pub fn size(&self) -> Rank {
        self.size
    }

    /// The switch that ends the use of MPI.
    pub fn switch(&self) -> OffSwitch {
        self.library.switch().clone()
    }

    /// Sends bytes of process 0 to all; the bytes that others pass are ignored. Collective.
    ///
    /// # Errors
    /// If MPI fails or may not be called, and if another process does not arrive in time.
    pub fn broadcast(&mut self, bytes: &[u8], within: Duration) -> Outcome<Vec<u8>> {
        let end = deadline(Instant::now(), within);
        let length = if self.rank == 0 { bytes.len() as u64 } else { 0 };
        let length = self.broadcast_exactly(length.to_le_bytes().into(), end)?;
        let length = u64::from_le_bytes(length.try_into().unwrap_or_default()) as usize;
        if c_int::try_from(length).is_err() {
            return Err(broken(format!("a broadcast of {length} bytes")));
        }
        if length == 0 {
            // The address of no bytes may be a constant of MPI's.
            return Ok(Vec::new());
        }
        let bytes = if self.rank == 0 { bytes.into() } else { vec![0; length] };
        self.broadcast_exactly(bytes, end)
    }

    fn broadcast_exactly(&mut self, bytes: Vec<u8>, end: Instant) -> Outcome<Vec<u8>> {
        self.collective("broadcast", bytes, end, |comm, bytes, request| {
            let (base, length) = (bytes.as_mut_ptr().cast::<c_void>(), bytes.len() as c_int);
            // SAFETY: `collective` keeps the bytes until it is complete.
            unsafe { ffi::MPI_Ibcast(base, length, byte(), 0, comm, request) }
        })
    }

    /// Which processes share a host. Collective.
    ///
    /// Hosts are distinguished by their name and the kernel's boot.
    ///
    /// # Errors
    /// If MPI fails or may not be called, and if another process does not arrive in time.
    pub fn hosts(&mut self, within: Duration) -> Outcome<Hosts> {
        let end = deadline(Instant::now(), within);
        self.library.may_call()?;
        let own = Lodging::own(self.host_name()?);
        let all = self.gather_everywhere("exchange of host names", &own.bytes(), end)?;
        let all: Vec<Lodging> = all.iter().map(|bytes| Lodging::read(bytes)).collect();
        let hosts = Hosts::of(&all, self.rank);
        let own = hosts.numbers[self.rank];
        self.far = hosts.numbers.iter().map(|&host| host != own).collect();
        Ok(hosts)
    }

    /// Gives the processes of each host memory that they share, for messages between them. Hosts that cannot have it use
    /// MPI. Collective.
    ///
    /// # Errors
    /// If MPI fails or may not be called, and if another process does not arrive in time.
    pub fn share_memory(&mut self, hosts: &Hosts, within: Duration) -> Outcome<()> {
        let end = deadline(Instant::now(), within);
        let own = hosts.numbers[self.rank];
        let is_here = |rank: &Rank| hosts.numbers[*rank] == own;
        let ranks: Vec<Rank> = (0..self.size).filter(is_here).collect();
        // The first process of a host makes it.
        let made = (self.rank == ranks[0]).then(|| Shared::make(ranks.len()).ok()).flatten();
        let own = made.as_ref().map(Shared::offer).unwrap_or_default();
        let offers = self.gather_everywhere("exchange of offers of memory", &own.bytes(), end)?;
        let offer = || Offer::read(&offers[ranks[0]]);
        let shared = made.or_else(|| Shared::open(offer(), ranks.len()).ok());
        // Hosts that look the same may have memory of their own.
        let identity = shared.as_ref().map_or(Identity::default(), |shared| shared.identity);
        let all = self.gather_everywhere("exchange of memory", &identity.bytes(), end)?;
        let has_it = |rank: &Rank| all[*rank] == identity.bytes();
        self.near = shared
            .filter(|_| ranks.iter().all(has_it))
            .map(|shared| Near::new(shared, self.rank, self.size, ranks));
        Ok(())
    }

    /// What all processes give, by rank: as many bytes each.
    fn gather_everywhere(&mut self, what: &str, own: &[u8], end: Instant) -> Outcome<Vec<Vec<u8>>> {
        let each = own.len();
        let mut all = own.to_vec();
        all.resize(each * (1 + self.size), 0);
        let all = self.collective(what, all, end, |comm, bytes, request| {
            let (own, all) = bytes.split_at_mut(each);
            let (own, all) = (own.as_ptr().cast::<c_void>(), all.as_mut_ptr().cast::<c_void>());
            let each = each as c_int;
            // SAFETY: there is room for one from each; `collective` keeps it until it is complete.
            unsafe { ffi::MPI_Iallgather(own, each, byte(), all, each, byte(), comm, request) }
        })?;
        Ok(all.chunks_exact(each).skip(1).map(<[u8]>::to_vec).collect())
    }

    /// A number for the name of this process's host.
    fn host_name(&self) -> Outcome<u64> {
        let mut name = [0_u8; ffi::MPI_MAX_PROCESSOR_NAME as usize];
        let mut length = 0;
        // SAFETY: the buffer is as long as MPI asks for.
        let code =
            unsafe { ffi::MPI_Get_processor_name(name.as_mut_ptr().cast::<c_char>(), &mut length) };
        self.library.judge(code, "MPI_Get_processor_name", None)?;
        let name = &name[..(length as usize).min(name.len())];
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        // FNV-1a.
        let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        Ok(name.iter().chain(&boot).fold(0xcbf2_9ce4_8422_2325, hash))
    }

    /// A collective on bytes, which are MPI's until it is complete.
    fn collective(
        &mut self,
        what: &str,
        mut bytes: Vec<u8>,
        end: Instant,
        start: impl FnOnce(Comm, &mut Vec<u8>, &mut Request) -> c_int,
    ) -> Outcome<Vec<u8>> {
        self.library.may_call()?;
        let mut request = no_request();
        let code = start(self.library.comm, &mut bytes, &mut request);
        let outcome = self.library.judge(code, what, None);
        let outcome = outcome.and_then(|()| self.complete(&mut request, what, end));
        match outcome {
            Ok(()) => Ok(bytes),
            Err(broken) => {
                // It cannot be cancelled.
                std::mem::forget(bytes);
                Err(broken)
            }
        }
    }

    /// Waits for a collective.
    fn complete(&self, request: &mut Request, what: &str, end: Instant) -> Outcome<()> {
        self.complete_while(request, what, end, || Ok(()))
    }

    /// Waits for a collective, and does something meanwhile.
    fn complete_while(
        &self,
        request: &mut Request,
        what: &str,
        end: Instant,
        mut meanwhile: impl FnMut() -> Outcome<()>,
    ) -> Outcome<()> {
        let is_complete = || {
            meanwhile()?;
            self.library.is_complete(request, None)
        };
        wait(end, is_complete)?.then_some(()).ok_or_else(|| {
            let reason = format!("not all processes arrived at a {what} in time");
            self.library.switch().throw(reason.clone());
            broken(reason)
        })
    }

    /// Each process as if it were alone on its host, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn as_if_apart(mut self) -> Self {
        self.far.fill(true);
        self.near = None;
        self
    }

    /// The network, on which the protocol runs. Long messages to another host travel differently from those on one
    /// host. If [`hosts`](Self::hosts) was called before, the network knows which processes share this one.
    ///
    /// # Errors
    /// If MPI fails or may not be called.
    pub fn network<C: Control>(self, control: C) -> Outcome<Mpi<C>> {
        let World { library, rank, is_ours, far, near, .. } = self;
        let bodies = tag_limit(&library)?;
        Ok(Mpi { network: Network::new(library, rank, &far, near, bodies)?, control, is_ours })
    }

    /// Ends the use of MPI, as [`Mpi::finish`].
    ///
    /// # Errors
    /// As [`Mpi::finish`].
    pub fn finish(self, within: Duration) -> Outcome<()> {
        self.meet(deadline(Instant::now(), within), || Ok(()))?;
        self.end()
    }

    /// Waits for all processes, and does something meanwhile.
    fn meet(&self, end: Instant, meanwhile: impl FnMut() -> Outcome<()>) -> Outcome<()> {
        self.library.may_call()?;
        let mut request = no_request();
        // SAFETY: the communicator is ours.
        let code = unsafe { ffi::MPI_Ibarrier(self.library.comm, &mut request) };
        self.library.judge(code, "MPI_Ibarrier", None)?;
        self.complete_while(&mut request, "last barrier", end, meanwhile)
    }

    /// Gives the communicator back, and MPI, where it was initialised here. All have met before.
    fn end(mut self) -> Outcome<()> {
        self.library.may_call()?;
        // SAFETY: the communicator is ours, nothing is under way on it, and it is not used again.
        unsafe {
            let code = ffi::MPI_Comm_free(&mut self.library.comm);
            self.library.judge(code, "MPI_Comm_free", None)?;
            if self.is_ours {
                self.library.judge(ffi::MPI_Finalize(), "MPI_Finalize", None)?;
            }
        }
        self.library.switch().throw("the use of MPI has ended");
        Ok(())
    }
}

impl<C: Control> Mpi<C> {
    /// Ends the use of MPI. It waits until everything has left and all processes have arrived, and frees
    /// the communicator. If MPI was initialised here, it is finalised. Collective. The sections have ended.
    ///
    /// In `MPI_Finalize` all wait for all, without end. A process that has passed a barrier does not know whether the
    /// others waited long enough to pass it too. So they agree over the control plane before.
    ///
    /// # Errors
    /// If MPI fails or may not be called at one of the processes, and if not all arrive in time. Then no process
    /// finalises MPI.
    pub fn finish(self, within: Duration) -> Outcome<()> {
        let Mpi { network, control, is_ours } = self;
        let end = deadline(Instant::now(), within);
        let ready = Self::make_ready(network, is_ours, &control, end);
        let closes = control.close_together(ready.is_ok());
        let ready = ready?;
        match closes {
            true => ready.end(),
            false => Err(broken("not all processes can end their use of MPI")),
        }
    }

    /// Meets the others when nothing is under way.
    fn make_ready(
        mut network: Network,
        is_ours: bool,
        control: &C,
        end: Instant,
    ) -> Outcome<World> {
        let leave = |network: &mut Network| match wait(end, || network.is_done())? {
            true => Ok(()),
            false => Err(broken("messages do not leave")),
        };
        leave(&mut network)?;
        let (rank, size) = (network.rank, network.size());
        let (library, far) = (network.library.share(), Vec::new());
        let world = World { library, rank, size, is_ours, far, near: None };
        // What still comes for an ended context is dropped: until then its sender does not come.
        world.meet(end, || match control.stays_open() {
            true => Err(broken("another process cannot end its use of MPI")),
            false => network.progress(),
        })?;
        leave(&mut network)?;
        network.close(end)?;
        Ok(world)
    }
}
