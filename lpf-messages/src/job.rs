//! What one operating-system process brings to its sections: the settings, its network, its host.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::contexts::Contexts;
use super::transport::Transport;
use lpf_core::Pid;
use lpf_core::machine::Parameters;
use lpf_core::process::Maker;
use lpf_core::settings::Exchange;

/// The settings of process 0, which hold for all processes of a section. They are sent with the order to begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Checked mode.
    pub check: bool,
    /// Strict mode.
    pub strict: bool,
    /// The longest that a process waits for the others of a superstep.
    pub timeout: Option<Duration>,
    /// The algorithm of the first exchange of a full sync; `None` for the cheaper one.
    pub exchange: Option<Exchange>,
    /// g and l, as the primitive probe gives them.
    pub parameters: Arc<Parameters>,
}

/// The network of one operating-system process, shared by its contexts: while an inner one runs, what
/// comes for the outer one is put where it belongs.
///
/// It belongs to the process that made it: a child that was forked has the same connections, on which each word of it
/// would be taken for one of its parent's.
#[derive(Debug)]
pub struct Network<T>(Arc<Mutex<Shared<T>>>, Maker);

impl<T> Clone for Network<T> {
    fn clone(&self) -> Self {
        Network(self.0.clone(), self.1)
    }
}

#[derive(Debug)]
pub(super) struct Shared<T> {
    pub(super) net: T,
    pub(super) contexts: Contexts,
}

impl<T: Transport> Network<T> {
    /// The network of this process.
    pub fn new(transport: T) -> Self {
        let contexts = Contexts::of(transport.rank(), transport.size());
        Network(Arc::new(Mutex::new(Shared { net: transport, contexts })), Maker::this())
    }

    /// The process whose network it is.
    #[inline]
    pub fn maker(&self) -> Maker {
        self.1
    }

    /// Only the thread that communicates takes it, so it is free.
    pub(super) fn lock(&self) -> MutexGuard<'_, Shared<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The transport, once no section uses it any more; else nothing.
    pub fn into_transport(self) -> Option<T> {
        let shared = Arc::into_inner(self.0)?.into_inner();
        Some(shared.unwrap_or_else(PoisonError::into_inner).net)
    }

    /// Calls `f` with the transport.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.lock().net)
    }
}

/// Processes of this host and the cores they share, for how long a wait spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Processes of the network on this host.
    pub processes: usize,
    /// Cores they may use.
    pub cores: usize,
    /// Whether all of them say the same of that.
    pub is_agreed: bool,
    /// Processes of the whole network.
    pub world: Pid,
}
