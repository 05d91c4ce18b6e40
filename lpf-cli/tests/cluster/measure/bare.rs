//! What bare MPI takes for the same, in a job without LPF: its barrier and its total exchange, and the loads,
//! sent as programs send them that leave everything to MPI.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use mpi::ffi;

use super::{LARGE, Load, Message, Rows, scattered};

/// No more samples of a load are taken after this time.
const TIME: Duration = Duration::from_secs(4);

fn done(code: c_int) {
    assert_eq!(code, 0, "MPI says that it failed");
}

/// A job's rows, where this is its process 0.
pub(crate) fn measure() -> Option<Rows> {
    let mut size = 0;
    // SAFETY: nothing else in this program has begun with MPI; it writes one number.
    unsafe {
        done(ffi::MPI_Init(std::ptr::null_mut(), std::ptr::null_mut()));
        done(ffi::MPI_Comm_size(ffi::RSMPI_COMM_WORLD, &mut size));
    }
    let mut rows = Rows::new("bare-mpi", size as usize);
    barriers(&mut rows);
    exchange(&mut rows);
    for load in Load::all() {
        sends(&mut rows, load);
        puts(&mut rows, load);
    }
    let is_first = rank() == 0;
    // SAFETY: all is done.
    done(unsafe { ffi::MPI_Finalize() });
    is_first.then_some(rows)
}

fn barrier() {
    // SAFETY: MPI is initialised.
    done(unsafe { ffi::MPI_Barrier(ffi::RSMPI_COMM_WORLD) });
}

fn rank() -> usize {
    let mut rank = 0;
    // SAFETY: MPI is initialised, and writes one number.
    done(unsafe { ffi::MPI_Comm_rank(ffi::RSMPI_COMM_WORLD, &mut rank) });
    rank as usize
}

fn barriers(rows: &mut Rows) {
    for _ in 0..60 {
        let begin = Instant::now();
        (0..50).for_each(|_| barrier());
        rows.add("sync", 0, 0, begin.elapsed() / 50);
    }
}

fn exchange(rows: &mut Rows) {
    let others = rows.processes - 1;
    let (from, mut into) = (vec![1_u8; LARGE * (others + 1)], vec![0_u8; LARGE * (others + 1)]);
    for _ in 0..15 {
        barrier();
        let begin = Instant::now();
        let (from, into) = (from.as_ptr().cast(), into.as_mut_ptr().cast());
        // SAFETY: the buffers have room for LARGE bytes from and to every process.
        unsafe {
            let (byte, count) = (ffi::RSMPI_UINT8_T, LARGE as c_int);
            let world = ffi::RSMPI_COMM_WORLD;
            done(ffi::MPI_Alltoall(from, count, byte, into, count, byte, world));
        }
        barrier();
        rows.add("exchange", others, LARGE * others, begin.elapsed());
    }
}

/// What process 0 says.
fn agreed(number: u32) -> u32 {
    let mut said = [number];
    // SAFETY: MPI is initialised, and writes one number.
    unsafe {
        let world = ffi::RSMPI_COMM_WORLD;
        done(ffi::MPI_Bcast(said.as_mut_ptr().cast(), 1, ffi::RSMPI_UINT32_T, 0, world));
    }
    said[0]
}

/// Times `round`, which does in one superstep what the load says. Where that takes long, in fewer samples of
/// fewer supersteps than LPF's.
fn sample(
    rows: &mut Rows,
    pattern: &str,
    load: Load,
    from: &mut [u8],
    into: *const u8,
    mut round: impl FnMut(*const u8),
) {
    let count = from.len() / load.bytes;
    let (start, mut rounds) = (Instant::now(), 1);
    for sample in 0..=load.samples {
        from.fill(sample as u8);
        barrier();
        let begin = Instant::now();
        (0..rounds).for_each(|_| round(from.as_ptr()));
        let time = begin.elapsed() / rounds;
        barrier();
        // SAFETY: it is as long as `from`, and all have finished with it.
        let arrived = unsafe { std::slice::from_raw_parts(into, from.len()) };
        assert!(arrived.iter().all(|&byte| byte == sample as u8), "it has arrived");
        let is_late = agreed((start.elapsed() > TIME).into()) == 1;
        // The first one warms up, and tells how many supersteps there is time for; none may be.
        if sample > 0 || is_late {
            rows.add(pattern, count, from.len(), time);
        } else {
            let affordable = TIME.div_duration_f64(time) as usize / load.samples;
            rounds = agreed(affordable.clamp(1, load.rounds()) as u32);
        }
        if is_late {
            break;
        }
    }
}

