//! What the control plane promises, one story each.

use super::super::pulse::MISSED;
use super::*;
use crate::plane::words::Decision;
use lpf_core::waits::Doing;

fn report(pid: Pid, text: &str) -> Error {
    Error::fatal(pid, 3, Cause::Panicked { message: text.into() })
}

fn declare(job: &mut Job, rank: Rank, text: &str) {
    job.say(rank, Up::Declare { section: S, error: report(rank, text) });
}

#[test]
fn the_report_that_process_0_hears_first_stands_for_all() {
    let mut job = Job::in_section(4);
    declare(&mut job, 2, "first to declare");
    declare(&mut job, 0, "first to be heard");
    declare(&mut job, 1, "late");
    job.carry();
    for rank in 0..4 {
        let failure = job.failure(rank).unwrap();
        assert!(failure.contains("first to be heard"), "process {rank}: {failure}");
        assert_eq!(job.changes[rank].load(std::sync::atomic::Ordering::SeqCst), 1);
    }
}

#[test]
fn who_enters_late_learns_what_it_missed() {
    let mut job = Job::new(3);
    let members = [2, 0, 1];
    for rank in [2, 0] {
        job.enter(rank, S, &members);
    }
    job.carry();
    job.write(2, 5, b"written");
    let (question, topic) = (1, Topic(9));
    job.say(0, Up::Agree { section: S, topic, question, bytes: b"agreed".to_vec() });
    job.carry();
    job.enter(1, S, &members);
    job.carry();
    assert_eq!(job.read(1, 0, 5).unwrap().bytes, b"written");
    assert_eq!(job.at(1).member.section(S).unwrap().fetch(2, topic).unwrap().0, b"agreed");

    let mut job = Job::new(3);
    job.enter(2, S, &members);
    declare(&mut job, 2, "before the others came");
    job.carry();
    job.leave(2, S);
    job.carry();
    for rank in [0, 1] {
        job.enter(rank, S, &members);
        job.carry();
        assert!(job.failure(rank).unwrap().contains("before the others came"));
    }
}

#[test]
fn a_section_that_all_have_left_leaves_nothing_behind() {
    let mut job = Job::in_section(3);
    for rank in 0..3 {
        job.write(rank, 1, &[1; 60]);
    }
    job.carry();
    assert_eq!(job.at(0).hub.as_ref().unwrap().kept(), (3 * 124, 1));
    for rank in 0..3 {
        job.leave(rank, S);
        job.carry();
    }
    assert_eq!(job.at(0).hub.as_ref().unwrap().kept(), (0, 0));
    for rank in 0..3 {
        assert_eq!(job.at(rank).member.kept(), 0);
    }
}

#[test]
fn a_slow_connection_carries_the_latest_record_alone() {
    let mut job = Job::in_section(3);
    for round in 0..1000u32 {
        job.write(1, 1, &round.to_le_bytes());
    }
    assert!(job.at(1).mail.bytes() < 200);
    job.carry();
    for rank in [0, 2] {
        let record = job.read(rank, 1, 1).unwrap();
        assert_eq!((record.version, record.bytes), (1000, 999u32.to_le_bytes().to_vec()));
    }
}

#[test]
fn an_agreement_is_closed_once_and_kept_until_all_have_fetched_it() {
    let mut job = Job::in_section(3);
    let topic = Topic(4);
    let wishes: Vec<u64> = (0..3).map(|rank| job.at(rank).member.wish()).collect();
    for rank in [2, 1, 0] {
        let (question, bytes) = (wishes[rank], vec![rank as u8]);
        job.say(rank, Up::Agree { section: S, topic, question, bytes });
    }
    job.carry();
    let decision = |job: &mut Job, rank: Rank| job.at(rank).member.decision(wishes[rank]);
    assert_eq!(decision(&mut job, 0), Some(Decision::First));
    assert_eq!(decision(&mut job, 1), Some(Decision::Later));
    assert_eq!(decision(&mut job, 2), Some(Decision::Later));
    for rank in 0..3 {
        assert_eq!(job.at(0).hub.as_ref().unwrap().kept().0, 65, "kept until all have it");
        assert_eq!(job.at(rank).member.section(S).unwrap().fetch(rank, topic).unwrap().0, [0]);
        assert_eq!(job.at(rank).member.section(S).unwrap().fetch(rank, topic), None);
        job.say(rank, Up::Fetched { section: S, topic });
        job.carry();
    }
    assert_eq!(job.at(0).hub.as_ref().unwrap().kept().0, 0);
}

