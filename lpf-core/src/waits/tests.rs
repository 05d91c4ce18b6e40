//! Every verdict, one story each; then random programs in `simulation`.

mod simulation;

use super::*;

/// Counts of a sender that made `made` puts.
fn sent(made: u64) -> Counts {
    Counts { sent: SenderCounts { made, ..Default::default() }, ..Counts::default() }
}

/// Counts of a receiver that released `released` messages and offered `offered` landings.
fn received(released: u64, offered: u64) -> Counts {
    let received = ReceiverCounts { released, offered, ..Default::default() };
    Counts { received, ..Counts::default() }
}

fn stream(from: Pid, to: Pid) -> Stream {
    Stream::new(from, to, InboxSlot::new(0), from)
}

/// A want for message `need` from `from` at `to`, of which one less has come.
fn message(from: Pid, to: Pid, need: u64) -> Want {
    Want { what: What::Messages, stream: stream(from, to), have: need - 1, need }
}

/// A want of sender `from` for the release of message `need`.
fn release(from: Pid, to: Pid, need: u64) -> Want {
    Want { what: What::Releases, stream: stream(from, to), have: need - 1, need }
}

fn offer(from: Pid, to: Pid, need: u64) -> Want {
    Want { what: What::Offers, stream: stream(from, to), have: need - 1, need }
}

fn call(number: u32, stamp: u32) -> Call {
    // Of kind 1 where the stamp is 0xa1.
    static NAMES: [&str; Call::KIND as usize + 1] = {
        let mut names = [""; Call::KIND as usize + 1];
        (names[1], names[2]) = ("broadcast", "reduce");
        names
    };
    Call { number, stamp, names: Some(&NAMES), ..Call::default() }
}

fn computing() -> Status {
    Status { superstep: 3, group: 1, call: call(7, 0xa1), ..Default::default() }
}

fn waiting(wants: &[Want]) -> Status {
    Status { doing: Doing::Waiting(wants.to_vec()), ..computing() }
}

fn made(status: Status, from: Pid, to: Pid, made: u64) -> Status {
    let mut status = status;
    status.counts.insert(stream(from, to), sent(made));
    status
}

/// What process 0 says in one round where process q has status `all[q]`.
fn round(suspicion: &mut Suspicion, all: &[Status]) -> Option<String> {
    let fault = suspicion.diagnose(0, &all[0], |pid| Some(all[pid].clone()))?;
    Some(format!("process {}: {}", fault.process, fault.cause))
}

fn ask(all: &[Status]) -> Option<String> {
    round(&mut Suspicion::default(), all)
}

/// What process 0 says after asking as often as it likes while nothing moves.
fn ask_often(all: &[Status]) -> Option<String> {
    let mut suspicion = Suspicion::default();
    (0..10).find_map(|_| round(&mut suspicion, all))
}

/// A message was put, but the ring it goes to is still that of another sender, who waits for the message's
/// receiver.
#[test]
fn a_message_without_a_ring_waits_for_who_has_the_ring() {
    let (next, former) = (stream(2, 0), Stream { from: 1, ..stream(2, 0) });
    let put = SenderCounts { made: 1, barred: Some(1), opened: 1, ..Default::default() };
    let ring = ReceiverCounts { opened: 1, held_by: Some((1, 1)), ..Default::default() };
    let on = |mut status: Status, stream, sent, received| {
        status.counts.insert(stream, Counts { sent, received });
        status
    };
    let opened_once = SenderCounts { made: 1, opened: 1, ..Default::default() };
    let all = [
        on(waiting(&[message(2, 0, 1)]), next, SenderCounts::default(), ring),
        on(waiting(&[message(0, 1, 1)]), former, opened_once, ReceiverCounts::default()),
        on(waiting(&[message(0, 2, 1)]), next, put, ReceiverCounts::default()),
    ];
    let text = ask_often(&all).expect("a cycle");
    assert!(
        text.contains("waits for process 1 to close the link that still has ring 2 at process 0"),
        "{text}"
    );
    // Once the former sender is on its way, nobody is accused.
    let on_its_way = [all[0].clone(), computing(), all[2].clone()];
    assert_eq!(ask_often(&on_its_way), None);
}

