//! The full sync between processes: the four phases on messages.
//!
//! 1. *Barrier and meta-data.* Every process packs its requests, grouped by target, and exchanges them with the
//!    others ([`Meeting`](super::meeting::Meeting)). Short puts travel with their bytes.
//! 2. *Conflicts.* Each process resolves the long writes to its memory: the puts of other processes and its own gets.
//!    Then it answers the processes that have the bytes. An answer says how many bytes of each request to send, and
//!    contains the bytes of short gets. If all processes promised that no writes conflict, only short gets are answered.
//! 3. *Data.* Long messages go from user memory to user memory: one message of many pieces per pair of processes. The
//!    receiver has posted its receive before it answered.
//! 4. There is no second barrier. No other process writes to this process's memory, so its writes are complete when its
//!    receives are, and its sources are free when its sends are complete.
//!
//! Short writes are applied when all long ones have arrived: in the serial order they are the last.

mod answers;
mod checked;
mod compose;
mod data;
mod long;
mod phases;
mod runs;
mod scratch;

pub(super) use scratch::{Larger, Scratch};
