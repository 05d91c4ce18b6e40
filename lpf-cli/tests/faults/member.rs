//! One process of a job in which something goes wrong.

use std::io::Write;
use std::time::{Duration, Instant};

use lpf::collectives::{Collectives, Sum};
use lpf::control::rendezvous::Meeting;
use lpf::{Args, Cause, Context, Error, InboxShape, Lpf, MAX_P, Member, Pid, Result};

use crate::outcome::{GUILTY, Outcome, SIZE};

/// Variables that tell a member its part.
pub(crate) const FAULT: &str = "FAULT_OF_JOB";
pub(crate) const PLACE: &str = "PLACE_OF_FAULT";
pub(crate) const AGAIN: &str = "WHERE_SURVIVORS_MEET";

/// A line of its own, in one piece: others write to the same place.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.flush().and_then(|()| out.write_all(format!("\n{line}\n").as_bytes())).unwrap();
}

fn raise(signal: i32) {
    // SAFETY: numbers alone.
    unsafe { libc::kill(libc::getpid(), signal) };
}

/// Goes wrong in this thread.
fn strike(fault: &str) {
    match fault {
        "kill" | "again" => raise(libc::SIGKILL),
        "stop" => raise(libc::SIGSTOP),
        "exit0" => std::process::exit(0),
        "exit7" => std::process::exit(7),
        "panic" => panic!("this process goes wrong"),
        "memory" => {
            let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
            // SAFETY: the limit is read.
            unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) };
            let refused: Vec<u8> = Vec::with_capacity(64 << 20);
            println!("{}", refused.capacity());
        }
        other => panic!("there is no fault {other}"),
    }
}

/// The end of whoever is stopped, if the launcher has not come before.
fn not_for_ever() {
    const LATER_THAN_ANY_STORY: u32 = 120;
    // SAFETY: a number alone.
    unsafe { libc::alarm(LATER_THAN_ANY_STORY) };
}

/// Goes wrong a moment later, while this thread waits. A panic cannot come from another thread.
fn strike_soon(fault: &str) {
    if fault == "panic" {
        return strike(fault);
    }
    let fault = fault.to_owned();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        strike(&fault);
    });
}

/// What all do together, the guilty one with its fault in the `place`.
fn story<L: Lpf>(ctx: &mut Context<'_, L>, fault: &str, place: &str) -> Result<()> {
    let guilty = ctx.pid() == GUILTY;
    let strikes_in = |here: &str| guilty && place == here;
    ctx.resize(8, 64)?;
    if strikes_in("resize") {
        strike(fault);
    }
    ctx.sync()?;
    let (own, all) = (ctx.local::<u64>(1)?, ctx.area::<u64>(SIZE)?);
    if strikes_in("register") {
        strike(fault);
    }
    let inbox = ctx.inbox(InboxShape { rings: 4, window: 2, cell_bytes: 8 })?;
    ctx.sync()?;
    for round in 0..20 {
        for to in 0..ctx.nprocs() {
            ctx.put(&own, .., to, &all, ctx.pid())?;
        }
        if round == 10 && strikes_in("put") {
            strike(fault);
        }
        if round == 15 && place == "sync" {
            match guilty {
                // It is in its sync when it strikes: the others are not yet.
                true => strike_soon(fault),
                false => std::thread::sleep(Duration::from_millis(60)),
            }
        }
        ctx.sync()?;
    }
    // Round a ring, nobody waits for more than the left neighbour.
    let (own, p) = (ctx.pid(), ctx.nprocs());
    let mut left = ctx.open::<u64>(inbox, 0, (own + p - 1) % p, 1)?;
    let mut right = ctx.open::<u64>(inbox, 1, (own + 1) % p, 0)?;
    let mut part = ctx.outbox::<u64>(1, 1)?.remove(0);
    for round in 0..20 {
        part[0] = round;
        if round == 10 && strikes_in("expected") {
            strike_soon(fault);
            // Nobody sends to it any more: it waits, and others wait for it.
            let [_message] = ctx.expect([&mut left])?;
            let [_message] = ctx.expect([&mut left])?;
        }
        let sent = ctx.send(&mut right, part, ..)?;
        let [message] = ctx.expect([&mut left])?;
        drop(message);
        part = sent.part(&ctx.flush()?).expect("flushed after it was sent");
    }
    let mut collectives = Collectives::new(ctx)?;
    let mut x = ctx.local::<u64>(10_000)?;
    for round in 0..20 {
        if round == 10 && place == "allreduce" {
            match guilty {
                // As above: it is in the midst of it when it strikes.
                true => strike_soon(fault),
                false => std::thread::sleep(Duration::from_millis(60)),
            }
        }
        collectives.allreduce_in_place(ctx, &Sum, &mut x)?;
    }
    ctx.sync()
}

