//! The one runtime: what is equal on all backends.
//!
//! For those who write a backend. Users hold a [`Context`](crate::Context).

mod agreement;
mod at_barrier;
mod carrier;
mod destination;
mod engine;
mod from_afar;
mod guard;
mod link_calls;
pub mod links;
mod local_state;
mod node;
mod node_process;
mod process;
pub mod progress;
mod residents;
mod summary;
mod tables;
mod waiting;

pub use agreement::{Purpose, Registrations, mismatch};
pub use at_barrier::ForBarrier;
pub use carrier::{Carrier, Former, Head, LinkMedium, Stopped};
pub use destination::{Aimed, Destination, GlobalSlots, Shown};
pub use engine::{Announced, Engine, Section, check_processes, section};
pub use from_afar::FromAfar;
pub use guard::guarded;
pub use link_calls::LinkCall;
pub use local_state::{LocalState, Remote, Room, TablesOnly};
pub use node::{Node, Nodes};
pub use process::Process;
pub use residents::{Residents, Statuses, Together};
pub use summary::Summary;
pub use tables::Tables;
pub use waiting::{ForBoard, ForLinks, LongWait, Medium, Waiting, status_at, wait};
