//! A relay between the two processes of a job: what it reads, and what comes of what it changes. Each process is a
//! thread here.

mod job;
mod relay;

use std::time::Duration;

use job::{Outcome, PATTERN, Sealed, run};
use relay::{Change, Direction, Fault, Relay};

const DIRECTIONS: [Direction; 2] = [Direction::ToFirst, Direction::FromFirst];

/// Bits of a head: of its number, of its contents, of its tag.
const OF_A_HEAD: [usize; 6] = [0, 15, 8 * 12, 8 * 30 + 3, 8 * 64, 8 * HEAD - 1];

/// Bytes of a head, which is the whole of a short record.
const HEAD: usize = 80;

/// Both processes have an error, and one of them has found why.
#[track_caller]
fn assert_found(fault: &Fault, outcomes: [Outcome; 2]) {
    let errors = outcomes.map(|outcome| outcome.expect_err("the job is well"));
    let is_named = |error: &String| {
        error.contains("a message was altered on its way") && error.contains("process ")
    };
    assert!(errors.iter().any(is_named), "{fault:?}: {errors:?}");
}

fn every_change(connection: usize, changes: &[Change]) {
    for direction in DIRECTIONS {
        for &change in changes {
            let fault = Fault { connection, direction, change };
            let outcomes = run(&Relay::start(Some(fault)), Sealed::ByDefault, None);
            assert_found(&fault, outcomes);
        }
    }
}

#[test]
fn a_bit_that_is_changed_in_a_head_ends_the_job_data() {
    every_change(relay::DATA, &OF_A_HEAD.map(Change::Flip));
}

#[test]
fn a_bit_that_is_changed_in_a_head_ends_the_job_control() {
    every_change(relay::CONTROL, &OF_A_HEAD.map(Change::Flip));
}

#[test]
fn a_bit_that_is_changed_in_a_long_message_ends_the_job() {
    let places = [HEAD, 100, 5000, 65_535, 65_600, 70_000];
    every_change(relay::DATA, &places.map(|byte| Change::Flip(8 * byte + 5)));
}

#[test]
fn a_record_that_is_left_out_repeated_or_moved_ends_the_job() {
    for connection in [relay::CONTROL, relay::DATA] {
        every_change(
            connection,
            &[Change::LeaveOut(0, HEAD), Change::Repeat(HEAD), Change::Exchange(HEAD)],
        );
    }
}

#[test]
fn what_is_left_out_is_found_though_nothing_follows() {
    // A whole record, a part of the tail of one, and almost all of a long tail.
    for (bytes, change, sleeps) in [
        (5, Change::LeaveOut(0, HEAD), true),
        (1000, Change::LeaveOut(100, 600), false),
        (65_500, Change::LeaveOut(100, 65_500), true),
    ] {
        for direction in DIRECTIONS {
            let fault = Fault { connection: relay::DATA, direction, change };
            let error = job::last_message(&Relay::start(Some(fault)), direction, bytes, sleeps);
            assert!(error.contains("a message was altered on its way"), "{fault:?}: {error}");
        }
    }
}

#[test]
fn a_connection_that_is_cut_within_a_record_is_not_taken_for_one_that_a_process_has_closed() {
    for direction in DIRECTIONS {
        for bytes in [0, HEAD / 2, HEAD, 500] {
            let fault = Fault { connection: relay::DATA, direction, change: Change::Cut(bytes) };
            let error = job::last_message(&Relay::start(Some(fault)), direction, 1000, true);
            assert!(error.contains("its connection was closed"), "{fault:?}: {error}");
        }
    }
}

#[test]
fn what_is_left_out_at_the_end_of_a_section_is_found() {
    let change = Change::LeaveOut(0, HEAD);
    let fault = Fault { connection: relay::DATA, direction: Direction::ToFirst, change };
    let error = job::last_word(&Relay::start(Some(fault)));
    assert!(error.contains("a message was altered on its way"), "{error}");
}

#[test]
fn pairs_of_two_jobs_with_one_secret_are_not_crossed() {
    let relays = [Relay::start(None), Relay::start(None)];
    Relay::cross(&relays[0], &relays[1]);
    let time = Duration::from_secs(3);
    let jobs = relays.each_ref().map(|relay| job::joining(relay, Sealed::ByDefault, time));
    for joining in jobs.into_iter().flatten() {
        let joined = joining.join().unwrap().map(|joined| joined.rank);
        let error = joined.expect_err("it has the data of another job").to_string();
        assert!(error.contains("process 1 was not connected"), "{error}");
    }
}

#[test]
fn with_a_secret_a_relay_reads_nothing() {
    let relay = Relay::start(None);
    for outcome in run(&relay, Sealed::ByDefault, Some(3)) {
        outcome.expect("nothing was changed");
    }
    assert!(relay.bytes() > 3 * job::BYTES as u64, "{} bytes went by", relay.bytes());
    assert!(!relay.has_seen(PATTERN));
}

#[test]
fn process_0_decides_whether_data_is_sealed() {
    for (sealed, is_read) in [(Sealed::UnlessFirstSaysNo, true), (Sealed::UnlessOtherSaysNo, false)]
    {
        let relay = Relay::start(None);
        for outcome in run(&relay, sealed, Some(3)) {
            outcome.expect("nothing was changed");
        }
        assert_eq!(relay.has_seen(PATTERN), is_read, "{sealed:?}");
    }
}

#[test]
fn what_is_changed_in_data_that_is_not_sealed_is_found_by_nobody() {
    // The proof that the relay changes what it is meant to change.
    let change = Change::Flip(8 * 5000);
    let fault = Fault { connection: relay::DATA, direction: Direction::ToFirst, change };
    let relay = Relay::start(Some(fault));
    let [first, _] = run(&relay, Sealed::UnlessFirstSaysNo, Some(3));
    assert_eq!(first, Err(job::DIFFERS.into()));
}

/// A job that has not ended after so long hangs.
const PATIENCE: Duration = Duration::from_secs(60);