/// What waits for an end that its receiver has opened and closed again never leaves; one that was closed an
/// opening before tells nothing.
#[test]
fn what_is_sent_on_a_closed_link_never_leaves() {
    let to = stream(0, 1);
    let opening = |need| Want { what: What::Opening, stream: to, have: need - 1, need };
    let received = ReceiverCounts { opened: 3, closed: 3, ..Default::default() };
    let mut peer = computing();
    peer.counts.insert(to, Counts { received, ..Counts::default() });
    assert_eq!(
        ask(&[waiting(&[opening(3)]), peer.clone()]).unwrap(),
        "process 1: process 0, in call 7 (broadcast), waits for process 1 to take part in it, but process 1 has \
         given up the group, or its links, and has not taken what process 0 sends in the call"
    );
    peer.on_mut(to).received.closed = 2;
    assert_eq!(ask_often(&[waiting(&[opening(3)]), peer]), None);
}

#[test]
fn who_waits_for_nothing_accuses_nobody() {
    let gone = Status { doing: Doing::Left, ..computing() };
    assert_eq!(ask_often(&[computing(), gone]), None);
}

#[test]
fn a_process_may_compute_as_long_as_it_likes() {
    let own = waiting(&[message(1, 0, 4)]);
    for peer in [
        computing(),
        Status { call: Call::default(), ..computing() },
        Status { call: call(6, 0xc1), ..computing() },
        Status { superstep: 2, ..computing() },
        Status { superstep: 99, ..computing() },
    ] {
        assert_eq!(ask_often(&[own.clone(), made(peer, 1, 0, 3)]), None);
    }
}

#[test]
fn messages_under_way_are_waited_for_whatever_their_sender_does_now() {
    let own = waiting(&[message(1, 0, 4)]);
    for peer in [
        Status { doing: Doing::Left, ..computing() },
        Status { doing: Doing::FullSync(3), ..computing() },
        Status { call: call(8, 0xc1), ..computing() },
        Status { call: call(7, 0xc1), ..computing() },
        waiting(&[message(0, 1, 1)]),
    ] {
        assert_eq!(ask_often(&[own.clone(), made(peer, 1, 0, 4)]), None);
    }
}

#[test]
fn a_process_that_left_sends_no_more() {
    let gone = Status { doing: Doing::Left, superstep: 4, ..computing() };
    assert_eq!(
        ask(&[waiting(&[message(1, 0, 4)]), made(gone, 1, 0, 3)]).unwrap(),
        "process 1: process 0, in call 7 (broadcast), waits for message 4 of process 1 (3 have \
         arrived), but process 1 has left the section in superstep 4, having sent 3"
    );
}

#[test]
fn a_process_in_a_full_sync_that_the_asker_has_not_come_to_sends_no_more() {
    let peer = Status { doing: Doing::FullSync(3), ..computing() };
    assert_eq!(
        ask(&[waiting(&[message(1, 0, 1)]), peer]).unwrap(),
        "process 1: process 0, in call 7 (broadcast), waits for message 1 of process 1 (0 have \
         arrived), but process 1 is in the full sync that ends superstep 3, having sent 0"
    );
}

#[test]
fn a_process_that_is_still_leaving_the_askers_last_full_sync_is_waited_for() {
    let peer = Status { doing: Doing::FullSync(2), superstep: 2, ..computing() };
    assert_eq!(ask_often(&[waiting(&[message(1, 0, 1)]), peer]), None);
}

#[test]
fn the_same_call_with_another_stamp() {
    let reason = |peer: Status| {
        let text = ask(&[waiting(&[message(1, 0, 1)]), peer]).unwrap();
        let start = "process 1: process 0, in call 7 (broadcast), waits for message 1 of process 1 (0 have arrived), \
                     but process 1 is in call 7 ";
        text.strip_prefix(start).expect(&text).to_string()
    };
    let place = Some(Place { file: "src/main.rs".into(), line: 12, column: 9 });
    let peer = Status { call: call(7, 0xc2), place, ..computing() };
    assert_eq!(reason(peer.clone()), "(reduce, called at src/main.rs:12:9), having sent 0");
    let same = Status { call: call(7, 0xc1), ..peer.clone() };
    assert_eq!(
        reason(same),
        "(broadcast, called at src/main.rs:12:9) with another length, root, operator, element type, algorithm, \
         arbiter or estimates of arrivals, having sent 0"
    );
    // Names stay at home.
    let far = Call { names: None, ..peer.call };
    assert!(reason(Status { call: far, ..peer.clone() }).starts_with("(reduce, "));
    // Two roots for one call: both wait for the other.
    let peer = Status { doing: Doing::Waiting(vec![message(0, 1, 1)]), ..peer };
    assert!(reason(peer).starts_with("(reduce, "));
}

