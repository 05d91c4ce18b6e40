//! What the runtime and the libraries of this workspace call, and users do not.

use std::time::Duration;

use crate::arrivals::{Call, CallValues};
use crate::attr::SyncAttr;
use crate::board::Board;
use crate::error::{Error, Result};
use crate::slot::GlobalSlot;
use crate::waits::Consult;

/// How a process leaves a section.
#[derive(Clone, Debug)]
pub enum Leaving {
    /// Its function returned `Ok`.
    Done,
    /// Its function returned an error.
    Returned(Error),
    /// Its function panicked with this text.
    Panicked(String),
    /// It cannot go on for this reason, which names the process where it began. It is the failure of a rehook that the
    /// function returned. A backend that is built on another one uses it too: for a node's network when one of the
    /// node's threads failed.
    Failed(Error),
}

/// The part of a backend that users do not call: leaving, failing, suspension, the board.
///
/// The `unsafe` promises of [`Lpf`](crate::Lpf) cover this trait, too.
pub trait Runtime {
    /// The registers beside the context.
    type Board: Board;

    /// Leaves the section: a flush and the closing barrier, or the report of a failure to all others. If a message was
    /// sent on a link and never awaited, the section fails.
    /// Called once, by [`run_section`](crate::run_section), never by users. A flush and one barrier; with inboxes two
    /// barriers, and O(links ever opened).
    fn leave(&mut self, how: Leaving) -> Result<()>;

    /// For the typed layer: the handle of a global area was dropped here. At the end of the first full sync, outside
    /// of suspensions, at which all processes have abandoned the same slots, in any order, the backend
    /// deregisters them and [`abandoned_block`](Self::abandoned_block) returns their blocks. Until then they stay
    /// registered. Θ(1); that sync takes O(p) and a second barrier more, and O(a log a) for a slots.
    fn abandon(&mut self, slot: GlobalSlot, block: usize);

    /// The block of an abandoned slot that is gone: no process accesses its memory any more. Each is returned once.
    /// Θ(1).
    fn abandoned_block(&mut self) -> Option<usize>;

    /// Whether the rounds of libraries' algorithms on expected arrivals end in full syncs (`LPF_STRICT=1`).
    /// The same on every process.
    fn strict(&self) -> bool;

    /// Reserves `slots` slots and `requests` requests for a library, on top of the user's and
    /// independent of the user's resizes; from the end of the next full sync on. Collective.
    /// O(slots + requests + p).
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, without any trace.
    fn reserve(&mut self, slots: usize, requests: usize) -> Result<()>;

    /// For libraries that work in full supersteps: suspends what this process has pending (requests,
    /// registrations and resizes) until [`restore`](Runtime::restore). Full syncs in between complete the library's
    /// requests only. Suspensions nest. Slots that suspended requests name stay busy. Collective. O(p) if
    /// requests are pending. [`Context::suspended`](crate::Context::suspended) is the safe call.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, which only the first call on each level takes. Nothing is suspended
    /// then.
    fn suspend(&mut self) -> Result<()>;

    /// The requests suspended last are pending again; later ones that no sync has completed are dropped.
    /// O(p) if requests were pending.
    ///
    /// # Panics
    /// If nothing is suspended.
    fn restore(&mut self);

    /// Waits until `found` finds its record on the [board](Runtime::board), which no message announces. The wait is published
    /// like every wait, so that a disagreement ends it, and makes progress on everything. It calls `found` repeatedly,
    /// and `wait.absent` only if the wait is long.
    ///
    /// # Errors
    /// Those of `found`; *fatal* if the section failed, or the wait never ends.
    fn consult<R>(
        &mut self,
        wait: Consult<'_>,
        found: impl FnMut() -> Result<Option<R>>,
    ) -> Result<R>;

    /// Sets the call of this process from now on; its messages carry the stamp.
    fn enter(&mut self, call: Call);

    /// As [`sync`](crate::Lpf::sync), in a call with these values: an error that its members differ names them.
    ///
    /// # Errors
    /// As there.
    fn sync_in_call(&mut self, attr: SyncAttr<'_>, values: Option<&dyn CallValues>) -> Result<()>;

    /// Ends the section for a reason of this process, which becomes the *fatal* error of all. It is for a library that
    /// cannot go on and leaves memory to the runtime, for example after a panic in its caller's operator. When it
    /// returns, no other process touches this process's memory, or [`memory_is_quiet`](Runtime::memory_is_quiet) is false.
    /// Returns the failure of the section: this error, or an earlier one.
    fn fail(&mut self, error: Error) -> Error;

    /// The clock of this process: [`Context::now`](crate::Context::now). Θ(1).
    fn now(&self) -> Duration;

    /// A handle to the board, for helper threads.
    fn board(&self) -> Self::Board;

    /// False for ever when memory of this process may be written by another one that cannot be stopped (a
    /// receive that cannot be cancelled). The memory is then leaked.
    fn memory_is_quiet(&self) -> bool {
        true
    }
}
