//! What can be done before there is a network.

use std::time::{Duration, Instant};

use lpf_conformance::assert_in_time;
use lpf_messages::Transport;
use lpf_mpi::World;
use mpi::ffi;

use crate::support::*;

/// Stories of programs that bring MPI up themselves, in one process.
pub(crate) const OF_PROGRAMS: [(&str, fn()); 2] = [
    ("a program with one thread is refused", a_program_with_one_thread_is_refused),
    ("where one thread may call MPI no other does", where_one_thread_may_call_no_other_does),
];

/// Initialises MPI for threads of this kind, and finalises it afterwards.
fn with_mpi(threads: i32, then: impl FnOnce()) {
    let mut provided = 0;
    let none = std::ptr::null_mut();
    // SAFETY: MPI is not initialised.
    assert_eq!(unsafe { ffi::MPI_Init_thread(none, none.cast(), threads, &mut provided) }, 0);
    assert_eq!(provided, threads);
    then();
    // SAFETY: it was initialised above.
    assert_eq!(unsafe { ffi::MPI_Finalize() }, 0);
    let text = World::init(PATIENCE).unwrap_err().reason;
    assert_eq!(text, "MPI was finalised, and cannot be initialised again");
}

fn a_program_with_one_thread_is_refused() {
    assert!(!lpf_mpi::is_up());
    // SAFETY: a constant of MPI's.
    let single = unsafe { ffi::RSMPI_THREAD_SINGLE };
    with_mpi(single, || {
        assert!(lpf_mpi::is_up());
        // SAFETY: the world's communicator is one.
        let world = unsafe { World::hook(ffi::RSMPI_COMM_WORLD, PATIENCE) };
        let text = world.unwrap_err().reason;
        assert!(text.contains("MPI_THREAD_FUNNELED"), "{text}");
    });
}

fn where_one_thread_may_call_no_other_does() {
    // SAFETY: a constant of MPI's.
    let funneled = unsafe { ffi::RSMPI_THREAD_FUNNELED };
    with_mpi(funneled, || {
        let mut net = new_network();
        let net = std::thread::spawn(move || {
            let text = net.send_copy(0, tag(1), b"no").unwrap_err().reason;
            assert!(text.contains("this thread is not the one"), "{text}");
            // SAFETY: the world's communicator is one.
            let world = unsafe { World::hook(ffi::RSMPI_COMM_WORLD, PATIENCE) };
            assert_eq!(world.unwrap_err().reason, text);
            net
        });
        let mut net = net.join().unwrap();
        net.send_copy(0, tag(1), b"yes").unwrap();
        assert_eq!(receive_whole(&mut net, 0, 1, 3), b"yes");
        net.finish(PATIENCE).unwrap();
    });
}

pub(crate) fn bytes_are_broadcast(world: &mut World) {
    for bytes in [0, 1, 100, 1 << 20] {
        let wanted = pattern(3, bytes);
        let given = if world.rank() == 0 { &wanted[..] } else { b"not looked at" };
        assert!(world.broadcast(given, PATIENCE).unwrap() == wanted);
    }
}

pub(crate) fn processes_of_a_host_are_counted(world: &mut World) {
    // These all run on this one.
    let size = world.size();
    let hosts = world.hosts(PATIENCE).unwrap();
    assert_eq!(hosts.numbers, vec![0; size]);
    assert_eq!((hosts.own.processes, hosts.own.world), (size, size));
    assert!((1..=cores_of_this_machine()).contains(&hosts.own.cores), "{hosts:?}");
}

/// However many of them this process may use.
fn cores_of_this_machine() -> usize {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    text.lines().filter(|line| line.starts_with("processor")).count()
}

pub(crate) fn an_error_handler_is_left_as_it_was() {
    // SAFETY: constants and handles of this MPI; a handler that was asked for is given back.
    let handler = || unsafe {
        let mut handler = ffi::RSMPI_ERRORS_RETURN;
        assert_eq!(ffi::MPI_Comm_get_errhandler(ffi::RSMPI_COMM_WORLD, &mut handler), 0);
        let copy = handler;
        ffi::MPI_Errhandler_free(&mut handler);
        copy
    };
    for wanted in [
        // SAFETY: constants of this MPI.
        unsafe { ffi::RSMPI_ERRORS_ARE_FATAL },
        // SAFETY: as above.
        unsafe { ffi::RSMPI_ERRORS_RETURN },
    ] {
        // SAFETY: as above.
        unsafe { ffi::MPI_Comm_set_errhandler(ffi::RSMPI_COMM_WORLD, wanted) };
        new_world().finish(PATIENCE).unwrap();
        assert!(handler() == wanted);
    }
    let text = World::init(PATIENCE).unwrap_err().reason;
    assert!(text.starts_with("MPI is initialised already"), "{text}");
}

/// The last process is late: the others go on without it, and without MPI.
pub(crate) fn who_does_not_come_is_not_waited_for(net: &mut Net) {
    meet(net);
    if net.rank() + 1 == net.size() {
        std::thread::sleep(Duration::from_secs(1));
        return;
    }
    let world_without = || {
        let begin = Instant::now();
        // SAFETY: the world's communicator is one.
        let world = unsafe { World::hook(ffi::RSMPI_COMM_WORLD, Duration::from_millis(200)) };
        (world.map(|_| ()).unwrap_err().reason, begin.elapsed())
    };
    let (text, time) = world_without();
    assert_eq!(text, "not all processes arrived at the duplication of the communicator in time");
    assert_in_time(time, Duration::from_millis(700));
}
