//! Members of a job as they are started by hand: each is this program again, with an environment of its own.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lpf::{Args, Error, Lpf, Member, Pid, Result, SyncAttr};
use lpf_conformance::allowed;

/// Longer than anything takes here, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// Processes that are ended with the test.
struct Job(Vec<Child>);

impl Drop for Job {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs three members in the `part` of a test below, each in its environment and in these settings, which
/// are those of one rank each. What each has printed of what came of it; all end well, and in time.
fn members(part: &str, settings: &[(Pid, &str, &str)]) -> Vec<String> {
    const SIZE: Pid = 3;
    // A port that is free, most likely still when it is needed.
    let meet = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap();
    let empty = std::env::temp_dir().join(format!("lpf-members-{part}-{}", std::process::id()));
    let member = |rank: Pid| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LPF_")) {
            command.env_remove(name);
        }
        command.args([part, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env("LPF_RANK", rank.to_string()).env("LPF_SIZE", SIZE.to_string());
        command.env("LPF_MEET", meet.to_string()).env("LPF_TABLE", &empty);
        let own = settings.iter().filter(|(of, ..)| *of == rank);
        command.envs(own.map(|(_, name, value)| (name, value)));
        command.env("ANSWER_OF_MEMBER", answer(&empty, rank));
        command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
    };
    std::fs::create_dir_all(&empty).unwrap();
    let mut job = Job((0..SIZE).map(member).collect());
    let begin = Instant::now();
    for (rank, child) in job.0.iter_mut().enumerate() {
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
            assert!(begin.elapsed() < allowed(PATIENCE), "member {rank} does not end");
        };
        assert!(status.success(), "member {rank} ended with {status}");
    }
    let answers = (0..SIZE).map(|rank| std::fs::read_to_string(answer(&empty, rank)).unwrap());
    let answers = answers.collect();
    std::fs::remove_dir_all(&empty).unwrap();
    answers
}

fn answer(folder: &std::path::Path, rank: Pid) -> PathBuf {
    folder.join(format!("answer-{rank}"))
}

/// Leaves what a member has to say where its test finds it.
fn say(text: &str) {
    std::fs::write(std::env::var("ANSWER_OF_MEMBER").unwrap(), text).unwrap();
}

/// The numbers of all processes, each of which brings its own.
fn numbers_of_all<L: Lpf>(ctx: &mut lpf::Context<'_, L>) -> Result<Vec<Pid>> {
    let p = ctx.nprocs();
    ctx.resize(2, 2 * p)?;
    ctx.sync()?;
    let (mut own, all) = (ctx.local::<Pid>(1)?, ctx.area::<Pid>(p)?);
    ctx.sync()?;
    ctx.write(&mut own)[0] = ctx.pid();
    (0..p).try_for_each(|to| ctx.put(&own, .., to, &all, ctx.pid()))?;
    ctx.sync()?;
    Ok(ctx.read(&all).to_vec())
}

/// Two sections; says what `probe` answers in the second.
#[test]
#[ignore = "run by the other tests, as processes of their own"]
fn asks_for_the_parameters() {
    let mut member = Member::launched().unwrap();
    let mut answer = String::new();
    for _ in 0..2 {
        let hooked = member.hook(|ctx| {
            assert_eq!(numbers_of_all(ctx)?, [0, 1, 2]);
            let machine = ctx.probe();
            let l = machine.l(3, 8, &SyncAttr::Default);
            answer = format!("{:?} {}", machine.origin(), l.to_bits());
            Ok(())
        });
        hooked.unwrap();
    }
    say(&answer);
}

#[test]
fn what_process_0_says_of_lpf_probe_holds_for_all() {
    let answers = members("asks_for_the_parameters", &[(2, "LPF_PROBE", "0.1")]);
    assert!(answers.iter().all(|answer| answer.starts_with("Guess")), "{answers:?}");
    let answers = members("asks_for_the_parameters", &[(0, "LPF_PROBE", "0.1")]);
    assert!(answers[0].starts_with("Measured"), "{answers:?}");
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
}

/// Hooks, and hooks again after failures in which nobody died.
#[test]
#[ignore = "run by the other tests, as processes of their own"]
fn fails_and_goes_on() {
    let mut member = Member::launched().unwrap();
    for round in 0..3 {
        let failed = member.hook(|ctx| {
            ctx.sync()?;
            if ctx.pid() == 1 {
                // Sections of its own, of which the others know nothing.
                (0..round).try_for_each(|_| ctx.exec(1, Args::none(), |ctx, _args| ctx.sync()))?;
                return Err(Error::program("the matrix is singular"));
            }
            ctx.sync()
        });
        let text = failed.unwrap_err().to_string();
        assert!(text.contains("the matrix is singular"), "{text}");
        let again = member.hook(|ctx| {
            assert_eq!(numbers_of_all(ctx)?, [0, 1, 2]);
            Ok(())
        });
        again.unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
    say("went on");
}

#[test]
fn members_hook_again_after_a_section_that_one_of_them_left_with_an_error() {
    assert_eq!(members("fails_and_goes_on", &[]), ["went on"; 3]);
}

/// Hooks until all come in time: process 0 is late for the first times.
#[test]
#[ignore = "run by the other tests, as processes of their own"]
fn is_awaited() {
    let mut member = Member::launched().unwrap();
    if member.rank() == 0 {
        std::thread::sleep(Duration::from_millis(1500));
    }
    let mut failures = 0;
    while let Err(error) = member.hook(|ctx| {
        assert_eq!(numbers_of_all(ctx)?, [0, 1, 2]);
        Ok(())
    }) {
        let text = error.to_string();
        assert!(text.starts_with("fatal: process 0, superstep 0: it did not reach"), "{text}");
        failures += 1;
    }
    say(if failures > 0 { "failed, and went on" } else { "nothing was late" });
}

#[test]
fn a_process_0_that_does_not_come_to_a_hook_in_time_is_named_and_may_come_later() {
    let limit = [(1, "LPF_TIMEOUT", "0.4"), (2, "LPF_TIMEOUT", "0.4")];
    assert_eq!(members("is_awaited", &limit), ["failed, and went on"; 3]);
}
