//! Deaths under MPI's own launcher, told to go on: a process that is killed, stopped, or ends by itself.
//! Every survivor learns who, when and why within the bounds of the design, calls MPI no more, and ends
//! with an exit status of its own.

mod calls;
mod job;
#[allow(dead_code, reason = "the rest is of the stories")]
#[path = "../stories/launch.rs"]
mod launch;
mod roles;

use std::process::ExitStatus;
use std::time::Duration;

use lpf_conformance::allowed;
use lpf_core::Pid;

use job::{Death, Job, Learned};
use roles::{SIZE, Scene, now, status_of};

/// The bounds that the design promises.
const DEATH: Duration = Duration::from_secs(1);
const SILENCE: Duration = Duration::from_secs(3);

/// How often a story may be late: another program may have had the cores.
const TRIES: u32 = 3;

/// A death in a scene, and what everybody makes of it.
fn story(scene: Scene, victim: Pid, death: Death) {
    let bound = if death == Death::Stopped { SILENCE } else { DEATH };
    for tries in 1.. {
        let latest = play(scene, victim, death);
        eprintln!("{scene:?}, process {victim} {death:?}: all know after {latest:?}");
        if latest <= allowed(bound) {
            return;
        }
        assert!(tries < TRIES, "{scene:?}, process {victim} {death:?}: they know after {latest:?}");
    }
}

/// How long it took until the last one knew.
fn play(scene: Scene, victim: Pid, death: Death) -> Duration {
    play_on(Job::start(scene, victim), scene, victim, death)
}

fn play_on(mut job: Job, scene: Scene, victim: Pid, death: Death) -> Duration {
    job.wait_until_there();
    let since = job.let_die(death);
    let mut latest = 0;
    for rank in (0..SIZE).filter(|&rank| rank != victim) {
        let learned = job.hear_of_failure(rank);
        judge(&learned, scene, victim, death);
        latest = latest.max(learned.at.saturating_sub(since));
    }
    if death == Death::Stopped {
        job.wake();
        // It takes part in nothing any more, and gives up process 0 if it was that itself.
        let text = job.hear_of_failure(victim).text;
        let says = ["it was taken for dead", "it gave no sign of life", "it gave up process 0"];
        assert!(says.iter().any(|says| text.contains(says)), "{text}");
    }
    for (rank, status) in job.end(death) {
        assert_eq!(status, status_of(rank), "the exit status of process {rank}");
    }
    Duration::from_nanos(latest as u64)
}

fn judge(learned: &Learned, scene: Scene, victim: Pid, death: Death) {
    let Learned { process, superstep, text, .. } = learned;
    assert_eq!(*process, Some(victim), "{text}");
    assert!(text.contains("fatal") && text.contains("it was lost"), "{text}");
    let says = match death {
        Death::Stopped => "no sign of life",
        Death::Killed | Death::Exited => "closed",
    };
    assert!(text.contains(says), "\"{text}\" says \"{says}\"");
    // Of a process that goes on and on, the last beat told which superstep it was in.
    match scene.superstep() {
        Some(expected) => assert_eq!(*superstep, Some(expected), "{text}"),
        None => assert!(superstep.is_some(), "{text}"),
    }
}

macro_rules! stories {
    ($($name:ident: $scene:ident, $victims:expr;)*) => {
        $(mod $name {
            use super::{Death, Scene, story};

            #[test]
            fn and_is_killed() {
                $victims.into_iter().for_each(|who| story(Scene::$scene, who, Death::Killed));
            }

            #[test]
            fn and_is_stopped() {
                $victims.into_iter().for_each(|who| story(Scene::$scene, who, Death::Stopped));
            }

            #[test]
            fn and_exits() {
                $victims.into_iter().for_each(|who| story(Scene::$scene, who, Death::Exited));
            }
        })*
    };
}

stories! {
    a_process_exchanges_much: Busy, [0, 2];
    a_process_is_awaited_in_a_sync: Sync, [0, 2];
    a_process_owes_a_message: Expected, [2];
    a_process_has_not_come_to_a_hook: Hook, [0, 2];
    a_process_serves: Exec, [2];
}

/// Open MPI's launcher needs no shell between itself and the processes, so it sees them die.
#[test]
fn and_is_killed_before_the_launchers_eyes() {
    if launch::is_open_mpi() {
        play_on(Job::start_bare(Scene::Busy, 2), Scene::Busy, 2, Death::Killed);
    }
}

/// The launcher's view: a job without deaths ends with success, under the plain launcher.
#[test]
fn a_job_that_leaves_in_order_ends_with_success() {
    let begin = now();
    let status: ExitStatus = Job::start_plain(Scene::Orderly).wait();
    assert!(status.success(), "{status}");
    eprintln!("a job in order: {:?}", Duration::from_nanos((now() - begin) as u64));
}

/// MPI is finalised by all or by nobody: where one came too late to the last meeting, those that met it in time
/// would wait in `MPI_Finalize` for those that gave up.
#[test]
fn nobody_finalises_where_one_comes_too_late_to_the_last_meeting() {
    for late in [0, 1, 3] {
        let mut job = Job::start(Scene::Late, late);
        job.wait_until_there();
        for called in job.let_leave() {
            assert!(!called.contains("MPI_Finalize"), "process {late} is late: {called}");
        }
    }
}

/// What this program does where the launcher started it; in an ordinary run, nothing.
#[test]
fn member() {
    roles::play_if_asked();
}