/// Nothing is wrong in these, though it may look so.
fn innocent<L: Lpf>(ctx: &mut Context<'_, L>, story: &str) -> Result<()> {
    ctx.resize(2, 8)?;
    ctx.sync()?;
    match story {
        // A compute phase of some length, in which nobody calls LPF.
        "computes" if ctx.pid() == GUILTY => compute(Duration::from_secs(4)),
        "computes a minute" if ctx.pid() == GUILTY => compute(Duration::from_secs(60)),
        // Shorter than what counts as silence.
        "pauses" if ctx.pid() == GUILTY => stopped_for(Duration::from_millis(500)),
        "debugged" if ctx.pid() == GUILTY => stopped_for(Duration::from_secs(4)),
        "suspended" => stopped_for(Duration::from_secs(10)),
        // On a machine that does much else.
        "has no free core" => {
            for _ in 0..1000 {
                ctx.sync()?;
                compute(Duration::from_millis(1));
            }
        }
        "refused" if ctx.pid() == GUILTY => {
            let refused = ctx.resize(8, 1 << 60).expect_err("more than there is");
            assert!(refused.is_mitigable(), "{refused}");
        }
        _ => {}
    }
    for _ in 0..3 {
        ctx.sync()?;
    }
    Ok(())
}

/// A child of this process; 0 in the child.
fn forked() -> libc::pid_t {
    // SAFETY: the child is a copy of this thread.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", std::io::Error::last_os_error());
    pid
}

/// Waits for a child to end, with this status.
fn await_child(pid: libc::pid_t, expected: i32) {
    let mut status = -1;
    // SAFETY: the status is written while it lives.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == expected, "{status}");
}

/// A child does `child` and ends as a program does that returns from `main`. Its parent waits for that.
fn fork(child: impl FnOnce()) {
    let pid = forked();
    if pid == 0 {
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
        std::process::exit(i32::from(ended.is_err()));
    }
    await_child(pid, 0);
}

fn is_forked(error: &Error) -> bool {
    error.is_fatal() && matches!(error.cause(), Cause::Forked { .. })
}

/// A section on threads, as a child may begin one.
fn on_threads() {
    let section = lpf::exec(2, |ctx| ctx.sync());
    section.unwrap();
}

/// What a child does that was forked in the midst of a section.
fn tries_to_go_on<'s, L: Lpf>(ctx: &mut Context<'s, L>, collectives: &mut Collectives<'s>) {
    let error = collectives.allreduce_value(ctx, &Sum, 1).unwrap_err();
    assert!(is_forked(&error), "{error}");
    let error = ctx.sync().unwrap_err();
    assert!(is_forked(&error), "{error}");
    let error = ctx.inbox(InboxShape { rings: 1, window: 2, cell_bytes: 8 }).unwrap_err();
    assert!(is_forked(&error), "{error}");
    let error = ctx.rehook(|_ctx| Ok(())).unwrap_err();
    assert!(is_forked(&error), "{error}");
    on_threads();
}

/// Processes 0 and `GUILTY` fork in the midst of it: children that end at once, that try to go on, and that leave
/// the section as its functions do.
fn forks<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    for round in 0..3 {
        let mut collectives = Collectives::new(ctx)?;
        assert_eq!(collectives.allreduce_value(ctx, &Sum, 1)?, SIZE);
        if ctx.pid() == 0 || ctx.pid() == GUILTY {
            match round {
                0 => fork(|| {}),
                1 => fork(|| tries_to_go_on(ctx, &mut collectives)),
                _ => match forked() {
                    0 => return Ok(()),
                    pid => await_child(pid, 0),
                },
            }
        }
        for _ in 0..20 {
            assert_eq!(collectives.allreduce_value(ctx, &Sum, 1)?, SIZE);
            ctx.sync()?;
        }
    }
    Ok(())
}

/// A member that forks inside of a section and between two.
fn forks_as_a_member(mut member: Member) {
    let parent = std::process::id();
    for _ in 0..2 {
        let hooked = member.hook(forks);
        if std::process::id() != parent {
            assert!(is_forked(&hooked.unwrap_err()));
            drop(member);
            std::process::exit(0);
        }
        hooked.unwrap();
        if member.rank() == 0 || member.rank() == GUILTY {
            fork(|| {
                let error = member.hook(|ctx| ctx.sync()).unwrap_err();
                assert!(is_forked(&error), "{error}");
                on_threads();
            });
        }
    }
    say(&format!("well {}", member.rank()));
}

