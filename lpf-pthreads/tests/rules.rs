//! Rules of the thread backend that no case of the conformance suite can reach, one story each.

use lpf_core::{Args, MAX_P};
use lpf_pthreads::Config;

/// A larger table of slots is made at the resize, which may move the one that others look into.
/// Whoever gets in that very superstep must find the new one.
#[test]
fn a_get_finds_the_table_of_a_process_that_resized_in_the_same_superstep() {
    const WORDS: usize = 100;
    Config::new()
        .procs(2)
        .exec(MAX_P, Args::none(), |ctx, _| {
            ctx.resize(2, 4)?;
            ctx.sync()?;
            let (mut own, theirs) = (ctx.area::<u64>(WORDS)?, ctx.area::<u64>(WORDS)?);
            ctx.sync()?;
            let pid = ctx.pid() as u64;
            for slots in [3, 40, 5_000] {
                ctx.write(&mut own).fill(100 * slots as u64 + pid);
                ctx.resize(slots, 4)?;
                // What was the table is somebody else's memory by now.
                let reused: Vec<Vec<u64>> = (0..64).map(|n| vec![u64::MAX; n + 1]).collect();
                ctx.get(1 - ctx.pid(), &own, .., &theirs, 0)?;
                ctx.sync()?;
                drop(reused);
                assert_eq!(ctx.read(&theirs), [100 * slots as u64 + 1 - pid; WORDS]);
                ctx.sync()?;
            }
            Ok(())
        })
        .unwrap();
}

/// A put that no sync follows is lost, which the end of a section reports. Checked mode adds the source locations, and
/// also reports what a library has lost.
#[test]
fn requests_that_no_sync_follows_are_reported() {
    const IS_CHILD: &str = "LOSES_REQUESTS";
    const LINES: [u32; 2] = [line!() + 9, line!() + 10];
    if let Some(mode) = std::env::var_os(IS_CHILD) {
        let config = Config::new().procs(2).check(mode == "checked");
        let ended = config.exec(2, Args::none(), |ctx, _| {
            ctx.resize(2, 20)?;
            ctx.sync()?;
            let (from, to) = (ctx.area::<u64>(4)?, ctx.area::<u64>(4)?);
            ctx.sync()?;
            if ctx.pid() == 1 {
                ctx.suspended(|ctx| ctx.put(&from, 1..3, 0, &to, 0))?;
                (0..10).try_for_each(|_| ctx.get(0, &from, .., &to, 0))?;
            }
            Ok(())
        });
        return ended.unwrap();
    }
    let reports = |mode| {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let test = "requests_that_no_sync_follows_are_reported";
        let child = child.args(["--exact", test, "--nocapture"]).env(IS_CHILD, mode);
        let child = child.output().unwrap();
        let said = String::from_utf8_lossy(&child.stderr).into_owned();
        assert!(child.status.success(), "{said}");
        said
    };
    let said = reports("plain");
    let lost = "lpf: process 1 lost requests, which no sync followed (run with LPF_CHECK=1 to see which)\n";
    assert!(said.contains(lost) && !said.contains("process 0 lost"), "{said}");
    let said = reports("checked");
    let [library, section] = LINES.map(|line| format!("at {}:{line}:", file!()));
    let one = "checked mode: process 1 lost 1 request, which no sync followed:\n  put of 16 bytes to process 0 ";
    assert!(said.contains(&format!("{one}{library}")), "{said}");
    let ten = "checked mode: process 1 lost 10 requests, which no sync followed:\n  get of 32 bytes from process 0 ";
    assert!(said.contains(&format!("{ten}{section}")), "{said}");
    assert!(said.contains("\n  and 2 more\n") && !said.contains("process 0 lost"), "{said}");
}

