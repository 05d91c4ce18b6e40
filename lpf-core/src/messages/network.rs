//! What networks have in common that match messages themselves: numbered places with tickets, the
//! contexts that have ended, and how often a question looks.

mod forgotten;
mod pace;
mod slab;

pub use forgotten::Forgotten;
pub use pace::Pace;
pub use slab::{Chain, Slab};
