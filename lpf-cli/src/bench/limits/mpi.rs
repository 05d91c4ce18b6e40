//! Raw MPI: the calls that a program written for it would use, each waiting inside of MPI.

use std::ffi::{c_int, c_void};
use std::io;

use lpf::{Context, Lpf};
use mpi::ffi;

use super::network::{Incoming, Network, Outgoing, Words, failed};

/// The processes of a section, which are the first ones of the job, on a communicator of their own.
pub(in crate::bench) struct Mpi {
    comm: ffi::MPI_Comm,
    own: usize,
}

const TAG: c_int = 1;

impl Mpi {
    /// Collective.
    pub(in crate::bench) fn of<L: Lpf>(ctx: &mut Context<'_, L>) -> lpf::Result<Self> {
        let ranks: Vec<c_int> = (0..ctx.nprocs() as c_int).collect();
        // SAFETY: MPI is up, for this section runs on it, and no other thread calls it: whoever would is
        // this thread, inside of LPF. The list has so many ranks, which the world has, too.
        let comm = unsafe {
            let world = ffi::RSMPI_COMM_WORLD;
            let (mut all, mut group) = (ffi::RSMPI_GROUP_NULL, ffi::RSMPI_GROUP_NULL);
            let mut comm = ffi::RSMPI_COMM_NULL;
            check(ffi::MPI_Comm_group(world, &mut all)).map_err(failed)?;
            let n = ranks.len() as c_int;
            check(ffi::MPI_Group_incl(all, n, ranks.as_ptr(), &mut group)).map_err(failed)?;
            check(ffi::MPI_Comm_create_group(world, group, TAG, &mut comm)).map_err(failed)?;
            check(ffi::MPI_Group_free(&mut group)).map_err(failed)?;
            check(ffi::MPI_Group_free(&mut all)).map_err(failed)?;
            comm
        };
        Ok(Mpi { comm, own: ctx.pid() })
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        // SAFETY: a communicator that was made here, on which nothing is under way.
        unsafe { ffi::MPI_Comm_free(&mut self.comm) };
    }
}

fn check(code: c_int) -> io::Result<()> {
    match code {
        0 => Ok(()),
        code => Err(io::Error::other(format!("MPI returned error {code}"))),
    }
}

fn byte() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the library's.
    unsafe { ffi::RSMPI_UINT8_T }
}

/// One or many pieces as a message: where it begins, how many of which type.
struct Shape {
    base: *mut c_void,
    count: c_int,
    kind: ffi::MPI_Datatype,
    /// The type was made for this message.
    made: bool,
}

impl Shape {
    /// The type is made anew each time: a program that sends what its users name does not know it before.
    fn of(pieces: &[(*mut u8, usize)]) -> io::Result<Self> {
        let (base, bytes) = pieces[0];
        let mut shape =
            Shape { base: base.cast(), count: bytes as c_int, kind: byte(), made: false };
        if pieces.len() == 1 {
            return Ok(shape);
        }
        let lengths: Vec<c_int> = pieces.iter().map(|&(_, bytes)| bytes as c_int).collect();
        let places = pieces.iter().map(|&(at, _)| at as ffi::MPI_Aint - base as ffi::MPI_Aint);
        let places: Vec<ffi::MPI_Aint> = places.collect();
        let n = pieces.len() as c_int;
        // SAFETY: the lists have so many entries; the types are ours.
        unsafe {
            let (lengths, places) = (lengths.as_ptr(), places.as_ptr());
            check(ffi::MPI_Type_create_hindexed(n, lengths, places, byte(), &mut shape.kind))?;
            check(ffi::MPI_Type_commit(&mut shape.kind))?;
        }
        (shape.count, shape.made) = (1, true);
        Ok(shape)
    }
}

impl Drop for Shape {
    fn drop(&mut self) {
        if self.made {
            // SAFETY: a type that was made here; what is under way with it is not concerned.
            unsafe { ffi::MPI_Type_free(&mut self.kind) };
        }
    }
}

impl Network for Mpi {
    fn meet(&mut self, out: &[Words], into: &mut [Words]) -> io::Result<()> {
        let bytes = size_of::<Words>() as c_int;
        if let (2, Some(out)) = (into.len(), out.get(1 - self.own.min(1))) {
            let other = 1 - self.own;
            let (out, into) = (out.as_ptr().cast(), into[other].as_mut_ptr().cast());
            let (peer, status) = (other as c_int, status_ignore());
            // SAFETY: both are 16 bytes, valid for the call.
            return check(unsafe {
                ffi::MPI_Sendrecv(
                    out,
                    bytes,
                    byte(),
                    peer,
                    TAG,
                    into,
                    bytes,
                    byte(),
                    peer,
                    TAG,
                    self.comm,
                    status,
                )
            });
        }
        let (out, into) = (out.as_ptr().cast(), into.as_mut_ptr().cast());
        // SAFETY: both have 16 bytes for each process, valid for the call.
        check(unsafe { ffi::MPI_Alltoall(out, bytes, byte(), into, bytes, byte(), self.comm) })
    }

    fn exchange(&mut self, out: Vec<Outgoing<'_>>, mut into: Vec<Incoming<'_>>) -> io::Result<()> {
        let mut requests = Vec::with_capacity(out.len() + into.len());
        // SAFETY: the pieces are borrowed until this returns, which waits for all that was begun with
        // them; an error of MPI's ends the process.
        unsafe {
            for Incoming { from, pieces } in &mut into {
                let pieces = pieces.iter_mut().map(|piece| (piece.as_mut_ptr(), piece.len()));
                let shape = Shape::of(&pieces.collect::<Vec<_>>())?;
                let mut request = ffi::RSMPI_REQUEST_NULL;
                let peer = *from as c_int;
                let Shape { base, count, kind, .. } = shape;
                check(ffi::MPI_Irecv(base, count, kind, peer, TAG, self.comm, &mut request))?;
                requests.push(request);
            }
            for Outgoing { to, pieces } in &out {
                let pieces = pieces.iter().map(|piece| (piece.as_ptr().cast_mut(), piece.len()));
                let shape = Shape::of(&pieces.collect::<Vec<_>>())?;
                let mut request = ffi::RSMPI_REQUEST_NULL;
                let peer = *to as c_int;
                let Shape { base, count, kind, .. } = shape;
                check(ffi::MPI_Isend(base, count, kind, peer, TAG, self.comm, &mut request))?;
                requests.push(request);
            }
            let n = requests.len() as c_int;
            check(ffi::MPI_Waitall(n, requests.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE))
        }
    }
}

fn status_ignore() -> *mut ffi::MPI_Status {
    // SAFETY: a constant of the library's.
    unsafe { ffi::RSMPI_STATUS_IGNORE }
}