/// What a panic drops may still sync: the section ends fatal, and the program goes on.
#[test]
fn a_sync_while_a_panic_unwinds_ends_the_section_alone() {
    struct SyncsWhenDropped<'a, 's>(&'a mut lpf_core::Context<'s, lpf_pthreads::Threads>);

    impl Drop for SyncsWhenDropped<'_, '_> {
        fn drop(&mut self) {
            self.0.sync().unwrap();
        }
    }

    let config = lpf_pthreads::Config::new().procs(2);
    let ended: lpf_core::Result<()> = config.exec(2, lpf_core::Args::none(), |ctx, _args| {
        let _guard = SyncsWhenDropped(ctx);
        panic!("on purpose");
    });
    assert!(matches!(ended.unwrap_err().cause(), lpf_core::Cause::Panicked { .. }));
}

/// The memory of this machine, in bytes.
#[cfg(target_os = "linux")]
fn memory() -> usize {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find(|line| line.starts_with("MemTotal:")).unwrap();
    1024 * line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
}

/// The kernel would promise the memory, and end the program when it is used.
#[test]
#[cfg(target_os = "linux")]
fn room_that_all_processes_together_do_not_have_is_refused_with_numbers() {
    let config = lpf_pthreads::Config::new().procs(4);
    let ended = config.exec(4, lpf_core::Args::none(), |ctx, _args| {
        // Each would fit alone.
        let requests = memory() / 2 / 52;
        let error = ctx.resize(2, requests).unwrap_err();
        assert!(error.is_mitigable(), "{error}");
        let text = error.to_string();
        let what = format!("room for {requests} requests at each of 4 processes (");
        assert!(text.contains(&what) && text.contains(" leaves "), "{text}");
        let slots = memory() / 2 / 64;
        assert!(ctx.resize(slots, 2).unwrap_err().is_mitigable());
        // What was refused has left no trace.
        ctx.resize(2, 2)?;
        ctx.sync()?;
        let area = ctx.area::<u64>(1)?;
        ctx.sync()?;
        ctx.deregister(area)?;
        ctx.sync()
    });
    ended.unwrap();
}

/// Many sleepers look less often, and still all learn of a failure.
#[test]
fn a_failure_ends_a_section_of_many_processes() {
    let begin = std::time::Instant::now();
    let ended = lpf_pthreads::Config::new().exec(600, lpf_core::Args::none(), |ctx, _args| {
        ctx.sync()?;
        if ctx.pid() == 599 {
            std::thread::sleep(std::time::Duration::from_millis(100));
            return Err(lpf_core::Error::program("the matrix is singular"));
        }
        ctx.sync()
    });
    let error = ended.unwrap_err();
    assert_eq!((error.process(), error.superstep()), (Some(599), Some(1)), "{error}");
    let bound = lpf_conformance::allowed(std::time::Duration::from_secs(5));
    assert!(begin.elapsed() < bound, "{:?}", begin.elapsed());
}

/// Between sections a worker spins a moment, and then sleeps.
#[test]
fn a_worker_that_sleeps_is_woken_for_the_next_section() {
    let (ended, all_ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for _ in 0..3 {
            ended.send(Config::new().exec(2, Args::none(), |ctx, _args| ctx.sync())).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    });
    for nth in 0..3 {
        let bound = lpf_conformance::allowed(std::time::Duration::from_secs(5));
        let ended = all_ended.recv_timeout(bound);
        ended.unwrap_or_else(|_| panic!("section {nth} has not ended")).unwrap();
    }
}

/// The standard library aborts the program if a thread gets no mapping for its second stack.
#[test]
#[cfg(target_os = "linux")]
fn more_threads_than_the_system_allows_are_refused_with_the_limit() {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
    // Each takes more than three mappings. (Where there are enough for all, another limit may refuse them.)
    let procs = (limit.trim().parse::<usize>().unwrap() / 3).min(lpf_core::settings::MAX_PROCS);
    let config = Config::new();
    let is_refused = config.exec(procs, Args::none(), |_ctx, _args| Ok(()));
    if let Err(error) = is_refused {
        assert!(error.is_mitigable(), "{error}");
        let text = error.to_string();
        let thread = text.contains(" more threads: ") && text.contains(", which allows about ");
        assert!(thread || text.contains("out of memory"), "{text}");
    }
    // Threads can be had as before.
    config.exec(3, Args::none(), |ctx, _args| ctx.sync()).unwrap();
}
