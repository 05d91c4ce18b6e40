//! The sort: least significant digit first, stable.

/// What is sorted: the first address of a write and its place in the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) address: u64,
    pub(super) place: u32,
}

const DIGIT_BITS: u32 = 8;
const DIGITS: usize = 1 << DIGIT_BITS;

/// Up to here insertion costs less than clearing and summing the counters of one pass.
const SHORT: usize = 24;

/// Sorts `keys` by address; keys of equal address keep their order. `scratch` needs room for as
/// many. Returns the number of keys and counters looked at, for the test of the cost.
pub(super) fn sort(keys: &mut Vec<Key>, scratch: &mut Vec<Key>) -> usize {
    if keys.len() <= SHORT {
        return insert(keys);
    }
    let lowest = keys.iter().map(|k| k.address).min().unwrap_or(0);
    let highest = keys.iter().map(|k| k.address).max().unwrap_or(0);
    let bits = u64::BITS - (highest - lowest).leading_zeros();
    scratch.clear();
    scratch.resize(keys.len(), Key::default());
    let mut work = 3 * keys.len();
    for shift in (0..bits).step_by(DIGIT_BITS as usize) {
        distribute(keys, scratch, lowest, shift);
        std::mem::swap(keys, scratch);
        work += 2 * keys.len() + DIGITS;
    }
    work
}

/// One pass: `from` to `to`, ordered by the digit at `shift` of the distance from `lowest`.
fn distribute(from: &[Key], to: &mut [Key], lowest: u64, shift: u32) {
    let digit = |key: &Key| ((key.address - lowest) >> shift) as usize % DIGITS;
    // Fewer than 2^32 keys: places are 32 bits wide.
    let mut next = [0_u32; DIGITS];
    for key in from {
        next[digit(key)] += 1;
    }
    let mut sum = 0;
    for count in &mut next {
        sum += std::mem::replace(count, sum);
    }
    for key in from {
        let at = &mut next[digit(key)];
        to[*at as usize] = *key;
        *at += 1;
    }
}

/// Insertion sort of a short list.
fn insert(keys: &mut [Key]) -> usize {
    let mut work = keys.len();
    for i in 1..keys.len() {
        let key = keys[i];
        let mut at = i;
        while at > 0 && keys[at - 1].address > key.address {
            keys[at] = keys[at - 1];
            at -= 1;
            work += 1;
        }
        keys[at] = key;
    }
    work
}
