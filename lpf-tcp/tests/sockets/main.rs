//! The network on sockets, over real sockets of one machine: what its trait promises, and what it
//! does when the other side is dead, wrong or hostile.

mod breaking;
mod cancelling;
mod hostile;
mod matching;
mod memory;
mod oneself;
mod random;
mod speed;
mod support;
mod traffic;
