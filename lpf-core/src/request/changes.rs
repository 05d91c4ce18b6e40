//! What a process wants of the next full sync beside its requests, and how a library suspends all of it.

use super::{Recent, Requests};
use crate::slot::SlotTable;

/// Registrations and resizes that wait for the next full sync, and those of the callers whose libraries work.
#[derive(Debug, Default)]
pub struct Changes {
    /// Slots or inboxes were registered or deregistered.
    pub registered: bool,
    /// A capacity was changed.
    pub resized: bool,
    /// The two above for each caller whose library works, the latest last.
    suspended: Vec<(bool, bool)>,
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
        self.suspended.try_reserve(1).map_err(|_| size_of::<(bool, bool)>())?;
        queue.suspend()?;
        slots.suspend().inspect_err(|_| queue.restore())?;
        self.suspended.push((self.registered, self.resized));
        self.clear();
        *recent = Recent::NONE;
        Ok(())
    }

    /// The changes and requests that were suspended last are pending again.
    ///
    /// # Panics
    /// If nothing is suspended.
    pub fn restore(&mut self, queue: &mut Requests, slots: &mut SlotTable, recent: &mut Recent) {
        let (registered, resized) = self.suspended.pop().expect("each restore follows a suspend");
        self.registered |= registered;
        self.resized |= resized;
        queue.restore();
        slots.restore();
        *recent = Recent::NONE;
    }
}
