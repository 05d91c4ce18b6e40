//! The common parts of networks that match messages themselves: numbered tickets, the contexts that have ended, the pace
//! of looks, and rings in shared memory.

mod forgotten;
mod pace;
mod ring;
mod slab;

pub use forgotten::Forgotten;
pub use pace::Pace;
pub use ring::{RingReceiver, RingSender};
pub use slab::{Chain, Slab};
