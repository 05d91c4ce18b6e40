//! The failure word: everybody learns of a failure, and nobody copies from or into the memory of a
//! process that gave up.

use std::sync::Arc;
use std::time::Duration;

use lpf_core::request::Way;
use lpf_core::{Cause, Error, Lpf, Pid, Result, Runtime, SyncAttr};

use super::explore;
use super::section::{Memory, run, section};
use crate::barrier::{Gather, Level, Shape, Watch};
use crate::bits;
use crate::threads::Threads;

/// A pair and, where there are three, one more that meets its first member at the top: who waits
/// for its first member's word learns last that a meeting is complete.
fn pair_and_one() -> Shape {
    Shape(vec![Level { fan: 2, gather: Gather::Lines }])
}

fn pair_at_a_counter_and_one() -> Shape {
    Shape(vec![Level { fan: 2, gather: Gather::Counter }])
}

/// A superstep in which everybody copies from everybody.
fn superstep(process: &mut Threads, memory: &Memory) -> Result<()> {
    let mine = bits::SYNC | bits::SECOND;
    let (tables, engine) = process.parts();
    let met = engine.meet_with(tables, mine);
    let all = met.map_err(|error| process.fail(error))?;
    assert_eq!(all, bits::SYNC | bits::SECOND);
    (0..process.nprocs()).for_each(|who| {
        memory.read(who);
    });
    let (tables, engine) = process.parts();
    engine.epoch = engine.epoch.wrapping_add(1);
    let (pid, epoch) = (tables.local.pid, engine.epoch);
    let met = engine.comm.barrier.meet(pid, epoch, 0, Watch::Bound, &mut || {});
    assert_eq!(met.ok(), Some(0));
    Ok(())
}

/// The last process fails after `supersteps` of them.
fn one_fails(processes: Pid, supersteps: u64, shape: Shape, preemptions: usize) {
    explore(preemptions, move || {
        let comm = section(processes, &shape, None);
        let memory = Memory::new(processes);
        let failing = processes - 1;
        let results = run(&comm, move |process| {
            let own = process.pid();
            for number in 1..=supersteps + 1 {
                memory.write(own, number);
                if own == failing && number == supersteps + 1 {
                    let cause = Cause::Panicked { message: String::new() };
                    let error = Error::fatal(own, number, cause);
                    let error = process.fail(error);
                    memory.write(own, 0);
                    return error;
                }
                if let Err(error) = superstep(process, &memory) {
                    assert_eq!(number, supersteps + 1, "a complete superstep was given up");
                    memory.write(own, 0);
                    return error;
                }
            }
            panic!("process {own} went on without process {failing}");
        });
        for error in results {
            assert!(error.is_fatal());
            assert_eq!(error.process(), Some(failing));
        }
    });
}

#[test]
fn a_process_that_fails_at_once_between_two() {
    one_fails(2, 0, Shape::flat(), 3);
}

#[test]
fn a_process_that_fails_after_a_superstep_between_two() {
    one_fails(2, 1, Shape::flat(), 3);
}

#[test]
fn a_process_that_fails_after_a_superstep_among_three() {
    one_fails(3, 1, Shape::flat(), 1);
}

#[test]
fn a_process_that_fails_after_a_superstep_beside_a_pair() {
    one_fails(3, 1, pair_and_one(), 1);
}

#[test]
fn a_process_that_fails_after_a_superstep_beside_a_pair_at_a_counter() {
    one_fails(3, 1, pair_at_a_counter_and_one(), 1);
}

/// The last process finds an error in phase 2 of a real full sync, while others may still wait to
/// hear that its first meeting is complete.
fn one_finds_an_error(processes: Pid, shape: Shape, preemptions: usize) {
    explore(preemptions, move || {
        let comm = section(processes, &shape, None);
        let results = run(&comm, move |process| {
            let local = &mut process.parts().0.local;
            let requests = local.queue.reserve(4, 0).unwrap();
            local.queue.set_capacity(4, 0, requests);
            if local.pid == local.nprocs - 1 {
                // Of a slot that no process has.
                assert!(local.queue.admit(0));
                local.queue.push(Way::Get, 0, std::ptr::dangling_mut(), 1, 7, 0);
            }
            process.sync(SyncAttr::Default)
        });
        for result in results {
            let error = result.expect_err("an error in phase 2 is fatal for all");
            assert!(matches!(error.cause(), Cause::RemoteOutOfRange { target: 0, .. }), "{error}");
        }
    });
}

#[test]
fn an_error_found_by_one_of_two() {
    one_finds_an_error(2, Shape::flat(), 3);
}

#[test]
fn an_error_found_beside_a_pair() {
    one_finds_an_error(3, pair_and_one(), 1);
}

/// Everybody's patience ends at the first look, whenever that is: a superstep takes place for all
/// or for nobody, and in the latter case nobody has copied.
fn all_may_give_up(processes: Pid, shape: Shape, preemptions: usize) {
    explore(preemptions, move || {
        let comm = section(processes, &shape, Some(Duration::ZERO));
        let memory = Memory::new(processes);
        let results = run(&comm, {
            let memory: Arc<Memory> = memory.clone();
            move |process| {
                let own = process.pid();
                memory.write(own, 1);
                let result = superstep(process, &memory);
                memory.write(own, 2);
                result
            }
        });
        let took_place = results[0].is_ok();
        assert!(results.iter().all(|result| result.is_ok() == took_place), "{results:?}");
        for error in results.into_iter().filter_map(Result::err) {
            assert!(matches!(error.cause(), Cause::Late { .. }), "{error}");
        }
    });
}

#[test]
fn two_that_may_give_up() {
    all_may_give_up(2, Shape::flat(), 3);
}

#[test]
fn three_that_may_give_up() {
    all_may_give_up(3, Shape::flat(), 2);
}

#[test]
fn three_at_a_counter_that_may_give_up() {
    all_may_give_up(3, Shape::central(3), 2);
}

#[test]
fn a_pair_and_one_that_may_give_up() {
    all_may_give_up(3, pair_and_one(), 2);
}
