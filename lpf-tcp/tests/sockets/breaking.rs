//! Connections that break, and those that do not.

use std::io::{ErrorKind, Read};

use lpf_messages::{Ticket, Transport};
use lpf_tcp::sockets::Sockets;

use crate::support::*;

/// The connection to process 1 is broken for a reason that contains `part`; that to 2 works.
fn only_one_is_broken(net: &mut Net, bare: &mut std::net::TcpStream, ticket: &Ticket, part: &str) {
    let broken = wait_broken(net, ticket);
    assert_eq!(broken.peer, Some(1));
    assert!(broken.reason.contains(part), "{broken}");
    assert_eq!(net.test(ticket), Err(broken.clone()), "it stays broken");
    assert_eq!(net.send_copy(1, tag(1), b"x"), Err(broken.clone()));
    let mut bytes = [0; 1];
    assert_eq!(try_receive(net, 1, tag(1), &mut bytes).unwrap_err(), broken);
    assert_eq!(net.progress(), Ok(()));

    net.send_copy(2, tag(1), b"still here").unwrap();
    assert_eq!(read(bare, HEADER + 10), frame(tag(1), b"still here"));
    write(bare, &frame(tag(1), b"so am I"));
    receives(net, 2, tag(1), b"so am I");
}

#[test]
fn a_death_within_a_frame_breaks_that_connection_only() {
    let whole = frame(tag(1), &pattern(1, 1000));
    for (length, part) in [
        (0, "its connection was closed"),
        (7, "within a header"),
        (HEADER, "1000 bytes before the end"),
        (HEADER + 500, "500 bytes before the end"),
    ] {
        let (mut net, mut bare) = against_bare(3);
        let (mut bytes, mut early) = (vec![0; 1000], [0; 6]);
        let before = receive(&mut net, 1, tag(2), &mut early);
        let ticket = receive(&mut net, 1, tag(1), &mut bytes);
        write(&mut bare[0], &frame(tag(2), b"before"));
        write(&mut bare[0], &frame(tag(3), b"kept"));
        write(&mut bare[0], &whole[..length]);
        drop(bare.remove(0));
        only_one_is_broken(&mut net, &mut bare[0], &ticket, part);
        // What came before is there, posted or not.
        assert_eq!(wait(&mut net, &before), 6);
        assert_eq!(&early, b"before");
        receives(&mut net, 1, tag(3), b"kept");
    }
}

#[test]
fn a_sender_that_dies_while_nobody_waits_leaves_half_a_message_to_nobody() {
    let (mut net, mut bare) = against_bare(2);
    write(&mut bare[0], &frame(tag(1), &pattern(1, 1000))[..HEADER + 480]);
    drop(bare);
    settle(&mut net);
    let mut bytes = vec![0; 1000];
    let broken = try_receive(&mut net, 1, tag(1), &mut bytes).unwrap_err();
    assert!(broken.reason.contains("520 bytes before the end"), "{broken}");
}

#[test]
fn sends_to_the_dead_fail_and_what_they_sent_is_still_received() {
    for p in [2, 3] {
        let (mut net, mut bare) = against_bare(p);
        write(&mut bare[0], &frame(tag(1), b"last words"));
        // Unread bytes at its end: a reset and not an orderly end.
        net.send_copy(1, tag(9), b"unread").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        drop(bare.remove(0));
        let huge = pattern(1, 64 << 20);
        let sending = send(&mut net, 1, tag(1), &huge);
        assert_eq!(wait_broken(&mut net, &sending).peer, Some(1));
        assert!(net.cancel(sending));
        receives(&mut net, 1, tag(1), b"last words");
        let mut bytes = [0; 1];
        assert!(try_receive(&mut net, 1, tag(1), &mut bytes).is_err());
    }
}

