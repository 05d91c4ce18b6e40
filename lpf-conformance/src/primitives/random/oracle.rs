//! What memory may hold after a superstep of a random program.
//!
//! Before each superstep every byte is a function of superstep, process, slot and place, so every
//! request carries a pattern of its own and any process can compute any other's sources. After it,
//! a byte that several requests cover must hold the byte of one of them. Where that byte is of one
//! only, it stands for an edge from each other request to the winner: it came later. Contract: the
//! outcome equals that of some serial order of whole requests over each overlap. So the edges over
//! all overlaps form no cycle. (Where two requests carry the same byte to a place, one place in
//! 256, that place says nothing about them.)

use std::collections::BTreeSet;
use std::ops::Range;

use lpf_core::Pid;

use super::program::{Program, Request, windows};
use crate::memory::Buffer;

/// The eight bytes at `8 * number` of slot `slot` at `pid` before superstep `step`.
fn word_before(step: usize, pid: Pid, slot: usize, number: u64) -> [u8; 8] {
    let place = (step as u64) << 52 ^ (pid as u64) << 46 ^ (slot as u64) << 40 ^ number;
    let mut word = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (word ^ word >> 32).to_le_bytes()
}

/// The bytes of a range before a superstep.
pub(super) fn bytes_before(step: usize, pid: Pid, slot: usize, range: Range<u64>) -> Vec<u8> {
    let numbers = range.start / 8..range.end.div_ceil(8);
    let words: Vec<_> = numbers.map(|number| word_before(step, pid, slot, number)).collect();
    let skip = (range.start % 8) as usize;
    words.as_flattened()[skip..][..(range.end - range.start) as usize].to_vec()
}

/// The requests that name slot `slot` of `pid` in a superstep: as target, as source.
pub(super) fn named(program: &Program, step: usize, pid: Pid, slot: usize) -> Vec<Range<u64>> {
    let requests = program.steps[step].requests.iter();
    requests
        .flat_map(|r| [(r.source, r.read()), (r.target, r.written())])
        .filter(|(place, _)| (place.pid, place.slot) == (pid, slot))
        .map(|(_, range)| range)
        .collect()
}

/// Checks one slot of process `pid` after superstep `step`.
pub(super) fn check(
    program: &Program,
    step: usize,
    pid: Pid,
    slot: usize,
    memory: &Buffer,
) -> Result<(), String> {
    let writers: Vec<&Request> = program.steps[step]
        .requests
        .iter()
        .filter(|r| (r.target.pid, r.target.slot) == (pid, slot) && r.bytes > 0)
        .collect();
    let mut edges = BTreeSet::new();
    let named = named(program, step, pid, slot);
    for window in windows(&program.slots[slot], pid, &named) {
        for part in split(&window, &writers) {
            check_part(step, pid, slot, memory, &writers, part, &mut edges)?;
        }
    }
    match cycle(writers.len(), &edges) {
        None => Ok(()),
        Some(at) => Err(format!(
            "process {pid}, slot {slot}, superstep {step}: no serial order of whole requests gives \
             these bytes; {:?} is on a cycle of {edges:?}",
            writers[at]
        )),
    }
}

