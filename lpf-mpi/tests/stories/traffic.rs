//! Messages that arrive.

use lpf_messages::{Piece, Rank, Tag, Ticket, Transport};

use crate::support::*;

/// Longer messages have a body.
const LONGEST_WHOLE: usize = 4024;

pub(crate) fn equal_tags_arrive_in_order(net: &mut Net) {
    let (to, from) = neighbours(net);
    const MESSAGES: u32 = 3_000;
    let length = |nth: u32| if nth.is_multiple_of(7) { 5_000 } else { 4 + nth as usize % 50 };
    let out: Vec<Vec<u8>> = (0..MESSAGES)
        .map(|nth| {
            let mut bytes = vec![nth as u8; length(nth)];
            bytes[..4].copy_from_slice(&nth.to_le_bytes());
            bytes
        })
        .collect();
    let mut targets: Vec<Vec<u8>> = (0..MESSAGES).map(|_| vec![0; 6_000]).collect();
    let mut sends = Vec::new();
    let mut receives = Vec::new();
    for (nth, message) in out.iter().enumerate() {
        match nth % 3 {
            0 if message.len() < 4_000 => net.send_copy(to, tag(1), message).unwrap(),
            _ => sends.push(send(net, to, 1, message)),
        }
    }
    for target in &mut targets {
        receives.push(receive(net, from, 1, target));
    }
    for (nth, ticket) in receives.iter().enumerate().rev() {
        assert_eq!(finish(net, ticket), out[nth].len(), "message {nth}");
    }
    for (nth, target) in targets.iter().enumerate() {
        assert_eq!(target[..out[nth].len()], out[nth], "message {nth}");
    }
    sends.iter().for_each(|ticket| _ = finish(net, ticket));
}

pub(crate) fn what_comes_early_waits(net: &mut Net) {
    let (to, from) = neighbours(net);
    let own = |seed: u64, rank: Rank, bytes| pattern(seed + 100 * rank as u64, bytes);
    let rank = net.rank();
    let (short, long) = (own(1, rank, 100), own(2, rank, 100_000));
    net.send_copy(to, tag(1), &short).unwrap();
    let sent = send(net, to, 1, &long);
    net.send_copy(to, tag(2), b"now").unwrap();
    // All is here, as frames of a pair arrive in order.
    assert_eq!(receive_whole(net, from, 2, 10), b"now");
    assert_eq!(receive_whole(net, from, 1, 200), own(1, from, 100));
    assert_eq!(receive_whole(net, from, 1, 100_000), own(2, from, 100_000));
    finish(net, &sent);
}

pub(crate) fn tags_and_senders_are_told_apart(net: &mut Net) {
    let (rank, size) = (net.rank(), net.size());
    for to in 0..size {
        for channel in 0..5 {
            net.send_copy(to, tag(channel), &[rank as u8, channel as u8]).unwrap();
        }
    }
    for from in (0..size).rev() {
        for channel in [3, 0, 4, 1, 2] {
            assert_eq!(receive_whole(net, from, channel, 2), [from as u8, channel as u8]);
        }
    }
}

pub(crate) fn contexts_and_channels_have_all_bits(net: &mut Net) {
    let (to, from) = neighbours(net);
    let contexts = [1, 2, 257, 65_537, 1 << 24 | 1, u32::MAX];
    let channels = [0, 1, 1 << 16, 7 << 20 | 5, (1 << 24) - 1];
    let all =
        || contexts.iter().flat_map(|&context| channels.map(|channel| Tag { context, channel }));
    for tag in all() {
        let text = format!("{tag:?}");
        net.send_copy(to, tag, text.as_bytes()).unwrap();
    }
    let mut targets: Vec<(Tag, Vec<u8>)> = all().map(|tag| (tag, vec![0; 100])).collect();
    targets.reverse();
    for (tag, target) in &mut targets {
        // SAFETY: the target is left alone until the ticket is finished.
        let ticket = unsafe { net.receive(from, *tag, &[Piece::of_mut(target)]) }.unwrap();
        let bytes = finish(net, &ticket);
        assert_eq!(target[..bytes], *format!("{tag:?}").as_bytes());
    }
}

pub(crate) fn messages_without_bytes(net: &mut Net) {
    let (to, from) = neighbours(net);
    net.send_copy(to, tag(1), &[]).unwrap();
    // SAFETY: there is no memory.
    let sent = unsafe { net.send(to, tag(1), &[]) }.unwrap();
    assert_eq!(finish(net, &sent), 0);
    let empty: [u8; 0] = [];
    // SAFETY: as above.
    let sent = unsafe { net.send(to, tag(1), &[Piece::of(&empty); 3]) }.unwrap();
    assert_eq!(finish(net, &sent), 0);
    // SAFETY: as above.
    let ticket = unsafe { net.receive(from, tag(1), &[]) }.unwrap();
    assert_eq!(finish(net, &ticket), 0);
    assert_eq!(receive_whole(net, from, 1, 0), []);
    assert_eq!(receive_whole(net, from, 1, 100), []);
}