#[test]
fn a_process_past_the_call() {
    let peer = Status { call: call(8, 0xa1), ..computing() };
    let text = ask(&[waiting(&[message(1, 0, 1)]), peer.clone()]).unwrap();
    assert!(text.contains("process 1 has gone on to call 8 (broadcast), having sent 0"), "{text}");
    let text = ask(&[waiting(&[offer(0, 1, 1)]), peer]).unwrap();
    assert!(text.contains("gone on to call 8 (broadcast), having offered 0"), "{text}");
}

#[test]
fn calls_of_different_groups_are_not_compared() {
    let own = waiting(&[message(1, 0, 1)]);
    for theirs in [call(7, 0xc1), call(9, 0xa1)] {
        let peer = Status { group: 2, call: theirs, ..computing() };
        assert_eq!(ask_often(&[own.clone(), peer]), None);
    }
}

#[test]
fn without_a_call_stamps_say_nothing() {
    let own = Status { call: Call::default(), ..waiting(&[message(1, 0, 1)]) };
    assert_eq!(ask_often(&[own.clone(), computing()]), None);
    let gone = Status { doing: Doing::Left, ..computing() };
    let text = ask(&[own, gone]).unwrap();
    assert!(text.contains("process 0 waits for message 1 of process 1"), "{text}");
}

#[test]
fn releases_may_come_from_any_call_but_not_from_who_left() {
    let own = waiting(&[release(0, 1, 5)]);
    let released = |status: Status, released| Status {
        counts: [(stream(0, 1), received(released, 0))].into(),
        ..status
    };
    for other in [call(8, 0xa1), call(7, 0xc1)] {
        let other = Status { call: other, ..computing() };
        assert_eq!(ask_often(&[own.clone(), released(other, 4)]), None);
    }
    let gone = Status { doing: Doing::Left, ..computing() };
    assert_eq!(
        ask_often(&[own.clone(), released(gone.clone(), 5)]),
        None,
        "the credit is under way"
    );
    let text = ask(&[own.clone(), released(gone, 4)]).unwrap();
    assert!(
        text.contains("process 0, in call 7 (broadcast), waits for process 1 to release message 5"),
        "{text}"
    );
    assert!(text.contains("has left the section in superstep 3, having released 4"), "{text}");
    let syncing = Status { doing: Doing::FullSync(3), ..computing() };
    assert!(ask(&[own, released(syncing, 4)]).is_some());
}

#[test]
fn a_cycle_of_two_is_fatal_when_it_is_seen_twice() {
    let all = [waiting(&[message(1, 0, 1)]), waiting(&[message(0, 1, 1)])];
    let mut suspicion = Suspicion::default();
    assert_eq!(round(&mut suspicion, &all), None);
    assert_eq!(
        round(&mut suspicion, &all).unwrap(),
        "process 0: a cycle of waits: process 0, in call 7 (broadcast), waits for message 1 of \
         process 1 (0 have arrived); process 1, in call 7 (broadcast), waits for message 1 of process \
         0 (0 have arrived)"
    );
}

