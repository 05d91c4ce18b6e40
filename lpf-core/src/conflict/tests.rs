use super::radix::{Key, sort};
use super::*;
use proptest::prelude::*;

/// (address, length)
type Write = (usize, usize);

fn resolve(writes: &[Write]) -> Vec<usize> {
    let mut conflicts = Conflicts::default();
    conflicts.reserve(writes.len()).unwrap();
    for &(address, bytes) in writes {
        conflicts.push(address, bytes);
    }
    conflicts.resolve().to_vec()
}

/// The writer of every byte of `memory`, as the surviving pieces leave it. A byte that is written
/// twice, or beside its write, fails.
fn apply(writes: &[Write], survive: &[usize], memory: usize) -> Vec<Option<usize>> {
    let mut owner = vec![None; memory];
    for (i, (&(address, bytes), &n)) in writes.iter().zip(survive).enumerate() {
        assert!(n <= bytes, "write {i} of {bytes} bytes keeps {n}");
        for byte in &mut owner[address + bytes - n..address + bytes] {
            assert_eq!(byte.replace(i), None, "a byte is written twice");
        }
    }
    owner
}

/// An order of all writes in which every winner of a byte comes after the losers of that byte.
fn serial_order(writes: &[Write], owner: &[Option<usize>]) -> Vec<usize> {
    let mut after = vec![vec![]; writes.len()];
    let mut losers = vec![0; writes.len()];
    for (loser, &(address, bytes)) in writes.iter().enumerate() {
        for winner in owner[address..address + bytes].iter().flatten() {
            if *winner != loser {
                after[loser].push(*winner);
                losers[*winner] += 1;
            }
        }
    }
    let mut ready: Vec<_> = (0..writes.len()).filter(|&i| losers[i] == 0).collect();
    let mut order = vec![];
    while let Some(i) = ready.pop() {
        order.push(i);
        for &winner in &after[i] {
            losers[winner] -= 1;
            if losers[winner] == 0 {
                ready.push(winner);
            }
        }
    }
    assert_eq!(order.len(), writes.len(), "the relation winner after loser has a cycle");
    order
}

/// The contract, without knowing which order was chosen.
fn check(writes: &[Write]) {
    let memory = writes.iter().map(|(a, n)| a + n).max().unwrap_or(0);
    let owner = apply(writes, &resolve(writes), memory);
    let mut expected = vec![None; memory];
    for i in serial_order(writes, &owner) {
        let (address, bytes) = writes[i];
        expected[address..address + bytes].fill(Some(i));
    }
    assert_eq!(owner, expected);
}

proptest! {
    #[test]
    fn the_outcome_is_that_of_a_serial_order(
        writes in prop::collection::vec((0..200_usize, 0..60_usize), 0..80)
    ) {
        check(&writes);
    }

    #[test]
    fn also_when_few_addresses_are_shared_by_many(
        writes in prop::collection::vec((0..6_usize, 0..9_usize), 0..300)
    ) {
        check(&writes);
    }

    #[test]
    fn the_sort_is_stable_over_all_of_the_address_space(
        addresses in prop::collection::vec(
            prop_oneof![any::<u64>(), 0..9_u64, (u64::MAX - 9)..=u64::MAX], 0..200)
    ) {
        let mut keys: Vec<_> =
            addresses.iter().zip(0..).map(|(&address, place)| Key { address, place }).collect();
        let mut expected = keys.clone();
        expected.sort_by_key(|k| k.address);
        sort(&mut keys, &mut vec![]);
        prop_assert_eq!(keys, expected);
    }
}

#[test]
fn identical_writes_leave_one_whole_winner() {
    let writes = [(64, 32); 100];
    check(&writes);
    let mut survive = resolve(&writes);
    survive.sort_unstable();
    assert_eq!(survive[99], 32);
    assert!(survive[..99].iter().all(|&n| n == 0));
}

