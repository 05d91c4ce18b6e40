//! A schedule carried out at one member.

mod call;
mod expected;
mod full;

pub(crate) use call::{Buffers, Call, Combine, leave};
pub(crate) use expected::expected;
pub(crate) use full::full;
