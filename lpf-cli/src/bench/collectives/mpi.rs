//! MPI's own collectives, in a program of MPI's: it calls nothing of LPF's, and initialises MPI as programs do
//! that have one thread. `lpf run` starts it, with the flags that its launcher needs here.
//!
//! Process 0 has its orders from standard input. The others look for them a few hundred times a second: what
//! waits for its turn must not take the cores from the other side.

use std::ffi::{c_int, c_void};
use std::io::{self, BufRead};
use std::ptr;
use std::time::Duration;

use lpf::collectives::Collective;
use lpf::launcher;
use mpi::ffi;

use super::harness::{self, NOTED, Side};
use super::rival::Asked;
use super::shapes::Shape;
use crate::bench::reduce::{arrive, seen, uncut};
use crate::failure::{Failure, Result};
use crate::place::{Answer, Order, say};

/// How often those that wait look.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// The message of an order; an empty one is the last.
const TAG: c_int = 7;

/// `lpf mpi-own`: performs what is ordered on standard input, until there is no more.
pub(crate) fn answer_orders() -> Result<()> {
    if lpf::settings::by_mpi_launcher().is_none() {
        let text = "mpi-own is a part of bench collectives; call that";
        return Err(Failure::Usage(text.into()));
    }
    let world = World::new().map_err(refused)?;
    if let Ok(address) = std::env::var(launcher::WHERE) {
        // It has met the others, by MPI. Who started it and is gone does not want to know.
        let rank = world.rank;
        drop(launcher::send(&address, launcher::Report::Joined { rank }));
    }
    if world.rank > 0 {
        loop {
            let order = world.order().map_err(refused)?;
            if order.is_empty() {
                return Ok(());
            }
            perform(&world, &serde_json::from_slice(&order)?)?;
        }
    }
    for line in io::stdin().lock().lines() {
        let unread = |error| Failure::Failed(format!("the orders cannot be read: {error}"));
        let order: Order = serde_json::from_str(&line.map_err(unread)?)?;
        let order: Asked = serde_json::from_value(order.order)?;
        world.give(&serde_json::to_vec(&order)?).map_err(refused)?;
        say(&Answer::Found(perform(&world, &order)?))?;
    }
    world.give(&[]).map_err(refused)
}

fn refused(error: io::Error) -> Failure {
    Failure::Failed(format!("MPI's own collectives cannot be measured: {error}"))
}

fn perform(world: &World, order: &Asked) -> Result<serde_json::Value> {
    let shapes: Vec<Shape> = match order {
        Asked::Together(all) => all.iter().map(|(shape, _)| *shape).collect(),
        Asked::Arriving(all) => all.iter().map(|wanted| wanted.shape).collect(),
    };
    let lengths = |which: fn((usize, usize)) -> usize| {
        shapes.iter().map(|shape| which(shape.lengths(world.rank))).max().unwrap_or(0)
    };
    let (x, y) = (Vector::new(lengths(|l| l.0)), Vector::new(lengths(|l| l.1)));
    let shape = Shape::new(Collective::Broadcast, world.size, 0);
    let mut own = Own { world, x, y, shape };
    match order {
        Asked::Together(all) => {
            let mut found = Vec::new();
            for (shape, pacing) in all {
                own.shape = *shape;
                found.push(harness::time(&mut own, pacing)?);
            }
            Ok(serde_json::to_value(found)?)
        }
        Asked::Arriving(all) => {
            let calls = all.iter().map(|wanted| {
                own.shape = wanted.shape;
                let late_ns = wanted.arrivals_ns[world.rank];
                match arrive(&mut own, late_ns, wanted.window_ns)? {
                    Some(noted) => seen(&mut own, noted, 0),
                    None => Ok(None),
                }
            });
            Ok(serde_json::to_value(uncut(calls)?)?)
        }
    }
}

/// MPI, up; over when it is dropped.
struct World {
    rank: usize,
    size: usize,
}

impl World {
    fn new() -> io::Result<Self> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: nothing has initialised MPI before; the places live as long as the calls.
        unsafe {
            check(ffi::MPI_Init(ptr::null_mut(), ptr::null_mut()))?;
            check(ffi::MPI_Comm_rank(world(), &mut rank))?;
            check(ffi::MPI_Comm_size(world(), &mut size))?;
        }
        Ok(World { rank: rank as usize, size: size as usize })
    }

    /// An order, at all but process 0.
    fn order(&self) -> io::Result<Vec<u8>> {
        loop {
            let mut come = 0;
            // SAFETY: a zeroed status is one that nothing is known of; the places live as long as the calls,
            // and the text has as many bytes as the message.
            unsafe {
                let mut status: ffi::MPI_Status = std::mem::zeroed();
                check(ffi::MPI_Iprobe(0, TAG, world(), &mut come, &mut status))?;
                if come != 0 {
                    let mut bytes = 0;
                    check(ffi::MPI_Get_count(&status, byte(), &mut bytes))?;
                    let mut text = vec![0u8; bytes as usize];
                    let (to, ignored) = (text.as_mut_ptr().cast(), ffi::RSMPI_STATUS_IGNORE);
                    check(ffi::MPI_Recv(to, bytes, byte(), 0, TAG, world(), ignored))?;
                    return Ok(text);
                }
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// An order, to all others.
    fn give(&self, order: &[u8]) -> io::Result<()> {
        for to in 1..self.size {
            let (text, bytes) = (order.as_ptr().cast(), order.len() as c_int);
            // SAFETY: the text has so many bytes, and lives as long as the call.
            check(unsafe { ffi::MPI_Send(text, bytes, byte(), to as c_int, TAG, world()) })?;
        }
        Ok(())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // SAFETY: it is up, and nothing is under way.
        unsafe { ffi::MPI_Finalize() };
    }
}

fn check(code: c_int) -> io::Result<()> {
    match code {
        0 => Ok(()),
        code => Err(io::Error::other(format!("MPI returned error {code}"))),
    }
}

fn world() -> ffi::MPI_Comm {
    // SAFETY: a constant of the library's.
    unsafe { ffi::RSMPI_COMM_WORLD }
}

fn byte() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the library's.
    unsafe { ffi::RSMPI_UINT8_T }
}

fn double() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the library's.
    unsafe { ffi::RSMPI_DOUBLE }
}