#[test]
fn a_death_ends_every_section_of_the_dead_and_no_other() {
    let mut job = Job::new(4);
    let other = SectionId(8);
    for rank in [0, 1, 3] {
        job.enter(rank, S, &[3, 1, 0]);
    }
    for rank in [0, 2] {
        job.enter(rank, other, &[0, 2]);
    }
    job.carry();
    job.at(3).member.track(S, Arc::new(AtomicU64::new(12)));
    let beat = job.at(3).member.beat();
    job.say(3, beat);
    job.carry();
    // Its beat is old: process 0 is further.
    job.at(0).member.track(S, Arc::new(AtomicU64::new(14)));
    job.cut(3);
    job.carry();
    for rank in [0, 1] {
        let text = "fatal: process 0, superstep 14: it was lost: its connection was closed";
        assert_eq!(job.failure(rank).unwrap(), text);
    }
    for rank in [0, 2] {
        assert!(job.at(rank).member.section(other).unwrap().failure.is_none());
        assert!(job.at(rank).member.death(3).is_some());
    }
    // Who was not in it yet learns of it when it enters a section with the dead.
    job.enter(2, SectionId(9), &[2, 3]);
    job.carry();
    assert!(job.at(2).member.section(SectionId(9)).unwrap().failure.is_some());
}

#[test]
fn the_end_of_process_0_ends_every_section() {
    let mut job = Job::in_section(3);
    job.enter(1, SectionId(8), &[1, 2]);
    job.carry();
    job.cut(1);
    let text = "fatal: process 0, superstep 0: it was lost: its connection was closed";
    assert_eq!(job.failure(1).unwrap(), text);
    let known = job.at(1).member.section(SectionId(8)).unwrap();
    let text = known.failure.as_ref().unwrap().to_string();
    assert!(text.contains("process 0 of the job, which held it together"), "{text}");
    job.enter(1, SectionId(9), &[1, 2]);
    assert!(job.at(1).member.section(SectionId(9)).unwrap().failure.is_some());
    assert!(matches!(job.at(1).member.end(), Some(End::Gone(_))));
}

#[test]
fn a_silent_process_is_taken_for_dead_and_told_so() {
    let mut job = Job::in_section(3);
    for _ in 0..=MISSED {
        job.at(0).pulse.heard(1);
        let due = job.at(0).pulse.due();
        job.at(0).tick(due);
    }
    job.carry();
    let silent = "it was lost: it gave no sign of life for 2.75 s";
    for rank in 0..3 {
        assert!(job.failure(rank).unwrap().contains(silent), "process {rank}");
    }
    let Some(End::Gone(error)) = job.at(2).member.end() else { panic!("process 2 goes on") };
    let text = "process 2, superstep 0: it was lost: it was taken for dead: it gave no sign";
    assert!(error.to_string().contains(text), "{error}");
    assert!(!job.connected[2]);
}

#[test]
fn process_0_that_says_nothing_is_given_up_and_learns_why() {
    let mut job = Job::in_section(2);
    for _ in 0..=MISSED {
        let due = job.at(1).pulse.due();
        job.at(1).tick(due);
    }
    job.at(1).mail.take_closing();
    assert!(job.failure(1).unwrap().contains("it gave no sign of life for 2.75 s"));
    job.carry();
    assert!(job.failure(0).unwrap().contains("it gave up process 0"));
}

#[test]
fn an_order_reaches_all_members_but_the_first() {
    let mut job = Job::new(4);
    let order = Order { section: S, members: vec![1, 3, 0], bytes: vec![5; 100] };
    job.say(1, Up::Order(order.clone()));
    job.carry();
    for rank in 0..4 {
        let expected = [0, 3].contains(&rank).then(|| order.clone());
        assert_eq!(job.at(rank).member.take_order(), expected, "process {rank}");
    }
}

