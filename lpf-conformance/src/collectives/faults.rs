//! Faults inside collectives: the others get *fatal* in time, with the process and the cause.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use lpf_collectives::*;
use lpf_core::{Cause, Context, Error, Kind, Lpf, Pid, Result};

use super::calls::{Call, What};
use super::reductions::Reduction;
use super::vectors::{Room, SLOTS};
use super::world;
use crate::verdict::{BOUND, assert_fatal_naming, assert_in_time, sync_until_fatal};

const TEXT: &str = "done on purpose";

/// Adds, until at one process it has added so often.
struct Breaks {
    left: Cell<u32>,
    here: bool,
}

impl Operator<u64> for Breaks {
    fn identity(&self) -> u64 {
        0
    }

    fn commutes(&self) -> bool {
        true
    }

    fn combine(&self, left: u64, right: u64) -> u64 {
        if self.here {
            match self.left.get().checked_sub(1) {
                Some(left) => self.left.set(left),
                // Unlike `panic!` this prints nothing.
                None => resume_unwind(Box::new(TEXT)),
            }
        }
        left + right
    }
}

case! {
    /// The operator of one member panics, in the first element or in the midst of a vector: nobody else waits
    /// for what that member would have sent.
    pub fn a_panic_in_an_operator_is_fatal_for_all timed [2, 4] |ctx| {
        let sizes = [(64, 0), (5000, 0), (5000, 1000)];
        for (nth, (len, left)) in sizes.into_iter().enumerate() {
            // Each ordinary one in each of them, and each of the others in one: they have much in common.
            let all = Reduction::all().enumerate();
            let here = all.filter(|(at, way)| way.is_ordinary() || at % sizes.len() == nth);
            for (_, way) in here {
                let mut seen = None;
                let ended = ctx.rehook(|inner| {
                    let mut c = world(inner, 2, 0)?;
                    let (x, mut y) = (inner.local::<u64>(len)?, inner.local::<u64>(len)?);
                    let operator = Breaks { left: Cell::new(left), here: inner.pid() == 1 };
                    inner.sync()?;
                    let start = Instant::now();
                    let call = || way.call(inner, &mut c, &operator, &x, &mut y);
                    let error = match catch_unwind(AssertUnwindSafe(call)) {
                        Ok(done) => done.err().unwrap_or_else(|| sync_until_fatal(inner)),
                        Err(panic) => {
                            // Who catches it finds that the section has ended.
                            told(&sync_until_fatal(inner), 1, Some(TEXT), "at home");
                            resume_unwind(panic)
                        }
                    };
                    seen = Some((error, start.elapsed()));
                    Ok(())
                });
                let ended = ended.expect_err("process 1 panics");
                if ctx.pid() == 1 {
                    assert!(seen.is_none(), "{way:?}: its call returned: {seen:?}");
                } else {
                    let (error, waited) = seen.expect("nobody else panics");
                    told(&error, 1, Some(TEXT), &format!("{way:?}, {len}"));
                    assert_fatal_naming(&ended, &[1]);
                    assert_in_time(waited, BOUND);
                }
                ctx.sync()?;
            }
        }
    }
}

/// Longer than it takes others to ask whom they wait for.
const NAP: Duration = Duration::from_millis(500);

/// Adds, and sleeps at one process before it does so for the first time.
struct Sleeps {
    here: Cell<bool>,
}

impl Operator<u64> for Sleeps {
    fn identity(&self) -> u64 {
        0
    }

    fn commutes(&self) -> bool {
        true
    }

    fn combine(&self, left: u64, right: u64) -> u64 {
        if self.here.take() {
            std::thread::sleep(NAP);
        }
        left + right
    }
}

