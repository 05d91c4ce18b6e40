//! The end of a network that all processes close together: all of them, or none.

use lpf_messages::Rank;

use super::Hub;
use crate::plane::mail::Mail;
use crate::plane::words::Down;

/// Who has said that it can.
#[derive(Debug)]
pub(super) struct Closing {
    ready: Vec<bool>,
    missing: usize,
    decided: bool,
}

impl Closing {
    pub(super) fn of(size: Rank) -> Self {
        Closing { ready: vec![false; size], missing: size, decided: false }
    }
}

impl Hub {
    /// The last one that can decides for all, and so does the first one that cannot.
    pub(super) fn ready(&mut self, from: Rank, can: bool, mail: &mut Mail) {
        let closing = &mut self.closing;
        if can && !std::mem::replace(&mut closing.ready[from], true) {
            closing.missing -= 1;
        }
        if !can || closing.missing == 0 {
            self.decide(can, mail);
        }
    }

    /// A process that takes no part any more closes nothing.
    pub(super) fn decide(&mut self, closes: bool, mail: &mut Mail) {
        if !std::mem::replace(&mut self.closing.decided, true) {
            let all = (0..self.size()).filter(|&rank| self.is_here(rank));
            mail.down_to_all(all, &Down::Close(closes));
        }
    }
}
