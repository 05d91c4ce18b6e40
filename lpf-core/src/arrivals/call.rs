//! The calls of a group, and the sentence for two members that are in different ones.

use std::fmt;
use std::panic::Location;

use serde::{Deserialize, Serialize};

use crate::Pid;
use crate::check::Place;

/// The names of a group's calls, by their kinds' numbers.
pub type CallNames = [&'static str; Call::KIND as usize + 1];

/// The values of the call that a library is in. Only the text of a disagreement asks for them.
pub trait CallValues: fmt::Debug {
    /// The values of this process, as they follow the name of the call: "of 8 bytes, root 2".
    fn own(&self) -> String;

    /// The value of the sender, if its stamp shows in which one value it differs: "of 16 bytes". It follows the name of
    /// the sender's call.
    fn of_sender(&self, stamp: u32) -> Option<String>;
}

/// The call that a process has entered, for the check of waits, and the stamp that its messages carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Call {
    /// The group whose members call; groups number their calls separately.
    pub group: u64,
    /// Number of the call among those of its group; 0 outside of calls.
    pub number: u32,
    /// Hash of kind, size, root, algorithm and estimates: equal on all members of one call. The lowest bits,
    /// [`KIND`](Self::KIND), are the kind's number, so that a message names the call of its sender.
    pub stamp: u32,
    /// The names of the group's calls, by their kinds' numbers.
    #[serde(skip)]
    pub names: Option<&'static CallNames>,
    /// The source location of the call. Others get it by [`Status::place`](crate::waits::Status::place).
    #[serde(skip)]
    pub place: Option<&'static Location<'static>>,
}

impl Call {
    /// The bits of a stamp that are the kind's number.
    pub const KIND: u32 = 31;

    /// The name of a call that a library makes before a call on long slices: it checks that all members have the memory.
    pub const MEMORY_CHECK: &'static str = "memory check";

    /// What makes two calls of one kind different, for the error.
    pub(crate) const DIFFERENCES: &'static str =
        "another length, root, operator, element type, algorithm, arbiter or estimates of arrivals";

    /// The differences that a stamp does not show. Not every length is tried.
    const OTHER_DIFFERENCES: &'static str = "another length, operator, element type, arbiter, counts or estimates of arrivals, or with several differences";

    /// Number and stamp in one word, as messages carry it.
    #[inline]
    pub fn word(&self) -> u64 {
        u64::from(self.number) << 32 | u64::from(self.stamp)
    }

    /// The call that a message with this word was sent in, as far as the word has it.
    pub(crate) fn of_word(word: u64) -> Self {
        Call { number: (word >> 32) as u32, stamp: word as u32, ..Call::default() }
    }

    /// The kind's number.
    pub fn kind(&self) -> u32 {
        self.stamp & Self::KIND
    }

    /// The call with its source location and its [values](CallValues), as far as they are known.
    pub(crate) fn text(&self, place: Option<&Place>, values: Option<&str>) -> String {
        let name =
            self.names.map(|names| names[self.kind() as usize]).filter(|name| !name.is_empty());
        let values = values.filter(|values| !values.is_empty());
        let name = name.map(|name| match values {
            Some(values) => format!("{name} {values}"),
            None => name.into(),
        });
        let place = place.map(|place| format!("called at {place}"));
        let known: Vec<String> = name.into_iter().chain(place).collect();
        match known.is_empty() {
            true => format!("call {}", self.number),
            false => format!("call {} ({})", self.number, known.join(", ")),
        }
    }

    /// Whether one is the arrival-aware form of the other.
    fn is_the_same_ahead(&self, other: &Call) -> bool {
        let Some(names) = self.names else { return false };
        let [one, two] = [self, other].map(|call| names[call.kind() as usize]);
        let is = |ahead: &str, plain| ahead.strip_suffix("_by_arrival") == Some(plain);
        is(one, two) || is(two, one)
    }

    fn is_memory_check(&self) -> bool {
        self.names.is_some_and(|names| names[self.kind() as usize] == Self::MEMORY_CHECK)
    }

