use super::*;
use crate::slot::{GlobalSlot, SlotTable};

/// A process with its table and registry, as a backend has them.
struct Process {
    table: SlotTable,
    registry: Registry,
    line: u32,
}

impl Process {
    fn new() -> Self {
        let mut table = SlotTable::new(0);
        table.reserve(8, 0).unwrap();
        table.set_capacity(8, 0);
        Process { table, registry: Registry::default(), line: 0 }
    }

    fn place(&mut self) -> Place {
        self.line += 1;
        Place { file: "program.rs".into(), line: self.line, column: 5 }
    }

    fn global(&mut self, element: usize) -> GlobalSlot {
        let slot = self.table.register_global(std::ptr::null_mut(), 16, element, 2).unwrap();
        let place = self.place();
        self.registry.registered(slot, 16, element, Registrant::Caller, place, 2);
        slot
    }

    fn local(&mut self) -> Slot {
        self.local_of(Registrant::Caller)
    }

    fn local_of(&mut self, registrant: Registrant) -> Slot {
        let slot = self.table.register_local(std::ptr::null_mut(), 24, registrant, 2).unwrap();
        let place = self.place();
        self.registry.registered(slot, 24, 0, registrant, place, 2);
        slot.into()
    }

    fn deregister(&mut self, slot: impl Into<Slot>, superstep: u64) {
        let slot = slot.into();
        self.table.deregister(slot, superstep).unwrap();
        let place = self.place();
        self.registry.deregistered(slot, place, superstep);
    }
}

fn compare(a: &Process, b: &Process) -> Option<String> {
    let found = difference([a, b].into_iter().map(|process| process.registry.calls()));
    found.map(|(_, cause)| cause.to_string())
}

#[test]
fn the_same_calls_are_no_difference_whatever_is_local() {
    let (mut a, mut b) = (Process::new(), Process::new());
    let slot = a.global(7);
    a.deregister(slot, 2);
    let local = b.local();
    let slot = b.global(7);
    b.deregister(local, 2);
    b.deregister(slot, 2);
    assert_eq!(compare(&a, &b), None);
}

#[test]
fn another_call_is_named_with_both_places() {
    let (mut a, mut b) = (Process::new(), Process::new());
    let (old, _) = (a.global(0), b.global(0));
    a.registry.settle();
    b.registry.settle();
    a.global(0);
    b.deregister(old, 3);
    assert_eq!(
        compare(&a, &b).unwrap(),
        "checked mode: collective registration 1 since the last sync differs: process 0 registers \
         global slot 1 at program.rs:2:5, process 1 deregisters global slot 0 at program.rs:2:5"
    );
}

#[test]
fn an_area_of_another_length_is_named_with_both_places() {
    let (mut a, mut b) = (Process::new(), Process::new());
    a.global(0);
    b.global(0);
    a.global(8);
    b.global(16);
    assert_eq!(
        compare(&a, &b).unwrap(),
        "checked mode: collective registration 2 since the last sync differs: process 0 registers \
         global slot 1 at program.rs:2:5 for 2 elements of 8 bytes, process 1 at program.rs:2:5 for 1 element of 16 bytes"
    );
}

/// Neighbours of the process that differs and processes that do not touch it report the same.
#[test]
fn one_process_of_many_is_named_with_the_first() {
    let mut all: Vec<Process> = (0..5).map(|_| Process::new()).collect();
    for (pid, process) in all.iter_mut().enumerate() {
        process.global(if pid == 3 { 16 } else { 8 });
    }
    let (pid, cause) = difference(all.iter().map(|process| process.registry.calls())).unwrap();
    assert_eq!(pid, 3);
    let named = "process 0 registers global slot 0 at program.rs:1:5 for 2 elements of 8 bytes, process 3 at program.rs:1:5 \
                 for 1 element of 16 bytes";
    assert!(cause.to_string().contains(named), "{cause}");
}

#[test]
fn a_call_that_one_process_leaves_out_is_named_on_either_side() {
    let (mut a, mut b) = (Process::new(), Process::new());
    a.global(0);
    b.global(0);
    b.global(0);
    let expected = "process 1 registers global slot 1 at program.rs:2:5, process 0 makes no such \
                    call (the last it makes registers global slot 0 at program.rs:1:5)";
    let text = compare(&a, &b).unwrap();
    assert!(text.ends_with(expected), "{text}");
    let none = Process::new();
    let text = compare(&a, &none).unwrap();
    assert!(text.ends_with("process 1 makes no such call"), "{text}");
}

#[test]
fn a_deregistered_slot_remembers_where_and_when() {
    let mut process = Process::new();
    let (first, local) = (process.global(0), process.local());
    process.deregister(first, 5);
    assert_eq!(
        process.registry.explain(first).unwrap().to_string(),
        "checked mode: global slot 0 is used after it was deregistered, at program.rs:3:5 in \
         superstep 5; it was registered at program.rs:1:5 in superstep 2"
    );
    assert_eq!(process.registry.explain(local), None);
    let second = process.global(0);
    assert_eq!(second.index(), first.index());
    assert_eq!(process.registry.explain(second), None, "another slot in the same place");
    assert!(process.registry.explain(first).is_some());
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut process = Process::new();
    let first = process.global(0);
    process.deregister(first, 2);
    for superstep in 0..REMEMBERED as u64 {
        let slot = process.local();
        process.deregister(slot, superstep);
        process.registry.settle();
    }
    assert_eq!(process.registry.gone.len(), REMEMBERED);
    assert_eq!(process.registry.explain(first), None);
}

#[test]
fn leaks_are_listed_with_size_and_place() {
    let mut process = Process::new();
    let (kept, gone, _local) = (process.global(0), process.global(0), process.local());
    process.deregister(gone, 4);
    assert_eq!(
        process.registry.leaks(3).unwrap(),
        "process 3 leaves 2 slots registered:\
         \n  local slot 0, 24 bytes, registered at program.rs:3:5 in superstep 2\
         \n  global slot 0, 16 bytes, registered at program.rs:1:5 in superstep 2"
    );
    process.deregister(kept, 4);
    process.deregister(_local, 4);
    assert_eq!(process.registry.leaks(3), None);
}

#[test]
fn a_place_is_where_the_tracked_function_was_called() {
    #[track_caller]
    fn put() -> Place {
        Place::caller()
    }
    let (place, line) = (put(), line!());
    assert_eq!((place.line, place.to_string().contains("tests.rs")), (line, true));
}

#[test]
fn what_the_runtime_frees_is_no_leak() {
    let mut process = Process::new();
    process.local_of(Registrant::Runtime);
    process.local_of(Registrant::Outbox);
    assert_eq!(process.registry.leaks(0), None);
    process.local();
    assert!(process.registry.leaks(0).unwrap().contains("leaves 1 slot registered"));
}
