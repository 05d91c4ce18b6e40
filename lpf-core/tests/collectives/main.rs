//! The suite of the collectives on the message-passing protocol's network in memory.

#[path = "../messages/control.rs"]
mod control;
#[path = "../messages/harness.rs"]
mod harness;
#[path = "../messages/network.rs"]
mod network;

use lpf_core::messages::Way;

use harness::InMemory;

lpf_collectives::conformance!(InMemory::of(Way::Direct));
