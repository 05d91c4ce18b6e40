//! Every algorithm, carried out in memory for every small number of members.

use super::*;
use crate::blocks::Blocks;
use crate::schedule::Schedule;
use crate::simulate::{Memory, run, schedules, supersteps};
use crate::ways::Alltoall;

/// Maps x -> a x + b, composed: associative, and does not commute.
fn compose(left: &[u8], right: &[u8]) -> Vec<u8> {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    let maps = |bytes: &[u8]| -> Vec<(u32, u32)> {
        bytes.chunks_exact(8).map(|map| (word(&map[..4]), word(&map[4..]))).collect()
    };
    let compose = |((a, b), (c, d)): ((u32, u32), (u32, u32))| {
        (a.wrapping_mul(c), a.wrapping_mul(d).wrapping_add(b))
    };
    let all = maps(left).into_iter().zip(maps(right)).map(compose);
    all.flat_map(|(a, b)| [a.to_le_bytes(), b.to_le_bytes()].concat()).collect()
}

fn add(left: &[u8], right: &[u8]) -> Vec<u8> {
    let words = |bytes: &[u8]| -> Vec<u64> {
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
    };
    let all = words(left).into_iter().zip(words(right)).map(|(a, b)| a.wrapping_add(b));
    all.flat_map(u64::to_le_bytes).collect()
}

/// What member `me` contributes.
fn own(me: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + me * 101 + (me * at) / 7 + 1) as u8 | 1).collect()
}

fn all_of(range: std::ops::Range<usize>, bytes: usize, op: Op) -> Vec<u8> {
    range.map(|me| own(me, bytes)).reduce(|a, b| op(&a, &b)).unwrap()
}

type Op = fn(&[u8], &[u8]) -> Vec<u8>;

const MEMBERS: std::ops::RangeInclusive<usize> = 1..=19;

/// Elements of 8 bytes.
fn sizes(members: usize) -> [usize; 8] {
    [0, 1, 3, members.max(2) - 1, members, members + 1, 67, 8 * members + 5]
}

