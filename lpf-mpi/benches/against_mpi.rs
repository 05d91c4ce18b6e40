//! The network against bare MPI, in one run and alternating: what the protocol's way costs.
//!
//! `cargo bench -p lpf-mpi --features mpi` starts two processes of itself with MPI's own launcher.
//! Sources are rewritten and targets read before every sample, outside of its time.

#[allow(dead_code, reason = "the rest is of the tests")]
#[path = "../tests/stories/launch.rs"]
mod launch;
#[allow(dead_code, reason = "the rest is of the tests")]
#[path = "../tests/stories/support.rs"]
mod support;

use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::time::Instant;

use lpf_messages::{Piece, Rank, Transport};
use lpf_mpi::World;
use mpi::ffi;
use support::{Net, PATIENCE, finish, new_network, pattern, receive, send, tag};

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("child") => child(),
        Some("--list" | "--test") => {}
        _ => launch::pinned(2),
    }
}

/// Both sides of a comparison: nanoseconds of one exchange, sample by sample.
struct Row {
    name: String,
    mpi: Vec<f64>,
    ours: Vec<f64>,
}

impl Row {
    fn print(&mut self) {
        let [mpi, ours] = [&mut self.mpi, &mut self.ours].map(|samples| {
            samples.sort_by(f64::total_cmp);
            // On a machine that does other things, too, the low ones tell of the program.
            [0, samples.len() / 10, samples.len() / 2].map(|nth| samples[nth])
        });
        println!(
            "{:28} MPI {:>9.0} {:>9.0} {:>9.0}  ours {:>9.0} {:>9.0} {:>9.0}  ratio {:.2} {:.2} {:.2}",
            self.name,
            mpi[0],
            mpi[1],
            mpi[2],
            ours[0],
            ours[1],
            ours[2],
            ours[0] / mpi[0],
            ours[1] / mpi[1],
            ours[2] / mpi[2]
        );
    }
}

/// Samples of both, one after the other.
fn compare(
    net: &mut Net,
    name: String,
    samples: usize,
    exchanges: usize,
    memory: &mut [Vec<u8>; 2],
    mut mpi: impl FnMut(&mut [Vec<u8>; 2]),
    mut ours: impl FnMut(&mut Net, &mut [Vec<u8>; 2]),
) {
    let mut row = Row { name, mpi: Vec::new(), ours: Vec::new() };
    for nth in 0..samples {
        for which in [nth % 2, 1 - nth % 2] {
            let [source, target] = &mut *memory;
            source.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
            black_box(target.iter().step_by(64).map(|byte| u64::from(*byte)).sum::<u64>());
            support::meet(net);
            let begin = Instant::now();
            for _ in 0..exchanges {
                if which == 0 { mpi(memory) } else { ours(net, memory) }
            }
            let time = begin.elapsed().as_nanos() as f64 / exchanges as f64;
            if which == 0 { row.mpi.push(time) } else { row.ours.push(time) }
        }
    }
    if net.rank() == 0 {
        row.print();
    }
}

fn byte() -> ffi::MPI_Datatype {
    // SAFETY: a constant of MPI's.
    unsafe { ffi::RSMPI_UINT8_T }
}

/// An exchange by one call.
fn sendrecv(comm: ffi::MPI_Comm, other: c_int, source: &[u8], target: &mut [u8]) {
    let (out, bytes) = (source.as_ptr().cast::<c_void>(), source.len() as c_int);
    let into = target.as_mut_ptr().cast::<c_void>();
    // SAFETY: the memory is valid for the call.
    unsafe {
        let status = ffi::RSMPI_STATUS_IGNORE;
        ffi::MPI_Sendrecv(
            out,
            bytes,
            byte(),
            other,
            1,
            into,
            bytes,
            byte(),
            other,
            1,
            comm,
            status,
        );
    }
}

/// Where pieces are in a block of memory, with room between them: at a constant distance, or not.
fn places(count: usize, bytes: usize, regular: bool) -> Vec<usize> {
    (0..count).map(|nth| 2 * bytes * nth + if regular { 0 } else { 64 * (nth % 3) }).collect()
}

/// A type of many pieces, made for one message.
fn kind(places: &[usize], bytes: usize) -> ffi::MPI_Datatype {
    let lengths = vec![bytes as c_int; places.len()];
    let places: Vec<ffi::MPI_Aint> = places.iter().map(|place| *place as ffi::MPI_Aint).collect();
    // SAFETY: the lists have so many entries.
    unsafe {
        let mut kind = ffi::RSMPI_DATATYPE_NULL;
        let count = places.len() as c_int;
        let (lengths, places) = (lengths.as_ptr(), places.as_ptr());
        ffi::MPI_Type_create_hindexed(count, lengths, places, byte(), &mut kind);
        ffi::MPI_Type_commit(&mut kind);
        kind
    }
}

