//! Messages of a process to itself.

use lpf_messages::{Piece, Transport};

use crate::support::*;

/// This process alone, and among others.
fn alone_and_not() -> [(super::support::Net, usize); 2] {
    let mut others = networks(3);
    [(networks(1).remove(0), 0), (others.remove(1), 1)]
}

#[test]
fn order_and_tags_hold_whoever_comes_first() {
    for (mut net, own) in alone_and_not() {
        let (long, mut arrived) = (pattern(1, 100_000), vec![0; 100_000]);
        let early = receive(&mut net, own, tag(1), &mut arrived);
        let first = send(&mut net, own, tag(1), &long);
        assert_eq!(net.test(&first), Ok(Some(long.len())));
        assert_eq!(net.test(&early), Ok(Some(long.len())));
        assert!(arrived == long);

        let second = send(&mut net, own, tag(1), b"second");
        net.send_copy(own, tag(2), b"other").unwrap();
        net.send_copy(own, tag(1), b"third").unwrap();
        let fourth = send(&mut net, own, tag(1), b"fourth");
        assert_eq!(net.test(&second), Ok(None));
        receives(&mut net, own, tag(1), b"second");
        assert_eq!(net.test(&second), Ok(Some(6)));
        receives(&mut net, own, tag(1), b"third");
        receives(&mut net, own, tag(2), b"other");
        assert_eq!(net.test(&fourth), Ok(None));
        receives(&mut net, own, tag(1), b"fourth");
        assert_eq!(net.test(&fourth), Ok(Some(6)));
        assert_eq!(net.messages(), 5);
    }
}

#[test]
fn pieces_are_cut_on_both_sides() {
    let mut net = networks(1).remove(0);
    let (message, mut arrived) = (pattern(1, 1000), vec![0; 1000]);
    let from: Vec<Piece> = message.chunks(7).map(Piece::of).collect();
    let to: Vec<Piece> = arrived.chunks_mut(11).map(Piece::of_mut).collect();
    // SAFETY: both vectors live, and are left alone until the tickets are finished.
    let (sending, receiving) =
        unsafe { (net.send(0, tag(1), &from).unwrap(), net.receive(0, tag(1), &to).unwrap()) };
    assert_eq!((wait(&mut net, &sending), wait(&mut net, &receiving)), (1000, 1000));
    assert!(arrived == message);
}

#[test]
fn cancelled_sends_and_receives_are_gone() {
    for (mut net, own) in alone_and_not() {
        let mut bytes = [0; 9];
        let waiting = receive(&mut net, own, tag(1), &mut bytes);
        assert!(net.cancel(waiting));
        let sending = [b"cancelled", b"deliver 1", b"cancelled", b"deliver 2"]
            .map(|message| send(&mut net, own, tag(1), message));
        let [first, second, third, fourth] = sending;
        assert!(net.cancel(first) && net.cancel(third));
        receives(&mut net, own, tag(1), b"deliver 1");
        receives(&mut net, own, tag(1), b"deliver 2");
        assert_eq!((wait(&mut net, &second), wait(&mut net, &fourth)), (9, 9));
        assert_eq!(bytes, [0; 9]);
    }
}

#[test]
fn a_message_too_long_for_its_receive_breaks_the_connection_to_oneself() {
    for posted_first in [true, false] {
        for (mut net, own) in alone_and_not() {
            net.send_copy(own, tag(5), b"before").unwrap();
            let mut bytes = [0; 3];
            let broken = if posted_first {
                let ticket = receive(&mut net, own, tag(1), &mut bytes);
                let sending = send(&mut net, own, tag(1), b"four");
                assert!(net.test(&sending).is_err());
                assert!(net.cancel(sending));
                let broken = net.test(&ticket).unwrap_err();
                assert!(net.cancel(ticket));
                broken
            } else {
                let sending = send(&mut net, own, tag(1), b"four");
                let broken = try_receive(&mut net, own, tag(1), &mut bytes).unwrap_err();
                assert!(net.test(&sending).is_err());
                assert!(net.cancel(sending));
                broken
            };
            assert_eq!(broken.peer, Some(own));
            assert!(broken.reason.contains("longer than the 3 bytes"), "{broken}");
            assert!(net.send_copy(own, tag(1), b"").is_err());
            receives(&mut net, own, tag(5), b"before");
            assert_eq!(bytes, [0; 3]);
        }
    }
}

#[test]
fn a_forgotten_context_drops_messages_to_oneself() {
    let mut net = networks(1).remove(0);
    net.send_copy(0, tag(1), b"dropped").unwrap();
    net.forget(1);
    net.send_copy(0, tag(1), b"dropped too").unwrap();
    let mut bytes = [0; 11];
    let ticket = receive(&mut net, 0, tag(1), &mut bytes);
    assert_eq!(net.test(&ticket), Ok(None));
    assert!(net.cancel(ticket));
}