fn combining(
    name: &str,
    op: Op,
    to_all: bool,
    write: impl Fn(&mut Schedule, Member, usize, Vector),
) {
    for members in MEMBERS {
        for elements in sizes(members) {
            let v = Vector { bytes: 8 * elements, element: 8 };
            for root in [0, 1, members / 2, members - 1].map(|root| root % members) {
                for in_place in [false, true] {
                    let all = schedules(members, |s, m| write(s, m, root, v));
                    supersteps(&all);
                    let mut memory: Vec<Memory> = (0..members)
                        .map(|me| Memory {
                            input: own(me, v.bytes),
                            output: (!in_place).then(|| vec![0; v.bytes]),
                            scratch: vec![0; v.bytes],
                        })
                        .collect();
                    run(&all, &mut memory, op);
                    let expected = all_of(0..members, v.bytes, op);
                    for (me, memory) in memory.iter().enumerate() {
                        if to_all || me == root {
                            let what = format!("{name}: member {me} of {members}, {elements}");
                            assert_eq!(memory.result(), expected, "{what}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn reduces_combine_in_order() {
    combining("direct", compose, false, reduce_direct);
    combining("binomial", compose, false, |s, m, root, v| reduce_binomial(s, m, root, v, false));
    combining("binomial", add, false, |s, m, root, v| reduce_binomial(s, m, root, v, true));
    combining("square", compose, false, |s, m, root, v| reduce_square(s, m, root, v, false));
    combining("square", add, false, |s, m, root, v| reduce_square(s, m, root, v, true));
    combining("transpose", compose, false, reduce_transpose);
    combining("rabenseifner", compose, false, reduce_rabenseifner);
    combining("radix", compose, false, reduce_radix);
    combining("ring", add, false, reduce_ring);
}

#[test]
fn allreduces_combine_in_order() {
    combining("doubling", compose, true, |s, m, _, v| allreduce_doubling(s, m, v));
    combining("rabenseifner", compose, true, |s, m, _, v| allreduce_rabenseifner(s, m, v));
    combining("transpose", compose, true, |s, m, _, v| allreduce_transpose(s, m, v));
    combining("ring", add, true, |s, m, _, v| allreduce_ring(s, m, v));
}

#[test]
fn reduce_scatters_leave_everybody_its_block() {
    for (op, write) in [
        (compose as Op, reduce_scatter_direct as fn(&mut Schedule, Member, Blocks<'_>, Results)),
        (add as Op, reduce_scatter_ring),
    ] {
        for members in MEMBERS {
            for elements in sizes(members) {
                let v = Vector { bytes: 8 * elements, element: 8 };
                let blocks = v.blocks(members);
                let all = schedules(members, |s, m| {
                    write(s, m, blocks, Results::Place(Buffer::Scratch));
                });
                supersteps(&all);
                let mut memory: Vec<Memory> = (0..members)
                    .map(|me| Memory {
                        input: own(me, v.bytes),
                        scratch: vec![0; v.bytes],
                        ..Memory::default()
                    })
                    .collect();
                run(&all, &mut memory, op);
                let expected = all_of(0..members, v.bytes, op);
                for (me, memory) in memory.iter().enumerate() {
                    let block = v.blocks(members).of(me);
                    let range = block.start..block.end();
                    assert_eq!(memory.scratch[range.clone()], expected[range]);
                }
            }
        }
    }
}

#[test]
fn reduce_scatters_of_equal_blocks_leave_the_own_one_in_front() {
    for (op, write) in [
        (compose as Op, reduce_scatter_direct as fn(&mut Schedule, Member, Blocks<'_>, Results)),
        (add as Op, reduce_scatter_ring),
    ] {
        for members in MEMBERS {
            for len in [0, 1, 5] {
                // Some elements of longer blocks: a piece of the vector.
                let (first, bytes, stride) = (8, 8 * len, 8 * len + 24);
                let blocks = Blocks::Equal { first, stride, bytes };
                let all = schedules(members, |s, m| write(s, m, blocks, Results::Front));
                supersteps(&all);
                let mut memory: Vec<Memory> = (0..members)
                    .map(|me| Memory {
                        input: own(me, members * stride),
                        output: Some(vec![0; bytes]),
                        scratch: vec![0; members * bytes],
                    })
                    .collect();
                run(&all, &mut memory, op);
                let expected = all_of(0..members, members * stride, op);
                for (me, memory) in memory.iter().enumerate() {
                    assert_eq!(memory.result(), &expected[first + me * stride..][..bytes]);
                }
            }
        }
    }
}

#[test]
fn scans_combine_what_comes_before() {
    type Way = fn(&mut Schedule, Member, Vector, bool);
    let all_ways: [(&str, Way); 2] = [("direct", scan_direct), ("tree", scan_tree)];
    for (name, write) in all_ways {
        for exclusive in [false, true] {
            for members in MEMBERS {
                for elements in sizes(members) {
                    let v = Vector { bytes: 8 * elements, element: 8 };
                    let all = schedules(members, |s, m| write(s, m, v, exclusive));
                    supersteps(&all);
                    let mut memory: Vec<Memory> = (0..members)
                        .map(|me| Memory {
                            input: own(me, v.bytes),
                            output: Some(vec![0; v.bytes]),
                            scratch: vec![],
                        })
                        .collect();
                    run(&all, &mut memory, compose);
                    for (me, memory) in memory.iter().enumerate() {
                        let end = if exclusive { me } else { me + 1 };
                        if end > 0 {
                            let expected = all_of(0..end, v.bytes, compose);
                            assert_eq!(memory.result(), expected, "{name}, {me} of {members}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn broadcasts_reach_everybody() {
    let all_ways: [fn(&mut Schedule, Member, usize, Vector); 4] =
        [broadcast_direct, broadcast_binomial, broadcast_square, broadcast_two_phase];
    for (way, write) in all_ways.into_iter().enumerate() {
        for members in MEMBERS {
            for elements in sizes(members) {
                let v = Vector { bytes: 8 * elements, element: 8 };
                for root in [0, members / 2, members - 1] {
                    let all = schedules(members, |s, m| write(s, m, root, v));
                    supersteps(&all);
                    let mut memory = vec![Memory::default(); members];
                    memory.iter_mut().for_each(|one| one.output = Some(vec![0; v.bytes]));
                    memory[root].output = Some(own(root, v.bytes));
                    run(&all, &mut memory, compose);
                    for memory in &memory {
                        assert_eq!(memory.result(), own(root, v.bytes), "way {way}, {members}");
                    }
                }
            }
        }
    }
}

/// Lengths of the members' blocks: equal ones, or any, some empty.
fn lengths(members: usize, equal: Option<usize>) -> Vec<usize> {
    (0..members).map(|me| equal.unwrap_or((me * 7 + 3) % 11 * usize::from(me % 4 != 2))).collect()
}

fn ends(lengths: &[usize]) -> Vec<usize> {
    lengths
        .iter()
        .scan(0, |sum, len| {
            Some({
                *sum += len;
                *sum
            })
        })
        .collect()
}

#[test]
fn gathers_and_allgathers_put_every_block_at_its_place() {
    for members in MEMBERS {
        for equal in [None, Some(0), Some(1), Some(5)] {
            let lengths = lengths(members, equal);
            let ends = ends(&lengths);
            let total = 8 * ends[members - 1];
            let any = Blocks::Any { ends: &ends, element: 8, first: 0, most: 1 << 20 };
            let same = equal.map(|len| Blocks::Equal { first: 0, stride: 8 * len, bytes: 8 * len });
            let expected: Vec<u8> = (0..members).flat_map(|me| own(me, 8 * lengths[me])).collect();
            for blocks in [Some(any), same].into_iter().flatten() {
                let fresh = |me: usize| Memory {
                    input: own(me, 8 * lengths[me]),
                    output: Some(vec![0; total]),
                    scratch: vec![0; total],
                };
                for (to_all, way) in [(false, 0), (false, 1), (true, 0), (true, 1), (true, 2)] {
                    if way == 1 && !to_all && matches!(blocks, Blocks::Any { .. }) {
                        continue; // the tree is for blocks of one length
                    }
                    for root in [0, members / 2, members - 1] {
                        let all = schedules(members, |s, m| match (to_all, way) {
                            (false, 0) => gather_direct(s, m, root, blocks),
                            (false, _) => gather_binomial(s, m, root, blocks),
                            (true, 0) => allgather_direct(s, m, blocks),
                            (true, 1) => allgather_ring(s, m, blocks),
                            (true, _) => allgather_bruck(s, m, blocks),
                        });
                        supersteps(&all);
                        let mut memory: Vec<Memory> = (0..members).map(fresh).collect();
                        for (me, memory) in memory.iter_mut().enumerate() {
                            let (block, own) = (blocks.of(me), memory.input.clone());
                            let output = memory.output.as_mut().unwrap();
                            if to_all {
                                output[block.start..block.end()].copy_from_slice(&own);
                            }
                        }
                        run(&all, &mut memory, compose);
                        for (me, memory) in memory.iter().enumerate() {
                            if to_all || me == root {
                                assert_eq!(memory.result(), expected, "{way}: {me} of {members}");
                            }
                        }
                        let scatter = schedules(members, |s, m| match way {
                            1 if !to_all => scatter_binomial(s, m, root, blocks),
                            _ => scatter_direct(s, m, root, blocks),
                        });
                        supersteps(&scatter);
                        let mut memory: Vec<Memory> = (0..members)
                            .map(|me| Memory {
                                input: if me == root { expected.clone() } else { vec![] },
                                output: Some(vec![0; 8 * lengths[me]]),
                                scratch: vec![0; total],
                            })
                            .collect();
                        run(&scatter, &mut memory, compose);
                        for (me, memory) in memory.iter().enumerate() {
                            assert_eq!(memory.result(), own(me, 8 * lengths[me]));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn alltoalls_transpose() {
    for members in MEMBERS {
        for len in [0, 1, 5] {
            let bytes = 8 * len;
            let blocks = Blocks::Equal { first: 0, stride: bytes, bytes };
            let block = |from: usize, to: usize| own(from * members + to, bytes);
            for bruck in [false, true] {
                let all = schedules(members, |s, m| match bruck {
                    false => alltoall_direct(s, m, blocks, blocks),
                    true => alltoall_bruck(s, m, blocks, blocks),
                });
                supersteps(&all);
                let mut memory: Vec<Memory> = (0..members)
                    .map(|me| Memory {
                        input: (0..members).flat_map(|to| block(me, to)).collect(),
                        output: Some(vec![0; members * bytes]),
                        scratch: vec![0; Alltoall::Bruck.scratch(members).kept * bytes],
                    })
                    .collect();
                run(&all, &mut memory, compose);
                for (me, memory) in memory.iter().enumerate() {
                    let expected: Vec<u8> = (0..members).flat_map(|from| block(from, me)).collect();
                    assert_eq!(memory.result(), expected);
                }
            }
        }
    }
}
