//! One process of a job on several hosts.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use lpf::control::rendezvous::{Meeting, Secret};
use lpf::{Context, Error, Lpf, Member, Pid, Result};
use lpf_core::board::{Board, Topic};

use super::measure::{self, Rows};

/// Variables that tell a member its part.
pub(crate) const STORY: &str = "STORY_OF_JOB";
pub(crate) const FOLDER: &str = "FOLDER_OF_JOB";

/// How long processes wait for each other in a job that does not come together.
pub(crate) const MEETING: Duration = Duration::from_secs(5);

/// To each other process, in a superstep: on its way for a while.
const BYTES: usize = 256 << 10;

/// To the next process, in a superstep of steady traffic.
const BLOCK: usize = 64 << 10;

/// What processes publish in every superstep of a ring.
const TOPIC: Topic = Topic(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Story {
    /// Total exchanges, until one fails.
    Exchange,
    /// Small supersteps, until process 0 is told to end.
    Count,
    /// The same with a block from each process to the next.
    Ring,
    /// Processes that compute until all are told to end, then one superstep of a ring.
    Compute,
    /// Nothing but the meeting, which fails.
    Meet,
    /// What each pattern costs.
    Measure,
    /// What it costs by MPI alone.
    Bare,
}

impl Story {
    pub(crate) fn name(self) -> String {
        format!("{self:?}")
    }

    fn of_name(name: &str) -> Story {
        use Story::{Bare, Compute, Count, Exchange, Measure, Meet, Ring};
        let mut all = [Exchange, Count, Ring, Compute, Meet, Measure, Bare].into_iter();
        all.find(|story| story.name() == name).expect("a story")
    }
}

/// The clock of the machine that all hosts share.
pub(crate) fn now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().expect("after 1970")
}

/// Where a process speaks and listens.
struct Line {
    folder: PathBuf,
    rank: Pid,
}

impl Line {
    /// Whole as soon as it is there.
    fn say(&self, word: &str, text: &str) {
        let part = self.folder.join(format!("part-{}", self.rank));
        std::fs::write(&part, text).expect("a file");
        std::fs::rename(part, self.folder.join(format!("{word}-{}", self.rank))).expect("a file");
    }

    fn is_told(&self, word: &str) -> bool {
        self.folder.join(word).exists()
    }

