//! How numbers are combined into one: for stamps, keys of caches, and numbers of groups.

/// Two words as one.
pub(crate) fn mixed(a: u64, b: u64) -> u64 {
    (a.rotate_left(23) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (a >> 31)
}
