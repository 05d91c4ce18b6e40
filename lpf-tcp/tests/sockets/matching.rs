//! Which message goes to which receive.

use lpf_messages::{Tag, Transport};

use crate::support::*;

fn others(net: &Net) -> impl Iterator<Item = usize> + use<> {
    let own = net.rank();
    (0..net.size()).filter(move |other| *other != own)
}

#[test]
fn messages_of_one_tag_arrive_in_the_order_they_were_sent() {
    for p in 2..=5 {
        let nets = networks(p);
        std::thread::scope(|scope| {
            for mut net in nets {
                scope.spawn(move || {
                    for nth in 0..200_usize {
                        for to in others(&net) {
                            let seed = nth * 100 + net.rank() * 10 + to;
                            net.send_copy(to, tag(3), &pattern(seed, nth * 7)).unwrap();
                        }
                    }
                    for nth in 0..200_usize {
                        for from in others(&net) {
                            let seed = nth * 100 + from * 10 + net.rank();
                            receives(&mut net, from, tag(3), &pattern(seed, nth * 7));
                        }
                    }
                    assert_eq!(net.messages(), 200 * (p as u64 - 1));
                });
            }
        });
    }
}

#[test]
fn receives_find_their_tag_whatever_came_first() {
    let mut nets = networks(2);
    for channel in 0..100 {
        nets[0].send_copy(1, tag(channel), &pattern(channel as usize, 50)).unwrap();
    }
    for channel in (0..100).rev() {
        receives(&mut nets[1], 0, tag(channel), &pattern(channel as usize, 50));
    }
}