    /// The sentence for process `own`, which is in this call with these values, and `peer`, whose message carries another
    /// `word`.
    pub fn differs(
        &self,
        own: Pid,
        peer: Pid,
        word: u64,
        values: Option<&dyn CallValues>,
    ) -> String {
        let theirs = Call { names: self.names, ..Call::of_word(word) };
        let is_same_number = self.number == theirs.number;
        let is_alike = is_same_number && self.kind() == theirs.kind();
        let found =
            values.filter(|_| is_same_number).and_then(|values| values.of_sender(theirs.stamp));
        let differences = values.map_or(Self::DIFFERENCES, |_| Self::OTHER_DIFFERENCES);
        let why = match is_same_number {
            true if found.is_some() => "; all members must make the same call with the same values".into(),
            true if self.is_memory_check() || theirs.is_memory_check() => {
                "; a memory check comes before a call on long slices, so the two pass different lengths, or make different \
                 calls"
                    .into()
            }
            true if is_alike => {
                format!(", with {differences}: compare what the two call there")
            }
            true if self.is_the_same_ahead(&theirs) => {
                ", which is another collective, or the same with estimates by which all members arrive at once".into()
            }
            true => ", which is another collective".into(),
            false => {
                ", so one of them has left a call out, or they did not agree in the earlier one on what they send \
                 each other"
                    .into()
            }
        };
        let place = self.place.map(Place::from);
        let ours = self.text(place.as_ref(), values.map(CallValues::own).as_deref());
        let theirs = theirs.text(None, found.as_deref());
        format!("process {own} is in {ours}, but process {peer} in {theirs}{why}")
    }
}

/// "call 7 (broadcast, called at src/main.rs:12:9)", as far as it is known.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(self.place.map(Place::from).as_ref(), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Unfound;

    impl CallValues for Unfound {
        fn own(&self) -> String {
            "of 8 bytes".into()
        }

        fn of_sender(&self, _stamp: u32) -> Option<String> {
            None
        }
    }

    #[test]
    fn a_length_may_be_the_difference_that_is_not_found() {
        let own = Call { number: 7, stamp: 32, ..Call::default() };
        let other = Call { stamp: 64, ..own };
        let said = own.differs(0, 1, other.word(), Some(&Unfound));
        let differences = "another length, operator, element type, arbiter, counts or estimates of arrivals, or \
                           with several differences";
        assert!(said.contains(differences), "{said}");
    }

    #[test]
    fn a_memory_check_is_told_as_part_of_a_call_on_slices() {
        static NAMES: [&str; Call::KIND as usize + 1] = {
            let mut names = [""; Call::KIND as usize + 1];
            (names[0], names[1]) = ("reduce", Call::MEMORY_CHECK);
            names
        };
        let call = |stamp| Call { number: 7, stamp, names: Some(&NAMES), ..Call::default() };
        let said = |own, peer| call(own).differs(0, 1, call(peer).word(), None);
        let either = "so the two pass different lengths, or make different calls";
        for text in [said(0, 1), said(1, 0), said(1, 33)] {
            assert!(text.ends_with(either), "{text}");
        }
        assert!(said(0, 1).contains("but process 1 in call 7 (memory check); "), "{}", said(0, 1));
    }

    #[test]
    fn a_member_that_predicts_a_common_arrival_is_told_so() {
        static NAMES: [&str; Call::KIND as usize + 1] = {
            let mut names = [""; Call::KIND as usize + 1];
            (names[0], names[1], names[2]) = ("reduce", "reduce_by_arrival", "scan");
            names
        };
        let call = |stamp| Call { number: 7, stamp, names: Some(&NAMES), ..Call::default() };
        let said = |own, peer| call(own).differs(0, 1, call(peer).word(), None);
        let together = "or the same with estimates by which all members arrive at once";
        assert!(said(0, 1).ends_with(together) && said(1, 0).ends_with(together), "{}", said(0, 1));
        assert!(said(2, 1).ends_with("which is another collective"), "{}", said(2, 1));
    }
}