    fn wait_for(&self, word: &str) {
        let begin = Instant::now();
        while !self.is_told(word) && begin.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// When the section has failed, and with what error.
    fn say_fatal(&self, error: &Error) {
        self.say("fatal", &format!("{} {error}", now().as_nanos()));
    }

    fn say_there(&self) {
        self.say("there", &std::process::id().to_string());
    }
}

fn is_on_mpi() -> bool {
    std::env::var("LPF_BACKEND").is_ok_and(|backend| backend == "mpi")
}

fn exchange<L: Lpf>(ctx: &mut Context<'_, L>, line: &Line) -> Result<()> {
    let processes = ctx.nprocs();
    ctx.resize(2, 2 * processes)?;
    ctx.sync()?;
    let (mut out, into) = (ctx.local::<u8>(BYTES)?, ctx.area::<u8>(BYTES * processes)?);
    ctx.sync()?;
    for round in 0.. {
        ctx.write(&mut out).fill(round as u8);
        for to in 0..ctx.nprocs() {
            ctx.put(&out, .., to, &into, BYTES * ctx.pid())?;
        }
        if let Err(error) = ctx.sync() {
            line.say_fatal(&error);
            if is_on_mpi() {
                // Nobody may look at this memory: MPI may be writing to it still.
                return Err(error);
            }
            // From now on this memory is this process's alone.
            let before = ctx.read(&into).to_vec();
            line.wait_for("look");
            let is_quiet = ctx.read(&into) == before;
            line.say("memory", if is_quiet { "quiet" } else { "written to after fatal" });
            return Err(error);
        }
        if round == 4 {
            line.say_there();
        }
    }
    Ok(())
}

/// What process `from` puts in a round.
fn stamp(from: Pid, round: u64) -> u8 {
    (round as u8).wrapping_mul(7).wrapping_add(from as u8)
}

/// Puts `bytes` to the next process in every superstep, and checks what the previous process has put.
fn ring<L: Lpf>(ctx: &mut Context<'_, L>, line: &Line, bytes: usize) -> Result<()> {
    let (own, processes) = (ctx.pid(), ctx.nprocs());
    let (next, previous) = ((own + 1) % processes, (own + processes - 1) % processes);
    ctx.resize(3, 2 * processes + 2)?;
    ctx.sync()?;
    let mut words = ctx.area::<u64>(2)?;
    let (mut out, into) = (ctx.local::<u8>(bytes)?, ctx.area::<u8>(bytes)?);
    ctx.sync()?;
    ctx.write(&mut words).copy_from_slice(&[1, 0]);
    for round in 0.. {
        if round == 10 {
            line.say_there();
        }
        ctx.raw().board().write(TOPIC, &u64::to_le_bytes(round))?;
        ctx.write(&mut out).fill(stamp(own, round));
        ctx.put(&out, .., next, &into, 0)?;
        // Process 0 says when all end.
        if own == 0 && line.is_told("end") {
            for to in 0..processes {
                ctx.put(&words, 0..1, to, &words, 1)?;
            }
        }
        ctx.sync()?;
        let expected = stamp(previous, round);
        if let Some(other) = ctx.read(&into).iter().find(|&&byte| byte != expected) {
            let text = format!("round {round}: {other} came from {previous}, not {expected}");
            return Err(Error::program(text));
        }
        if ctx.read(&words)[1] > 0 {
            break;
        }
    }
    Ok(())
}

/// Computes until it is told to end, or its section has failed; then one superstep of a ring, at the least.
fn compute<L: Lpf>(ctx: &mut Context<'_, L>, line: &Line) -> Result<()> {
    let board = ctx.raw().board();
    line.say_there();
    while !line.is_told("end") {
        std::thread::sleep(Duration::from_millis(5));
        if let Err(error) = board.read(0, TOPIC) {
            line.say_fatal(&error);
            return Err(error);
        }
    }
    ring(ctx, line, BLOCK)
}

/// Hooks, and process 0 says what was measured.
fn measure(mut member: Member, mut rows: Rows, line: &Line) {
    member.hook(|ctx| measure::all(ctx, &mut rows)).unwrap();
    line.say("rows", &rows.text);
}

/// Hooks, and says what came of it.
fn play(mut member: Member, story: Story, line: &Line) {
    if matches!(story, Story::Count | Story::Ring | Story::Compute) {
        let hooked = member.hook(|ctx| match story {
            Story::Ring => ring(ctx, line, BLOCK),
            Story::Compute => compute(ctx, line),
            _ => ring(ctx, line, 0),
        });
        line.say("ended", &hooked.map_or_else(|error| error.to_string(), |()| "well".into()));
        return;
    }
    let hooked = member.hook(|ctx| exchange(ctx, line));
    assert!(hooked.is_err(), "it ends with an error");
    let again = member.hook(|_ctx| Ok(()));
    assert!(again.is_err(), "a process is gone");
}

/// The meeting of a job that does not come together, for a shorter time than usual.
fn meet(line: &Line) {
    let secret = std::env::var("LPF_SECRET").ok();
    let met = match secret {
        // As a program does it.
        None => Member::launched(),
        Some(secret) => {
            let number = |name| std::env::var(name).unwrap().parse().unwrap();
            let meet = std::env::var("LPF_MEET").unwrap();
            let mut meeting = Meeting::new(meet, number("LPF_RANK"), number("LPF_SIZE"));
            meeting.secret = Some(Secret::new(secret).unwrap());
            meeting.time = MEETING;
            Member::new(meeting)
        }
    };
    let error = met.expect_err("this job cannot come together");
    line.say("refused", &error.to_string());
}

/// Takes part in the job that the environment tells of.
pub(crate) fn live() {
    let (Ok(story), Some(folder)) = (std::env::var(STORY), std::env::var_os(FOLDER)) else {
        return;
    };
    let story = Story::of_name(&story);
    // Nobody is left behind.
    // SAFETY: a number alone.
    unsafe { libc::alarm(if matches!(story, Story::Measure | Story::Bare) { 300 } else { 100 }) };
    let mut line = Line { folder: folder.into(), rank: 0 };
    #[cfg(feature = "mpi")]
    if story == Story::Bare {
        return measure::bare::measure().iter().for_each(|rows| line.say("rows", &rows.text));
    }
    #[cfg(feature = "mpi")]
    if is_on_mpi() {
        let world = lpf::mpi::World::init(Duration::from_secs(60)).unwrap();
        line.rank = world.rank();
        if story == Story::Measure {
            let rows = Rows::new("mpi", world.size());
            return measure(lpf::Member::of_world(world).unwrap(), rows, &line);
        }
        return play(lpf::Member::of_world(world).unwrap(), story, &line);
    }
    line.rank = std::env::var("LPF_RANK").unwrap().parse().unwrap();
    match story {
        Story::Meet => meet(&line),
        Story::Measure => {
            let member = Member::launched().unwrap();
            let rows = Rows::new("tcp", member.size());
            measure(member, rows, &line);
        }
        _ => play(Member::launched().unwrap(), story, &line),
    }
}