case! {
    /// One member sleeps for long in its operator: nobody takes that for a failure, and nothing is lost.
    pub fn a_member_that_sleeps_in_the_midst_of_a_reduction_is_waited_for timed [4] |ctx| {
        let mut c = world(ctx, 2, 0)?;
        let (mut x, mut y) = (ctx.local::<u64>(500)?, ctx.local::<u64>(500)?);
        let me = c.me();
        ctx.write(&mut x).fill(1 + me as u64);
        for way in Reduction::all() {
            let operator = Sleeps { here: Cell::new(me == 1) };
            let start = Instant::now();
            way.call(ctx, &mut c, &operator, &x, &mut y)?;
            if me == 1 {
                assert_eq!(ctx.read(&y), [10; 500], "{way:?}");
                assert!(start.elapsed() >= NAP, "{way:?}: it did not sleep");
            }
        }
        ctx.sync()?;
    }
}

/// Asserts that an error is fatal, and of this process, panicked with this text if any.
fn told(error: &Error, guilty: Pid, text: Option<&str>, story: &str) {
    assert!(error.is_fatal(), "{story}: {error}");
    assert_fatal_naming(error, &[guilty]);
    if let (Some(text), Cause::Panicked { message }) = (text, error.cause()) {
        assert_eq!(message, text, "{story}");
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Panics,
    ReturnsEarly,
    ReturnsAnError,
}

/// Calls in a row, in which one member goes wrong before call `at`: what the others see, and when.
fn series<L: Lpf>(
    ctx: &mut Context<'_, L>,
    (how, guilty, what): (How, Pid, What),
    at: usize,
) -> Result<Option<(Error, Duration)>> {
    let mut c = world(ctx, SLOTS, 0)?;
    let mut room = Room::<u64>::new(ctx, 8 * 40)?;
    for salt in 0..10 {
        if salt == at && ctx.pid() == guilty {
            match how {
                How::Panics => resume_unwind(Box::new(TEXT)),
                How::ReturnsEarly => return Ok(None),
                How::ReturnsAnError => return Err(Error::program(TEXT)),
            }
        }
        let (way, local) = (salt % what.ways(), [false; 2]);
        let start = Instant::now();
        let call = Call { what, way, root: guilty, len: 40, at: [0; 2], local, salt };
        if let Err(error) = call.make(ctx, &mut c, &mut room) {
            return Ok(Some((error, start.elapsed())));
        }
    }
    let start = Instant::now();
    let error = sync_until_fatal(ctx);
    Ok(Some((error, start.elapsed())))
}

case! {
    /// A member panics, returns or returns an error between two collectives of a series: the others have
    /// *fatal* in the next one that needs it, or at their next sync.
    pub fn a_member_that_ends_badly_is_fatal_for_the_others timed [2, 4] |ctx| {
        let p = ctx.nprocs();
        for (nth, &what) in What::ALL.iter().enumerate() {
            for how in [How::Panics, How::ReturnsEarly, How::ReturnsAnError] {
                let guilty = [0, 1, p - 1][(nth + how as usize) % 3];
                // By arrival in each way, by one of these turns; else in one.
                let (ways, turns) = (what.ways(), [0, 3, 7]);
                let ats: Vec<usize> = match what.is_by_arrival() {
                    true => (1..ways).filter(|at| at % 3 == how as usize).collect(),
                    false => vec![turns[nth / 3 % 3]],
                };
                for at in ats {
                    let mut seen = None;
                    let ended = ctx.rehook(|inner| {
                        seen = series(inner, (how, guilty, what), at)?;
                        Ok(())
                    });
                    let ended = ended.expect_err("one of them ends badly");
                    let story = format!("{what:?}, {how:?}, process {guilty}, call {at}");
                    if ctx.pid() == guilty {
                        assert!(ended.is_fatal() || ended.kind() == Kind::Program, "{story}: {ended}");
                    } else {
                        let (error, waited) = seen.expect("nobody else ends badly");
                        told(&error, guilty, (how == How::Panics).then_some(TEXT), &story);
                        told(&ended, guilty, None, &story);
                        assert_in_time(waited, BOUND);
                    }
                    ctx.sync()?;
                }
            }
        }
    }
}
