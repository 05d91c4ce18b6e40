//! Programs as bytes: little-endian words, one after another.

/// The bytes of these words.
pub(crate) fn to_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Reads words back.
pub(crate) struct Reader<'a>(std::slice::ChunksExact<'a, u8>);

impl<'a> Reader<'a> {
    /// Of these bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Reader(bytes.chunks_exact(8))
    }

    /// The next word; panics where the program is cut off.
    #[allow(clippy::should_implement_trait, reason = "it never ends but by a panic")]
    pub(crate) fn next(&mut self) -> u64 {
        let chunk = self.0.next().expect("the program is cut off");
        u64::from_le_bytes(chunk.try_into().expect("chunks of eight bytes"))
    }
}