/// Cuts a window where a writer begins or ends.
fn split(window: &Range<u64>, writers: &[&Request]) -> Vec<Range<u64>> {
    let mut cuts: Vec<u64> = writers
        .iter()
        .flat_map(|r| [r.written().start, r.written().end])
        .filter(|cut| window.contains(cut))
        .chain([window.start, window.end])
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// Checks bytes that the same requests cover, and adds (loser, winner) pairs to `edges`.
fn check_part(
    step: usize,
    pid: Pid,
    slot: usize,
    memory: &Buffer,
    writers: &[&Request],
    part: Range<u64>,
    edges: &mut BTreeSet<(usize, usize)>,
) -> Result<(), String> {
    let covering: Vec<usize> =
        (0..writers.len()).filter(|&i| writers[i].written().contains(&part.start)).collect();
    let bytes = memory.read(part.start as usize, (part.end - part.start) as usize);
    if covering.is_empty() {
        return check_untouched(step, pid, slot, part, &bytes);
    }
    let carried: Vec<Vec<u8>> = covering
        .iter()
        .map(|&i| {
            let (source, shift) = (writers[i].source, part.start - writers[i].target.offset);
            let from = source.offset + shift;
            bytes_before(step, source.pid, source.slot, from..from + bytes.len() as u64)
        })
        .collect();
    for (k, &byte) in bytes.iter().enumerate() {
        let winners: Vec<usize> =
            (0..covering.len()).filter(|&writer| carried[writer][k] == byte).collect();
        match winners[..] {
            [] => {
                let at = part.start + k as u64;
                let all: Vec<_> = covering.iter().map(|&i| writers[i]).collect();
                return Err(format!(
                    "process {pid}, slot {slot}, superstep {step}: byte {at} is {byte}, which none \
                     of its writers carries: {all:?}"
                ));
            }
            [winner] => {
                let winner = covering[winner];
                edges.extend(covering.iter().filter(|&&i| i != winner).map(|&i| (i, winner)));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks bytes that no request writes.
fn check_untouched(
    step: usize,
    pid: Pid,
    slot: usize,
    part: Range<u64>,
    bytes: &[u8],
) -> Result<(), String> {
    let expected = bytes_before(step, pid, slot, part.clone());
    match (part.zip(bytes)).zip(&expected).find(|((_, byte), expected)| byte != expected) {
        None => Ok(()),
        Some(((at, byte), expected)) => Err(format!(
            "process {pid}, slot {slot}, superstep {step}: byte {at}, which nobody writes, changed \
             from {expected} to {byte}"
        )),
    }
}

/// A node on a cycle of the edges, if there is one: what is left when nodes without an edge into
/// them are taken away one after another.
fn cycle(nodes: usize, edges: &BTreeSet<(usize, usize)>) -> Option<usize> {
    let mut incoming = vec![0usize; nodes];
    edges.iter().for_each(|&(_, to)| incoming[to] += 1);
    let mut free: Vec<usize> = (0..nodes).filter(|&node| incoming[node] == 0).collect();
    let mut taken = 0;
    while let Some(node) = free.pop() {
        taken += 1;
        for &(_, to) in edges.range((node, 0)..(node + 1, 0)) {
            incoming[to] -= 1;
            if incoming[to] == 0 {
                free.push(to);
            }
        }
    }
    (taken < nodes).then(|| (0..nodes).find(|&node| incoming[node] > 0).expect("one is left"))
}

#[cfg(test)]
mod tests {
    use super::super::program::{Place, SlotSpec, Step};
    use super::*;

    /// Processes 1 to 3 put bytes to slot 0 of process 0, in a ring of overlaps.
    fn three_writers() -> Program {
        let request = |pid: Pid, offset: u64, bytes: u64| Request {
            is_put: true,
            source: Place { pid, slot: 1, offset: 0 },
            target: Place { pid: 0, slot: 0, offset },
            bytes,
        };
        // 1 and 2 overlap in 20..40, 2 and 3 in 60..80, all three nowhere; 3 and 1 in 0..10 by a
        // second, wrapping piece is not possible, so a fourth request stands for it.
        let requests = vec![request(1, 0, 40), request(2, 20, 60), request(3, 60, 40)];
        let slot = SlotSpec { global: true, sizes: vec![100; 4] };
        let written = (0..8).map(|at| at == 0).collect();
        let step = Step { written, partial_syncs: 0, promise: false, requests };
        Program { procs: 4, slots: vec![slot.clone(), slot], steps: vec![step] }
    }

    /// What memory holds when the requests are carried out in this order.
    fn serial(program: &Program, order: &[usize]) -> Buffer {
        let mut memory = Buffer::of(&bytes_before(0, 0, 0, 0..100));
        for &i in order {
            let request = program.steps[0].requests[i];
            let bytes = bytes_before(0, request.source.pid, 1, request.read());
            memory.write(request.target.offset as usize, &bytes);
        }
        memory
    }

    #[test]
    fn every_serial_order_is_accepted() {
        let program = three_writers();
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            check(&program, 0, 0, 0, &serial(&program, &order)).unwrap();
        }
    }

    #[test]
    fn a_mixed_overlap_is_found() {
        let program = three_writers();
        let (first, second) = (serial(&program, &[0, 1, 2]), serial(&program, &[1, 0, 2]));
        let mut mixed = Buffer::of(&first.to_vec());
        mixed.write(30, &second.read(30, 10));
        let error = check(&program, 0, 0, 0, &mixed).unwrap_err();
        assert!(error.contains("no serial order"), "{error}");
    }

    #[test]
    fn a_ring_of_winners_is_found() {
        let mut program = three_writers();
        // Now 1 and 3 overlap too: 3 reaches over everything from 10 on.
        program.steps[0].requests[2] = Request {
            source: Place { pid: 3, slot: 1, offset: 0 },
            target: Place { pid: 0, slot: 0, offset: 10 },
            bytes: 90,
            is_put: true,
        };
        // 2 after 1 in 20..40, 3 after 2 in 60..80, 1 after 3 in 10..20.
        let mut memory = serial(&program, &[0, 1, 2]);
        memory.write(20, &serial(&program, &[2, 0, 1]).read(20, 20));
        memory.write(10, &serial(&program, &[2, 1, 0]).read(10, 10));
        let error = check(&program, 0, 0, 0, &memory).unwrap_err();
        assert!(error.contains("no serial order"), "{error}");
    }

    #[test]
    fn a_byte_outside_and_a_foreign_byte_are_found() {
        let program = three_writers();
        let good = serial(&program, &[0, 1, 2]);
        let mut memory = Buffer::of(&good.to_vec());
        memory.write(50, &[!good.read(50, 1)[0]]);
        assert!(check(&program, 0, 0, 0, &memory).unwrap_err().contains("none of its writers"));
        let source = Buffer::of(&bytes_before(0, 1, 1, 0..100));
        check(&program, 0, 1, 1, &source).unwrap();
        let mut source = Buffer::of(&source.to_vec());
        source.write(99, &[!source.read(99, 1)[0]]);
        assert!(check(&program, 0, 1, 1, &source).unwrap_err().contains("nobody writes"));
    }
}
