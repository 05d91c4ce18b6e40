//! Which slots a process registered, where, and in which order.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Write};

use super::Place;
use crate::Pid;
use crate::error::{Cause, counted};
use crate::slot::{Registrant, Slot};

/// Deregistered slots that are remembered: the latest ones.
const REMEMBERED: usize = 4096;

/// A collective call: the registration or deregistration of a global slot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Registration {
    /// Whether it registers.
    pub registers: bool,
    /// The slot; the same on every process as long as the calls are.
    pub slot: Slot,
    /// Its length in bytes at this process, and the bytes of an element. For an area both have to be equal everywhere; the
    /// second is 0 if it is not an area, or deregisters.
    pub sizes: (usize, usize),
    /// Where in the source.
    pub place: Place,
}

impl Registration {
    fn is_the_same_call(&self, other: &Self) -> bool {
        self.is_of_the_same_slot(other) && self.shape() == other.shape()
    }

    fn is_of_the_same_slot(&self, other: &Self) -> bool {
        (self.registers, self.slot) == (other.registers, other.slot)
    }

    /// Both sizes of an area, or nothing.
    fn shape(&self) -> Option<(usize, usize)> {
        Some(self.sizes).filter(|(_, element)| *element > 0)
    }

    /// "5 elements of 8 bytes"; of a slot that is not an area "memory of any length".
    fn contents(&self) -> String {
        match self.shape() {
            Some((bytes, element)) => {
                let elements = counted((bytes / element) as u64, "element");
                format!("{elements} of {}", counted(element as u64, "byte"))
            }
            None => "memory of any length".into(),
        }
    }
}

impl fmt::Display for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.registers { "registers" } else { "deregisters" };
        write!(f, "{verb} {} at {}", self.slot, self.place)
    }
}

/// The lowest process whose collective calls since the last sync are not those of process 0, and the first difference.
/// `all` has the calls of each process. Every process finds the same, so that all report one error.
pub fn difference<'a>(mut all: impl Iterator<Item = &'a [Registration]>) -> Option<(Pid, Cause)> {
    let first = all.next()?;
    (1..).zip(all).find_map(|(pid, calls)| Some((pid, differs((0, first), (pid, calls))?)))
}

fn differs(
    (a, a_calls): (Pid, &[Registration]),
    (b, b_calls): (Pid, &[Registration]),
) -> Option<Cause> {
    let nth = a_calls.iter().zip(b_calls).take_while(|(x, y)| x.is_the_same_call(y)).count();
    let text = match (a_calls.get(nth), b_calls.get(nth)) {
        (None, None) => return None,
        (Some(x), Some(y)) if x.is_of_the_same_slot(y) => {
            let (of_a, of_b) = (x.contents(), y.contents());
            format!("process {a} {x} for {of_a}, process {b} at {} for {of_b}", y.place)
        }
        (Some(x), Some(y)) => format!("process {a} {x}, process {b} {y}"),
        (Some(x), None) => missing(a, x, b, b_calls.last()),
        (None, Some(y)) => missing(b, y, a, a_calls.last()),
    };
    Some(Cause::Checked(format!(
        "collective registration {} since the last sync differs: {text}",
        nth + 1
    )))
}

fn missing(has: Pid, call: &Registration, lacks: Pid, last: Option<&Registration>) -> String {
    let mut text = format!("process {has} {call}, process {lacks} makes no such call");
    if let Some(last) = last {
        let _ = write!(text, " (the last it makes {last})");
    }
    text
}

#[derive(Clone, Debug)]
struct Live {
    bytes: usize,
    place: Place,
    superstep: u64,
    registrant: Registrant,
}

#[derive(Clone, Debug)]
struct Gone {
    slot: Slot,
    was: Live,
    /// Where it was deregistered; `None` if its handle was dropped.
    place: Option<Place>,
    superstep: u64,
}

/// The slots of one process. O(slots) memory, and the latest 4096 deregistered ones.
#[derive(Debug, Default)]
pub struct Registry {
    live: BTreeMap<u64, Live>,
    gone: VecDeque<Gone>,
    calls: Vec<Registration>,
}

impl Registry {
    /// Notes that `slot`, of `bytes` bytes here, was registered in `superstep`. An area has
    /// elements of `element` bytes; other slots have 0. `registrant` has to deregister it.
    pub fn registered(
        &mut self,
        slot: impl Into<Slot>,
        bytes: usize,
        element: usize,
        registrant: Registrant,
        place: Place,
        superstep: u64,
    ) {
        let slot = slot.into();
        if slot.is_global() {
            self.calls.push(Registration {
                registers: true,
                slot,
                sizes: (bytes, element),
                place: place.clone(),
            });
        }
        self.live.insert(slot.to_bits(), Live { bytes, place, superstep, registrant });
    }

    /// Notes that `slot` was deregistered in `superstep`.
    pub fn deregistered(&mut self, slot: impl Into<Slot>, place: Place, superstep: u64) {
        let slot = slot.into();
        if slot.is_global() {
            let place = place.clone();
            self.calls.push(Registration { registers: false, slot, sizes: (0, 0), place });
        }
        self.is_gone(slot, Some(place), superstep);
    }

    /// Notes that `slot` was deregistered at the end of `superstep`, because all processes had dropped its handle.
    pub fn dropped(&mut self, slot: impl Into<Slot>, superstep: u64) {
        self.is_gone(slot.into(), None, superstep);
    }

    fn is_gone(&mut self, slot: Slot, place: Option<Place>, superstep: u64) {
        if let Some(was) = self.live.remove(&slot.to_bits()) {
            if self.gone.len() == REMEMBERED {
                self.gone.pop_front();
            }
            self.gone.push_back(Gone { slot, was, place, superstep });
        }
    }

    /// The collective calls since the last full sync, for [`difference`].
    pub fn calls(&self) -> &[Registration] {
        &self.calls
    }

    /// A full sync is complete: all processes made the same calls up to it.
    pub fn settle(&mut self) {
        self.calls.clear();
    }

    /// The reason why a slot is not registered any more; `None` if it never was, or if that is forgotten.
    pub fn explain(&self, slot: impl Into<Slot>) -> Option<Cause> {
        let slot = slot.into();
        let Gone { was, place, superstep, .. } = self.gone.iter().rfind(|g| g.slot == slot)?;
        let how = match place {
            Some(place) => format!("it was deregistered, at {place} in superstep {superstep}"),
            None => format!("its area was dropped, at the end of superstep {superstep}"),
        };
        Some(Cause::Checked(format!(
            "{slot} is used after {how}; it was registered at {} in superstep {}",
            was.place, was.superstep
        )))
    }

    /// The slots that their callers have not deregistered, in the order of their registration, local
    /// ones first: a report for the end of a section, one slot a line. The runtime's own are left
    /// out: it frees them.
    pub fn leaks(&self, owner: Pid) -> Option<String> {
        let leaked = |live: &Live| live.registrant == Registrant::Caller;
        let leaks: Vec<_> = self.live.iter().filter(|(_, live)| leaked(live)).collect();
        if leaks.is_empty() {
            return None;
        }
        let slots = if leaks.len() == 1 { "slot" } else { "slots" };
        let mut report = format!("process {owner} leaves {} {slots} registered:", leaks.len());
        for (&bits, Live { bytes, place, superstep, .. }) in leaks {
            let slot = Slot::of_key(bits);
            let _ = write!(
                report,
                "\n  {slot}, {bytes} bytes, registered at {place} in superstep {superstep}"
            );
        }
        Some(report)
    }
}

#[cfg(test)]
mod tests;