fn isend_irecv(
    comm: ffi::MPI_Comm,
    other: c_int,
    (source, out): (*const u8, ffi::MPI_Datatype),
    (target, into): (*mut u8, ffi::MPI_Datatype),
    count: usize,
) {
    // SAFETY: the callers' memory is valid until both have ended, which is waited for.
    unsafe {
        let mut requests = [ffi::RSMPI_REQUEST_NULL; 2];
        let count = count as c_int;
        ffi::MPI_Irecv(target.cast(), count, into, other, 1, comm, &mut requests[0]);
        ffi::MPI_Isend(source.cast(), count, out, other, 1, comm, &mut requests[1]);
        ffi::MPI_Waitall(2, requests.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE);
    }
}

fn ours(net: &mut Net, other: Rank, sources: &[Piece], targets: &[Piece]) {
    // SAFETY: the callers' memory is valid until both are finished, which is waited for.
    let (received, sent) = unsafe {
        let received = net.receive(other, tag(1), targets).unwrap();
        (received, net.send(other, tag(1), sources).unwrap())
    };
    while net.test(&received).unwrap().is_none() {
        std::hint::spin_loop();
    }
    while net.test(&sent).unwrap().is_none() {
        std::hint::spin_loop();
    }
}

fn child() {
    let world = World::init(PATIENCE).unwrap();
    let mut network = new_network();
    let net = &mut network;
    let other = 1 - net.rank();
    let peer = other as c_int;
    // SAFETY: a constant of MPI's; a duplicate for what is compared.
    let comm = unsafe {
        let mut comm = ffi::RSMPI_COMM_NULL;
        ffi::MPI_Comm_dup(ffi::RSMPI_COMM_WORLD, &mut comm);
        comm
    };
    if net.rank() == 0 {
        println!("ns of one exchange: least, tenth, median");
    }
    for bytes in [16, 128, 1024, 2048, 4000, 4096, 6000, 8000, 8192, 16 << 10, 64 << 10, 256 << 10]
    {
        let mut memory = [pattern(1, bytes), vec![0; bytes]];
        let name = format!("{bytes} B, MPI_Sendrecv");
        let exchanges = if bytes <= 4096 { 100 } else { 10 };
        let mpi = |[source, target]: &mut [Vec<u8>; 2]| sendrecv(comm, peer, source, target);
        compare(net, name, 501, exchanges, &mut memory, mpi, |net, [source, target]| {
            let received = receive(net, other, 1, target);
            if bytes <= 1 << 10 {
                net.send_copy(other, tag(1), source).unwrap();
            } else {
                let sent = send(net, other, 1, source);
                finish(net, &sent);
            }
            while net.test(&received).unwrap().is_none() {
                std::hint::spin_loop();
            }
        });
    }
    for (count, bytes) in [(256, 4096), (256, 1024), (1000, 128), (2000, 64), (32, 65_536)] {
        for regular in [true, false] {
            let places = places(count, bytes, regular);
            let all = 2 * count * bytes + 256;
            let mut memory = [pattern(1, all), vec![0; all]];
            let name = format!("{count} x {bytes} B{}", if regular { "" } else { ", irregular" });
            let mpi = |[source, target]: &mut [Vec<u8>; 2]| {
                let (mut into, mut out) = (kind(&places, bytes), kind(&places, bytes));
                isend_irecv(comm, peer, (source.as_ptr(), out), (target.as_mut_ptr(), into), 1);
                // SAFETY: types that were made here.
                unsafe {
                    ffi::MPI_Type_free(&mut into);
                    ffi::MPI_Type_free(&mut out);
                }
            };
            compare(net, name, 301, 1, &mut memory, mpi, |net, [source, target]| {
                let cut = |memory: &mut Vec<u8>| -> Vec<Piece> {
                    let base = memory.as_mut_ptr();
                    let piece = |place: &usize| Piece { base: base.wrapping_add(*place), bytes };
                    places.iter().map(piece).collect()
                };
                let (sources, targets) = (cut(source), cut(target));
                ours(net, other, &sources, &targets);
            });
        }
    }
    for mebibytes in [1, 8, 64] {
        let bytes = mebibytes << 20;
        let mut memory = [pattern(1, bytes), vec![0; bytes]];
        let mpi = |[source, target]: &mut [Vec<u8>; 2]| {
            let (source, target) = ((source.as_ptr(), byte()), (target.as_mut_ptr(), byte()));
            isend_irecv(comm, peer, source, target, bytes);
        };
        let name = format!("{mebibytes} MiB");
        compare(net, name, 41, 1, &mut memory, mpi, |net, [source, target]| {
            ours(net, other, &[Piece::of(source)], &[Piece::of_mut(target)]);
        });
    }
    network.finish(PATIENCE).unwrap();
    world.finish(PATIENCE).unwrap();
}
