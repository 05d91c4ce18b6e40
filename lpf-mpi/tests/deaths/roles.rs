//! What the processes of a job do.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use lpf_control::plane::Beats;
use lpf_control::rendezvous::By;
use lpf_core::machine::{Growth, Parameters};
use lpf_core::runtime::section;
use lpf_core::{Args, Context, Error, Expect, InboxShape, Lpf, Pid, Result, SyncAttr, run_section};
use lpf_messages::Environment;
use lpf_mpi::{MpiJob, MpiProcess, World, join};

use super::calls;

pub(crate) const SIZE: Pid = 4;

/// The environment of the processes.
pub(crate) const ROLE: &str = "LPF_TEST_ROLE";
pub(crate) const VICTIM: &str = "LPF_TEST_VICTIM";
pub(crate) const MEET: &str = "LPF_TEST_MEET";

const PATIENCE: Duration = Duration::from_secs(60);

/// Where death meets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scene {
    /// In one superstep after the other, with messages long and short.
    Busy,
    /// The others wait in a full sync.
    Sync,
    /// The others wait for a message.
    Expected,
    /// The others have come to a hook.
    Hook,
    /// Process 0 runs a section on those that serve.
    Exec,
    /// Nobody dies.
    Orderly,
    /// A section fails, and the victim computes for longer than the others wait for it then.
    Late,
}

impl Scene {
    /// The superstep of the victim, where it is known.
    pub(crate) fn superstep(self) -> Option<u64> {
        match self {
            Scene::Busy => None,
            Scene::Sync | Scene::Exec => Some(3),
            Scene::Expected => Some(2),
            Scene::Hook | Scene::Orderly | Scene::Late => Some(0),
        }
    }

    fn named(name: &str) -> Scene {
        use Scene::*;
        let all = [Busy, Sync, Expected, Hook, Exec, Orderly, Late];
        all.into_iter().find(|scene| format!("{scene:?}") == name).expect("a scene")
    }
}

/// Nanoseconds of the machine's clock, which all processes share.
pub(crate) fn now() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos()
}

/// The exit status that a process chooses.
pub(crate) fn status_of(rank: Pid) -> i32 {
    40 + rank as i32
}

/// This process's line to the story, and what it has seen.
struct Here {
    victim: Pid,
    line: Mutex<UnixStream>,
    /// The story lets the victim go on.
    on: AtomicBool,
    end: AtomicBool,
    /// When a section failed, and how it was told inside of it.
    seen: Mutex<Option<(u128, Error)>>,
}

static HERE: Mutex<Option<Arc<Here>>> = Mutex::new(None);

impl Here {
    fn come(rank: Pid) -> Arc<Here> {
        let folder: PathBuf = std::env::var_os(MEET).expect("the story says where").into();
        let line = UnixStream::connect(folder.join("meet")).expect("the story listens");
        let heard = BufReader::new(line.try_clone().expect("a second handle"));
        let victim = std::env::var(VICTIM).expect("the story says who").parse().unwrap();
        let here = Arc::new(Here {
            victim,
            line: Mutex::new(line),
            on: AtomicBool::new(false),
            end: AtomicBool::new(false),
            seen: Mutex::new(None),
        });
        here.tell(&format!("rank {rank} {}", std::process::id()));
        let obeys = here.clone();
        std::thread::spawn(move || {
            for word in heard.lines().map_while(std::result::Result::ok) {
                match word.as_str() {
                    "exit" => std::process::exit(0),
                    "on" => obeys.on.store(true, Ordering::SeqCst),
                    _ => obeys.end.store(true, Ordering::SeqCst),
                }
            }
            // The story has ended.
            std::process::abort();
        });
        *HERE.lock().unwrap() = Some(here.clone());
        here
    }

    fn tell(&self, word: &str) {
        self.line.lock().unwrap().write_all(format!("{word}\n").as_bytes()).unwrap();
    }

    /// At its place: the victim stays there.
    fn there(&self, rank: Pid) {
        self.tell("there");
        while rank == self.victim && !self.on.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What a call inside a section returned, for the last time.
    fn saw(&self, error: &Error) {
        calls::forbid();
        self.seen.lock().unwrap().get_or_insert((now(), error.clone()));
    }
}

fn environment() -> Environment {
    Environment {
        check: false,
        strict: false,
        timeout: None,
        exchange: None,
        parameters: Arc::new(Parameters::guess(Growth::MessagePassing)),
    }
}

pub(crate) fn play_if_asked() {
    let Ok(name) = std::env::var(ROLE) else { return };
    let scene = Scene::named(&name);
    let world = World::init(PATIENCE).expect("MPI");
    let mut job = join(world, By::Member, Beats::On, PATIENCE).expect("the others come");
    let rank = job.rank();
    let here = Here::come(rank);
    let result = play(scene, &mut job, &here);
    if scene == Scene::Orderly {
        result.expect("nobody dies");
        job.leave();
        return;
    }
    let error = result.expect_err("somebody died");
    if scene == Scene::Late {
        return leave_late(job, &here);
    }
    assert!(calls::counted() > 0, "calls of MPI are not counted");
    here.saw(&error);
    let (at, first) = here.seen.lock().unwrap().clone().expect("it is there");
    let number = |number: Option<u64>| number.map_or("-".into(), |number| number.to_string());
    let (process, superstep) =
        (number(first.process().map(|pid| pid as u64)), number(first.superstep()));
    here.tell(&format!("failed {at} {process} {superstep} {first}"));
    // It stays that way.
    if rank != here.victim || scene != Scene::Hook {
        let again = match scene {
            Scene::Exec if rank != 0 => Err(error),
            Scene::Exec => exec(&mut job),
            _ => hook(&mut job, |ctx| ctx.sync()),
        };
        assert!(again.expect_err("MPI is over").is_fatal());
    }
    leave(job, &here)
}

fn exec(job: &mut MpiJob) -> Result<()> {
    let environment = Arc::new(environment());
    job.exec(&environment, SIZE, Args::none(), section(served), section(served))
}

fn hook(
    job: &mut MpiJob,
    f: impl for<'s> FnOnce(&mut Context<'s, MpiProcess>) -> Result<()>,
) -> Result<()> {
    job.hook(environment(), |process| run_section(process, f))
}

