//! Giving up sends and receives at every stage of theirs.

use lpf_messages::Transport;

use crate::support::*;

/// More than two sockets hold.
const HUGE: usize = 64 << 20;

#[test]
fn a_send_that_has_not_begun_is_never_sent() {
    let mut nets = networks(2);
    let huge = pattern(1, HUGE);
    let (left, right) = nets.split_at_mut(1);
    let (sender, receiver) = (&mut left[0], &mut right[0]);
    let first = send(sender, 1, tag(1), &huge);
    let second = send(sender, 1, tag(1), b"never");
    let third = send(sender, 1, tag(1), b"third");
    assert_eq!(sender.test(&first), Ok(None));
    assert!(sender.cancel(second));
    std::thread::scope(|scope| {
        scope.spawn(|| (wait(sender, &first), wait(sender, &third)));
        receives(receiver, 0, tag(1), &huge);
        receives(receiver, 0, tag(1), b"third");
    });
}

#[test]
fn a_long_send_half_out_is_never_received_and_leaves_its_memory_alone() {
    for p in [2, 3] {
        let mut nets = networks(p);
        let mut huge = pattern(1, HUGE);
        let (left, right) = nets.split_at_mut(1);
        let (sender, receiver) = (&mut left[0], &mut right[0]);
        let first = send(sender, 1, tag(1), &huge);
        sender.send_copy(1, tag(1), b"behind it").unwrap();
        assert_eq!(sender.test(&first), Ok(None));
        assert!(sender.cancel(first));
        let original = huge.clone();
        huge.fill(0xff);
        drop(huge);
        let mut arrived = vec![1; HUGE];
        std::thread::scope(|scope| {
            scope.spawn(|| receives(sender, 1, tag(1), b"done"));
            let ticket = receive(receiver, 0, tag(1), &mut arrived);
            receives(receiver, 0, tag(1), b"behind it");
            assert_eq!(receiver.test(&ticket), Ok(None));
            assert!(receiver.cancel(ticket));
            receiver.send_copy(0, tag(1), b"done").unwrap();
        });
        let out = arrived.iter().zip(&original).take_while(|(a, b)| a == b).count();
        assert!((1000..HUGE).contains(&out), "{out} bytes were out");
        assert!(arrived[out..].iter().all(|byte| *byte == 0));
    }
}

/// With its receive posted before it comes, while it comes, behind it, and never.
#[test]
fn what_was_given_up_while_it_waited_for_its_receive_is_no_message() {
    const LONG: usize = 8 << 20;
    // So much is kept without a receive.
    const HUGE: usize = 48 << 20;
    for posted in 0..4 {
        let mut nets = networks(2);
        let huge = pattern(1, HUGE);
        let mut arrived = vec![1; HUGE];
        let mut into = vec![1; LONG];
        let (left, right) = nets.split_at_mut(1);
        let (sender, receiver) = (&mut left[0], &mut right[0]);
        let mut tickets = Vec::new();
        if posted == 0 {
            tickets.push(receive(receiver, 0, tag(1), &mut arrived));
        }
        let first = send(sender, 1, tag(1), &huge);
        receiver.progress().unwrap();
        if posted == 1 {
            tickets.push(receive(receiver, 0, tag(1), &mut arrived));
        }
        assert!(sender.cancel(first));
        std::thread::scope(|scope| {
            // Whole ones come behind it.
            let long = pattern(2, LONG);
            let sending = send(sender, 1, tag(2), &long);
            scope.spawn(move || (wait(sender, &sending), drop(long)));
            if posted == 2 {
                tickets.push(receive(receiver, 0, tag(1), &mut arrived));
            }
            let ticket = receive(receiver, 0, tag(2), &mut into);
            assert_eq!(wait(receiver, &ticket), LONG, "{posted}");
        });
        assert_eq!(into, pattern(2, LONG), "{posted}");
        for ticket in tickets {
            assert_eq!(receiver.test(&ticket), Ok(None), "{posted}");
            assert!(receiver.cancel(ticket));
        }
    }
}

#[test]
fn finished_tickets_may_be_cancelled() {
    let mut nets = networks(2);
    let sending = send(&mut nets[0], 1, tag(1), b"there");
    let mut bytes = [0; 5];
    let receiving = receive(&mut nets[1], 0, tag(1), &mut bytes);
    settle(&mut nets[1]);
    assert!(nets[0].cancel(sending) && nets[1].cancel(receiving));
    assert_eq!(&bytes, b"there");
}

#[test]
fn a_receive_that_waits_is_taken_back() {
    let mut nets = networks(2);
    let mut buffers = [[0; 5]; 3];
    let [a, b, c] = &mut buffers;
    let tickets = [a, b, c].map(|buffer| receive(&mut nets[1], 0, tag(1), buffer));
    let [first, second, third] = tickets;
    assert!(nets[1].cancel(second));
    for message in [b"first", b"third", b"early"] {
        nets[0].send_copy(1, tag(1), message).unwrap();
    }
    wait(&mut nets[1], &first);
    wait(&mut nets[1], &third);
    receives(&mut nets[1], 0, tag(1), b"early");
    assert_eq!(buffers, [*b"first", [0; 5], *b"third"]);
}

#[test]
fn a_receive_half_full_is_not_written_any_more() {
    let message = pattern(1, 50_000);
    let whole = frame(tag(1), &message);
    for first in [HEADER, HEADER + 1, 10_000, 40_000, whole.len() - 1] {
        let (mut net, mut bare) = against_bare(2);
        let mut bytes = vec![0; message.len()];
        let ticket = receive(&mut net, 1, tag(1), &mut bytes);
        write(&mut bare[0], &whole[..first]);
        settle(&mut net);
        assert_eq!(net.test(&ticket), Ok(None));
        assert!(net.cancel(ticket));
        assert_eq!(bytes[..first - HEADER], message[..first - HEADER]);
        bytes.fill(9);
        write(&mut bare[0], &whole[first..]);
        write(&mut bare[0], &frame(tag(1), b"next"));
        receives(&mut net, 1, tag(1), b"next");
        assert!(bytes.iter().all(|byte| *byte == 9), "after {first}");
    }
}

#[test]
fn a_receive_that_took_over_half_a_message_is_given_up_too() {
    let (mut net, mut bare) = against_bare(2);
    let whole = frame(tag(1), &pattern(1, 1000));
    write(&mut bare[0], &whole[..500]);
    settle(&mut net);
    let mut bytes = vec![0; 1000];
    let ticket = receive(&mut net, 1, tag(1), &mut bytes);
    assert!(net.cancel(ticket));
    bytes.fill(9);
    write(&mut bare[0], &whole[500..]);
    write(&mut bare[0], &frame(tag(1), b"next"));
    receives(&mut net, 1, tag(1), b"next");
    assert!(bytes.iter().all(|byte| *byte == 9));
}

#[test]
fn tickets_of_a_broken_connection_can_be_cancelled() {
    let (mut net, mut bare) = against_bare(2);
    let (huge, mut bytes, mut more) = (pattern(1, HUGE), vec![0; 100], vec![0; 100]);
    let sending = send(&mut net, 1, tag(1), &huge);
    let queued = send(&mut net, 1, tag(1), &huge);
    let half = receive(&mut net, 1, tag(1), &mut bytes);
    let waiting = receive(&mut net, 1, tag(1), &mut more);
    write(&mut bare[0], &frame(tag(1), &[1; 100])[..50]);
    settle(&mut net);
    drop(bare);
    for ticket in [sending, queued, half, waiting] {
        wait_broken(&mut net, &ticket);
        assert!(net.cancel(ticket));
    }
}
