//! What a process wants of the next full sync beside its requests, and how a library suspends all of it.

use super::{Recent, Requests};
use crate::slot::SlotTable;

/// Slots and requests that the user asked room for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capacities {
    /// Slots.
    pub slots: usize,
    /// Requests.
    pub requests: usize,
}

/// Registrations and resizes that wait for the next full sync, and those of the callers whose libraries work.
#[derive(Debug, Default)]
pub struct Changes {
    /// Slots or inboxes were registered or deregistered.
    pub registered: bool,
    /// A capacity was changed.
    pub resized: bool,
    /// What the next full sync brings into force.
    pub wanted: Capacities,
    /// What the latest one brought into force.
    in_force: Capacities,
    /// The first three for each caller whose library works, the latest last.
    suspended: Vec<(bool, bool, Capacities)>,
}

impl Changes {
    /// Whether the next full sync has to announce any.
    #[inline]
    pub fn any(&self) -> bool {
        self.registered || self.resized
    }

    /// A full sync has brought them into force; those of callers wait.
    pub fn clear(&mut self) {
        (self.registered, self.resized) = (false, false);
        self.in_force = self.wanted;
    }

    /// The largest of what the next full sync and those of the callers bring into force.
    pub fn most(&self) -> Capacities {
        self.suspended.iter().fold(self.wanted, |most, (.., wanted)| Capacities {
            slots: most.slots.max(wanted.slots),
            requests: most.requests.max(wanted.requests),
        })
    }

    /// Suspends these changes, the requests and what is registered. Suspensions nest.
    ///
    /// # Errors
    /// The bytes that were refused. Nothing is suspended then.
    pub fn suspend(
        &mut self,
        queue: &mut Requests,
        slots: &mut SlotTable,
        recent: &mut Recent,
    ) -> Result<(), usize> {
        self.suspended.try_reserve(1).map_err(|_| size_of::<(bool, bool, Capacities)>())?;
        queue.suspend()?;
        slots.suspend().inspect_err(|_| queue.restore())?;
        self.suspended.push((self.registered, self.resized, self.wanted));
        self.wanted = self.in_force;
        self.clear();
        *recent = Recent::NONE;
        Ok(())
    }

    /// The changes and requests that were suspended last are pending again.
    ///
    /// # Panics
    /// If nothing is suspended.
    pub fn restore(&mut self, queue: &mut Requests, slots: &mut SlotTable, recent: &mut Recent) {
        let (registered, resized, wanted) =
            self.suspended.pop().expect("each restore follows a suspend");
        self.registered |= registered;
        self.resized |= resized;
        if resized {
            self.wanted = wanted;
        }
        queue.restore();
        slots.restore();
        *recent = Recent::NONE;
    }
}
