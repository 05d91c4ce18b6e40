//! What nearly every SPMD function names: `use lpf::prelude::*`.

pub use lpf_core::{
    Area, Args, Context, Error, Local, Lpf, MAX_P, Memory, Pid, Program, Result, SharedMemory,
    SyncAttr,
};