pub(crate) fn every_length_around_the_limits(net: &mut Net) {
    let (to, from) = neighbours(net);
    let limits = [1, 64, 1024, LONGEST_WHOLE, 4096, 8192, 32 << 10, 64 << 10, 1 << 20];
    for limit in limits {
        for bytes in limit - 1..=limit + 1 {
            let out = pattern(bytes as u64, bytes);
            let mut target = vec![0xee; bytes + 1];
            let posted_first = (bytes % 2 == 0).then(|| receive(net, from, 1, &mut target));
            let sent = send(net, to, 1, &out);
            let ticket = posted_first.unwrap_or_else(|| receive(net, from, 1, &mut target));
            assert_eq!(finish(net, &ticket), bytes);
            assert_eq!(finish(net, &sent), bytes);
            assert_eq!((&target[..bytes], target[bytes]), (&out[..], 0xee));
        }
    }
}

/// Cuts `bytes` bytes into pieces of varied lengths, some empty, about `piece` each.
fn cuts(seed: u64, bytes: usize, piece: usize) -> Vec<usize> {
    let mut left = bytes;
    let mut cuts = Vec::new();
    for word in pattern(seed, 8 * bytes.min(1 << 16)).chunks(8).cycle() {
        let word = u64::from_le_bytes(word.try_into().unwrap()) as usize;
        let cut = (word % (2 * piece + 1)).min(left);
        cuts.push(cut);
        left -= cut;
        if left == 0 {
            return cuts;
        }
    }
    cuts
}

/// Pieces of `memory`, in this order, with 3 bytes between them.
fn spread(memory: &mut [u8], cuts: &[usize]) -> Vec<Piece> {
    let mut rest = memory;
    let mut pieces = Vec::new();
    for &cut in cuts {
        let (piece, behind) = rest.split_at_mut(cut);
        pieces.push(Piece::of_mut(piece));
        rest = behind.split_at_mut(3).1;
    }
    pieces
}

pub(crate) fn many_pieces_cut_in_other_places(net: &mut Net) {
    let (to, from) = neighbours(net);
    let rank = net.rank() as u64;
    // Bytes, and mean lengths of the pieces there and here: packed, by type, and whole, in all pairs.
    let shapes: Vec<(usize, usize, usize)> = [20, 400, 3_000, 1 << 20]
        .into_iter()
        .flat_map(|there| [20, 400, 3_000, 1 << 20].map(|here| (there, here)))
        .flat_map(|(there, here)| [3_000, 40_000, 800_000].map(|bytes| (bytes, there, here)))
        .collect();
    for (nth, (bytes, there, here)) in shapes.into_iter().enumerate() {
        let seed = 1 + nth as u64;
        let (out, expected) =
            (pattern(seed + 1_000 * rank, bytes), pattern(seed + 1_000 * from as u64, bytes));
        let (cuts_out, cuts_in) = (cuts(seed, bytes, there), cuts(seed + 7, bytes, here));
        let mut source = vec![0; bytes + 3 * cuts_out.len()];
        let mut target = vec![0xee; bytes + 3 * cuts_in.len()];
        let sources = spread(&mut source, &cuts_out);
        let mut rest = &out[..];
        for piece in &sources {
            let (here, behind) = rest.split_at(piece.bytes);
            // SAFETY: the piece is of the source, which nobody else uses.
            unsafe { piece.base.copy_from_nonoverlapping(here.as_ptr(), here.len()) };
            rest = behind;
        }
        let targets = spread(&mut target, &cuts_in);
        // SAFETY: source and target are left alone until both are finished.
        let (received, sent) = unsafe {
            let received = net.receive(from, tag(1), &targets).unwrap();
            (received, net.send(to, tag(1), &sources).unwrap())
        };
        assert_eq!(finish(net, &received), bytes);
        assert_eq!(finish(net, &sent), bytes);
        let mut came = Vec::new();
        let mut at = 0;
        for cut in cuts_in {
            came.extend_from_slice(&target[at..at + cut]);
            assert_eq!(target[at + cut..at + cut + 3], [0xee; 3], "between the pieces");
            at += cut + 3;
        }
        assert!(came == expected, "{bytes} bytes in pieces of {there} and {here}");
    }
}

/// 2,000 pieces of one length, at a constant distance or a varied one.
pub(crate) fn many_pieces_of_one_length(net: &mut Net) {
    const PIECES: usize = 2_000;
    let (to, from) = neighbours(net);
    for piece in [8, 64, 1_000, 4_096] {
        for varied in [false, true] {
            let at = |nth: usize, distance: usize| {
                let start = nth * distance + if varied { nth * nth % (piece / 2) } else { 0 };
                start..start + piece
            };
            let source = pattern(9 + net.rank() as u64, (PIECES + 1) * 2 * piece);
            let theirs = pattern(9 + from as u64, (PIECES + 1) * 2 * piece);
            let mut target = vec![0xee; (PIECES + 1) * 3 * piece];
            let sources: Vec<Piece> =
                (0..PIECES).map(|nth| Piece::of(&source[at(nth, 2 * piece)])).collect();
            let targets: Vec<Piece> =
                (0..PIECES).map(|nth| Piece::of_mut(&mut target[at(nth, 3 * piece)])).collect();
            // SAFETY: source and target are left alone until both are finished.
            let (received, sent) = unsafe {
                let received = net.receive(from, tag(1), &targets).unwrap();
                (received, net.send(to, tag(1), &sources).unwrap())
            };
            assert_eq!(finish(net, &received), PIECES * piece);
            finish(net, &sent);
            let mut end = 0;
            for nth in 0..PIECES {
                let here = at(nth, 3 * piece);
                assert!(target[end..here.start].iter().all(|byte| *byte == 0xee));
                assert!(target[here.clone()] == theirs[at(nth, 2 * piece)], "{nth} of {piece}");
                end = here.end;
            }
        }
    }
}

