//! Every algorithm, carried out in memory for every small number of members.

use super::by_arrival::*;
use super::by_way::*;
use super::*;
use crate::arrival_pattern::chain::{Chain, Plan};
use crate::arrival_pattern::clairvoyant::Instance;
use crate::arrival_pattern::pairing::{Growth, Pairing};
use crate::arrival_pattern::trees::Tree;
use crate::blocks::Blocks;
use crate::schedule::{Buffer, Schedule};
use crate::simulate::{Memory, Random, run, schedules, supersteps};
use crate::ways::*;

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
    for &way in Reduce::ALL {
        combining(way.name(), add, false, |s, m, root, v| reduce((way, true), s, m, root, v));
        if way != Reduce::Ring {
            let write = |s: &mut _, m, root, v| reduce((way, false), s, m, root, v);
            combining(way.name(), compose, false, write);
        }
    }
}

#[test]
fn allreduces_combine_in_order() {
    for &way in Allreduce::ALL {
        let op = if way == Allreduce::Ring { add } else { compose as Op };
        combining(way.name(), op, true, |s, m, _, v| allreduce(way, s, m, v));
    }
}

/// Sums that are rounded: their bits tell in which order they were made.
fn add_floats(left: &[u8], right: &[u8]) -> Vec<u8> {
    let floats = |bytes: &[u8]| -> Vec<f64> {
        bytes.chunks_exact(8).map(|word| f64::from_le_bytes(word.try_into().unwrap())).collect()
    };
    let all = floats(left).into_iter().zip(floats(right)).map(|(a, b)| a + b);
    all.flat_map(f64::to_le_bytes).collect()
}

/// Vectors of which a piece of each block is combined at a time, as long as it is said: they come out as if they were
/// combined at once, to the bit, and what waits in a round has room for itself.
#[test]
fn pieces_of_blocks_have_the_bits_of_the_whole() {
    let number = |me: usize, nth: usize| {
        ((me * 7919 + nth * 31) as f64).sin() * 2f64.powi((nth * me % 13) as i32)
    };
    let check = |name: &str, write: &dyn Fn(&mut Schedule, Member, usize, Piece)| {
        for members in MEMBERS {
            for elements in [0, 3, 67, 40 * members + 3] {
                let v = Vector { bytes: 8 * elements, element: 8 };
                let root = elements % members;
                let combine = |pieces: &[Piece], scratch: usize| {
                    let mut memory: Vec<Memory> = (0..members)
                        .map(|me| Memory {
                            input: (0..elements)
                                .flat_map(|nth| number(me, nth).to_le_bytes())
                                .collect(),
                            output: Some(vec![0; v.bytes]),
                            scratch: vec![0; scratch],
                        })
                        .collect();
                    for &piece in pieces {
                        let all = schedules(members, |s, m| write(s, m, root, piece));
                        supersteps(&all);
                        run(&all, &mut memory, add_floats);
                    }
                    memory[root].result().to_vec()
                };
                let longest = v.blocks(members).longest();
                let whole = combine(&[v.into()], members * longest);
                for most in [8, 40] {
                    let pieces = longest.div_ceil(most).max(1);
                    let piece = |nth: usize| Piece { v, first: nth * most, most };
                    let pieces: Vec<Piece> = (0..pieces).map(piece).collect();
                    let what = format!("{name} of {members}, {elements} elements, {most}");
                    assert_eq!(combine(&pieces, members * most), whole, "{what}");
                }
            }
        }
    };
    for &way in Reduce::ALL.iter().filter(|way| way.scratch(4).of_blocks) {
        check(way.name(), &|s, m, root, piece| reduce((way, true), s, m, root, piece));
    }
    for &way in Allreduce::ALL.iter().filter(|way| way.scratch(4).of_blocks) {
        check(way.name(), &|s, m, _, piece| allreduce(way, s, m, piece));
    }
}

/// The operator that a reduce-scatter is tested with: a ring's has to commute.
fn op_of(way: ReduceScatter) -> Op {
    if way == ReduceScatter::Ring { add } else { compose }
}

