//! Sections that end badly: one process panics, returns early, returns an error, or synchronises
//! more often than the rest. The others get *fatal* that names process, superstep and cause within
//! a second, and what started the section stays usable.

use std::time::{Duration, Instant};

use lpf_core::{Args, Cause, Context, Error, Expect, InboxShape, Kind, Lpf, Pid, Result, SyncAttr};

use crate::primitives::errors::fine;
use crate::runner::{alone, section, watched};
use crate::verdict::{BOUND, LATE, allowed, assert_in_time, names, room};
use crate::{Harness, Mode, Story};

/// What the guilty process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Panics,
    ReturnsEarly,
    ReturnsAnError,
    /// It goes on to a sync while the others return.
    SyncsOn,
}

/// When it does so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    BeforeTheFirstSync,
    BetweenSyncs,
    WhileOthersWaitInASync,
    WhileOthersWaitForItsMessage,
}

const HOWS: [How; 4] = [How::Panics, How::ReturnsEarly, How::ReturnsAnError, How::SyncsOn];
const PLACES: [Place; 4] = [
    Place::BeforeTheFirstSync,
    Place::BetweenSyncs,
    Place::WhileOthersWaitInASync,
    Place::WhileOthersWaitForItsMessage,
];

/// How long the guilty process lets the others wait first.
const DELAY: Duration = Duration::from_millis(20);
const TEXT: &str = "done on purpose";

/// One ending, as a number so that a type or a byte can carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ending {
    how: How,
    place: Place,
    guilty: Pid,
}

/// Endings by number: each `how` at each `place` by the first, second and last process.
const ENDINGS: usize = 3 * HOWS.len() * PLACES.len();

impl Ending {
    fn of(number: usize, procs: Pid) -> Self {
        let guilty = [0, 1, procs - 1][number / (HOWS.len() * PLACES.len())];
        Ending { how: HOWS[number % 4], place: PLACES[number / 4 % 4], guilty }
    }

    /// Full syncs before the deed.
    fn superstep(&self) -> u64 {
        if self.place == Place::BeforeTheFirstSync { 0 } else { 2 }
    }

    /// Whether `error`, seen by a process other than the guilty one or by what started the section,
    /// names process, superstep and cause.
    fn is_told_by(&self, error: &Error) -> bool {
        let text = error.to_string();
        if self.how == How::SyncsOn {
            // Those who left and the one who went on are named; who began is a matter of view.
            return error.is_fatal() && names(&text, self.guilty);
        }
        if self.how == How::ReturnsEarly && self.place == Place::WhileOthersWaitForItsMessage {
            // Found by asking the process that is gone, or by its leaving.
            return error.is_fatal() && names(&text, self.guilty);
        }
        let cause = match (self.how, error.cause()) {
            (How::Panics, Cause::Panicked { message }) => message == TEXT,
            (How::ReturnsAnError, Cause::Returned { message }) => message.contains(TEXT),
            (How::ReturnsEarly, Cause::LeftEarly { own, .. }) => *own == self.superstep(),
            _ => false,
        };
        error.is_fatal()
            && cause
            && error.process() == Some(self.guilty)
            && error.superstep() == Some(self.superstep())
    }
}

/// What a process that did nothing wrong saw.
#[derive(Debug)]
struct Seen {
    result: Result<()>,
    waited: Duration,
}

/// The section: everybody up to the place, then the guilty one's deed and the others' wait.
fn end_badly<L: Lpf>(ctx: &mut Context<'_, L>, ending: Ending) -> Result<Option<Seen>> {
    let mut links = Vec::new();
    if ending.place != Place::BeforeTheFirstSync {
        room(ctx, 2, 4)?;
        let inbox = ctx.inbox(InboxShape { rings: ctx.nprocs(), window: 2, cell_bytes: 64 })?;
        ctx.sync()?;
        let me = ctx.pid();
        for peer in (0..ctx.nprocs()).filter(|&peer| peer != me) {
            if me == ending.guilty || peer == ending.guilty {
                links.push(ctx.raw().open(inbox, peer, peer, me)?);
            }
        }
    }
    if ctx.pid() == ending.guilty {
        if ending.superstep() > 0 && ending.place != Place::BetweenSyncs {
            std::thread::sleep(DELAY);
        }
        match ending.how {
            // Unlike `panic!` this prints nothing.
            How::Panics => std::panic::resume_unwind(Box::new(TEXT)),
            How::ReturnsEarly => return Ok(None),
            How::ReturnsAnError => return Err(Error::program(TEXT)),
            How::SyncsOn => {}
        }
    } else if ending.how == How::SyncsOn {
        return Ok(None);
    }
    let start = Instant::now();
    let result = if ending.place == Place::WhileOthersWaitForItsMessage {
        let expected = [Expect::one(links[0])];
        ctx.sync_with(SyncAttr::Expected(&expected))
    } else {
        ctx.sync()
    };
    Ok(Some(Seen { result, waited: start.elapsed() }))
}