/// Process `GUILTY` forks a child that ends. Then it and process 0 fork children that leave the section: one returns,
/// the next one panics. All say that they are well in the section whose input is 1.
fn forks_inside(ctx: &mut lpf::Context<'_>, args: lpf::Args<'_>) -> lpf::Result<()> {
    let mut collectives = Collectives::new(ctx)?;
    if ctx.pid() == GUILTY {
        fork(on_threads);
    }
    if ctx.pid() == 0 || ctx.pid() == GUILTY {
        for panics in [false, true] {
            match forked() {
                0 if panics => panic!("in a child"),
                0 => return Ok(()),
                pid => await_child(pid, if ctx.pid() == 0 { RETURNED } else { 1 }),
            }
        }
    }
    let number = args.input.first().map_or(0, |&number| u32::from(number));
    if collectives.allreduce_value(ctx, &Sum, number)? == 1 {
        say(&format!("well {}", ctx.pid()));
    }
    Ok(())
}

/// The status of a child to which `lpf::run` has returned.
const RETURNED: i32 = 3;

/// A program of `lpf::run`, whose process 0 forks inside sections and between two.
fn forks_between_runs() {
    let parent = std::process::id();
    for number in 0..2 {
        let ran = lpf::run_args(MAX_P, Args::input(&[number]), forks_inside);
        if std::process::id() != parent {
            assert!(ran.unwrap_err().is_fatal());
            std::process::exit(RETURNED);
        }
        ran.unwrap();
        fork(|| {
            let error = lpf::run(|ctx| forks_inside(ctx, Args::none())).unwrap_err();
            assert!(error.is_misuse() && error.to_string().contains("was forked from"), "{error}");
            on_threads();
        });
    }
}

/// Takes the time of a core.
fn compute(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Stops this process; another, which is not stopped, lets it go on.
fn stopped_for(time: Duration) {
    let script = format!("sleep {}; kill -CONT {}", time.as_secs_f64(), std::process::id());
    let mut waker = std::process::Command::new("sh").args(["-c", &script]).spawn().unwrap();
    raise(libc::SIGSTOP);
    waker.wait().unwrap();
}

/// Hooks, and says what came of it.
fn play(mut member: Member, fault: &str, place: &str) {
    say(&format!("there {} {}", member.rank(), std::process::id()));
    if fault == "forks" {
        return forks_as_a_member(member);
    }
    if place.is_empty() {
        let hooked = member.hook(|ctx| innocent(ctx, fault));
        hooked.unwrap();
        say(&format!("well {}", member.rank()));
        return;
    }
    if place == "hook" && member.rank() == GUILTY {
        strike(fault);
    }
    let begin = Instant::now();
    let mut entered = begin;
    let hooked = member.hook(|ctx| {
        entered = Instant::now();
        story(ctx, fault, place)
    });
    let error = hooked.expect_err("process 2 goes wrong").to_string();
    let waited = entered.max(begin).elapsed();
    say(&Outcome { rank: member.rank(), waited, error }.line());
    // It lives on: a job with a dead member runs no section of all, and says so soon.
    if fault != "panic" {
        let again = member.hook(|_ctx| Ok(()));
        assert!(again.is_err(), "process {GUILTY} is gone");
    }
}

/// The survivors meet elsewhere, and go on.
fn meet_again() {
    let rank = std::env::var("LPF_RANK").unwrap().parse::<Pid>().unwrap();
    let rank = if rank > GUILTY { rank - 1 } else { rank };
    let mut meeting = Meeting::new(std::env::var(AGAIN).unwrap(), rank, SIZE - 1);
    meeting.job = 1;
    let mut member = Member::new(meeting).unwrap();
    for round in 0..3 {
        let hooked = member.hook(|ctx| {
            assert_eq!(ctx.nprocs(), SIZE - 1);
            ctx.sync()
        });
        hooked.unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
    say(&format!("again {rank}"));
}

/// Takes part in the job that the environment tells of.
pub(crate) fn live() {
    let (Ok(fault), Ok(place)) = (std::env::var(FAULT), std::env::var(PLACE)) else { return };
    not_for_ever();
    if fault == "runs and forks" {
        return forks_between_runs();
    }
    #[cfg(feature = "mpi")]
    if std::env::var("LPF_BACKEND").is_ok_and(|backend| backend == "mpi") {
        let world = lpf::mpi::World::init(Duration::from_secs(60)).unwrap();
        return play(lpf::Member::of_world(world).unwrap(), &fault, &place);
    }
    play(Member::launched().unwrap(), &fault, &place);
    if fault == "again" {
        meet_again();
    }
}