#[test]
fn a_message_longer_than_its_receive_breaks_the_connection() {
    for waits in [false, true] {
        let (mut net, mut bare) = against_bare(3);
        let mut bytes = [7; 4];
        let message = frame(tag(1), b"12345");
        if waits {
            write(&mut bare[0], &message);
            settle(&mut net);
            let broken = try_receive(&mut net, 1, tag(1), &mut bytes).unwrap_err();
            assert_eq!(broken.peer, Some(1));
            assert!(broken.reason.contains("longer than the 4 bytes"), "{broken}");
        } else {
            let ticket = receive(&mut net, 1, tag(1), &mut bytes);
            write(&mut bare[0], &message);
            let (_, two) = bare.split_at_mut(1);
            only_one_is_broken(&mut net, &mut two[0], &ticket, "longer than the 4 bytes");
        }
        assert_eq!(bytes, [7; 4]);
        // The other side learns of it.
        assert!(matches!(bare[0].read(&mut [0]), Ok(0) | Err(_)));
    }
}

#[test]
fn a_message_still_arriving_that_its_receive_cannot_hold_breaks_the_connection() {
    let (mut net, mut bare) = against_bare(2);
    write(&mut bare[0], &frame(tag(1), b"12345")[..HEADER + 2]);
    settle(&mut net);
    let mut bytes = [7; 4];
    let broken = try_receive(&mut net, 1, tag(1), &mut bytes).unwrap_err();
    assert!(broken.reason.contains("longer than the 4 bytes"), "{broken}");
    assert_eq!(bytes, [7; 4]);
    settle(&mut net);
}

#[test]
fn what_is_no_frame_breaks_the_connection() {
    for bytes in [b"GET / HTTP/1.1\r\n\r\n..".to_vec(), vec![0; 100], vec![0xff; 16]] {
        let (mut net, mut bare) = against_bare(3);
        let mut buffer = [0; 1];
        let ticket = receive(&mut net, 1, tag(1), &mut buffer);
        write(&mut bare[0], &bytes);
        let (_, two) = bare.split_at_mut(1);
        only_one_is_broken(&mut net, &mut two[0], &ticket, "begins no frame");
    }
}

#[test]
fn more_than_may_wait_breaks_the_connection() {
    // In many messages, and in many empty ones.
    for (bytes, count) in [(1 << 20, 65_usize), (0, 300_000)] {
        let (mut net, mut bare) = against_bare(3);
        let mut buffer = [0; 1];
        let ticket = receive(&mut net, 1, tag(1), &mut buffer);
        let (one, two) = bare.split_at_mut(1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                use std::io::Write;
                let message = frame(tag(2), &vec![0; bytes]);
                let block = message.repeat(1 + 100_000 / message.len());
                let blocks = count.div_ceil(block.len() / message.len());
                // It may be refused halfway.
                let _ = (0..blocks).try_for_each(|_| one[0].write_all(&block));
            });
            only_one_is_broken(&mut net, &mut two[0], &ticket, "no receive is posted");
        });
    }
}

#[test]
fn calls_that_cannot_be_answered_are_refused() {
    let mut nets = networks(2);
    let mut bytes = [0; 1];
    assert_eq!(nets[0].send_copy(2, tag(1), b"").unwrap_err().peer, Some(2));
    assert_eq!(
        try_receive(&mut nets[0], u32::MAX as usize, tag(1), &mut bytes).unwrap_err().peer,
        Some(u32::MAX as usize)
    );
    let ticket = receive(&mut nets[0], 1, tag(1), &mut bytes);
    let copy = Ticket(ticket.0);
    assert!(nets[0].cancel(ticket));
    assert!(nets[0].test(&copy).unwrap_err().reason.contains("spent"));
    assert!(nets[0].cancel(copy) && nets[0].cancel(Ticket(u64::MAX)));
}

#[test]
fn a_network_needs_a_stream_to_each_of_the_others() {
    let stream = || Some(pair(&listener()).0.into());
    for (rank, streams) in [
        (0, vec![]),
        (1, vec![None]),
        (0, vec![stream(), stream()]),
        (0, vec![None, None]),
        (2, vec![stream(), stream()]),
    ] {
        let refused = Sockets::new(rank, streams, NoControl).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
    }
}
