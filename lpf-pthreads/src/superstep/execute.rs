//! Phases 2 and 3: the destination executes what is aimed at its memory.

use lpf_core::runtime::{Destination, LocalState};
use lpf_core::{Pid, Result};

use crate::bits;
use crate::threads::ThreadEngine;

impl ThreadEngine {
    /// Phases 2 and 3: everything aimed at this process's memory, one request after another.
    #[inline]
    pub(super) fn execute(&self, local: &mut LocalState) -> Result<()> {
        let made = if self.mine & bits::PUTS != 0 { 0 } else { local.queue.used() };
        let checks = |origin: Pid| {
            let here = self.comm.node.has(origin);
            here.then(|| self.comm.peer(origin).checks.clone().unwrap_or_default())
        };
        let mut destination = Destination::new(local, self.comm.node, made, &checks);
        if self.all & bits::PUTS != 0 {
            self.execute_small_puts(&mut destination)?;
        }
        if bits::have(self.all, bits::ROWS) {
            // SAFETY: between the two meetings. Each process has shown its lists and its table before the first, and changes
            // neither before the second.
            unsafe {
                let slots = |of: Pid| self.comm.peer(of).slots();
                destination.carry_out(|local, from| self.read_row(local, from), slots)?;
            }
        }
        destination.check_load()
    }
}