#[test]
fn orders_to_the_dead_fail_the_section() {
    let mut job = Job::new(3);
    job.cut(2);
    job.say(0, Up::Order(Order { section: S, members: vec![0, 1, 2], bytes: Vec::new() }));
    job.enter(0, S, &[0, 1, 2]);
    job.carry();
    assert!(job.failure(0).unwrap().contains("process 2, superstep 0: it was lost"));
}

#[test]
fn who_says_goodbye_has_not_died() {
    let mut job = Job::in_section(3);
    job.leave(2, S);
    job.carry();
    job.at(2).member.leaving = true;
    job.say(2, Up::Goodbye);
    job.carry();
    assert!(job.at(2).member.is_finished() && !job.connected[2]);
    assert_eq!((job.failure(0), job.failure(1)), (None, None));
    assert_eq!(job.at(0).member.death(2), None);
}

#[test]
fn who_says_goodbye_inside_a_section_fails_it() {
    let mut job = Job::in_section(2);
    job.say(1, Up::Goodbye);
    job.carry();
    assert!(job.failure(0).unwrap().contains("process 1, superstep 0: it was lost: it has"));
}

#[test]
fn after_the_end_of_the_job_a_closed_connection_is_no_death() {
    let mut job = Job::new(3);
    let State { hub, mail, .. } = job.at(0);
    hub.as_mut().unwrap().finish(mail);
    job.carry();
    assert!(job.at(1).member.is_finished());
    job.cut(1);
    job.carry();
    assert_eq!(job.at(2).member.death(1), None);
    assert!(!job.at(0).hub.as_ref().unwrap().is_alone());
    job.cut(2);
    assert!(job.at(0).hub.as_ref().unwrap().is_alone());
}

/// What a job of three decides when these words have been carried, at each of those that stand.
fn closes(course: impl FnOnce(&mut Job)) -> Vec<Option<bool>> {
    let mut job = Job::new(3);
    course(&mut job);
    job.carry();
    let standing: Vec<Rank> = (0..3).filter(|&rank| job.connected[rank]).collect();
    standing.into_iter().map(|rank| job.at(rank).member.closes).collect()
}

#[test]
fn all_close_their_network_or_nobody_does() {
    let ready = |job: &mut Job, ranks: &[Rank]| {
        for &rank in ranks {
            job.say(rank, Up::Ready(true));
            job.carry();
        }
    };
    assert_eq!(closes(|job| ready(job, &[0, 2])), [None; 3]);
    assert_eq!(closes(|job| ready(job, &[2, 2, 0, 0])), [None; 3]);
    assert_eq!(closes(|job| ready(job, &[2, 0, 1])), [Some(true); 3]);
    let cannot = |job: &mut Job| {
        ready(job, &[0, 2]);
        job.say(1, Up::Ready(false));
        // Too late.
        ready(job, &[1]);
    };
    assert_eq!(closes(cannot), [Some(false); 3]);
    let dies = |job: &mut Job| {
        ready(job, &[0, 2]);
        job.cut(1);
    };
    assert_eq!(closes(dies), [Some(false); 2]);
    let leaves = |job: &mut Job| {
        ready(job, &[0, 1]);
        job.say(2, Up::Goodbye);
    };
    assert_eq!(closes(leaves), [Some(false); 2]);
    let dies_when_it_is_decided = |job: &mut Job| {
        ready(job, &[0, 1, 2]);
        job.cut(1);
    };
    assert_eq!(closes(dies_when_it_is_decided), [Some(true); 2]);
}

#[test]
fn who_has_lost_process_0_closes_nothing() {
    let mut job = Job::new(2);
    job.cut(1);
    assert_eq!(job.at(1).member.closes, Some(false));
}

#[test]
fn a_wait_for_one_that_left_is_found_by_asking() {
    let mut job = Job::in_section(3);
    let stream = lpf_core::waits::Stream::new(2, 1, lpf_core::InboxSlot::new(0), 0);
    let what = lpf_core::waits::What::Messages;
    let want = lpf_core::waits::Want { what, stream, have: 0, need: 1 };
    let now = Instant::now();
    let waiting = Status { doing: Doing::Waiting(vec![want]), superstep: 4, ..Status::default() };
    job.at(1).member.publish(S, 1, waiting, now);
    let asks = |job: &mut Job, at: Instant| {
        let mut says = Vec::new();
        job.at(1).member.tick(at, &mut says);
        says.into_iter().for_each(|word| job.say(1, word));
        job.carry();
    };
    asks(&mut job, now + BEAT);
    assert_eq!(job.failure(1), None, "process 2 computes");
    let left = Status { doing: Doing::Left, ..Status::default() };
    job.at(2).member.publish(S, 2, left, now);
    asks(&mut job, now + 2 * BEAT);
    for rank in 0..3 {
        let failure = job.failure(rank).unwrap();
        assert!(failure.starts_with("fatal: process 2, superstep 4: process 1 waits"), "{failure}");
    }
}