/// What is wrong with what one process saw, if anything.
fn judge(ending: Ending, pid: Pid, seen: Option<Seen>) -> std::result::Result<(), String> {
    let waits = (pid == ending.guilty) == (ending.how == How::SyncsOn);
    let Some(seen) = seen else {
        return if waits { Err("it never came to its wait".into()) } else { Ok(()) };
    };
    let Err(error) = seen.result else {
        return Err("its wait ended without an error".into());
    };
    if !ending.is_told_by(&error) {
        return Err(format!("it got: {error}"));
    }
    if seen.waited > allowed(BOUND + DELAY) {
        return Err(format!("{LATE}: it waited {} ms", seen.waited.as_millis()));
    }
    Ok(())
}

/// Every ending inside a rehook. The verdicts are given in the outer context.
fn rehooks_end_badly<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    for number in 0..ENDINGS {
        let ending = Ending::of(number, ctx.nprocs());
        let mut seen = None;
        let result = ctx.rehook(|inner| {
            seen = end_badly(inner, ending)?;
            Ok(())
        });
        let error = result.expect_err("a section that ends badly cannot succeed");
        let own = ctx.pid() == ending.guilty;
        if let Err(text) = judge(ending, ctx.pid(), seen) {
            panic!("{ending:?}: {text}");
        }
        assert!(own && error.kind() == Kind::Program || error.is_fatal(), "{ending:?}: {error}");
        assert!(own || ending.is_told_by(&error), "{ending:?}, from rehook: {error}");
        ctx.sync()?;
    }
    ctx.rehook(|inner| fine(inner, Args::none()))
}

/// In a rehook: every other process gets fatal within a second, and the parent stays usable.
pub fn a_rehook_that_ends_badly_is_fatal_for_the_others<H: Harness>(harness: &H) {
    let case = "a_rehook_that_ends_badly_is_fatal_for_the_others";
    alone(|| {
        for procs in [2, 4] {
            section(harness, case, Mode::default(), procs, rehooks_end_badly, Args::none());
        }
    });
}

/// Process 1 panics two rehooks deep, which the others learn late. Every process returns the error of its rehook.
fn hands_on_what_rehook_returned<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    ctx.sync()?;
    ctx.rehook(|middle| {
        for _ in 0..3 {
            middle.sync()?;
        }
        middle.rehook(|inner| {
            let seen = end_badly(inner, HANDED_ON)?;
            seen.map_or(Ok(()), |seen| seen.result)
        })
    })
}

const HANDED_ON: Ending =
    Ending { how: How::Panics, place: Place::WhileOthersWaitInASync, guilty: 1 };

/// A failure that goes through the sections around its own is told as what it is: they begin no failure of theirs
/// at whoever leaves them first with it.
pub fn the_failure_of_a_rehook_that_is_handed_on_names_where_it_began<H: Harness>(harness: &H) {
    let case = "the_failure_of_a_rehook_that_is_handed_on_names_where_it_began";
    alone(|| {
        for procs in [2, 4] {
            let mode = Mode::default();
            let story = hands_on_what_rehook_returned;
            let result = watched(case, || harness.exec(mode, procs, story, Args::none()));
            let error = result.expect_err("process 1 has panicked");
            assert!(HANDED_ON.is_told_by(&error), "{procs} processes: {error}");
            let inputs = vec![Vec::new(); procs];
            let hooked = watched(case, || harness.hook(mode, &inputs, 0, story));
            for process in hooked.iter().flatten() {
                let text = process.result.as_ref().expect_err("process 1 has panicked");
                let began = text.starts_with("fatal: process 1, superstep 2: it panicked");
                assert!(began, "{procs} processes: {text}");
            }
        }
    });
}

/// Ending `N` in a section started by exec or hook. A story holds no data, so its type says
/// which; a process that waits writes its verdict into its output, where it has one.
fn ends<const N: usize, L: Lpf>(ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()> {
    let ending = Ending::of(N, ctx.nprocs());
    let seen = end_badly(ctx, ending)?;
    let waits = seen.is_some();
    let verdict = judge(ending, ctx.pid(), seen);
    if let (Err(text), false) = (&verdict, args.output.is_empty()) {
        let text = &text.as_bytes()[..text.len().min(args.output.len())];
        args.output[..text.len()].copy_from_slice(text);
    } else if waits && verdict.is_ok() && !args.output.is_empty() {
        args.output[..SAW_IT.len()].copy_from_slice(SAW_IT);
    }
    Ok(())
}

const SAW_IT: &[u8] = b"saw it";
const OUTPUT: usize = 400;

/// The text a program left, without the zeros behind it.
fn text_of(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim_end_matches('\0').into()
}

/// Something done with [`ends`] for every ending.
trait EachEnding<L: Lpf> {
    fn visit(&mut self, number: usize, story: impl Story<L>) -> Result<()>;
}

fn each_ending<L: Lpf>(visitor: &mut impl EachEnding<L>) -> Result<()> {
    macro_rules! visit {
        ($($n:literal)*) => { $(visitor.visit($n, ends::<$n, L>)?;)* };
    }
    visit!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23);
    visit!(24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47);
    Ok(())
}

