// The soundness of the typed layer rests on what a handle is, so nobody else makes one: the traits
// are sealed and the fields private.

#![allow(dead_code)]

use lpf_core::{AreaRegistration, Access, Memory, Slot};

struct Forged(Slot, *mut u64);

impl<'s> Memory<'s> for Forged {
    type Element = u64;

    fn slot(&self) -> Slot {
        self.0
    }

    fn len(&self) -> usize {
        1
    }

    fn data(&self) -> *mut u64 {
        self.1
    }

    fn into_registration(self) -> AreaRegistration {
        unreachable!()
    }

    fn active_from(&self) -> u64 {
        0
    }
}

struct Both;

impl<'a, 's> Access<'a, 's> for Both {
    type Slices = ();

    fn slices(self) {}
}

fn main() {}