/// Each message is one of MPI's, and says by its tag which one it is: a receiver does not know in which order
/// others send.
fn sends(rows: &mut Rows, load: Load) {
    let (own, others, bytes) = (rank(), rows.processes - 1, load.bytes);
    let (each, count) = (load.each(others), bytes as c_int);
    let order = scattered(each);
    let mut from = vec![0_u8; each * others * bytes];
    let mut into = vec![0_u8; each * others * bytes];
    let into = into.as_mut_ptr();
    let places: Vec<usize> = (0..each).collect();
    // SAFETY: a value of the library's.
    let mut requests = vec![unsafe { ffi::RSMPI_REQUEST_NULL }; 2 * each * others];
    sample(rows, "naive", load, &mut from, into, |from| {
        let (receives, sends) = requests.split_at_mut(each * others);
        let (mut receives, mut sends) = (receives.iter_mut(), sends.iter_mut());
        // SAFETY: messages and requests lie within their buffers, which live until all are complete.
        unsafe {
            let (byte, world) = (ffi::RSMPI_UINT8_T, ffi::RSMPI_COMM_WORLD);
            for Message { from, place, at, .. } in load.messages(own, others, &places) {
                let (at, from, tag) = (into.add(at).cast(), from as c_int, place as c_int);
                let request = receives.next().expect("one for each");
                done(ffi::MPI_Irecv(at, count, byte, from, tag, world, request));
            }
            for Message { to, place, start, .. } in load.messages(own, others, &order) {
                let (start, to, tag) = (from.add(start).cast(), to as c_int, place as c_int);
                let request = sends.next().expect("one for each");
                done(ffi::MPI_Isend(start, count, byte, to, tag, world, request));
            }
            let all = requests.len() as c_int;
            done(ffi::MPI_Waitall(all, requests.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE));
        }
    });
}

/// Each message is a put of MPI's, between two fences.
fn puts(rows: &mut Rows, load: Load) {
    let (own, others, bytes) = (rank(), rows.processes - 1, load.bytes);
    let (each, count) = (load.each(others), bytes as c_int);
    let order = scattered(each);
    let mut from = vec![0_u8; each * others * bytes];
    let mut into = vec![0_u8; each * others * bytes];
    let size = into.len() as ffi::MPI_Aint;
    let into = into.as_mut_ptr();
    // SAFETY: the window is `into`; puts lie within it and within `from`, and both live until it is gone.
    unsafe {
        let (byte, world) = (ffi::RSMPI_UINT8_T, ffi::RSMPI_COMM_WORLD);
        let mut window = ffi::RSMPI_WIN_NULL;
        done(ffi::MPI_Win_create(into.cast(), size, 1, ffi::RSMPI_INFO_NULL, world, &mut window));
        done(ffi::MPI_Win_fence(0, window));
        sample(rows, "one-sided", load, &mut from, into, |from| {
            for Message { to, start, at, .. } in load.messages(own, others, &order) {
                let (start, to, at) = (from.add(start).cast(), to as c_int, at as ffi::MPI_Aint);
                done(ffi::MPI_Put(start, count, byte, to, at, count, byte, window));
            }
            done(ffi::MPI_Win_fence(0, window));
        });
        done(ffi::MPI_Win_free(&mut window));
    }
}
