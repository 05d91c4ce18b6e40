//! Tickets that are cancelled, and contexts that end with messages under way.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use lpf_conformance::{allowed, assert_in_time};
use lpf_messages::{Piece, Tag, Transport};

use crate::support::*;

pub(crate) fn an_unmatched_receive_is_cancelled(net: &mut Net) {
    let (to, from) = neighbours(net);
    let mut kept = [0; 8];
    let mut tickets: Vec<_> = (0..5).map(|_| receive(net, from, 1, &mut kept)).collect();
    let mut wanted = [0; 8];
    tickets.push(receive(net, from, 1, &mut wanted));
    net.progress().unwrap();
    let last = tickets.pop().unwrap();
    tickets.into_iter().for_each(|ticket| assert!(net.cancel(ticket)));
    meet(net);
    net.send_copy(to, tag(1), &7_u64.to_le_bytes()).unwrap();
    assert_eq!(finish(net, &last), 8);
    assert_eq!((kept, wanted), ([0; 8], 7_u64.to_le_bytes()));
    meet(net);
}

pub(crate) fn a_finished_ticket_may_be_cancelled(net: &mut Net) {
    let (to, from) = neighbours(net);
    let (out, mut target) = (pattern(1, 100_000), vec![0; 100_000]);
    let received = receive(net, from, 1, &mut target);
    let sent = send(net, to, 1, &out);
    let short = send(net, to, 2, &out[..10]);
    assert!(net.cancel(short));
    receive_whole(net, from, 2, 10);
    meet(net);
    finish(net, &received);
    let begin = Instant::now();
    // It has left, or ends when its receiver, which waits in `meet`, has it.
    assert!(net.cancel(sent));
    assert_in_time(begin.elapsed(), Duration::from_secs(1));
    meet(net);
    assert!(target == out);
}

/// A body of MPI's that nobody receives cannot be stopped; that is said, and soon. When its receiver forgets
/// the context, it is received all the same, and the memory is free: the network can be finished. What would
/// go in parts has not begun, and ends at once.
pub(crate) fn a_body_under_way(net: &mut Net) {
    let (to, from) = neighbours(net);
    if to == net.rank() {
        return;
    }
    let out = pattern(1, 20 << 20);
    let tickets: Vec<_> = (0..5).map(|_| send(net, to, 1, &out)).collect();
    net.send_copy(to, tag(2), b"all").unwrap();
    receive_whole(net, from, 2, 3);
    let begin = Instant::now();
    for ticket in tickets {
        let ends = !APART.load(Relaxed);
        assert_eq!(net.cancel(ticket), ends, "who gives it up");
    }
    assert_in_time(begin.elapsed(), Duration::from_millis(500));
    meet(net);
    net.forget(1);
    // Bodies are read until the network is finished; the source would otherwise have to be leaked.
    let done = Tag { context: 2, channel: 0 };
    let end = Instant::now() + Duration::from_millis(300);
    while Instant::now() < end {
        net.progress().unwrap();
    }
    net.send_copy(to, done, &[]).unwrap();
    // SAFETY: there is no memory.
    let ticket = unsafe { net.receive(from, done, &[]) }.unwrap();
    finish(net, &ticket);
    std::mem::forget(out);
}

/// A long message to a process of this host ends at once on the side that gives it up, and for a sender whose
/// receiver does; what comes after it comes as ever.
pub(crate) fn what_goes_in_parts_is_given_up_at_once(net: &mut Net) {
    let (to, from) = neighbours(net);
    if APART.load(Relaxed) || to == net.rank() {
        return;
    }
    let out = pattern(1, 32 << 20);
    for receiver_ends in [true, false] {
        let mut target = vec![0; 32 << 20];
        let waits = receive(net, from, 1, &mut target);
        let sent = send(net, to, 1, &out);
        let begin = Instant::now();
        // SAFETY: the target lives on; the network writes to it in calls alone.
        while unsafe { target.as_ptr().cast::<u64>().read_volatile() } == 0 {
            net.progress().unwrap();
            assert!(begin.elapsed() < allowed(PATIENCE), "nothing comes");
        }
        // Everybody has seen something come before anybody gives up, and still not all of it.
        meet(net);
        if receiver_ends {
            assert!(net.cancel(waits));
            target.fill(7);
            assert_eq!(finish(net, &sent), out.len());
            meet(net);
            assert!(target.iter().all(|byte| *byte == 7), "what is given up is touched");
        } else {
            assert!(net.cancel(sent));
            meet(net);
            assert!(net.cancel(waits));
        }
        net.send_copy(to, tag(2), b"next").unwrap();
        assert_eq!(receive_whole(net, from, 2, 4), b"next");
        meet(net);
    }
}

