//! Planes whose processes stay alive: reports, the board, agreements, questions, leaving.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use lpf_conformance::{allowed, assert_in_time};
use lpf_control::plane::{ControlBoard, ControlPlane, Next};
use lpf_control::rendezvous::{Meeting, bind_first};
use lpf_core::board::{Board, Topic};
use lpf_core::waits::{Doing, Status, Stream, Want, What};
use lpf_core::{Cause, Error, InboxSlot, Pid};
use lpf_messages::{Control, Order, Rank, SectionId};

/// Longer than anything takes on a machine that does much else.
const GENEROUS: Duration = Duration::from_secs(20);

const S: SectionId = SectionId(3);

/// The planes of a job, each of which would be another process's.
fn planes(size: Rank) -> Vec<ControlPlane> {
    let listener = bind_first("127.0.0.1").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut listener = Some(listener);
    let meetings = (0..size).map(|rank| {
        let mut meeting = Meeting::new(&address, rank, size);
        meeting.listener = listener.take();
        meeting
    });
    let meetings: Vec<Meeting> = meetings.collect();
    let joining = meetings.into_iter().map(|m| thread::spawn(|| m.join_without_streams()));
    let joining: Vec<_> = joining.collect();
    joining.into_iter().map(|process| process.join().unwrap().unwrap().control).collect()
}

/// Planes that have all entered section `S`.
fn in_section(size: Rank) -> Vec<ControlPlane> {
    let planes = planes(size);
    let members: Vec<Rank> = (0..size).collect();
    planes.iter().for_each(|plane| plane.enter(S, &members));
    planes
}

fn boards(planes: &[ControlPlane]) -> Vec<ControlBoard> {
    let processes = planes.len();
    planes.iter().zip(0..).map(|(plane, pid)| plane.board(S, pid, processes)).collect()
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < allowed(GENEROUS), "{what} does not come");
        thread::sleep(Duration::from_micros(200));
    }
}

fn panicked(pid: Pid) -> Error {
    Error::fatal(pid, 2, Cause::Panicked { message: format!("in {pid}") })
}

