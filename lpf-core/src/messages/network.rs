//! What networks have in common that match messages themselves: numbered places with tickets, the
//! contexts that have ended, how often a question looks, and rings in memory that is shared.

mod forgotten;
mod pace;
mod ring;
mod slab;

pub use forgotten::Forgotten;
pub use pace::Pace;
pub use ring::{RingReceiver, RingSender};
pub use slab::{Chain, Slab};