pub(crate) fn large_both_ways_at_once(net: &mut Net) {
    let (to, from) = neighbours(net);
    const BYTES: usize = 64 << 20;
    let out = pattern(1 + net.rank() as u64, BYTES);
    let mut target = vec![0; BYTES];
    let received = receive(net, from, 1, &mut target);
    let sent = send(net, to, 1, &out);
    assert_eq!((finish(net, &sent), finish(net, &received)), (BYTES, BYTES));
    assert!(target == pattern(1 + from as u64, BYTES));
}

pub(crate) fn to_oneself(net: &mut Net) {
    let rank = net.rank();
    for bytes in [0, 10, LONGEST_WHOLE, 10_000, 3_000_000] {
        let out = pattern(bytes as u64, bytes);
        // Early, and posted.
        let sent = send(net, rank, 1, &out);
        assert!(receive_whole(net, rank, 1, bytes) == out);
        finish(net, &sent);
        let mut target = vec![0; bytes];
        let received = receive(net, rank, 2, &mut target);
        let sent = send(net, rank, 2, &out);
        finish(net, &received);
        finish(net, &sent);
        assert!(target == out);
    }
}

pub(crate) fn a_flood_is_kept(net: &mut Net) {
    let (to, from) = neighbours(net);
    const MESSAGES: u32 = 20_000;
    for nth in 0..MESSAGES {
        net.send_copy(to, tag(nth % 10), &nth.to_le_bytes()).unwrap();
    }
    meet(net);
    for nth in (0..MESSAGES).rev().filter(|nth| *nth < 10) {
        for later in (nth..MESSAGES).step_by(10) {
            assert_eq!(receive_whole(net, from, nth, 4), later.to_le_bytes());
        }
    }
}

pub(crate) fn a_long_copy_leaves_by_itself(net: &mut Net) {
    let (to, from) = neighbours(net);
    let mut out = pattern(5, 300_000);
    for _ in 0..10 {
        net.send_copy(to, tag(1), &out).unwrap();
    }
    let expected = out.clone();
    out.fill(0);
    for _ in 0..10 {
        assert!(receive_whole(net, from, 1, 300_000) == expected);
    }
}

/// A process that waits for a message nevertheless receives another one, whose sender waits for that.
pub(crate) fn who_asks_about_one_moves_all(net: &mut Net) {
    let (rank, size) = (net.rank(), net.size());
    if size < 2 || rank > 1 {
        return;
    }
    let bytes = 10 << 20;
    let other = 1 - rank;
    let mut word = [0; 1];
    if rank == 0 {
        let mut target = vec![0; bytes];
        let long = receive(net, other, 1, &mut target);
        let short = receive(net, other, 2, &mut word);
        // Sent when the long one has left.
        finish(net, &short);
        assert_eq!(finish(net, &long), bytes);
        assert!(target == pattern(3, bytes));
    } else {
        let out = pattern(3, bytes);
        let long = send(net, other, 1, &out);
        finish(net, &long);
        net.send_copy(other, tag(2), &[1]).unwrap();
    }
}

/// 2.2 GB in one piece, and in many.
pub(crate) fn more_than_32_bits_can_count(net: &mut Net) {
    let bytes = (1 << 31) + (1 << 27) + 12_345;
    let other = 1 - net.rank();
    for piece in [usize::MAX, 1_000_003] {
        let ticket: Ticket;
        if net.rank() == 0 {
            let out = pattern(77, bytes);
            let pieces: Vec<Piece> = out.chunks(piece.min(bytes)).map(Piece::of).collect();
            // SAFETY: the source lives until the ticket is finished.
            ticket = unsafe { net.send(other, tag(1), &pieces) }.unwrap();
            assert_eq!(finish(net, &ticket), bytes);
        } else {
            let mut target = vec![0; bytes + 1];
            let pieces: Vec<Piece> =
                target.chunks_mut(piece.min(bytes + 1)).map(Piece::of_mut).collect();
            // SAFETY: the target is left alone until the ticket is finished.
            ticket = unsafe { net.receive(other, tag(1), &pieces) }.unwrap();
            assert_eq!(finish(net, &ticket), bytes);
            assert_eq!(target.pop(), Some(0));
            assert!(target == pattern(77, bytes));
        }
    }
}