pub(crate) fn a_packed_body_is_given_up_at_once(net: &mut Net) {
    let (to, from) = neighbours(net);
    let out = pattern(1, 50_000);
    let pieces: Vec<Piece> = out.chunks(100).map(Piece::of).collect();
    // SAFETY: the source lives until the ticket is cancelled.
    let sent = unsafe { net.send(to, tag(1), &pieces) }.unwrap();
    let begin = Instant::now();
    assert!(net.cancel(sent));
    assert_in_time(begin.elapsed(), Duration::from_millis(40));
    let expected = out.clone();
    drop(out);
    meet(net);
    assert!(receive_whole(net, from, 1, 50_000) == expected);
    meet(net);
}

pub(crate) fn what_an_ended_context_left_is_dropped(net: &mut Net) {
    let (to, from) = neighbours(net);
    let old = |channel| Tag { context: 3, channel };
    let new = |channel| Tag { context: 4, channel };
    let out = pattern(1, 3 << 20);
    // Some is there when the context is forgotten, some comes later.
    let mut sent = Vec::new();
    for round in 0..2 {
        for channel in 0..20 {
            net.send_copy(to, old(channel), b"old").unwrap();
            // SAFETY: the source lives until the tickets are finished.
            sent.push(unsafe { net.send(to, old(channel), &[Piece::of(&out)]) }.unwrap());
        }
        if round == 0 {
            meet(net);
            net.forget(3);
        }
    }
    // The receiver drops the bodies, so the sends end.
    sent.iter().for_each(|ticket| assert_eq!(finish(net, ticket), out.len()));
    net.send_copy(to, new(5), b"new").unwrap();
    let mut target = [0; 3];
    // SAFETY: the target is left alone until the ticket is finished.
    let ticket = unsafe { net.receive(from, new(5), &[Piece::of_mut(&mut target)]) }.unwrap();
    finish(net, &ticket);
    assert_eq!(&target, b"new");
    // A receive of the forgotten context meets nothing.
    // SAFETY: as above; cancelled.
    let ticket = unsafe { net.receive(from, old(0), &[Piece::of_mut(&mut target)]) }.unwrap();
    assert_eq!(net.test(&ticket), Ok(None));
    assert!(net.cancel(ticket));
    meet(net);
}

/// What was copied leaves, though its network is dropped at once.
pub(crate) fn a_dropped_network_lets_copies_leave(net: &mut Net) {
    let mut other = new_network();
    let (rank, size) = (other.rank(), other.size());
    if rank == 0 {
        for to in 1..size {
            for nth in 0..50 {
                let bytes = if nth % 5 == 0 { 200_000 } else { 100 };
                other.send_copy(to, tag(1), &pattern(nth, bytes)).unwrap();
            }
        }
        drop(other);
    } else {
        for nth in 0..50 {
            let bytes = if nth % 5 == 0 { 200_000 } else { 100 };
            assert!(receive_whole(&mut other, 0, 1, bytes) == pattern(nth, bytes));
        }
    }
    meet(net);
}

/// Who has come to the end receives what others gave up later, or they could not come.
pub(crate) fn what_is_given_up_late_is_dropped_at_the_end(net: &mut Net) {
    let mut other = new_network();
    let (to, _) = neighbours(&other);
    let out = pattern(1, 20 << 20);
    if other.rank() == 0 && to != 0 {
        // The others are waiting for this one.
        std::thread::sleep(Duration::from_millis(100));
        let sent = send(&mut other, to, 1, &out);
        other.cancel(sent);
    }
    other.forget(1);
    let begin = Instant::now();
    other.finish(PATIENCE).unwrap();
    assert_in_time(begin.elapsed(), Duration::from_secs(5));
    meet(net);
}