fn sum() -> ffi::MPI_Op {
    // SAFETY: a constant of the library's.
    unsafe { ffi::RSMPI_SUM }
}

/// Elements that begin where ours do, on a pair of cache lines; every page is there.
struct Vector {
    all: Vec<f64>,
    first: usize,
}

impl Vector {
    fn new(elements: usize) -> Self {
        const ALIGN: usize = 128;
        let all = vec![1.0; elements + ALIGN / size_of::<f64>()];
        let first = all.as_ptr().align_offset(ALIGN);
        Vector { all, first }
    }

    fn part(&mut self, elements: usize) -> &mut [f64] {
        &mut self.all[self.first..][..elements]
    }
}

/// MPI's own collective of all processes that MPI has.
pub(in crate::bench) fn call(
    shape: Shape,
    rank: usize,
    x: &[f64],
    y: &mut [f64],
) -> lpf::Result<()> {
    let (n, p) = (shape.elements as c_int, shape.p as c_int);
    let (in_x, in_y) = shape.lengths(rank);
    let (x, y) = (&x[..in_x], &mut y[..in_y]);
    let (from, to): (*const c_void, *mut c_void) = (x.as_ptr().cast(), y.as_mut_ptr().cast());
    let (of, comm) = (double(), world());
    // SAFETY: MPI is up. `x` has what the shape says that this process contributes, `y` what it gets, which are the
    // counts below; both live as long as the call, and nobody else touches them; what a root broadcasts is only read.
    failed(check(unsafe {
        match shape.collective() {
            Collective::Broadcast if rank == 0 => ffi::MPI_Bcast(from.cast_mut(), n, of, 0, comm),
            Collective::Broadcast => ffi::MPI_Bcast(to, n, of, 0, comm),
            Collective::Reduce => ffi::MPI_Reduce(from, to, n, of, sum(), 0, comm),
            Collective::Allreduce => ffi::MPI_Allreduce(from, to, n, of, sum(), comm),
            Collective::ReduceScatter => {
                ffi::MPI_Reduce_scatter_block(from, to, n / p, of, sum(), comm)
            }
            Collective::Scan => ffi::MPI_Scan(from, to, n, of, sum(), comm),
            Collective::Exscan => ffi::MPI_Exscan(from, to, n, of, sum(), comm),
            Collective::Gather => ffi::MPI_Gather(from, n, of, to, n, of, 0, comm),
            Collective::Scatter => ffi::MPI_Scatter(from, n / p, of, to, n / p, of, 0, comm),
            Collective::Allgather => ffi::MPI_Allgather(from, n, of, to, n, of, comm),
            Collective::Alltoall => ffi::MPI_Alltoall(from, n / p, of, to, n / p, of, comm),
        }
    }))
}

struct Own<'w> {
    world: &'w World,
    x: Vector,
    y: Vector,
    shape: Shape,
}

fn failed(result: io::Result<()>) -> lpf::Result<()> {
    result.map_err(|error| {
        let (what, reason) = ("a collective of MPI's".into(), error.to_string());
        lpf::Error::refused(lpf::Cause::Refused { what, reason })
    })
}

impl Side for Own<'_> {
    fn touch(&mut self, value: f64) {
        let (x, y) = self.shape.lengths(self.world.rank);
        harness::touch(self.x.part(x), self.y.part(y), value);
    }

    fn meet(&mut self) -> lpf::Result<()> {
        // SAFETY: MPI is up.
        failed(check(unsafe { ffi::MPI_Barrier(world()) }))
    }

    fn tell(&mut self, mut word: u64) -> lpf::Result<u64> {
        let (place, bytes) = (ptr::from_mut(&mut word).cast(), size_of::<u64>() as c_int);
        // SAFETY: the word has so many bytes, and lives as long as the call.
        failed(check(unsafe { ffi::MPI_Bcast(place, bytes, byte(), 0, world()) }))?;
        Ok(word)
    }

    fn act(&mut self) -> lpf::Result<()> {
        let (x, y) = self.shape.lengths(self.world.rank);
        call(self.shape, self.world.rank, self.x.part(x), self.y.part(y))
    }

    fn gather(&mut self, own: &[u64]) -> lpf::Result<Vec<u64>> {
        let is_first = self.world.rank == 0;
        let mut all = vec![0u64; if is_first { NOTED * self.world.size } else { 0 }];
        let bytes = size_of_val(own) as c_int;
        let (from, to) = (own.as_ptr().cast(), all.as_mut_ptr().cast());
        // SAFETY: the notes of one process have so many bytes, and process 0 has room for those of all.
        failed(check(unsafe {
            ffi::MPI_Gather(from, bytes, byte(), to, bytes, byte(), 0, world())
        }))?;
        Ok(all)
    }
}