#[test]
fn a_cycle_of_messages_and_releases() {
    let all =
        [waiting(&[message(2, 0, 1)]), waiting(&[release(1, 0, 3)]), waiting(&[offer(2, 1, 1)])];
    let text = ask_often(&all).unwrap();
    for part in ["process 0,", "process 1,", "process 2,", "release message 3", "offer 1"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn every_process_of_a_cycle_names_the_same_one() {
    let status = |pid: Pid| waiting(&[message((pid + 1) % 3, pid, 1)]);
    for asker in 0..3 {
        let mut suspicion = Suspicion::default();
        let mut ask = || suspicion.diagnose(asker, &status(asker), |pid| Some(status(pid)));
        assert_eq!(ask(), None);
        let fault = ask().unwrap();
        assert_eq!(fault.process, 0);
        assert!(fault.cause.to_string().starts_with("a cycle of waits: process 0"));
    }
}

#[test]
fn a_process_that_waits_for_itself() {
    let text = ask_often(&[waiting(&[message(0, 0, 1)])]).unwrap();
    assert!(text.contains("waits for message 1 of process 0"), "{text}");
}

#[test]
fn a_cycle_that_moves_between_two_looks_is_none() {
    let mut suspicion = Suspicion::default();
    for need in 1..20 {
        // Each time both wait, but for the next message: the one before had come.
        let own = made(waiting(&[message(1, 0, need)]), 0, 1, need - 1);
        let peer = made(waiting(&[message(0, 1, need)]), 1, 0, need - 1);
        assert_eq!(round(&mut suspicion, &[own, peer]), None);
    }
}

#[test]
fn a_cycle_that_is_broken_by_the_second_look_is_none_though_its_statuses_are_old() {
    let mut suspicion = Suspicion::default();
    let all = [waiting(&[message(1, 0, 1)]), waiting(&[message(0, 1, 1)])];
    assert_eq!(round(&mut suspicion, &all), None);
    let [own, peer] = all;
    let all = [own, made(peer, 1, 0, 1)];
    assert_eq!(round(&mut suspicion, &all), None);
    assert_eq!(round(&mut suspicion, &all), None);
}

#[test]
fn a_chain_that_ends_at_a_computing_process_is_none() {
    let all = [waiting(&[message(1, 0, 1)]), waiting(&[message(2, 1, 1)]), computing()];
    assert_eq!(ask_often(&all), None);
}

#[test]
fn a_cycle_among_others_is_theirs_to_report() {
    let all =
        [waiting(&[message(1, 0, 1)]), waiting(&[message(2, 1, 1)]), waiting(&[message(1, 2, 1)])];
    assert_eq!(ask_often(&all), None);
}

#[test]
fn a_cycle_with_one_edge_under_way_is_none() {
    let all = [
        waiting(&[message(1, 0, 1)]),
        waiting(&[message(2, 1, 1)]),
        made(waiting(&[message(0, 2, 1)]), 2, 1, 1),
    ];
    assert_eq!(ask_often(&all), None);
}

#[test]
fn of_several_wants_one_that_never_comes_is_enough() {
    let own = waiting(&[message(1, 0, 1), message(2, 0, 1), message(3, 0, 1)]);
    let gone = Status { doing: Doing::Left, ..computing() };
    let all = [own, computing(), made(computing(), 2, 0, 1), gone];
    assert!(ask(&all).unwrap().contains("process 3 has left"));
}

#[test]
fn a_landing_that_the_asker_never_offered_and_awaits_itself() {
    let own = waiting(&[message(1, 0, 2)]);
    let queued = Some(QueuedLanding { message: 2, landing: 1 });
    let mut peer = made(computing(), 1, 0, 2);
    peer.on_mut(stream(1, 0)).sent.queued = queued;
    assert_eq!(
        ask(&[own.clone(), peer.clone()]).unwrap(),
        "process 1: process 0, in call 7 (broadcast), waits for message 2 of process 1 (1 have \
         arrived), but process 1 sends message 2 as a landing, for which process 0 would have to make \
         offer 1 and has made 0"
    );
    let mut offered = own.clone();
    offered.counts.insert(stream(1, 0), received(0, 1));
    assert_eq!(ask_often(&[offered, peer.clone()]), None, "the offer is under way");
    let earlier = waiting(&[message(1, 0, 1)]);
    assert_eq!(ask_often(&[earlier, peer]), None, "the message awaited comes before the landing");
}

#[test]
fn a_process_that_does_not_answer_is_not_accused() {
    let mut suspicion = Suspicion::default();
    let own = waiting(&[message(1, 0, 1)]);
    for _ in 0..5 {
        assert_eq!(suspicion.diagnose(0, &own, |_| None), None);
    }
}

#[test]
fn nobody_is_asked_twice_in_a_round() {
    let p = 40;
    // Everybody waits for everybody: the worst case for the search.
    let all: Vec<_> = (0..p)
        .map(|pid| {
            let others = (0..p).filter(|&other| other != pid);
            waiting(&others.map(|other| message(other, pid, 1)).collect::<Vec<_>>())
        })
        .collect();
    let mut asked = vec![0; p];
    let mut suspicion = Suspicion::default();
    suspicion.diagnose(0, &all[0], |pid| {
        asked[pid] += 1;
        Some(all[pid].clone())
    });
    assert!(asked[0] == 0 && asked[1..].iter().all(|&n| n == 1));
}

/// Where the sources of the workspace may sleep, yield, spin or poll, and why such a loop is no wait of a process for
/// another one, or publishes itself.
const MAY_PAUSE: &[(&str, &str)] = &[
    ("lpf/src/claim.rs", "a name that its dead holder still has, five times at most"),
    ("lpf-control/src/plane/helper.rs", "the helper thread"),
    ("lpf-core/src/runtime/process.rs", "post, which looks once"),
    ("lpf-core/src/wait.rs", "the pauses of all waits"),
    ("lpf-core/src/runtime/waiting.rs", "the one wait"),
    ("lpf-messages/src/watch.rs", "the pauses of the one wait"),
    ("lpf-messages/src/links/near.rs", "a peer is between two stores"),
    ("lpf-mpi/src/bells.rs", "the sleep of the one wait"),
    ("lpf-mpi/src/library.rs", "MPI begins or ends"),
    ("lpf-mpi/src/network.rs", "the sleep of the one wait"),
    ("lpf-mpi/src/network/giving_up.rs", "MPI ends what was cancelled"),
    ("lpf-mpi/src/start.rs", "the job begins"),
    ("lpf-pthreads/src/barrier.rs", "the one wait of a barrier"),
    ("lpf-pthreads/src/futex.rs", "the sleep of the waits, where the system has no futex"),
    ("lpf-pthreads/src/links/loans.rs", "a peer is between two stores"),
    ("lpf-pthreads/src/links/receive.rs", "a peer is between two stores"),
    ("lpf-pthreads/src/long_wait.rs", "the pauses of the one wait; a peer is between two stores"),
    ("lpf-pthreads/src/pool.rs", "threads between sections"),
    ("lpf-pthreads/src/sync.rs", "names for loom"),
    ("lpf-tcp/src/sockets/farewell.rs", "the network ends, within a second"),
];

/// What a loop does that waits.
const PAUSES: &[&str] =
    &["Waiter::new", "thread::sleep", "yield_now", "spin_loop", "thread::park", ".poll(Awaited"];

/// The sources below a folder without tests and models.
fn sources(folder: &std::path::Path, into: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_test = name.starts_with("tests") || name.starts_with("models");
        match path.is_dir() {
            _ if is_test => {}
            true => sources(&path, into),
            false if name.ends_with(".rs") => into.push(path),
            false => {}
        }
    }
}

/// A wait that does not publish itself lets processes that disagree wait for ever. So a library waits by `sync`, `expect`
/// or [`Runtime::consult`](crate::Runtime::consult), and no loop of its own sleeps or polls.
#[test]
fn no_loop_waits_outside_the_wait_that_publishes_itself() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let mut files = Vec::new();
    for package in [
        "lpf-core",
        "lpf-messages",
        "lpf-collectives",
        "lpf-pthreads",
        "lpf-control",
        "lpf-tcp",
        "lpf-mpi",
        "lpf",
    ] {
        sources(&root.join(package).join("src"), &mut files);
    }
    let mut pausing = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source");
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or("");
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        let pauses = |line: &str| PAUSES.iter().any(|pause| line.contains(pause));
        if code.lines().filter(is_code).any(pauses) {
            let name = file.strip_prefix(root).expect("below the root");
            pausing.push(name.to_string_lossy().into_owned());
        }
    }
    for name in &pausing {
        let may = MAY_PAUSE.iter().any(|(file, _)| file == name);
        assert!(
            may,
            "{name} sleeps, yields, spins or polls: let it wait by sync, expect or consult, or say in \
             MAY_PAUSE why that is no wait for another process"
        );
    }
    for (file, _) in MAY_PAUSE {
        assert!(pausing.iter().any(|name| name == file), "{file} no longer pauses: drop its line");
    }
}

