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

/// The network of one operating-system process, shared by its contexts: the innermost one has it. While that one runs,
/// what comes for the outer ones is put where it belongs.
///
/// It belongs to the process that made it: a child that was forked has the same connections, on which each word of it
/// would be taken for one of its parent's.
#[derive(Debug)]
pub struct Network<T>(Arc<Mutex<Place<T>>>, Maker);

/// Empty while a context has the network.
type Place<T> = Option<Box<Shared<T>>>;

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
        let shared = Box::new(Shared { net: transport, contexts });
        Network(Arc::new(Mutex::new(Some(shared))), Maker::this())
    }

    /// The process whose network it is.
    #[inline]
    pub fn maker(&self) -> Maker {
        self.1
    }

    /// The transport, once no section uses it any more; else nothing.
    pub fn into_transport(self) -> Option<T> {
        let place = Arc::into_inner(self.0)?.into_inner();
        Some(place.unwrap_or_else(PoisonError::into_inner)?.net)
    }

    /// Calls `f` with the transport.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.take().get().net)
    }
}

impl<T> Network<T> {
    fn place(&self) -> MutexGuard<'_, Place<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the network until the value is dropped.
    ///
    /// # Panics
    /// If a context has it: only the innermost one communicates.
    pub(super) fn take(&self) -> Taken<T> {
        let mut taken = Taken { home: self.clone(), shared: None };
        taken.get();
        taken
    }
}

/// The network while a context has it: so no superstep locks anything.
#[derive(Debug)]
pub(super) struct Taken<T> {
    home: Network<T>,
    /// Nothing while an inner context has it.
    shared: Place<T>,
}

impl<T> Taken<T> {
    #[inline]
    pub(super) fn maker(&self) -> Maker {
        self.home.1
    }

    /// The network, taken again after an inner context had it.
    #[inline]
    pub(super) fn get(&mut self) -> &mut Shared<T> {
        let Taken { home, shared } = self;
        shared.get_or_insert_with(|| {
            home.place().take().expect("only the innermost context communicates")
        })
    }

    #[inline]
    pub(super) fn net(&mut self) -> &mut T {
        &mut self.get().net
    }

    /// Calls `f` with the transport, wherever it is.
    pub(super) fn with<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        match &self.shared {
            Some(shared) => f(&shared.net),
            None => f(self.home.take().net()),
        }
    }

    /// Leaves it to an inner context.
    pub(super) fn put_back(&mut self) -> &Network<T> {
        if let Some(shared) = self.shared.take() {
            *self.home.place() = Some(shared);
        }
        &self.home
    }
}

impl<T> Drop for Taken<T> {
    fn drop(&mut self) {
        self.put_back();
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
