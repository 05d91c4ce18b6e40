//! How often a question about a ticket looks at the network.
//!
//! A look costs a system call, and it is the same look whichever ticket is asked about. Who waits
//! for many asks about one after the other, round and round: one look a round is enough. Who waits
//! for one asks about it again and again, and may do other things in between: every question has to
//! look. So a question looks if its ticket was asked about since the last look, and then stands for
//! all others of the round. A wait says itself when it looks again: what it asks first may be a ticket
//! that nobody asked about before, and to learn nothing before a yield costs a turn of the core.

/// How often it was looked, and whether the next question has to.
#[derive(Debug, Default)]
pub struct Pace {
    looks: u64,
    hurry: bool,
}

impl Pace {
    /// A pace before the first look.
    pub fn new() -> Self {
        Pace { looks: 0, hurry: false }
    }

    /// When a new ticket passes for asked about: now, so that the first question looks.
    pub fn now(&self) -> u64 {
        self.looks
    }

    /// Whether a question looks, about a ticket last `asked` about then.
    pub fn is_due(&mut self, asked: &mut u64) -> bool {
        let due = self.hurry || *asked == self.looks;
        if due {
            self.looked();
        }
        *asked = self.looks;
        due
    }

    /// There was a look.
    pub fn looked(&mut self) {
        self.looks += 1;
        self.hurry = false;
    }

    /// A wait looks again: the next question looks at the network.
    pub fn hurry(&mut self) {
        self.hurry = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_about_one_ticket_always_looks() {
        let mut pace = Pace::new();
        let mut ticket = pace.now();
        assert!((0..10).all(|_| pace.is_due(&mut ticket)));
        pace.looked();
        let looks: Vec<bool> = (0..3).map(|_| pace.is_due(&mut ticket)).collect();
        assert_eq!(looks, [false, true, true]);
    }

    #[test]
    fn who_asks_about_all_looks_once_a_round_whichever_finish() {
        let mut pace = Pace::new();
        let mut tickets = [pace.now(); 10];
        for finished in [0, 0, 1, 1, 5, 9] {
            let round = |ticket: &mut u64| pace.is_due(ticket);
            assert_eq!(tickets[finished..].iter_mut().map(round).filter(|due| *due).count(), 1);
        }
        pace.hurry();
        assert!(pace.is_due(&mut tickets[0]));
    }
}
