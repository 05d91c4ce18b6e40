//! Bytes: many, none, in pieces, in both directions, to the last one.

use std::time::{Duration, Instant};

use lpf_conformance::allowed;
use lpf_messages::{Piece, Transport};

use crate::support::*;

#[test]
fn a_hundred_mebibytes_each_way_at_once() {
    for p in [2, 3] {
        let bytes = 100 << 20;
        std::thread::scope(|scope| {
            for mut net in networks(p) {
                scope.spawn(move || {
                    let (rank, p) = (net.rank(), net.size());
                    let (to, from) = ((rank + 1) % p, (rank + p - 1) % p);
                    let message = pattern(rank, bytes);
                    let mut arrived = vec![0; bytes];
                    let sending = send(&mut net, to, tag(1), &message);
                    let receiving = receive(&mut net, from, tag(1), &mut arrived);
                    assert_eq!(wait(&mut net, &sending), bytes);
                    assert_eq!(wait(&mut net, &receiving), bytes);
                    assert!(arrived == pattern(from, bytes));
                });
            }
        });
    }
}

#[test]
fn who_waits_for_one_process_still_sends_to_the_others() {
    // 0 has much to send to 1, and waits for 2 alone; 2 answers when 1 has got it.
    let mut nets = networks(3);
    let message = pattern(5, 30 << 20);
    let [zero, one, two] = &mut nets[..] else { unreachable!() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let sending = send(zero, 1, tag(1), &message);
            receives(zero, 2, tag(1), b"it came");
            wait(zero, &sending);
        });
        scope.spawn(|| {
            receives(one, 0, tag(1), &message);
            one.send_copy(2, tag(1), b"tell 0").unwrap();
        });
        scope.spawn(|| {
            receives(two, 1, tag(1), b"tell 0");
            two.send_copy(0, tag(1), b"it came").unwrap();
        });
    });
}

/// Cuts bytes into `pieces` pieces of uneven lengths, some of them empty.
fn cut(bytes: usize, pieces: usize) -> Vec<std::ops::Range<usize>> {
    let cuts = pattern(pieces, 8 * (pieces - 1));
    let mut cuts: Vec<usize> = cuts
        .chunks(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()) as usize % (bytes + 1))
        .collect();
    cuts.extend([0, bytes, bytes / 2, bytes / 2]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

#[test]
fn thousands_of_pieces_are_gathered_and_scattered() {
    for (bytes, from_pieces, to_pieces) in
        [(10_000, 2000, 2000), (8 << 20, 2000, 3000), (5_000, 1, 4000), (3 << 20, 5000, 1)]
    {
        let mut nets = networks(2);
        let message = pattern(3, bytes);
        let mut arrived = vec![0; bytes];
        let base = arrived.as_mut_ptr();
        let from: Vec<Piece> =
            cut(bytes, from_pieces).into_iter().map(|range| Piece::of(&message[range])).collect();
        let to: Vec<Piece> = cut(bytes, to_pieces)
            .into_iter()
            .map(|range| Piece { base: base.wrapping_add(range.start), bytes: range.len() })
            .collect();
        let (left, right) = nets.split_at_mut(1);
        // SAFETY: both vectors live to the end and are left alone until both tickets are finished.
        let (sending, receiving) = unsafe {
            (left[0].send(1, tag(1), &from).unwrap(), right[0].receive(0, tag(1), &to).unwrap())
        };
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(wait(&mut left[0], &sending), bytes));
            assert_eq!(wait(&mut right[0], &receiving), bytes);
        });
        assert!(arrived == message, "{bytes} bytes, {from_pieces} to {to_pieces} pieces");
    }
}

#[test]
fn empty_messages_are_messages() {
    let mut nets = networks(2);
    // SAFETY: there is no memory.
    let early = unsafe { nets[1].receive(0, tag(1), &[]) }.unwrap();
    // SAFETY: as above.
    let sending = unsafe { nets[0].send(1, tag(1), &[]) }.unwrap();
    assert_eq!(wait(&mut nets[0], &sending), 0);
    nets[0].send_copy(1, tag(1), b"").unwrap();
    nets[0].send_copy(1, tag(1), b"x").unwrap();
    assert_eq!(wait(&mut nets[1], &early), 0);
    receives(&mut nets[1], 0, tag(1), b"");
    receives(&mut nets[1], 0, tag(1), b"x");
}

