//! What nearly every SPMD function names: `use lpf::prelude::*`.

pub use crate::Context;
pub use lpf_core::{Area, Args, Error, Local, Lpf, MAX_P, Memory, Pid, Result, SyncAttr};
