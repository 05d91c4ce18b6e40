//! Sections whose members stand for nodes of several processes.

use lpf_core::InboxSlot;
use lpf_core::waits::{Doing, Stream, Want, What};

use super::*;

/// Processes 0 to 2 are at member 0, process 3 is at member 1, and processes 4 and 5 are at member 2.
const MEMBERS: [Rank; 6] = [0, 0, 0, 1, 2, 2];

fn on_nodes() -> Job {
    let mut job = Job::new(3);
    (0..3).for_each(|rank| job.enter(rank, S, &MEMBERS));
    job.carry();
    job
}

fn waits_for(from: Pid, to: Pid) -> Status {
    let stream = Stream::new(from, to, InboxSlot::new(0), 0);
    let want = Want { what: What::Messages, stream, have: 0, need: 1 };
    Status { doing: Doing::Waiting(vec![want]), superstep: 4, ..Status::default() }
}

#[test]
fn each_process_of_a_node_has_records_of_its_own() {
    let mut job = on_nodes();
    let topic = Topic(1);
    for from in [4, 5] {
        let known = job.at(2).member.section(S).unwrap();
        let record = known.write(from, topic, &[from as u8]).unwrap();
        job.say(2, Up::Record { section: S, from, topic, record });
    }
    job.carry();
    for rank in 0..3 {
        for from in [4, 5] {
            assert_eq!(job.read(rank, from, 1).unwrap().bytes, [from as u8], "at member {rank}");
        }
    }
}

#[test]
fn each_process_of_a_node_fetches_an_agreement_once() {
    let mut job = on_nodes();
    let topic = Topic(9);
    job.say(1, Up::Agree { section: S, topic, question: 1, bytes: vec![7] });
    job.carry();
    let fetch = |job: &mut Job, rank: Rank, pid| {
        let fetched = job.at(rank).member.section(S).unwrap().fetch(pid, topic);
        if fetched.as_ref().is_some_and(|&(_, is_last)| is_last) {
            job.say(rank, Up::Fetched { section: S, topic });
        }
        fetched.map(|(bytes, _)| bytes)
    };
    for (pid, &rank) in MEMBERS.iter().enumerate() {
        assert_eq!(job.at(0).hub.as_ref().unwrap().kept().0, 65, "before process {pid} fetches");
        assert_eq!(fetch(&mut job, rank, pid), Some(vec![7]));
        assert_eq!(fetch(&mut job, rank, pid), None);
        job.carry();
    }
    assert_eq!(job.at(0).hub.as_ref().unwrap().kept().0, 0);
}

#[test]
fn the_processes_of_nodes_are_asked_one_by_one() {
    let mut job = on_nodes();
    let now = Instant::now();
    // Process 1 waits for process 5, which has left; process 4 on the same node computes.
    job.at(0).member.publish(S, 1, waits_for(5, 1), now);
    job.at(2).member.publish(S, 5, Status { doing: Doing::Left, ..Status::default() }, now);
    let mut says = Vec::new();
    job.at(0).member.tick(now + BEAT, &mut says);
    says.into_iter().for_each(|word| job.say(0, word));
    job.carry();
    for rank in 0..3 {
        let failure = job.failure(rank).unwrap();
        assert!(failure.starts_with("fatal: process 5, superstep 4: process 1 waits"), "{failure}");
    }
}

#[test]
fn the_death_of_a_node_names_its_processes() {
    let mut job = on_nodes();
    job.cut(2);
    job.carry();
    for rank in 0..2 {
        let failure = job.failure(rank).unwrap();
        assert!(failure.starts_with("fatal: process 4, superstep 0"), "{failure}");
        assert!(failure.contains("processes 4 to 5 are on its node"), "{failure}");
    }
}
