//! A call whose processes arrive at different times.

use serde::{Deserialize, Serialize};

use crate::bench::collectives::shapes::Shape;

/// One call, when processes arrive at it, and the predictions of that.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Wanted {
    pub(in crate::bench) shape: Shape,
    pub(super) algorithm: String,
    pub(in crate::bench) arrivals_ns: Vec<u64>,
    pub(super) predicted_ns: Vec<u64>,
    /// To the common start.
    pub(in crate::bench) window_ns: u64,
}
