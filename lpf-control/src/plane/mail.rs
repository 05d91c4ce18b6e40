//! Where words go: to process 0, or from it to everybody, itself among them.

use std::collections::VecDeque;
use std::sync::Arc;

use lpf_messages::Rank;

use super::outbox::Outbox;
use super::words::{Down, Up};
use crate::connection::frame::shared;

/// The queues of one process.
#[derive(Debug)]
pub(crate) struct Mail {
    /// At process 0 one for each process, by rank; elsewhere the one to process 0.
    boxes: Vec<Outbox>,
    /// At process 0, what it says to itself.
    local: VecDeque<Down>,
    /// Connections to be closed once what is queued was sent as far as it goes.
    closing: Vec<Rank>,
    /// Something is new for the helper.
    pending: bool,
}

impl Mail {
    pub(crate) fn new(boxes: usize) -> Self {
        let boxes = (0..boxes).map(|_| Outbox::default()).collect();
        Mail { boxes, local: VecDeque::new(), closing: Vec::new(), pending: false }
    }

    /// To process 0, from another.
    pub(crate) fn up(&mut self, word: &Up) {
        self.boxes[0].push(word.key(), shared(word));
        self.pending = true;
    }

    /// From process 0 to one.
    pub(crate) fn down(&mut self, to: Rank, word: Down) {
        match to {
            0 => self.local.push_back(word),
            _ => self.boxes[to].push(word.key(), shared(&word)),
        }
        self.pending = true;
    }

    /// From process 0 to several.
    pub(crate) fn down_to_all(&mut self, to: impl Iterator<Item = Rank>, word: &Down) {
        let mut frame: Option<Arc<[u8]>> = None;
        self.pending = true;
        for rank in to {
            if rank == 0 {
                self.local.push_back(word.clone());
                continue;
            }
            let frame = frame.get_or_insert_with(|| shared(word));
            self.boxes[rank].push(word.key(), frame.clone());
        }
    }

    /// Whether something is new for the helper; told once.
    pub(crate) fn take_pending(&mut self) -> bool {
        std::mem::take(&mut self.pending)
    }

    /// What process 0 said to itself.
    pub(crate) fn take_local(&mut self) -> Option<Down> {
        self.local.pop_front()
    }

    /// Closes a connection after what is queued for it.
    pub(crate) fn close(&mut self, rank: Rank) {
        self.closing.push(rank);
    }

    /// The connections that are to be closed now.
    pub(crate) fn take_closing(&mut self) -> Vec<Rank> {
        std::mem::take(&mut self.closing)
    }

    /// The queue of a connection.
    pub(crate) fn outbox(&mut self, connection: usize) -> &mut Outbox {
        &mut self.boxes[connection]
    }

    /// The connections whose queue ran over.
    pub(crate) fn take_overflown(&mut self) -> Vec<usize> {
        let boxes = self.boxes.iter_mut().enumerate();
        boxes.filter_map(|(at, outbox)| outbox.take_overflown().then_some(at)).collect()
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.boxes.iter().map(Outbox::bytes).sum()
    }
}