#[test]
fn one_big_write_over_many_small_ones() {
    let mut writes: Vec<_> = (0..1000).map(|i| (8 * i, 8)).collect();
    writes.insert(500, (4, 7000));
    check(&writes);
}

#[test]
fn nested_writes() {
    let mut inward: Vec<_> = (0..100).map(|i| (i, 300 - 2 * i)).collect();
    check(&inward);
    inward.reverse();
    check(&inward);
}

#[test]
fn a_staircase_of_overlaps() {
    check(&(0..500).map(|i| (i, 64)).collect::<Vec<_>>());
    check(&(0..500).rev().map(|i| (i, 64)).collect::<Vec<_>>());
}

#[test]
fn the_same_beginning_with_growing_lengths() {
    check(&(0..200).map(|i| (10, i)).collect::<Vec<_>>());
    check(&(0..200).rev().map(|i| (10, i)).collect::<Vec<_>>());
}

#[test]
fn writes_that_touch_lose_nothing() {
    let writes: Vec<_> = (0..100).rev().map(|i| (16 * i, 16)).collect();
    assert_eq!(resolve(&writes), vec![16; 100]);
}

#[test]
fn empty_writes_take_nothing_from_others() {
    assert_eq!(resolve(&[(8, 0), (8, 8), (12, 0), (16, 0)]), [0, 8, 0, 0]);
    assert!(resolve(&[]).is_empty());
}

#[test]
fn the_last_byte_of_the_address_space_can_be_written() {
    // Real memory never reaches it: a check that nothing wraps.
    assert_eq!(resolve(&[(usize::MAX - 8, 8), (usize::MAX - 4, 4), (0, 4)]), [8, 0, 4]);
}

#[test]
fn after_reserve_nothing_is_allocated() {
    let mut conflicts = Conflicts::default();
    conflicts.reserve(5000).unwrap();
    let room = |c: &Conflicts| {
        let mut places = [c.keys.as_ptr(), c.scratch.as_ptr()];
        places.sort_unstable();
        (places, c.lengths.as_ptr(), c.keys.capacity() + c.scratch.capacity())
    };
    let before = room(&conflicts);
    for superstep in 1..5 {
        conflicts.clear();
        for i in 0..5000 {
            conflicts.push(i * 7919 * superstep % 100_000, i % 50);
        }
        conflicts.resolve();
        assert_eq!(room(&conflicts), before);
    }
}

#[test]
fn an_absurd_reservation_is_refused_and_leaves_the_rest_usable() {
    let mut conflicts = Conflicts::default();
    conflicts.reserve(1).unwrap();
    for writes in [usize::MAX, usize::MAX / 16] {
        assert!(conflicts.reserve(writes).unwrap_err() > usize::MAX / 16);
    }
    conflicts.push(0, 4);
    assert_eq!(conflicts.resolve(), [4]);
}

/// Keys and counters that the sort looks at for `m` writes that span `2^bits` bytes.
fn work(m: u32, bits: u32) -> usize {
    let mask = u64::MAX >> (64 - bits);
    let mut keys: Vec<_> = (0..m)
        .map(|place| Key {
            address: u64::from(place).wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask,
            place,
        })
        .collect();
    keys[0].address = 0;
    keys[1].address = mask;
    sort(&mut keys, &mut vec![])
}

#[test]
fn the_cost_is_linear_in_the_number_of_writes_and_independent_of_their_lengths() {
    for bits in [8_u32, 26, 40, 64] {
        let passes = bits.div_ceil(8) as usize;
        for m in [1 << 10, 1 << 12, 1 << 16] {
            assert_eq!(work(m, bits), 3 * m as usize + passes * (2 * m as usize + 256));
            assert!(work(2 * m, bits) <= 2 * work(m, bits));
        }
    }
    // The sweep is one step per write by its form; short lists are bounded by a constant.
    assert!(work(24, 64) <= 24 * 24);
}
