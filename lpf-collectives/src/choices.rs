//! Choices made before: predicting every algorithm takes longer than a short collective.

use std::cell::Cell;

/// So many, by a hash of what was asked.
const PLACES: usize = 64;

/// The algorithms chosen lately, by collective and size.
#[derive(Debug)]
pub(crate) struct Choices([Cell<(u64, u8)>; PLACES]);

impl Default for Choices {
    fn default() -> Self {
        Choices([const { Cell::new((0, 0)) }; PLACES])
    }
}

impl Choices {
    /// The choice for `key`, which is not 0: what was chosen before, or what `choose` says.
    #[inline]
    pub(crate) fn of(&self, key: u64, choose: impl FnOnce() -> usize) -> usize {
        let place = &self.0[(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % PLACES];
        match place.get() {
            (known, choice) if known == key => usize::from(choice),
            _ => {
                let choice = choose();
                place.set((key, choice as u8));
                choice
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_made_once() {
        let choices = Choices::default();
        for round in 0..2 {
            for key in 1..40 {
                let (mut made, expected) = (false, (key % 5) as usize);
                let choice = choices.of(key << 40, || {
                    made = true;
                    expected
                });
                assert!(choice == expected && (made || round > 0));
            }
        }
        assert_eq!(choices.of(1 << 40, || unreachable!("known")), 1);
    }
}
