//! Messages of a process to itself: matched like all others, and copied in memory.
//!
//! A send keeps its bytes until the receive is there, so that none needs a buffer but those that
//! are copied before it.

use lpf_messages::{Outcome, Tag};

use super::matching::Stage;
use super::network::Network;

impl Network {
    pub(super) fn send_copy_to_oneself(&mut self, tag: Tag, bytes: &[u8]) -> Outcome<()> {
        let Some(receive) = self.matching.take_receive(self.rank, tag) else {
            self.matching.keep_copy(self.rank, tag, bytes);
            return Ok(());
        };
        if let Err(reason) = self.matching.fits(receive, bytes.len()) {
            self.break_off(self.rank, reason);
            return self.connections[self.rank].can_send();
        }
        let operation = &mut self.matching.operations[receive];
        // SAFETY: the receive is neither finished nor cancelled: its memory is valid by the promise
        // of who posted it.
        unsafe { operation.pieces.write(bytes) };
        operation.stage = Stage::Finished;
        Ok(())
    }

    pub(super) fn send_to_oneself(&mut self, send: u32) {
        let operation = &self.matching.operations[send];
        let Some(receive) = self.matching.take_receive(self.rank, operation.tag) else {
            return self.matching.keep_sender(send);
        };
        let bytes = self.matching.operations[send].bytes;
        match self.matching.fits(receive, bytes) {
            Ok(()) => self.copy_to_oneself(send, receive),
            Err(reason) => {
                self.matching.operations[send].stage = Stage::Moving;
                self.break_off(self.rank, reason);
            }
        }
    }

    /// Copies a send's message into a receive that it fits into; both are finished.
    pub(super) fn copy_to_oneself(&mut self, send: u32, receive: u32) {
        let operations = &mut self.matching.operations;
        let mut source = std::mem::take(&mut operations[send].pieces);
        // SAFETY: neither of the two is finished or cancelled: their memory is valid by the promise
        // of who made them.
        unsafe { source.copy_to(&mut operations[receive].pieces) };
        operations[send].pieces = source;
        operations[send].stage = Stage::Finished;
        operations[receive].stage = Stage::Finished;
    }
}