#[test]
fn contexts_and_channels_are_told_apart() {
    let mut nets = networks(2);
    let tags = [(1, 2), (2, 1), (1, 1), (2, 2), (u32::MAX, (1 << 24) - 1), (0, 0)]
        .map(|(context, channel)| Tag { context, channel });
    let mut buffers = vec![[0; 1]; tags.len()];
    let tickets: Vec<_> = std::iter::zip(tags, &mut buffers)
        .map(|(tag, buffer)| receive(&mut nets[1], 0, tag, buffer))
        .collect();
    for (nth, tag) in tags.iter().enumerate().rev() {
        nets[0].send_copy(1, *tag, &[nth as u8]).unwrap();
    }
    for ticket in &tickets {
        assert_eq!(wait(&mut nets[1], ticket), 1);
    }
    assert_eq!(buffers.concat(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn messages_that_came_too_early_wait_in_order() {
    for p in [2, 3] {
        let mut nets = networks(p);
        for nth in 0..100 {
            nets[0].send_copy(1, tag(nth % 3), &pattern(nth as usize, 1000)).unwrap();
        }
        settle(&mut nets[1]);
        for nth in 0..100 {
            receives(&mut nets[1], 0, tag(nth % 3), &pattern(nth as usize, 1000));
        }
    }
}

#[test]
fn a_receive_posted_while_its_message_arrives_takes_over() {
    // At every length of what had come before: within the header, after it, at the end.
    let message = pattern(1, 60_000);
    let whole = frame(tag(9), &message);
    for first in [0, 1, 15, HEADER, 17, 1000, 30_000, whole.len() - 1, whole.len()] {
        let (mut net, mut bare) = against_bare(2);
        write(&mut bare[0], &whole[..first]);
        settle(&mut net);
        let mut bytes = vec![0; message.len() + 3];
        let ticket = receive(&mut net, 1, tag(9), &mut bytes);
        assert_eq!(net.test(&ticket).unwrap().is_some(), first == whole.len(), "after {first}");
        if first < whole.len() {
            write(&mut bare[0], &whole[first..]);
            write(&mut bare[0], &frame(tag(9), b"next"));
            assert_eq!(wait(&mut net, &ticket), message.len());
            receives(&mut net, 1, tag(9), b"next");
        }
        assert!(bytes[..message.len()] == message, "after {first}");
        assert_eq!(bytes[message.len()..], [0; 3]);
    }
}

#[test]
fn frames_may_come_in_single_bytes() {
    let (mut net, mut bare) = against_bare(3);
    let mut bytes = [0; 5];
    let ticket = receive(&mut net, 2, tag(1), &mut bytes);
    let stream = [frame(tag(1), b"hello"), frame(tag(2), b""), frame(tag(1), b"again")].concat();
    for byte in stream {
        write(&mut bare[1], &[byte]);
        net.progress().unwrap();
    }
    assert_eq!(wait(&mut net, &ticket), 5);
    assert_eq!(&bytes, b"hello");
    receives(&mut net, 2, tag(1), b"again");
    receives(&mut net, 2, tag(2), b"");
}

#[test]
fn what_belongs_to_a_forgotten_context_is_dropped_now_and_later() {
    let of = |context, channel| Tag { context, channel };
    let (mut net, mut bare) = against_bare(2);
    write(&mut bare[0], &frame(of(7, 1), b"before"));
    write(&mut bare[0], &frame(of(8, 1), b"kept"));
    let half = frame(of(7, 2), &pattern(1, 1000));
    write(&mut bare[0], &half[..500]);
    settle(&mut net);
    net.forget(7);
    write(&mut bare[0], &half[500..]);
    write(&mut bare[0], &frame(of(7, 1), b"after"));
    write(&mut bare[0], &frame(of(9, 1), b"new"));
    receives(&mut net, 1, of(9, 1), b"new");
    receives(&mut net, 1, of(8, 1), b"kept");
    let mut bytes = [0; 1000];
    for channel in [1, 2] {
        let ticket = receive(&mut net, 1, of(7, channel), &mut bytes);
        assert_eq!(net.test(&ticket), Ok(None));
        assert!(net.cancel(ticket));
    }
}

#[test]
fn forgetting_makes_room_for_other_messages() {
    // Five times 40 MiB, where 64 MiB may wait.
    let (mut net, mut bare) = against_bare(2);
    let message = pattern(2, 40 << 20);
    std::thread::scope(|scope| {
        let (bare, message) = (&mut bare[0], &message);
        let (said, heard) = std::sync::mpsc::channel();
        scope.spawn(move || {
            for context in 1..=5 {
                write(bare, &frame(Tag { context, channel: 0 }, message));
                write(bare, &frame(Tag { context, channel: 1 }, b"sent"));
                heard.recv_timeout(PATIENCE).unwrap();
            }
        });
        for context in 1..=5 {
            receives(&mut net, 1, Tag { context, channel: 1 }, b"sent");
            net.forget(context);
            said.send(()).unwrap();
        }
    });
}

/// 100 MiB come in context 1, where 64 may wait, and something behind it with the tag `behind`, on one
/// connection and beside others: that comes when `then` has been done, and no sooner.
fn comes_behind_what_is_held_back(behind: Tag, then: impl Fn(&mut Net, &[u8])) {
    for size in [2, 3] {
        let (mut net, mut bare) = against_bare(size);
        let message = pattern(3, 100 << 20);
        std::thread::scope(|scope| {
            let (bare, message) = (&mut bare[0], &message);
            scope.spawn(move || {
                write(bare, &frame(Tag { context: 1, channel: 0 }, message));
                write(bare, &frame(behind, b"behind"));
            });
            // It looks for long enough that all that may come has come.
            let mut bytes = [0; 6];
            let ticket = receive(&mut net, 1, behind, &mut bytes);
            let begin = std::time::Instant::now();
            while begin.elapsed() < std::time::Duration::from_millis(300) {
                assert_eq!(net.test(&ticket), Ok(None));
                net.idle(std::time::Duration::from_millis(1));
            }
            then(&mut net, message);
            assert_eq!(wait(&mut net, &ticket), 6, "of {size}");
            assert_eq!(&bytes, b"behind");
        });
    }
}

#[test]
fn what_is_longer_than_may_wait_is_held_back_until_it_is_received() {
    comes_behind_what_is_held_back(Tag { context: 1, channel: 1 }, |net, message| {
        receives(net, 1, Tag { context: 1, channel: 0 }, message);
    });
}

#[test]
fn what_is_held_back_and_forgotten_holds_up_nothing() {
    comes_behind_what_is_held_back(Tag { context: 2, channel: 0 }, |net, _message| net.forget(1));
}
