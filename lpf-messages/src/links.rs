//! Expected arrivals on messages: cells, credits, landings, grants.
//!
//! A message of a link is matched by its sender and the ring that it ends in; the receiver has posted
//! a receive for every free cell before it gives credit for it, so every message that is sent has memory at its
//! receiver. A sender that reaches the ring in shared memory needs no network: it writes the cells itself ([`near`]).
//! Credits, offers, grants and closings are messages of a few words. Each pair of processes has a channel of its own for
//! them ([`control`]). The rules are those of `lpf_core::arrivals`. The counts in these messages belong to a stream: see
//! `lpf_core::waits`.

mod carrier;
mod control;
mod inbox;
mod layout;
mod near;
mod open;
mod postbox;
mod receive;
mod rings;
mod send;
mod unread;

pub(super) use rings::{Links, Rings};