#[test]
fn a_receive_may_be_longer_than_its_message() {
    let mut nets = networks(2);
    let mut bytes = [7; 10];
    let ticket = receive(&mut nets[1], 0, tag(1), &mut bytes);
    nets[0].send_copy(1, tag(1), b"123").unwrap();
    nets[0].send_copy(1, tag(1), b"456").unwrap();
    assert_eq!(wait(&mut nets[1], &ticket), 3);
    receives(&mut nets[1], 0, tag(1), b"456");
    assert_eq!(&bytes, b"123\x07\x07\x07\x07\x07\x07\x07");
}

#[test]
fn copies_that_the_socket_does_not_take_keep_their_order() {
    // More than a socket holds, as copies and sends in turn. The last one is a send: waiting for it sends all.
    let mut nets = networks(2);
    let messages: Vec<Vec<u8>> = (0..598).map(|nth| pattern(nth, 40_000)).collect();
    let mut sending = Vec::new();
    for (nth, message) in messages.iter().enumerate() {
        match nth % 3 {
            0 => sending.push(send(&mut nets[0], 1, tag(1), message)),
            _ => nets[0].send_copy(1, tag(1), message).unwrap(),
        }
    }
    assert!(nets[0].test(sending.last().unwrap()).unwrap().is_none(), "the socket took it all");
    let (left, right) = nets.split_at_mut(1);
    std::thread::scope(|scope| {
        scope.spawn(|| sending.iter().for_each(|ticket| _ = wait(&mut left[0], ticket)));
        messages.iter().for_each(|message| receives(&mut right[0], 0, tag(1), message));
    });
}

#[test]
fn copies_leave_although_their_sender_goes() {
    // As many as the sockets hold between them, and more.
    for (p, count) in [(2, 1), (2, 10), (2, 20), (2, 30), (2, 200), (3, 30), (3, 200)] {
        let mut nets = networks(p);
        let messages: Vec<Vec<u8>> = (0..count).map(|nth| pattern(nth, 100_000)).collect();
        let mut receiver = nets.remove(1);
        let mut sender = nets.remove(0);
        // It leaves something unread, which must not cost the receiver what was sent.
        receiver.send_copy(0, tag(1), b"unread").unwrap();
        for message in &messages {
            sender.send_copy(1, tag(1), message).unwrap();
        }
        std::thread::scope(|scope| {
            scope.spawn(move || drop(sender));
            std::thread::sleep(Duration::from_millis(10));
            messages.iter().for_each(|message| receives(&mut receiver, 0, tag(1), message));
        });
    }
}

#[test]
fn idle_ends_when_something_comes_and_not_much_later_than_asked() {
    for p in [1, 2, 3] {
        let mut nets = networks(p);
        let mut sleeper = nets.remove(p - 1);
        let start = Instant::now();
        sleeper.idle(Duration::from_millis(30));
        let slept = start.elapsed();
        assert!((Duration::from_millis(29)..Duration::from_secs(5)).contains(&slept), "{slept:?}");
        if p > 1 {
            let mut bytes = [0; 4];
            let ticket = receive(&mut sleeper, 0, tag(1), &mut bytes);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(50));
                    nets[0].send_copy(p - 1, tag(1), b"wake").unwrap();
                });
                while sleeper.test(&ticket).unwrap().is_none() {
                    sleeper.idle(PATIENCE);
                }
            });
            assert!(start.elapsed() < allowed(PATIENCE), "it slept through");
        }
    }
}

#[test]
fn what_has_come_is_found_by_the_first_question_of_a_look() {
    for p in [2, 3] {
        let mut nets = networks(p);
        let mut buffers = [[0; 4]; 2];
        let tickets = [0, 1].map(|channel| {
            let buffer = &mut buffers[channel as usize];
            receive(&mut nets[1], 0, tag(channel), buffer)
        });
        assert_eq!(nets[1].test(&tickets[0]), Ok(None));
        nets[0].send_copy(1, tag(1), b"here").unwrap();
        nets[1].idle(PATIENCE);
        nets[1].look_again();
        assert_eq!(nets[1].test(&tickets[1]), Ok(Some(4)));
    }
}

#[test]
fn idle_ends_when_the_socket_has_room_again() {
    for p in [2, 3] {
        let mut nets = networks(p);
        let message = pattern(1, 20 << 20);
        let (left, right) = nets.split_at_mut(1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let sending = send(&mut left[0], 1, tag(1), &message);
                while left[0].test(&sending).unwrap().is_none() {
                    left[0].idle(PATIENCE);
                }
            });
            std::thread::sleep(Duration::from_millis(50));
            receives(&mut right[0], 0, tag(1), &message);
        });
    }
}
