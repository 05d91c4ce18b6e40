use super::*;
use proptest::prelude::*;

/// Bits of global slot `n`, as a table gives it out.
fn global(n: u64) -> GlobalSlot {
    // SAFETY: pure logic: no memory is behind it.
    unsafe { GlobalSlot::from_bits(1 << 62 | 1 << 32 | n) }
}

fn place(line: u32) -> Place {
    Place { file: "program.rs".into(), line, column: 9 }
}

/// All slots of the tests lie in one block: slot n at 1000 n.
fn base(slot: GlobalSlot) -> Option<usize> {
    Some(1000 * slot.index())
}

/// Copies `bytes` from or to (slot, offset) here and (process, slot, offset) there.
fn request(
    way: Way,
    here: (u64, usize),
    there: (Pid, u64, usize),
    bytes: usize,
    line: u32,
) -> Tracked {
    let local = global(here.0);
    let asked = Asked {
        way,
        local: local.into(),
        local_offset: here.1,
        other: there.0,
        remote: global(there.1),
        remote_offset: there.2,
        bytes,
    };
    Tracked { asked, address: 1000 * local.index() + here.1, place: place(line) }
}

/// What process 0 finds, where `requests[q]` are those of process q.
fn check(requests: &[Vec<Tracked>]) -> Option<String> {
    let mut checker = Checker::new(0);
    checker.own(&requests[0]);
    for (origin, list) in requests.iter().enumerate() {
        checker.from(origin, list, base);
    }
    checker.overlap().map(|cause| cause.to_string())
}

#[test]
fn a_put_into_what_another_process_gets_is_named_with_both_places_and_processes() {
    let requests = [
        vec![],
        vec![request(Way::Put, (5, 0), (0, 1, 16), 8, 3)],
        vec![request(Way::Get, (6, 0), (0, 1, 20), 12, 7)],
    ];
    assert_eq!(
        check(&requests).unwrap(),
        "checked mode: bytes 20..24 of global slot 1 at process 0 are read and written in one \
         superstep: process 1's put at program.rs:3:9 writes bytes 16..24 of global slot 1, and \
         process 2's get at program.rs:7:9 reads bytes 20..32 of global slot 1"
    );
}

#[test]
fn a_put_into_the_source_of_an_own_put() {
    let own = request(Way::Put, (1, 0), (1, 2, 0), 8, 1);
    let theirs = request(Way::Put, (2, 0), (0, 1, 7), 1, 2);
    let text = check(&[vec![own], vec![theirs]]).unwrap();
    assert!(text.contains("bytes 7..8 of global slot 1 at process 0"), "{text}");
    assert!(text.contains("process 0's put at program.rs:1:9 reads bytes 0..8"), "{text}");
}

#[test]
fn an_own_get_into_what_another_process_gets() {
    let own = request(Way::Get, (1, 0), (1, 2, 0), 8, 1);
    let theirs = request(Way::Get, (2, 0), (0, 1, 0), 1, 2);
    let text = check(&[vec![own], vec![theirs]]).unwrap();
    assert!(text.contains("process 0's get at program.rs:1:9 writes bytes 0..8"), "{text}");
    assert!(text.contains("process 1's get at program.rs:2:9 reads bytes 0..1"), "{text}");
}

#[test]
fn a_put_to_oneself_onto_its_own_source() {
    let text = check(&[vec![request(Way::Put, (1, 0), (0, 1, 4), 8, 1)]]).unwrap();
    assert!(text.contains("bytes 4..8 of global slot 1"), "{text}");
}

#[test]
fn two_slots_over_the_same_memory_are_named_each_by_itself() {
    // Slot 2 begins at 2000, slot 1 reaches there.
    let own = request(Way::Put, (1, 996), (1, 9, 0), 8, 1);
    let theirs = request(Way::Put, (9, 0), (0, 2, 0), 8, 2);
    let text = check(&[vec![own], vec![theirs]]).unwrap();
    assert!(text.contains("bytes 0..4 of global slot 2 at process 0"), "{text}");
    assert!(text.contains("reads bytes 996..1004 of global slot 1"), "{text}");
}

#[test]
fn many_reads_and_many_writes_of_the_same_bytes_are_legal() {
    let reads = vec![request(Way::Get, (7, 0), (0, 1, 0), 8, 1); 3];
    let writes = vec![request(Way::Put, (7, 0), (0, 2, 0), 8, 1); 3];
    assert_eq!(check(&[vec![], reads, writes]), None);
}

#[test]
fn what_touches_or_is_empty_or_goes_elsewhere_is_legal() {
    let requests = vec![
        request(Way::Put, (7, 0), (0, 1, 0), 8, 1),
        request(Way::Get, (7, 0), (0, 1, 8), 8, 2),
        request(Way::Get, (7, 0), (0, 1, 4), 0, 3),
        request(Way::Get, (7, 0), (2, 1, 0), 8, 4),
    ];
    assert_eq!(check(&[vec![], requests]), None);
}

#[test]
fn a_request_on_an_unknown_slot_is_left_to_phase_1() {
    let requests = vec![
        request(Way::Put, (7, 0), (0, 1, 0), 8, 1),
        request(Way::Get, (7, 0), (0, 1, 0), 8, 2),
    ];
    let mut checker = Checker::new(0);
    checker.from(1, &requests, |_| None);
    assert_eq!(checker.overlap(), None);
}

proptest! {
    #[test]
    fn it_finds_an_overlap_exactly_where_all_pairs_have_one(
        list in prop::collection::vec((any::<bool>(), 0..60_usize, 0..12_usize), 0..12)
    ) {
        let ways = |put| if put { Way::Put } else { Way::Get };
        let requests: Vec<_> = list
            .iter()
            .map(|&(put, offset, bytes)| request(ways(put), (9, 0), (0, 1, offset), bytes, 1))
            .collect();
        let expected = list.iter().any(|a| list.iter().any(|b| {
            a.0 && !b.0 && a.1.max(b.1) < (a.1 + a.2).min(b.1 + b.2)
        }));
        prop_assert_eq!(check(&[vec![], requests]).is_some(), expected);
    }
}