#[test]
fn of_many_reports_one_stands_for_all() {
    for _ in 0..20 {
        let planes = in_section(4);
        let (together, before) = (Barrier::new(4), planes[2].failures());
        let standing: Vec<String> = thread::scope(|scope| {
            let declare = |plane: &ControlPlane| {
                let (together, plane) = (&together, plane.clone());
                scope.spawn(move || {
                    together.wait();
                    let began = Instant::now();
                    let standing = plane.declare(S, panicked(plane.rank()));
                    assert_in_time(began.elapsed(), Duration::from_secs(1));
                    standing.to_string()
                })
            };
            let declaring: Vec<_> = planes.iter().map(declare).collect();
            declaring.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(standing.iter().all(|report| *report == standing[0]), "{standing:?}");
        for plane in &planes {
            assert_eq!(plane.failure(S).unwrap().to_string(), standing[0]);
        }
        assert_ne!(planes[2].failures(), before);
    }
}

#[test]
fn a_report_concerns_its_section_alone_and_who_enters_it_later() {
    let planes = planes(3);
    planes[1].enter(S, &[2, 1]);
    planes[1].enter(SectionId(4), &[1, 0]);
    planes[1].declare(S, panicked(1));
    assert!(planes[1].failure(SectionId(4)).is_none() && planes[0].failure(S).is_none());
    planes[2].enter(S, &[2, 1]);
    let late = wait_for("the report", || planes[2].failure(S));
    assert_eq!(late.to_string(), panicked(1).to_string());
}

#[test]
fn a_record_reaches_everybody_and_the_latest_counts() {
    let planes = in_section(3);
    let boards = boards(&planes);
    for (pid, board) in boards.iter().enumerate() {
        assert_eq!(board.max_record(), 8 * 3 + 64);
        for version in 1..=100u8 {
            board.write(Topic(7), &[pid as u8, version]).unwrap();
        }
    }
    for board in &boards {
        for from in 0..3 {
            let record = wait_for("a record", || {
                board.read(from, Topic(7)).unwrap().filter(|record| record.version == 100)
            });
            assert_eq!(record.bytes, [from as u8, 100]);
        }
        assert!(board.read_all(Topic(7)).unwrap().iter().all(Option::is_some));
        assert!(board.read_all(Topic(8)).unwrap().iter().all(Option::is_none));
        assert!(board.read(3, Topic(7)).unwrap_err().is_misuse());
        assert!(board.write(Topic(7), &[0; 89]).unwrap_err().is_misuse());
        assert!(board.agree(Topic(7), &[0; 89]).unwrap_err().is_misuse());
    }
}

#[test]
fn who_enters_late_reads_what_was_written_before() {
    let planes = planes(2);
    planes[0].enter(S, &[0, 1]);
    let early = planes[0].board(S, 0, 2);
    early.write(Topic(1), b"before").unwrap();
    assert!(early.agree(Topic(2), b"agreed").unwrap());
    planes[1].enter(S, &[0, 1]);
    let late = planes[1].board(S, 1, 2);
    let record = wait_for("the record", || late.read(0, Topic(1)).unwrap());
    assert_eq!(record.bytes, b"before");
    assert_eq!(wait_for("the agreement", || late.agreed(Topic(2)).unwrap()), b"agreed");
}

#[test]
fn the_first_wish_closes_an_agreement_which_each_fetches_once() {
    let planes = in_section(4);
    let boards = boards(&planes);
    for round in 0..50u64 {
        let firsts: Vec<bool> = thread::scope(|scope| {
            let wishes = boards.iter().enumerate().map(|(pid, board)| {
                scope.spawn(move || board.agree(Topic(round), &[pid as u8]).unwrap())
            });
            let wishes: Vec<_> = wishes.collect();
            wishes.into_iter().map(|wish| wish.join().unwrap()).collect()
        });
        assert_eq!(firsts.iter().filter(|&&first| first).count(), 1);
        let winner = firsts.iter().position(|&first| first).unwrap() as u8;
        for board in &boards {
            // Who has asked has it on return.
            assert_eq!(board.agreed(Topic(round)).unwrap(), Some(vec![winner]));
            assert_eq!(board.agreed(Topic(round)).unwrap(), None);
        }
    }
}

#[test]
fn a_board_ends_with_its_section() {
    let planes = in_section(2);
    let boards = boards(&planes);
    boards[0].write(Topic(1), b"soon gone").unwrap();
    planes[1].declare(S, panicked(1));
    wait_for("the report", || planes[0].failure(S));
    for board in &boards {
        for error in [
            board.write(Topic(1), &[]).unwrap_err(),
            board.read(0, Topic(1)).unwrap_err(),
            board.read_all(Topic(1)).unwrap_err(),
            board.agree(Topic(1), &[]).unwrap_err(),
            board.agreed(Topic(1)).unwrap_err(),
        ] {
            assert_eq!(error.to_string(), panicked(1).to_string());
        }
    }
    planes[0].leave(S);
    assert!(boards[0].read(0, Topic(1)).unwrap_err().to_string().contains("has ended"));
    assert!(planes[0].failure(S).is_none());
}

#[test]
fn threads_that_write_and_read_at_once_lose_nothing_but_what_is_old() {
    const WRITES: u32 = 2000;
    let planes = in_section(3);
    let boards = boards(&planes);
    thread::scope(|scope| {
        for (pid, board) in boards.iter().enumerate() {
            scope.spawn(move || {
                for n in 1..=WRITES {
                    board.write(Topic(u64::from(n % 5)), &n.to_le_bytes()).unwrap();
                }
            });
            scope.spawn(move || {
                let mut last = [0; 5];
                while last.iter().any(|&n| n <= WRITES - 5) {
                    for topic in 0..5 {
                        let from = (pid + 1) % 3;
                        let record = board.read(from, Topic(topic)).unwrap();
                        let number = record.map_or(0, |record| {
                            let number = u32::from_le_bytes(record.bytes.try_into().unwrap());
                            assert_eq!(u64::from(number % 5), topic);
                            number
                        });
                        assert!(number >= last[topic as usize], "records do not go backwards");
                        last[topic as usize] = number;
                    }
                    thread::yield_now();
                }
            });
        }
    });
}

#[test]
fn an_order_wakes_its_members_and_nobody_else() {
    let planes = planes(3);
    let order = Order { section: S, members: vec![0, 2], bytes: b"go".to_vec() };
    let began = Instant::now();
    let served = thread::scope(|scope| {
        let waiting = scope.spawn(|| planes[2].next_order(GENEROUS));
        thread::sleep(Duration::from_millis(20));
        planes[0].order(order.clone()).unwrap();
        waiting.join().unwrap()
    });
    let Next::Begin(heard) = served else { panic!("{served:?}") };
    assert_eq!(heard, order);
    assert_in_time(began.elapsed(), Duration::from_secs(5));
    assert!(matches!(planes[1].next_order(Duration::from_millis(30)), Next::Nothing));
}

#[test]
fn an_order_that_is_none_is_refused() {
    let planes = planes(2);
    let order = |members: &[Rank], bytes: usize| Order {
        section: S,
        members: members.to_vec(),
        bytes: vec![0; bytes],
    };
    for wrong in [
        order(&[], 0),
        order(&[1, 0], 0),
        order(&[0, 2], 0),
        order(&[0, 1, 1], 0),
        order(&[0, 1], (1 << 20) + 1),
    ] {
        let error = planes[0].order(wrong).unwrap_err();
        assert!(error.is_misuse(), "{error}");
    }
    assert!(planes[1].finish().unwrap_err().is_misuse());
}

fn waits_for(from: Pid, to: Pid) -> Status {
    let stream = Stream::new(from, to, InboxSlot::new(0), 0);
    let want = Want { what: What::Messages, stream, have: 0, need: 1 };
    Status { doing: Doing::Waiting(vec![want]), ..Status::default() }
}

#[test]
fn a_wait_for_one_that_left_is_found_and_told_to_both() {
    let planes = in_section(3);
    let began = Instant::now();
    planes[2].publish(S, 2, Status { doing: Doing::Left, ..Status::default() });
    planes[1].publish(S, 1, waits_for(2, 1));
    for plane in &planes {
        let error = wait_for("the verdict", || plane.failure(S)).to_string();
        assert!(error.starts_with("fatal: process 2, superstep 0: process 1 waits"), "{error}");
    }
    assert!(began.elapsed() >= lpf_core::waits::ASK_AFTER, "nobody is asked at once");
    assert_in_time(began.elapsed(), Duration::from_secs(5));
}

#[test]
fn a_cycle_of_waits_is_found_and_a_wait_for_one_that_computes_is_none() {
    let planes = in_section(3);
    planes[0].publish(S, 0, waits_for(1, 0));
    planes[1].publish(S, 1, waits_for(2, 1));
    thread::sleep(Duration::from_millis(1200));
    assert!(planes.iter().all(|plane| plane.failure(S).is_none()), "process 2 computes");
    planes[2].publish(S, 2, waits_for(0, 2));
    for plane in &planes {
        let error = wait_for("the verdict", || plane.failure(S)).to_string();
        assert!(error.contains("a cycle of waits: process 0 waits for message 1"), "{error}");
    }
}

#[test]
fn a_process_that_goes_without_a_word_is_dead() {
    let mut planes = in_section(3);
    drop(planes.remove(1));
    for plane in &planes {
        let error = wait_for("the report", || plane.failure(S)).to_string();
        assert_eq!(error, "fatal: process 1, superstep 0: it was lost: its connection was closed");
        assert_eq!(plane.death(1).unwrap(), "its connection was closed");
    }
    let order = Order { section: SectionId(9), members: vec![0, 1], bytes: Vec::new() };
    assert!(planes[0].order(order).unwrap_err().is_fatal());
}

#[test]
fn a_process_that_says_goodbye_is_not() {
    let mut planes = in_section(3);
    planes[1].leave(S);
    assert!(planes.remove(1).goodbye(GENEROUS));
    thread::sleep(Duration::from_millis(100));
    for plane in &planes {
        assert!(plane.failure(S).is_none() && plane.death(1).is_none());
    }
    // Nor may it be ordered any more.
    let order = Order { section: SectionId(9), members: vec![0, 1], bytes: Vec::new() };
    planes[0].order(order).unwrap();
    planes[0].enter(SectionId(9), &[0, 1]);
    let error = wait_for("the report", || planes[0].failure(SectionId(9))).to_string();
    assert!(error.contains("it has left the job"), "{error}");
}

#[test]
fn who_leaves_inside_a_section_is_named_on_every_side() {
    let planes = in_section(3);
    assert!(planes[1].goodbye(GENEROUS));
    for plane in &planes {
        let error = wait_for("the report", || plane.failure(S)).to_string();
        assert_eq!(error, "fatal: process 1, superstep 0: it was lost: it has left the job");
        assert!(plane.death(1).is_none());
    }
}

#[test]
fn process_0_waits_for_all_to_leave() {
    let mut planes = planes(3);
    let last = planes.pop().unwrap();
    thread::scope(|scope| {
        let leaving = scope.spawn(|| planes[0].goodbye(GENEROUS));
        assert!(matches!(planes[1].next_order(GENEROUS), Next::Finished));
        assert!(planes[1].goodbye(GENEROUS));
        thread::sleep(Duration::from_millis(50));
        assert!(!leaving.is_finished(), "one is still there");
        // A connection that closes after the end of the job is a goodbye too.
        drop(last);
        assert!(leaving.join().unwrap());
    });
}

#[test]
fn process_0_does_not_wait_longer_than_it_says() {
    let planes = planes(2);
    let began = Instant::now();
    assert!(!planes[0].goodbye(Duration::from_millis(100)));
    assert_in_time(began.elapsed(), Duration::from_secs(5));
    assert!(matches!(planes[1].next_order(GENEROUS), Next::Finished));
    assert!(planes[1].goodbye(GENEROUS));
}

#[test]
fn a_section_of_one_needs_nobody() {
    let plane = Meeting::new("127.0.0.1:1", 0, 1).join().unwrap().control;
    plane.enter(S, &[0]);
    let board = plane.board(S, 0, 1);
    board.write(Topic(0), b"note").unwrap();
    assert!(board.agree(Topic(1), b"to oneself").unwrap());
    assert_eq!(board.agreed(Topic(1)).unwrap().unwrap(), b"to oneself");
    plane.publish(S, 0, waits_for(0, 0));
    let error = wait_for("the verdict", || plane.failure(S)).to_string();
    assert!(error.contains("process 0 waits for message 1 of process 0"), "{error}");
    plane.leave(S);
    assert!(plane.goodbye(GENEROUS));
}

#[test]
fn what_is_asked_of_a_section_that_was_not_entered_changes_nothing() {
    let planes = planes(2);
    assert!(planes[1].failure(S).is_none());
    planes[1].publish(S, 1, Status::default());
    planes[1].leave(S);
    let error = planes[1].declare(S, panicked(1));
    assert_eq!(error.to_string(), panicked(1).to_string());
    planes[1].enter(S, &[0]);
    assert!(planes[1].failure(S).unwrap().to_string().contains("which it is not a member of"));
    assert!(planes[0].failure(S).is_none() && planes[0].death(1).is_none());
}