const _: () = assert!(ENDINGS == 48, "the list of endings above has to name all of them");

/// Checks what an exec of a bad section returned, and what its process 0 wrote.
fn check_exec(ending: Ending, result: Result<()>, output: &[u8]) {
    let error = result.expect_err("an exec of a section that ends badly");
    assert!(ending.is_told_by(&error), "{ending:?}, from exec: {error}");
    // Process 0 could write only if it was no panic that ended it.
    let waits = (ending.guilty == 0) == (ending.how == How::SyncsOn);
    let text = text_of(output);
    // Output of a failed section need not come back; what comes back has to be right.
    let fair = if waits { text.as_bytes() == SAW_IT || text.is_empty() } else { text.is_empty() };
    assert!(fair, "{ending:?}, at process 0: {text}");
}

struct Executes<'h, H: Harness> {
    harness: &'h H,
    case: &'static str,
    procs: Pid,
}

impl<H: Harness> EachEnding<H::Process> for Executes<'_, H> {
    fn visit(&mut self, number: usize, story: impl Story<H::Process>) -> Result<()> {
        let ending = Ending::of(number, self.procs);
        let mut output = [0; OUTPUT];
        let args = Args::in_out(&[], &mut output);
        let start = Instant::now();
        let result =
            watched(self.case, || self.harness.exec(Mode::default(), self.procs, story, args));
        let took = start.elapsed();
        check_exec(ending, result, &output);
        assert_in_time(took, 2 * BOUND + DELAY);
        section(self.harness, self.case, Mode::default(), self.procs, fine, Args::none());
        Ok(())
    }
}

/// In an exec: it returns fatal soon, and the next exec on the same pool works.
pub fn an_exec_that_ends_badly_is_fatal_and_the_next_one_works<H: Harness>(harness: &H) {
    let case = "an_exec_that_ends_badly_is_fatal_and_the_next_one_works";
    alone(|| {
        for procs in [2, 5] {
            each_ending(&mut Executes { harness, case, procs }).expect("it returns none");
        }
    });
}

struct Nests<'c, 's, L: Lpf> {
    ctx: &'c mut Context<'s, L>,
}

impl<L: Lpf> EachEnding<L> for Nests<'_, '_, L> {
    fn visit(&mut self, number: usize, story: impl Story<L>) -> Result<()> {
        let procs = self.ctx.probe().free_p();
        assert!(procs >= 2, "the machine is too small for a nested exec");
        let ending = Ending::of(number, procs);
        let mut output = [0; OUTPUT];
        let result = self.ctx.exec(procs, Args::in_out(&[], &mut output), story);
        check_exec(ending, result, &output);
        if number.is_multiple_of(8) {
            self.ctx.exec(procs, Args::none(), fine)?;
            self.ctx.sync()?;
        }
        Ok(())
    }
}

/// Every process execs every bad ending, and uses its own section between and after.
fn nests_badly<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    each_ending(&mut Nests { ctx })?;
    fine(ctx, Args::none())
}

/// In a nested exec: fatal for its caller, whose own section goes on.
pub fn a_nested_exec_that_ends_badly_leaves_its_parent_usable<H: Harness>(harness: &H) {
    let case = "a_nested_exec_that_ends_badly_leaves_its_parent_usable";
    alone(|| {
        for procs in [1, 2] {
            section(harness, case, Mode::default(), procs, nests_badly, Args::none());
        }
    });
}

struct Hooks<'h, H: Harness> {
    harness: &'h H,
    case: &'static str,
    procs: Pid,
}

impl<H: Harness> EachEnding<H::Process> for Hooks<'_, H> {
    fn visit(&mut self, number: usize, story: impl Story<H::Process>) -> Result<()> {
        let ending = Ending::of(number, self.procs);
        let inputs = vec![Vec::new(); self.procs];
        let hooked =
            watched(self.case, || self.harness.hook(Mode::default(), &inputs, OUTPUT, story));
        let Some(hooked) = hooked else { return Ok(()) };
        for (pid, process) in (0..).zip(&hooked) {
            let output = text_of(&process.output);
            let waits = (pid == ending.guilty) == (ending.how == How::SyncsOn);
            let expected = if waits { SAW_IT } else { b"" };
            assert!(output.as_bytes() == expected, "{ending:?}, process {pid}: {output:?}");
            let Err(text) = &process.result else {
                panic!("{ending:?}: hook returned success at process {pid}");
            };
            let told = pid == ending.guilty || names(text, ending.guilty);
            assert!(told, "{ending:?}: hook at process {pid} returned: {text}");
        }
        Ok(())
    }
}

/// In a hook: every process's hook returns the failure.
pub fn a_hook_that_ends_badly_is_fatal_for_the_others<H: Harness>(harness: &H) {
    let case = "a_hook_that_ends_badly_is_fatal_for_the_others";
    alone(|| {
        for procs in [2, 4] {
            each_ending(&mut Hooks { harness, case, procs }).expect("it returns none");
        }
    });
}