/// What a process in call `number` publishes while it waits for `absent` to come to it, its `calls`-th.
fn joining(number: u32, calls: u64, absent: &[Pid]) -> Status {
    let call = Call { group: 1, ..call(number, 0xa1) };
    let mut own =
        Status { joined: vec![(1, Joined { last: number.into(), calls })], ..computing() };
    own.enter(Call { group: 1, ..call });
    let absent = || absent.to_vec();
    let wait = Consult { from: 0, absent: &absent, look_every: std::time::Duration::ZERO };
    own.doing = Doing::Waiting(wait.wants(call, &own));
    own
}

#[test]
fn a_member_that_comes_to_another_call_lets_no_member_wait_for_ever() {
    let own = joining(7, 2, &[1]);
    let text = |peer: Status| ask_often(&[own.clone(), peer]);
    let scan = Status { call: call(7, 0xc2), ..computing() };
    assert_eq!(
        text(scan.clone()).unwrap(),
        "process 1: process 0, in call 7 (broadcast), waits for process 1 to take part in it, but process 1 is in \
         call 7 (reduce) and has not taken part"
    );
    let past = Status { call: call(8, 0xc1), ..computing() };
    assert!(text(past).unwrap().contains("has gone on to call 8"));
    let gone = Status { doing: Doing::Left, ..computing() };
    assert!(text(gone.clone()).unwrap().contains("has left the section"));
    // It took part, or was in this call before it came to a later one.
    let joined = |status: &Status, last, calls| {
        let joined = vec![(1, Joined { last, calls })];
        text(Status { joined, ..status.clone() })
    };
    assert_eq!(joined(&gone, 7, 2), None);
    assert_eq!(joined(&gone, 9, 3), None);
    // It left this call out.
    assert!(joined(&gone, 9, 2).is_some());
    assert!(joined(&gone, 6, 1).is_some());
    // Each waits for the other to come to its call.
    assert!(text(joining(8, 2, &[0])).is_some());
    let third = [own.clone(), joining(7, 2, &[2]), computing()];
    assert_eq!(ask_often(&third), None, "process 2 computes");
}

