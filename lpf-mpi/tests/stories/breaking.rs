//! What ends the traffic with a process, or all of it.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use lpf_messages::{Broken, Piece, Ticket, Transport};

use crate::support::*;

/// Waits for the error of a ticket.
fn error_of(net: &mut Net, ticket: &Ticket) -> Broken {
    let end = Instant::now() + PATIENCE;
    loop {
        match net.test(ticket) {
            Ok(None) => assert!(Instant::now() < end, "nothing comes"),
            Ok(Some(bytes)) => panic!("{bytes} bytes came"),
            Err(broken) => return broken,
        }
    }
}

/// Process 0 sends too much to process 1, which keeps up the traffic with others.
fn does_not_fit(net: &mut Net, bytes: usize) {
    let (rank, size) = (net.rank(), net.size());
    if size == 1 {
        return;
    }
    let out = pattern(1, bytes);
    match rank {
        0 => {
            let sent = send(net, 1, 5, &out);
            // Process 1 drops it.
            finish(net, &sent);
        }
        1 => {
            let mut target = vec![0; bytes];
            let room = bytes - 1;
            let too_short = receive(net, 0, 5, &mut target[..room]);
            let other = receive(net, 0, 6, &mut []);
            let broken = error_of(net, &too_short);
            assert_eq!(broken.peer, Some(0));
            let text =
                format!("a message of {bytes} bytes from process 0 is longer than the {room} ");
            assert!(broken.reason.starts_with(&text), "{}", broken.reason);
            assert_eq!(error_of(net, &other), broken);
            assert_eq!(net.send_copy(0, tag(1), &[]), Err(broken));
            assert!(net.cancel(too_short) && net.cancel(other));
            assert!(target.iter().all(|byte| *byte == 0));
            if size > 2 {
                net.send_copy(2, tag(7), b"still here").unwrap();
            }
        }
        _ => {}
    }
    if rank == 2 {
        assert_eq!(receive_whole(net, 1, 7, 10), b"still here");
    }
}

pub(crate) fn a_message_that_does_not_fit(net: &mut Net) {
    does_not_fit(net, 100);
}

pub(crate) fn a_long_message_that_does_not_fit(net: &mut Net) {
    does_not_fit(net, 5_000_000);
}

pub(crate) fn no_process_has_such_a_rank(net: &mut Net) {
    let size = net.size();
    let broken = net.send_copy(size, tag(1), &[]).unwrap_err();
    assert_eq!(broken.peer, Some(size));
    assert_eq!(broken.reason, format!("there is no process {size}"));
    // SAFETY: there is no memory.
    unsafe {
        assert_eq!(net.send(size, tag(1), &[]), Err(broken.clone()));
        assert_eq!(net.receive(size, tag(1), &[]), Err(broken));
    }
}

pub(crate) fn a_spent_ticket_is_an_error(net: &mut Net) {
    let rank = net.rank();
    let sent = send(net, rank, 1, b"word");
    assert_eq!(finish(net, &sent), 4);
    assert!(net.test(&sent).is_err());
    let next = send(net, rank, 1, b"next");
    assert!(net.test(&sent).is_err());
    assert!(net.cancel(sent));
    assert_eq!(finish(net, &next), 4);
    assert_eq!(receive_whole(net, rank, 1, 4), b"word");
    assert_eq!(receive_whole(net, rank, 1, 4), b"next");
}

pub(crate) fn nobody_calls_mpi_after_the_switch(_: &mut Net) {
    // A network of its own, which cannot be finished.
    let mut net = new_network();
    let net = &mut net;
    let (to, from) = neighbours(net);
    let (out, mut target) = (pattern(1, 10 << 20), vec![0; 100]);
    let waits = receive(net, from, 1, &mut target);
    let done = send(net, to, 2, b"done");
    let sent = (to != net.rank()).then(|| send(net, to, 3, &out));
    let switch = net.switch();
    std::thread::spawn(move || switch.throw("process 7 has died")).join().unwrap();
    let off = Broken { peer: None, reason: "process 7 has died".into() };
    assert_eq!(net.test(&done), Ok(Some(4)));
    assert_eq!(net.test(&waits), Err(off.clone()));
    assert_eq!(net.send_copy(to, tag(1), &[]), Err(off.clone()));
    // SAFETY: there is no memory.
    assert_eq!(unsafe { net.receive(from, tag(1), &[Piece::of(&[])]) }, Err(off.clone()));
    assert_eq!(net.progress(), Err(off));
    net.forget(1);
    net.idle(Duration::from_micros(1));
    assert!(net.cancel(waits));
    if let Some(sent) = sent {
        // MPI has it, or it has not begun.
        assert_eq!(net.cancel(sent), !APART.load(Relaxed));
        std::mem::forget(out);
    }
}