#[test]
fn reduce_scatters_leave_everybody_its_block() {
    for (way, op) in ReduceScatter::ALL.iter().map(|&way| (way, op_of(way))) {
        for members in MEMBERS {
            for elements in sizes(members) {
                let v = Vector { bytes: 8 * elements, element: 8 };
                let blocks = v.blocks(members);
                let all = schedules(members, |s, m| {
                    reduce_scatter(way, s, m, blocks, Results::Place(Buffer::Scratch));
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
    for (way, op) in ReduceScatter::ALL.iter().map(|&way| (way, op_of(way))) {
        for members in MEMBERS {
            for len in [0, 1, 5] {
                // Some elements of longer blocks: a piece of the vector.
                let (first, bytes, stride) = (8, 8 * len, 8 * len + 24);
                let blocks = Blocks::Equal { first, stride, bytes };
                let all =
                    schedules(members, |s, m| reduce_scatter(way, s, m, blocks, Results::Front));
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
    for &way in Scan::ALL {
        for exclusive in [false, true] {
            for members in MEMBERS {
                for elements in sizes(members) {
                    let v = Vector { bytes: 8 * elements, element: 8 };
                    let all = schedules(members, |s, m| scan(way, s, m, v, exclusive));
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
                            assert_eq!(memory.result(), expected, "{way}, {me} of {members}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn broadcasts_reach_everybody() {
    for &way in Broadcast::ALL {
        for members in MEMBERS {
            for elements in sizes(members) {
                let v = Vector { bytes: 8 * elements, element: 8 };
                for root in [0, members / 2, members - 1] {
                    let all = schedules(members, |s, m| broadcast(way, s, m, root, v));
                    supersteps(&all);
                    let mut memory = vec![Memory::default(); members];
                    memory.iter_mut().for_each(|one| one.output = Some(vec![0; v.bytes]));
                    memory[root].output = Some(own(root, v.bytes));
                    run(&all, &mut memory, compose);
                    for memory in &memory {
                        assert_eq!(memory.result(), own(root, v.bytes), "{way} of {members}");
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

/// Blocks of lengths that may differ, and where they do not the same ones as blocks of one length.
fn for_all_blocks(mut check: impl FnMut(&[usize], Blocks<'_>, &[u8])) {
    for members in MEMBERS {
        for equal in [None, Some(0), Some(1), Some(5)] {
            let lengths = lengths(members, equal);
            let ends = ends(&lengths);
            let any = Blocks::Any { ends: &ends, element: 8, first: 0, most: 1 << 20 };
            let same = equal.map(|len| Blocks::Equal { first: 0, stride: 8 * len, bytes: 8 * len });
            let whole: Vec<u8> = (0..members).flat_map(|me| own(me, 8 * lengths[me])).collect();
            for blocks in [Some(any), same].into_iter().flatten() {
                check(&lengths, blocks, &whole);
            }
        }
    }
}

/// The tree is for blocks of one length.
fn takes(way: Gather, blocks: Blocks<'_>) -> bool {
    way == Gather::Direct || !matches!(blocks, Blocks::Any { .. })
}

#[test]
fn gathers_put_every_block_at_its_place_and_scatters_bring_it_back() {
    for_all_blocks(|lengths, blocks, whole| {
        let members = lengths.len();
        for &way in Gather::ALL.iter().filter(|&&way| takes(way, blocks)) {
            for root in [0, members / 2, members - 1] {
                let gathers = schedules(members, |s, m| gather(way, s, m, root, blocks));
                let scatters = schedules(members, |s, m| scatter(way, s, m, root, blocks));
                supersteps(&gathers);
                supersteps(&scatters);
                let scratch = vec![0; whole.len()];
                let mut memory: Vec<Memory> = (0..members)
                    .map(|me| Memory {
                        input: own(me, 8 * lengths[me]),
                        output: Some(vec![0; whole.len()]),
                        scratch: scratch.clone(),
                    })
                    .collect();
                run(&gathers, &mut memory, compose);
                assert_eq!(memory[root].result(), whole, "{way}: {root} of {members}");
                let mut memory: Vec<Memory> = (0..members)
                    .map(|me| Memory {
                        input: if me == root { whole.to_vec() } else { vec![] },
                        output: Some(vec![0; 8 * lengths[me]]),
                        scratch: scratch.clone(),
                    })
                    .collect();
                run(&scatters, &mut memory, compose);
                for (me, memory) in memory.iter().enumerate() {
                    let expected = own(me, 8 * lengths[me]);
                    assert_eq!(memory.result(), expected, "{way}: {me} of {members}");
                }
            }
        }
    });
}

#[test]
fn allgathers_put_every_block_at_its_place_at_everybody() {
    for_all_blocks(|lengths, blocks, whole| {
        let members = lengths.len();
        for &way in Allgather::ALL {
            let all = schedules(members, |s, m| allgather(way, s, m, blocks));
            supersteps(&all);
            let mut memory = vec![Memory::default(); members];
            for (me, memory) in memory.iter_mut().enumerate() {
                let block = blocks.of(me);
                let mut output = vec![0; whole.len()];
                output[block.start..block.end()].copy_from_slice(&own(me, block.bytes));
                memory.output = Some(output);
            }
            run(&all, &mut memory, compose);
            for (me, memory) in memory.iter().enumerate() {
                assert_eq!(memory.result(), whole, "{way}: {me} of {members}");
            }
        }
    });
}

#[test]
fn alltoalls_transpose() {
    for members in MEMBERS {
        for len in [0, 1, 5] {
            let bytes = 8 * len;
            let blocks = Blocks::Equal { first: 0, stride: bytes, bytes };
            let block = |from: usize, to: usize| own(from * members + to, bytes);
            for &way in Alltoall::ALL {
                let all = schedules(members, |s, m| alltoall(way, s, m, blocks));
                supersteps(&all);
                let mut memory: Vec<Memory> = (0..members)
                    .map(|me| Memory {
                        input: (0..members).flat_map(|to| block(me, to)).collect(),
                        output: Some(vec![0; members * bytes]),
                        scratch: vec![0; way.scratch(members).kept * bytes],
                    })
                    .collect();
                run(&all, &mut memory, compose);
                for (me, memory) in memory.iter().enumerate() {
                    let expected: Vec<u8> = (0..members).flat_map(|from| block(from, me)).collect();
                    assert_eq!(memory.result(), expected, "{way}: {me} of {members}");
                }
            }
        }
    }
}

/// Times of arrival: together, one late, in order, in the other order, with ties, and far apart.
fn patterns(members: usize) -> Vec<Vec<u64>> {
    let of = |time: &dyn Fn(u64) -> u64| (0..members as u64).map(time).collect();
    vec![
        of(&|_| 0),
        of(&|me| if me == members as u64 / 2 { 50 } else { 0 }),
        of(&|me| 3 * me),
        of(&|me| 7 * (members as u64 - me)),
        of(&|me| me * 37 % 11 / 2 * 4),
        of(&|me| me * 7919 % 31 * 100_000),
    ]
}

/// Every member's rounds by itself, and rounds of all with messages as long as segments, and shorter.
const ROUNDS: [Rounds; 3] =
    [Rounds::Own, Rounds::Common { longest: usize::MAX }, Rounds::Common { longest: 20 }];

#[test]
fn clairvoyant_reductions_combine_everything_once() {
    for segments in [1, 2, 5, 64] {
        let write = |times: &[u64], rounds, s: &mut Schedule, m: Member, root: usize, v| {
            let instance = Instance::new(segments, root, 5, times.to_vec()).unwrap();
            reduce_clairvoyant(s, m, &instance, v, rounds);
        };
        by_arrival("clairvoyant", add, false, write);
    }
}

#[test]
fn clairvoyant_allreductions_combine_everything_once() {
    for segments in [1, 2, 5, 64, 70] {
        // Many segments fill more than a word, whoever the members are; schedules of them are long in the making.
        let few = [2, 5, 8, 13];
        let members =
            BY_ARRIVAL.into_iter().filter(|members| segments < 64 || few.contains(members));
        by_arrival_of(members, "clairvoyant", add, true, |times, rounds, s, m, _, v| {
            let instance = Instance::new(segments, 0, 5, times.to_vec()).unwrap();
            allreduce_clairvoyant(s, m, &instance, v, rounds);
        });
    }
}

#[test]
fn trees_combine_everything_once_and_in_order() {
    for (tree, name) in [(Tree::Binomial, "binomial"), (Tree::Fibonacci, "fibonacci")] {
        for (op, commutes) in [(compose as Op, false), (add, true)] {
            by_arrival(name, op, false, |_, rounds, s, m, root, v| {
                reduce_tree(s, m, (tree, commutes), root, v, rounds);
            });
        }
    }
}

#[test]
fn chains_combine_everything_once() {
    for chain in Chain::ALL {
        let op = if chain == Chain::Linear { compose as Op } else { add };
        by_arrival(chain.name(), op, true, |times, rounds, s, m, _, v| {
            allreduce_chain(s, m, &Plan::new(chain, 5, times), v, rounds);
        });
    }
}

/// Members from the first to before the last: together they are all of both, if the left ones end where the right
/// ones begin.
fn join(left: &[u8], right: &[u8]) -> Vec<u8> {
    let ends = |ranges: &[u8]| -> Vec<(u32, u32)> {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
        ranges.chunks_exact(8).map(|range| (word(&range[..4]), word(&range[4..]))).collect()
    };
    let both = ends(left).into_iter().zip(ends(right));
    let joined = both.map(|((first, last), (next, end))| {
        assert_eq!(last, next, "{first}..{last} is no left neighbour of {next}..{end}");
        [first.to_le_bytes(), end.to_le_bytes()].concat()
    });
    joined.flatten().collect()
}

/// Members of a tree of neighbours that come in any order, whose transfers and combinations last at random: in every
/// combination the left operand is of the members right before those of the right one, also of vectors in parts.
#[test]
fn trees_of_neighbours_combine_what_is_left_with_what_is_right_of_it() {
    let mut random = Random(11);
    for members in 1..=24usize {
        for order in 0..60 {
            let root = random.below(members as u64) as usize;
            // Together, a little apart, and one after the other.
            let spread = [1, 10, 1000][order % 3];
            let arrivals: Vec<u64> = (0..members).map(|_| random.below(spread)).collect();
            let combine = random.below(20);
            let (tree, _) = Pairing::of_times(
                Growth::Neighbours,
                root,
                &arrivals,
                |_, _| random.below(20),
                |_| combine,
            );
            let v = Vector { bytes: 8 * (1 + order % 6), element: 8 };
            let rounds = ROUNDS[order / 3 % 3];
            let pairs = || tree.pairs().iter().copied();
            let all = schedules(members, |s, m| reduce_pairs(s, m, pairs(), v, rounds));
            if rounds != Rounds::Own {
                supersteps(&all);
            }
            let range = |first: usize, end: usize| -> Vec<u8> {
                let range = [(first as u32).to_le_bytes(), (end as u32).to_le_bytes()].concat();
                range.repeat(v.bytes / 8)
            };
            let mut memory: Vec<Memory> = (0..members)
                .map(|me| Memory {
                    input: range(me, me + 1),
                    output: Some(vec![0; v.bytes]),
                    scratch: Vec::new(),
                })
                .collect();
            run(&all, &mut memory, join);
            assert_eq!(memory[root].result(), range(0, members), "{tree:?}");
        }
    }
}

/// All small numbers of members, and some of the larger ones.
const BY_ARRIVAL: [usize; 17] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 21, 24];

fn by_arrival(
    name: &str,
    op: Op,
    to_all: bool,
    write: impl Fn(&[u64], Rounds, &mut Schedule, Member, usize, Vector),
) {
    by_arrival_of(BY_ARRIVAL, name, op, to_all, write);
}

fn by_arrival_of(
    numbers: impl IntoIterator<Item = usize>,
    name: &str,
    op: Op,
    to_all: bool,
    write: impl Fn(&[u64], Rounds, &mut Schedule, Member, usize, Vector),
) {
    // The larger ones in some of the patterns.
    for members in numbers {
        let is_few = |elements: &usize| members <= 12 || *elements < 2 * members;
        for elements in sizes(members).into_iter().filter(is_few) {
            let v = Vector { bytes: 8 * elements, element: 8 };
            for times in patterns(members).into_iter().step_by(1 + members / 13) {
                for (nth, rounds) in ROUNDS.into_iter().enumerate() {
                    let root = (nth + elements) % members;
                    let all = schedules(members, |s, m| write(&times, rounds, s, m, root, v));
                    if rounds != Rounds::Own {
                        supersteps(&all);
                    }
                    let in_place = elements % 2 == 1;
                    let mut memory: Vec<Memory> = (0..members)
                        .map(|me| Memory {
                            input: own(me, v.bytes),
                            output: (!in_place).then(|| vec![0; v.bytes]),
                            scratch: Vec::new(),
                        })
                        .collect();
                    run(&all, &mut memory, op);
                    let expected = all_of(0..members, v.bytes, op);
                    for (me, memory) in memory.iter().enumerate() {
                        if to_all || me == root {
                            let what =
                                format!("{name}: member {me} of {members}, {elements}, {times:?}");
                            assert_eq!(memory.result(), expected, "{what}");
                        }
                    }
                }
            }
        }
    }
}