fn play(scene: Scene, job: &mut MpiJob, here: &Here) -> Result<()> {
    let rank = job.rank();
    match scene {
        Scene::Late => hook(job, |ctx| {
            here.tell("there");
            match rank == here.victim {
                true => Err(Error::program("it found nothing")),
                false => ctx.sync(),
            }
        }),
        Scene::Exec if rank == 0 => exec(job),
        Scene::Exec => {
            let served = job.serve();
            // What went wrong in the section it has seen itself.
            let seen = here.seen.lock().unwrap().clone();
            served.and(seen.map_or(Ok(()), |(_, error)| Err(error)))
        }
        Scene::Hook | Scene::Orderly => {
            here.there(rank);
            hook(job, |ctx| ctx.sync().inspect_err(|error| here.saw(error)))
        }
        Scene::Busy => hook(job, |ctx| busy(ctx, here).inspect_err(|error| here.saw(error))),
        Scene::Sync => {
            hook(job, |ctx| wait_in_sync(ctx, here).inspect_err(|error| here.saw(error)))
        }
        Scene::Expected => {
            hook(job, |ctx| wait_for_message(ctx, here).inspect_err(|error| here.saw(error)))
        }
    }
}

/// Leaves when the others have given up the last meeting, and says what was called in between.
fn leave_late(job: MpiJob, here: &Here) {
    const LONGER: Duration = Duration::from_millis(1500);
    let rank = job.rank();
    if rank == here.victim {
        std::thread::sleep(LONGER);
    }
    calls::forbid();
    leave(job, here)
}

/// Leaves, says what was called, and ends when it may.
fn leave(job: MpiJob, here: &Here) {
    let rank = job.rank();
    job.leave();
    here.tell(&format!("left {}", calls::forbidden().join(" ")));
    while !here.end.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(1));
    }
    here.tell("ends");
    std::process::exit(status_of(rank));
}

fn busy<L: Lpf>(ctx: &mut Context<'_, L>, here: &Here) -> Result<()> {
    const LONG: usize = 8 << 20;
    ctx.resize(2, 8)?;
    ctx.sync()?;
    let (from, to) = (ctx.area::<u8>(LONG)?, ctx.area::<u8>(LONG)?);
    ctx.sync()?;
    for superstep in 0.. {
        let next = (ctx.pid() + 1) % ctx.nprocs();
        let bytes = [8, LONG, 1000, 100_000][superstep % 4];
        ctx.put(&from, ..bytes, next, &to, 0)?;
        ctx.sync()?;
        if superstep == 20 {
            here.tell("there");
        }
    }
    Ok(())
}

fn wait_in_sync<L: Lpf>(ctx: &mut Context<'_, L>, here: &Here) -> Result<()> {
    ctx.resize(2, 8)?;
    ctx.sync()?;
    let (from, to) = (ctx.area::<u8>(100_000)?, ctx.area::<u8>(100_000)?);
    ctx.sync()?;
    ctx.sync()?;
    // What goes to the victim is under way when it dies.
    ctx.put(&from, .., here.victim, &to, 0)?;
    here.there(ctx.pid());
    ctx.sync()
}

fn wait_for_message<L: Lpf>(ctx: &mut Context<'_, L>, here: &Here) -> Result<()> {
    ctx.resize(2, 8)?;
    ctx.sync()?;
    let inbox = ctx.inbox(InboxShape { rings: ctx.nprocs(), window: 2, cell_bytes: 64 })?;
    ctx.sync()?;
    let me = ctx.pid();
    let peers = (0..ctx.nprocs()).filter(|&peer| (me == here.victim) != (peer == here.victim));
    let links =
        peers.map(|peer| ctx.raw().open(inbox, peer, peer, me)).collect::<Result<Vec<_>>>()?;
    here.there(me);
    ctx.sync_with(SyncAttr::Expected(&[Expect::one(links[0])]))
}

/// What is served: as in a hook.
fn served<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    let here = HERE.lock().unwrap().clone().expect("it has come");
    wait_in_sync(ctx, &here).inspect_err(|error| here.saw(error))
}