/// Process 2 has left the section and then died; the others are still leaving. One finds its own network switched off, or
/// the connection to a survivor that has given up.
#[test]
fn a_broken_connection_is_reported_as_the_death_behind_it() {
    let broken = |pid| {
        let cause = Cause::Died { reason: "its connection was closed".into() };
        Up::Declare { section: S, error: Error::fatal(pid, 0, cause) }
    };
    for named in [1, 3] {
        let mut job = Job::in_section(4);
        job.leave(2, S);
        job.carry();
        job.cut(2);
        job.carry();
        assert_eq!(job.failure(1), None, "process 2 owes this section nothing");
        job.say(1, broken(named));
        job.carry();
        for rank in [0, 1, 3] {
            let failure = job.failure(rank).expect("the section has failed");
            assert!(failure.starts_with("fatal: process 2"), "process {rank}: {failure}");
        }
    }
    // While no process is dead the report stands as it is.
    let mut job = Job::in_section(4);
    job.say(1, broken(3));
    job.carry();
    assert!(job.failure(0).expect("it has failed").starts_with("fatal: process 3"));
}

#[test]
fn a_wait_that_is_given_up_learns_what_all_others_do() {
    let mut job = Job::in_section(3);
    let left = Status { doing: Doing::Left, superstep: 7, ..Status::default() };
    job.at(2).member.publish(S, 2, left.clone(), Instant::now());
    let words = job.at(1).member.survey(S);
    assert_eq!(job.at(1).member.surveyed(S, false), None, "no answer is there");
    words.into_iter().for_each(|word| job.say(1, word));
    job.carry();
    let computing = Some(Status::default());
    let all = vec![computing.clone(), computing, Some(left)];
    assert_eq!(job.at(1).member.surveyed(S, false), Some(all));
    // A process that does not answer is unknown, and a section that this process is not in has no members.
    job.at(1).member.survey(S);
    let own = vec![None, Some(Status::default()), None];
    assert_eq!(job.at(1).member.surveyed(S, true), Some(own));
    assert_eq!(job.at(1).member.surveyed(SectionId(77), false), Some(Vec::new()));
}

/// What happens to process 1 of a job of three, and that nobody else is harmed.
fn is_refused(hostile: impl Fn(&mut Job), reason: &str) {
    let mut job = Job::in_section(3);
    hostile(&mut job);
    job.carry();
    let death = job.at(0).member.death(1).cloned().unwrap_or_default();
    assert!(death.contains(reason), "{death}");
    assert!(!job.connected[1]);
    assert!(job.connected[2] && job.at(2).member.death(1).is_some());
}

