//! The stream that goes out, whatever the socket takes at a time.

use lpf_messages::Tag;
use proptest::prelude::*;

use super::super::frame::{Header, Kind};
use super::super::vectors::Walk;
use super::*;

/// A sending side, and a socket that takes as much as it is told to.
struct Sender {
    outgoing: Outgoing,
    operations: Slab<Operation>,
    vectors: Vectors,
    stream: Vec<u8>,
}

impl Sender {
    fn new() -> Self {
        let (operations, vectors) = (Slab::new(), Vectors::new());
        Sender { outgoing: Outgoing::default(), operations, vectors, stream: Vec::new() }
    }

    fn copy(&mut self, message: &[u8]) {
        self.outgoing.copy(&header(message));
        self.outgoing.copy(message);
    }

    /// Queues a send of a message that lives longer than this.
    fn send(&mut self, message: &[u8], cut: usize) -> u32 {
        self.send_as(Kind::Plain, message, cut)
    }

    fn send_as(&mut self, kind: Kind, message: &[u8], cut: usize) -> u32 {
        let send = self.operations.take();
        let operation = &mut self.operations[send];
        operation.header = header_of(kind, message);
        assert!(operation.pieces.set(&message.chunks(cut).map(Piece::of).collect::<Vec<_>>()));
        self.outgoing.push(send);
        send
    }

    /// The socket takes at most so many bytes.
    fn take(&mut self, bytes: usize) {
        self.outgoing.gather(&self.operations, &mut self.vectors);
        let bytes = bytes.min(self.vectors.bytes());
        let end = self.stream.len();
        self.stream.resize(end + bytes, 0);
        // SAFETY: all messages live longer than the sender, and not in its stream.
        let read = unsafe { Walk::new(&self.vectors).read(&mut self.stream[end..]) };
        assert_eq!(read, bytes);
        self.outgoing.out(bytes, false, &mut self.operations);
    }
}

fn header(message: &[u8]) -> [u8; HEADER] {
    header_of(Kind::Plain, message)
}

fn header_of(kind: Kind, message: &[u8]) -> [u8; HEADER] {
    Header { tag: Tag { context: 1, channel: 2 }, bytes: message.len(), kind }.encode()
}

fn frame(message: &[u8]) -> Vec<u8> {
    [&header(message)[..], message].concat()
}

/// The stream of a send between two copies that is cancelled when so many bytes are out.
fn cancelled(kind: Kind, [before, message, after]: [&[u8]; 3], out: usize) -> Vec<u8> {
    let mut sender = Sender::new();
    sender.copy(before);
    let send = sender.send_as(kind, message, 3);
    sender.copy(after);
    sender.take(out);
    sender.outgoing.withdraw(send, &sender.operations);
    while !sender.outgoing.is_empty() {
        sender.take(5);
    }
    sender.stream
}

#[test]
fn a_send_cancelled_after_any_number_of_bytes_leaves_whole_frames() {
    let parts: [&[u8]; 3] = [b"before", b"message", b"after"];
    let [before, message, after] = parts;
    let whole = frame(before).len() + frame(message).len();
    for out in 0..whole {
        let mut expected = frame(before);
        if out > expected.len() {
            expected.extend(frame(message));
        }
        expected.extend(frame(after));
        assert_eq!(cancelled(Kind::Plain, parts, out), expected, "after {out} bytes");
    }
}

#[test]
fn a_long_send_cancelled_after_any_number_of_bytes_says_so_in_its_end() {
    let parts: [&[u8]; 3] = [b"before", b"message", b"after"];
    let [before, message, after] = parts;
    let first = frame(before).len();
    let whole = first + frame(message).len() + HEADER;
    for out in 0..=whole {
        let mut expected = frame(before);
        if out > first {
            let begun = (out - first).saturating_sub(HEADER).min(message.len());
            let is_whole = begun == message.len();
            let kind = if is_whole { Kind::Ended } else { Kind::GivenUp };
            expected.extend(header_of(Kind::Ended, message));
            expected.extend(&message[..begun]);
            expected.extend(&[0; 7][begun..]);
            expected.extend(header_of(kind, message));
        }
        expected.extend(frame(after));
        assert_eq!(cancelled(Kind::Ended, parts, out), expected, "after {out} bytes");
    }
}

#[test]
fn more_pieces_than_a_call_takes_go_out_in_order() {
    let message: Vec<u8> = (0..5000_u32).map(|byte| byte as u8).collect();
    let mut sender = Sender::new();
    let send = sender.send(&message, 1);
    sender.copy(b"after");
    sender.take(usize::MAX);
    assert_eq!(sender.operations[send].stage, Stage::Moving);
    while !sender.outgoing.is_empty() {
        sender.take(usize::MAX);
    }
    assert_eq!(sender.operations[send].stage, Stage::Finished);
    assert_eq!(sender.stream, [frame(&message), frame(b"after")].concat());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_stream_is_what_was_sent(
        messages in prop::collection::vec((0..300_usize, 1..40_usize, 0..3_u8), 1..40),
        taken in prop::collection::vec(1..500_usize, 1..20),
    ) {
        let bytes: Vec<Vec<u8>> =
            messages.iter().enumerate().map(|(nth, (bytes, ..))| vec![nth as u8; *bytes]).collect();
        let mut taken = taken.into_iter().cycle();
        let mut sender = Sender::new();
        let mut sends = Vec::new();
        let mut expected = Vec::new();
        for (message, (_, cut, how)) in std::iter::zip(&bytes, messages) {
            match how {
                0 => sender.copy(message),
                1 => sends.push(sender.send(message, cut)),
                _ => sends.push(sender.send_as(Kind::Ended, message, cut)),
            }
            match how {
                2 => {
                    let header = header_of(Kind::Ended, message);
                    expected.extend([&header[..], message, &header].concat());
                }
                _ => expected.extend(frame(message)),
            }
            if cut % 3 == 0 {
                sender.take(taken.next().unwrap_or(1));
            }
        }
        while !sender.outgoing.is_empty() {
            sender.take(taken.next().unwrap_or(1));
        }
        prop_assert_eq!(sender.stream, expected);
        for send in sends {
            prop_assert_eq!(sender.operations[send].stage, Stage::Finished);
        }
    }
}