/// The end of the chain of waits that begins at process 0, where process q has status `all[q]`.
fn last(all: &[Status]) -> Option<Pid> {
    last_of_chain(0, &all[0], all.len(), |pid| Some(all[pid].clone()))
}

#[test]
fn a_chain_of_waits_ends_at_the_process_that_waits_for_none() {
    let syncing = || Status { doing: Doing::FullSync(3), ..computing() };
    let chain =
        [syncing(), waiting(&[message(2, 1, 1)]), waiting(&[message(3, 2, 1)]), computing()];
    assert_eq!(last(&chain), Some(3));
    let [sync, one, two, _] = chain.clone();
    // Process 3 has sent what process 2 waits for, so process 2 goes on; process 3 waits for it in the full sync.
    let sent = made(syncing(), 3, 2, 1);
    assert_eq!(last(&[sync, one.clone(), two.clone(), sent]), Some(2));
    // A full sync that the asker has come out of is over for its process, too.
    let old = Status { doing: Doing::FullSync(2), superstep: 2, ..computing() };
    assert_eq!(last(&[syncing(), syncing(), old]), Some(2));
    // A process that left waits for those that have not.
    let left = Status { doing: Doing::Left, ..computing() };
    assert_eq!(last(&[left.clone(), left, one, computing()]), Some(3));
    // A helper thread that does not answer is its process's.
    let absent = || Vec::new();
    let wait = Consult { from: 1, absent: &absent, look_every: std::time::Duration::ZERO };
    let own = Status { doing: Doing::Waiting(wait.wants(call(7, 1), &computing())), ..computing() };
    assert_eq!(last(&[own, computing()]), Some(1));
}

#[test]
fn a_silent_process_is_named_only_if_no_other_one_computes() {
    let own = waiting(&[message(1, 0, 1), message(2, 0, 1)]);
    let fetch = |others: bool| {
        move |pid| match pid {
            1 => None,
            _ => {
                Some(if others { computing() } else { made(waiting(&[message(1, 2, 1)]), 2, 0, 1) })
            }
        }
    };
    assert_eq!(last_of_chain(0, &own, 3, fetch(true)), Some(2));
    assert_eq!(last_of_chain(0, &own, 3, fetch(false)), Some(1));
    // A cycle has no end; what a stranger writes about processes that do not exist is left alone.
    let cycle = [waiting(&[message(1, 0, 1)]), waiting(&[message(0, 1, 1), message(9, 1, 1)])];
    assert_eq!(last(&cycle), None);
}