#[test]
fn what_no_process_says_ends_its_connection_in_words() {
    let from_1 = |word: Up| {
        move |job: &mut Job| {
            let frame = encode(&word);
            job.at(0).frame(1, &frame[4..]);
        }
    };
    let record = |bytes| Record { version: 1, bytes };
    let (section, topic) = (S, Topic(0));
    let far = SectionId(99);
    is_refused(|job| job.at(0).frame(1, b"GET / HTTP/1.1"), "broke the protocol");
    is_refused(from_1(Up::Leave(far)), "it spoke of section 99, which it is not in");
    is_refused(from_1(Up::Enter { section, members: vec![0, 1, 2] }), "entered section 7 twice");
    is_refused(from_1(Up::Enter { section, members: vec![1, 2] }), "with other members");
    let members = |members: &[Rank]| Up::Enter { section: far, members: members.to_vec() };
    is_refused(from_1(members(&[0, 2])), "which it is not a member of");
    is_refused(from_1(members(&[1, 0, 1])), "with a member twice");
    is_refused(from_1(members(&[1, 9])), "with a member that does not exist");
    let long = record(vec![0; 89]);
    is_refused(
        from_1(Up::Record { section, from: 1, topic, record: long }),
        "a record of 89 bytes",
    );
    let again = from_1(Up::Record { section, from: 1, topic, record: record(vec![]) });
    is_refused(|job| [(), ()].into_iter().for_each(|()| again(job)), "older record after a newer");
    let bytes = vec![0; 89];
    is_refused(from_1(Up::Agree { section, topic, question: 0, bytes }), "an agreement of 89");
    is_refused(
        from_1(Up::Ask { section, by: 1, of: 3, round: 0 }),
        "process 3, which does not exist",
    );
    let error = Error::program("not fatal");
    is_refused(from_1(Up::Declare { section, error }), "a failure without a cause");
    let error = Error::fatal(3, 0, Cause::Deadlock(String::new()));
    is_refused(from_1(Up::Declare { section, error }), "a failure without a cause");
    let order = Order { section: far, members: vec![0, 1], bytes: Vec::new() };
    is_refused(from_1(Up::Order(order)), "an invalid order");
}

#[test]
fn who_writes_without_end_is_refused() {
    is_refused(
        |job| {
            for topic in 0..200_000 {
                let record = Record { version: 1, bytes: vec![0; 88] };
                let word = Up::Record { section: S, from: 1, topic: Topic(topic), record };
                job.at(0).frame(1, &encode(&word)[4..]);
                if job.at(0).member.death(1).is_some() {
                    assert!(job.at(0).hub.as_ref().unwrap().kept().0 < 2 * rules::MOST_WRITTEN);
                    return;
                }
            }
        },
        "bytes on one board",
    );
    is_refused(
        |job| {
            for section in 100..2000 {
                let word = Up::Enter { section: SectionId(section), members: vec![1, 2] };
                job.at(0).frame(1, &encode(&word)[4..]);
            }
        },
        "it is in 1024 sections",
    );
}

#[test]
fn orders_that_nobody_follows_fill_no_memory() {
    let mut job = Job::new(2);
    for section in 0..10_000 {
        let order = Order { section: SectionId(section), members: vec![1, 0], bytes: Vec::new() };
        job.say(1, Up::Order(order));
        job.carry();
        job.at(0).member.take_order();
    }
    assert!(job.at(0).hub.as_ref().unwrap().kept().1 <= 1025);
}

#[test]
fn an_order_for_which_there_is_no_room_fails_its_section_and_nothing_else() {
    for server in [0, 2] {
        let mut job = Job::new(3);
        for section in 0..=member::MOST_ORDERS as u64 {
            let section = SectionId(section);
            job.say(1, Up::Order(Order { section, members: vec![1, server], bytes: Vec::new() }));
            job.enter(1, section, &[1, server]);
            job.carry();
            if section.0 < member::MOST_ORDERS as u64 {
                assert!(job.at(1).member.section(section).unwrap().failure.is_none());
                job.leave(1, section);
                job.carry();
            }
        }
        let last = SectionId(member::MOST_ORDERS as u64);
        let known = job.at(1).member.section(last).unwrap();
        let text = known.failure.as_ref().unwrap().to_string();
        assert!(text.contains("process 1, superstep 0: out of memory"), "{text}");
        assert!((0..3).all(|rank| job.at(1).member.death(rank).is_none()));
    }
}

#[test]
fn a_process_0_that_says_what_it_never_says_is_given_up() {
    let words = [
        Down::Died { rank: 3, reason: String::new() },
        Down::Failed { section: S, error: Error::program("not fatal") },
        Down::Order(Order { section: S, members: vec![0, 2], bytes: Vec::new() }),
        Down::Record {
            section: S,
            from: 3,
            topic: Topic(0),
            record: Record { version: 1, bytes: Vec::new() },
        },
        Down::Agreed { section: S, topic: Topic(0), bytes: vec![0; 89] },
    ];
    for word in words {
        let mut job = Job::in_section(3);
        job.at(1).frame(0, &encode(&word)[4..]);
        assert!(job.failure(1).unwrap().contains("it broke the protocol"), "{word:?}");
    }
}
