//! The settings that sections run under.

use std::sync::Arc;
use std::time::Duration;

use lpf_core::Pid;
use lpf_core::machine::Parameters;
use lpf_core::settings::Pin;

/// What all sections of one configuration have in common.
#[derive(Debug)]
pub(crate) struct Environment {
    /// The machine's size: processors that exec can give out, among them those of the section itself.
    pub(crate) procs: Pid,
    /// Cores this program may use.
    pub(crate) cores: usize,
    pub(crate) pin: Pin,
    pub(crate) topology: Option<Vec<usize>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) check: bool,
    pub(crate) strict: bool,
    pub(crate) parameters: Arc<Parameters>,
}
