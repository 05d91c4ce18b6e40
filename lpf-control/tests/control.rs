//! The control plane between processes that die, stop, wake up and leave, and between threads that each
//! have a plane of their own.

#[path = "control/planes.rs"]
mod planes;
#[path = "control/processes.rs"]
mod processes;
#[path = "control/roles.rs"]
mod roles;
