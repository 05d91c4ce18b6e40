//! The one runtime: what is equal on all backends.
//!
//! For those who write a backend. Users hold a [`Context`](crate::Context).

mod agreement;
pub mod links;
mod local_state;
mod marks;

pub use agreement::{Purpose, Registrations, mismatch};
pub use local_state::{LocalState, Remote, Room};
