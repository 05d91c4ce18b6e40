//! A process that forks: its child begins with threads of its own, or gets an error, and never harms its parent.
//!
//! Each story is a process of its own, in which one thread forks; `lpf-cli/tests/faults` has the stories of jobs.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lpf::collectives::{Collectives, Sum};
use lpf::{Cause, Context, Lpf, Result};

/// Longer than anything takes here, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// Forks; the child ends as `exit` does, with status 0 if `child` does not panic.
fn fork(child: impl FnOnce()) {
    // SAFETY: the child is a copy of this thread. What other threads may have left half done is what is tested; the
    // C library sees to its own part.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
        std::process::exit(i32::from(ended.is_err()));
    }
    assert!(pid > 0, "{}", std::io::Error::last_os_error());
    assert_eq!(status_of(pid), 0, "the child failed");
}

/// How a child ends; it does so in time.
fn status_of(pid: libc::pid_t) -> i32 {
    let (begin, mut status) = (Instant::now(), 0);
    // SAFETY: the status is written while it lives.
    while unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } == 0 {
        if begin.elapsed() > PATIENCE {
            // SAFETY: a child of this process.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    status
}

/// A section of four, which communicates.
fn section() -> Result<()> {
    lpf::exec(4, |ctx| {
        let mut all = Collectives::new(ctx)?;
        assert_eq!(all.allreduce_value(ctx, &Sum, ctx.pid())?, 6);
        ctx.sync()
    })
}

fn is_forked(error: &lpf::Error) -> bool {
    error.is_fatal() && matches!(error.cause(), Cause::Forked { .. })
}

/// Runs a part of this program as a process of its own; what it says on standard error.
fn run(part: &str, settings: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LPF_")) {
        command.env_remove(name);
    }
    command.args([part, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    // AddressSanitizer takes the memory of threads that a forked child does not have for leaks.
    let output = command
        .envs(settings.iter().copied())
        .env("ASAN_OPTIONS", "allocator_may_return_null=1 detect_leaks=0")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{part}, {settings:?}: {said}");
    said
}

/// With threads that are pinned, and with threads that are not.
fn run_pinned_and_not(part: &str) -> [String; 2] {
    [run(part, &[("LPF_PIN", "compact")]), run(part, &[("LPF_PIN", "none")])]
}

#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn forks_between_sections() {
    section().unwrap();
    for _ in 0..3 {
        fork(|| {
            section().unwrap();
            // And its child in turn.
            fork(|| section().unwrap());
            section().unwrap();
        });
        section().unwrap();
    }
}

#[test]
fn a_child_has_threads_of_its_own() {
    run_pinned_and_not("forks_between_sections");
}

/// Ends another thread's loop, also after a panic.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn forks_beside_sections() {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                section().unwrap();
            }
        });
        let _end = Ends(&ends);
        for _ in 0..30 {
            fork(|| section().unwrap());
        }
    });
}

#[test]
fn a_child_has_threads_of_its_own_whatever_other_threads_did_when_it_was_forked() {
    run("forks_beside_sections", &[]);
}

/// What a child does that was forked inside a section: all that would wait for others is an error at once.
fn tries_to_go_on<'s, L: Lpf>(ctx: &mut Context<'s, L>, all: &mut Collectives<'s>) {
    let begin = Instant::now();
    let error = all.allreduce_value(ctx, &Sum, 1_u32).unwrap_err();
    assert!(is_forked(&error), "{error}");
    let error = ctx.sync().unwrap_err();
    assert!(is_forked(&error), "{error}");
    assert_eq!(error.process(), Some(ctx.pid()));
    let error = ctx.rehook(|_ctx| Ok(())).unwrap_err();
    assert!(is_forked(&error), "{error}");
    assert!(begin.elapsed() < lpf_conformance::allowed(Duration::from_secs(1)));
}

#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn forks_inside_a_section() {
    for who in 0..3 {
        let ended = lpf::exec(3, |ctx| {
            let mut all = Collectives::new(ctx)?;
            assert_eq!(all.allreduce_value(ctx, &Sum, 1_u32)?, 3);
            if ctx.pid() == who {
                fork(|| {
                    tries_to_go_on(ctx, &mut all);
                    section().unwrap();
                });
            }
            // The others have not contributed to the next sum before the child is forked: it would find all there.
            ctx.sync()?;
            assert_eq!(all.allreduce_value(ctx, &Sum, 1_u32)?, 3);
            ctx.sync()
        });
        ended.unwrap();
    }
}

#[test]
fn a_child_of_a_process_of_a_section_gets_errors_and_can_begin_its_own() {
    run_pinned_and_not("forks_inside_a_section");
}

/// The child of process 0 returns from `exec`, with an error. That of another process has nothing to return to.
#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn forks_and_returns() {
    let parent = std::process::id();
    for who in 0..2 {
        let child = AtomicU32::new(0);
        let ended = lpf::exec(2, |ctx| {
            ctx.sync()?;
            if ctx.pid() == who {
                // SAFETY: as in `fork`.
                let pid = unsafe { libc::fork() };
                child.store(pid as u32, Ordering::Relaxed);
                if pid == 0 {
                    return Ok(());
                }
            }
            ctx.sync()
        });
        if std::process::id() != parent {
            assert!(is_forked(&ended.unwrap_err()));
            section().unwrap();
            std::process::exit(3);
        }
        ended.unwrap();
        let status = status_of(child.into_inner() as libc::pid_t);
        assert_eq!(libc::WEXITSTATUS(status), if who == 0 { 3 } else { 1 }, "{status}");
    }
}

#[test]
fn a_child_that_returns_from_a_section_ends_with_an_error() {
    for said in run_pinned_and_not("forks_and_returns") {
        assert_eq!(
            said.matches("was forked inside a section and has returned").count(),
            1,
            "{said}"
        );
    }
}

/// The others have arrived in a sync when the child is forked, so that it finds their arrivals, and never their next.
#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn forks_before_a_sync_of_all_others() {
    // A sync without requests, one whose bytes travel with the arrivals, and one that reads them in their places.
    for (who, len) in (0..3).flat_map(|who| [0, 1, 50].map(|len| (who, len))) {
        let ended = lpf::exec(3, |ctx| {
            ctx.resize(1, 16)?;
            ctx.sync()?;
            let all = ctx.area::<u64>(100)?;
            ctx.sync()?;
            if ctx.pid() == who {
                std::thread::sleep(Duration::from_millis(50));
                fork(|| {
                    let error = ctx.sync().unwrap_err();
                    assert!(is_forked(&error), "{error}");
                });
            } else if len > 0 {
                ctx.put(&all, ..len, who, &all, 50)?;
            }
            ctx.sync()
        });
        ended.unwrap();
    }
}

#[test]
fn a_child_that_finds_all_others_in_a_sync_gets_an_error() {
    run_pinned_and_not("forks_before_a_sync_of_all_others");
}

#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn forks_in_a_team() {
    let team = lpf::team(2).unwrap();
    std::thread::scope(|scope| {
        for pid in 0..2 {
            let team = team.clone();
            scope.spawn(move || {
                let mut init = team.join(pid).unwrap();
                for round in 0..3 {
                    if round == 1 && pid == 1 {
                        fork(|| {
                            let error = init.hook(|ctx| ctx.sync());
                            assert!(is_forked(&error.unwrap_err()));
                            section().unwrap();
                        });
                    }
                    init.hook(|ctx| ctx.sync()).unwrap();
                }
            });
        }
    });
}

#[test]
fn a_child_of_a_member_of_a_team_cannot_hook() {
    run("forks_in_a_team", &[]);
}
