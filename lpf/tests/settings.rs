//! How a program finds its machine's numbers: from the saved table, from `LPF_PROBE`, or as a
//! stated guess. Each case is a process of its own, because settings are read from its environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use lpf::host::Host;
use lpf::machine::{Growth, Origin, Parameters};
use lpf::tables::{Store, Table};
use lpf::{Pid, SyncAttr};

/// Run by [`child`]: two sections, whose process 0 prints what `probe` answers.
#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn child_process() {
    let answers = Mutex::new(Vec::new());
    for _ in 0..2 {
        let run = lpf::exec(2, |ctx| {
            let machine = ctx.probe();
            let l = machine.l(2, 8, &SyncAttr::Default);
            let mut answers = answers.lock().unwrap();
            answers.push((ctx.pid(), format!("{:?} {}", machine.origin(), l.to_bits())));
            Ok(())
        });
        if let Err(error) = run {
            println!("refused: {error}");
            return;
        }
    }
    let answers = answers.into_inner().unwrap();
    let agree = answers.iter().all(|(_, answer)| *answer == answers[0].1);
    println!("answer: {} from {} processes, agree: {agree}", answers[0].1, answers.len());
    // More processes than there are cores here, as a team of threads may have.
    let settings = lpf::settings::Settings::from_environment().unwrap();
    println!("64 processes: {}", lpf::parameters(&settings, 64).unwrap().p);
}

/// What a child prints on standard output and standard error.
fn child(folder: &Path, settings: &[(&str, &str)]) -> (String, String) {
    child_in("child_process", folder, settings)
}

/// As [`child`], in another part of this program.
fn child_in(part: &str, folder: &Path, settings: &[(&str, &str)]) -> (String, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LPF_")) {
        command.env_remove(name);
    }
    command.args([part, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("LPF_TABLE", folder).envs(settings.iter().copied());
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lpf-settings-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn store(&self) -> Store {
        Store::new(&self.0, Host::this())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A table whose l for 8 bytes is `l_ns`.
fn table(p: Pid, l_ns: f64) -> Table {
    let mut parameters = Parameters::guess(Growth::SharedMemory);
    (parameters.p, parameters.origin, parameters.rows[0].l_ns) = (p, Origin::Measured, l_ns);
    Table::now("threads", false, parameters)
}

#[test]
fn without_a_table_the_answer_is_marked_as_a_guess() {
    let folder = Folder::new("none");
    let (out, err) = child(&folder.0, &[]);
    assert!(out.contains("answer: Guess"), "{out}{err}");
    assert!(out.contains("from 4 processes, agree: true"), "{out}");
    assert!(!err.contains("lpf:"), "{err}");
}

/// Two sections, of two processes each: one line.
#[test]
fn a_misspelt_setting_is_reported_once_with_the_one_that_was_meant() {
    let folder = Folder::new("misspelt");
    let (out, err) = child(&folder.0, &[("LPF_PROC", "2")]);
    let line =
        "lpf: LPF_PROC is not a setting; did you mean LPF_PROCS? (lpf info lists the settings)\n";
    assert_eq!(err.matches(line).count(), 1, "{err}");
    assert!(out.contains("from 4 processes"), "{out}");
}

#[test]
fn a_saved_table_is_used_by_every_process_bit_for_bit() {
    let folder = Folder::new("saved");
    folder.store().save(table(2, 1234.5)).unwrap();
    folder.store().save(table(64, 99.0)).unwrap();
    let (out, err) = child(&folder.0, &[]);
    let bits = (1e-9 * 1234.5f64).to_bits();
    assert!(out.contains(&format!("answer: Measured {bits} from 4")), "{out}{err}");
    assert!(out.contains("64 processes: 64"), "{out}");
    assert!(out.contains("agree: true"), "{out}");
}

#[test]
fn a_table_for_another_number_of_processes_is_extrapolated_and_marked() {
    let folder = Folder::new("other");
    folder.store().save(table(8, 4000.0)).unwrap();
    let (out, err) = child(&folder.0, &[]);
    assert!(out.contains("answer: Extrapolated"), "{out}{err}");
}

#[test]
fn a_damaged_table_is_said_once_and_a_guess_is_used() {
    let folder = Folder::new("damaged");
    fs::write(folder.store().path(), "{ \"format\": 1, \"host\"").unwrap();
    let (out, err) = child(&folder.0, &[]);
    assert!(out.contains("answer: Guess"), "{out}{err}");
    assert_eq!(err.matches("is not used: it is damaged").count(), 1, "{err}");
}

#[test]
fn existing_threads_hook_with_the_machines_settings() {
    let team = lpf::team(2).unwrap();
    std::thread::scope(|scope| {
        for pid in 0..2 {
            let team = team.clone();
            scope.spawn(move || {
                let mut init = team.join(pid).unwrap();
                let hooked = init.hook(|ctx| {
                    assert_eq!((ctx.pid(), ctx.nprocs()), (pid, 2));
                    ctx.sync()
                });
                hooked.unwrap();
            });
        }
    });
}

#[test]
fn lpf_probe_measures_at_the_start_of_a_section() {
    let folder = Folder::new("probe");
    let (out, err) = child(&folder.0, &[("LPF_PROBE", "0.1")]);
    assert!(out.contains("answer: Measured"), "{out}{err}");
    assert!(out.contains("agree: true"), "{out}");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0, "only lpf probe saves");
}

#[test]
fn a_setting_that_cannot_be_used_is_refused_with_a_sentence() {
    let folder = Folder::new("refused");
    let (out, _) = child(&folder.0, &[("LPF_PIN", "sideways")]);
    assert!(out.contains("refused: misuse: LPF_PIN is \"sideways\"; it has to be"), "{out}");
}

/// How many processes run, and what `probe` says of the machine at process 0.
fn counted(asked: Pid) -> String {
    let processes = AtomicU32::new(0);
    let machine = Mutex::new((0, 0));
    let ended = lpf::exec(asked, |ctx| {
        processes.fetch_add(1, Ordering::Relaxed);
        if ctx.pid() == 0 {
            *machine.lock().unwrap() = (ctx.probe().p(), ctx.probe().free_p());
        }
        ctx.sync()
    });
    if let Err(error) = ended {
        return error.to_string();
    }
    let (p, free) = machine.into_inner().unwrap();
    format!("{} of {p}, share {free}", processes.into_inner())
}

/// Run by [`counts`]: sections of the numbers of processes that `ASKED` names.
#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn child_that_counts() {
    let asked = std::env::var("ASKED").unwrap();
    for asked in asked.split(' ').map(|asked| asked.parse().unwrap()) {
        println!("exec({asked}): {}", counted(asked));
    }
}

/// What a program prints that asks for these numbers of processes, and what stands on standard error.
fn counts(name: &str, asked: &str, settings: &[(&str, &str)]) -> (String, String) {
    let folder = Folder::new(name);
    child_in("child_that_counts", &folder.0, &[settings, &[("ASKED", asked)]].concat())
}

#[test]
fn exec_starts_as_many_processes_as_it_is_asked_for_whatever_the_cores() {
    let cores = lpf::settings::cores() as u32;
    let more = cores + 3;
    let (out, err) = counts("exactly", &format!("1 4 {more} {}", lpf::MAX_P), &[]);
    let four = cores.max(4);
    assert!(out.contains(&format!("exec(1): 1 of {cores}, share {cores}\n")), "{out}");
    assert!(out.contains(&format!("exec(4): 4 of {four}, share {}\n", four.div_ceil(4))), "{out}");
    assert!(out.contains(&format!("exec({more}): {more} of {more}, share 1\n")), "{out}");
    let all = format!("exec({}): {cores} of {cores}, share 1\n", lpf::MAX_P);
    assert!(out.contains(&all), "{out}");
    assert!(!err.contains("lpf:"), "{err}");
}

#[test]
fn lpf_procs_is_a_limit_that_is_reported_once() {
    let max = lpf::MAX_P;
    let (out, err) = counts("limit", &format!("2 {max} 3 7"), &[("LPF_PROCS", "3")]);
    for (asked, got) in [(2, 2), (max, 3), (3, 3), (7, 3)] {
        assert!(out.contains(&format!("exec({asked}): {got} of 3, share")), "{out}");
    }
    let said = "lpf: a section of 7 processes was asked for and gets 3, because LPF_PROCS is 3\n";
    assert!(err.contains(said), "{err}");
    assert_eq!(err.matches("lpf:").count(), 1, "{err}");
    // In a loop it is said once; what `MAX_P` gives is what was asked for.
    let (_, err) = counts("loop", "5 5 6", &[("LPF_PROCS", "1")]);
    assert_eq!(err.matches("lpf:").count(), 1, "{err}");
    let (out, err) = counts("larger", &max.to_string(), &[("LPF_PROCS", "9")]);
    assert!(out.contains(&format!("exec({max}): 9 of 9, share 1\n")), "{out}");
    assert!(!err.contains("lpf:"), "{err}");
}

#[test]
fn a_number_of_processes_that_cannot_be_is_refused() {
    let (out, _) = counts("impossible", "0 65537 4000000000", &[]);
    for asked in ["0", "65537", "4000000000"] {
        let text =
            format!("exec({asked}): misuse: a section of {asked} processes was asked for; it has");
        assert!(out.contains(&text), "{out}");
    }
}

/// Prints its number of processes, at process 0.
fn says_its_processes(ctx: &mut lpf::Context<'_>) -> lpf::Result<()> {
    if ctx.pid() == 0 {
        println!("{} processes", ctx.nprocs());
    }
    ctx.sync()
}

/// A job of one, whose number 0 asks for three processes twice, and for all.
#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn child_that_is_a_job_of_one() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let meeting = lpf::control::rendezvous::Meeting::new(free.unwrap().to_string(), 0, 1);
    let mut member = lpf::Member::new(meeting).unwrap();
    for procs in [lpf::MAX_P, 3, 3] {
        member.exec(procs, lpf::Args::none(), |ctx, _args| says_its_processes(ctx)).unwrap();
    }
    println!("on threads: {}", counted(2));
}

#[test]
fn a_job_that_is_smaller_than_asked_for_is_reported_once() {
    let folder = Folder::new("job");
    let (out, err) = child_in("child_that_is_a_job_of_one", &folder.0, &[]);
    assert_eq!(out.matches("1 processes\n").count(), 3, "{out}");
    let said = "lpf: a section of 3 processes was asked for and gets 1, all of the job\n";
    assert_eq!(err.matches(said).count(), 1, "{err}");
}

/// What shows a process that it is number 2 of four: by the launchers of Open MPI, of MPICH and of Slurm, and by
/// whoever starts the processes of a job.
const ONE_OF_FOUR: [&[(&str, &str)]; 4] = [
    &[("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "4")],
    &[("PMI_RANK", "2"), ("PMI_SIZE", "4")],
    &[("SLURM_PROCID", "2"), ("SLURM_STEP_NUM_TASKS", "4")],
    &[("LPF_RANK", "2"), ("LPF_SIZE", "4"), ("LPF_MEET", "127.0.0.1:4711")],
];

/// What `exec` and `run` say in a process that cannot run alone.
#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn child_that_execs_and_runs() {
    println!("exec: {}", lpf::exec(2, |ctx| ctx.sync()).unwrap_err());
    println!("run: {}", lpf::run(|ctx| ctx.sync()).unwrap_err());
}

#[test]
#[cfg(not(feature = "mpi"))]
fn under_a_launcher_whose_backend_is_not_built_in_exec_says_the_same_as_run() {
    let folder = Folder::new("not-built-in");
    for launched in &ONE_OF_FOUR[..3] {
        let (out, err) = child_in("child_that_execs_and_runs", &folder.0, launched);
        let said = |call: &str| out.lines().find_map(|line| Some(line.split_once(call)?.1));
        let exec = said("exec: ").unwrap_or_else(|| panic!("{launched:?}: {out}{err}"));
        let text = "misuse: MPI's or Slurm's launcher started 4 processes: backend \"mpi\"";
        assert!(exec.starts_with(text), "{launched:?}: {exec}");
        assert!(exec.contains("is built with --features mpi"), "{launched:?}: {exec}");
        assert_eq!(said("run: "), Some(exec), "{launched:?}");
    }
}

#[test]
fn exec_is_refused_in_several_processes_as_each_would_run_a_copy() {
    // As `lpf run` and users set the backend, which is not why a closure cannot run there.
    let with_backend =
        ONE_OF_FOUR.iter().map(|launched| [launched, &[("LPF_BACKEND", "tcp")][..]].concat());
    // Without MPI the launchers of MPI and Slurm have an error of their own.
    let alone = &ONE_OF_FOUR[if cfg!(feature = "mpi") { 0 } else { 3 }..];
    for launched in alone.iter().map(|launched| launched.to_vec()).chain(with_backend) {
        let (out, _) = counts("copies", "2", &launched);
        let text = "exec(2): misuse: this is process 2 of 4 (";
        assert!(out.contains(text), "{launched:?}: {out}");
        assert!(out.contains("call lpf::run, with a closure that captures nothing"), "{out}");
        assert!(out.contains("set LPF_BACKEND=threads if each process"), "{out}");
        let wanted = [&launched[..], &[("LPF_BACKEND", "threads")][..]].concat();
        let (out, err) = counts("wanted", "2", &wanted);
        assert!(out.contains("exec(2): 2 of"), "{launched:?}: {out}{err}");
    }
}

#[test]
fn exec_runs_in_a_process_that_a_launcher_started_alone() {
    let alone: [&[(&str, &str)]; 3] = [
        &[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "1")],
        &[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")],
        &[("LPF_RANK", "0"), ("LPF_SIZE", "1"), ("LPF_MEET", "127.0.0.1:4711")],
    ];
    for launched in alone {
        let (out, err) = counts("alone", "2", launched);
        assert!(out.contains("exec(2): 2 of"), "{launched:?}: {out}{err}");
    }
}

#[test]
fn a_process_that_has_joined_its_job_may_run_sections_on_threads() {
    for launched in ONE_OF_FOUR {
        let folder = Folder::new("joined");
        let (out, err) = child_in("child_that_is_a_job_of_one", &folder.0, launched);
        assert!(out.contains("on threads: 2 of"), "{launched:?}: {out}{err}");
    }
    // As under `lpf run`.
    let folder = Folder::new("joined-tcp");
    let (out, err) = child_in("child_that_is_a_job_of_one", &folder.0, &[("LPF_BACKEND", "tcp")]);
    assert!(out.contains("on threads: 2 of"), "{out}{err}");
    let (out, _) = counts("not-joined", "2", &[("LPF_BACKEND", "tcp")]);
    assert!(
        out.contains("exec(2): misuse: LPF_BACKEND is \"tcp\", but lpf::exec runs on"),
        "{out}"
    );
}

/// The cores of this thread, of a thread that it starts, and of a program that it starts.
fn cores_here() -> [usize; 3] {
    let own = || std::thread::available_parallelism().unwrap().get();
    let started = std::thread::spawn(own).join().unwrap();
    let program = Command::new("nproc").env_remove("OMP_NUM_THREADS").output().unwrap();
    let program = String::from_utf8(program.stdout).unwrap().trim().parse().unwrap();
    [own(), started, program]
}

/// Run by [`cores_of`]: what threads and programs inherit inside a section, and by `unpinned`.
#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn child_that_starts_threads() {
    let cores = lpf::settings::cores();
    let ended = lpf::exec(4 * cores, |ctx| {
        let before = cores_here();
        if ctx.pid() == 0 {
            println!("in the section: {before:?}");
        }
        assert_eq!(lpf::unpinned(cores_here), [cores; 3]);
        assert_eq!(lpf::unpinned(|| lpf::unpinned(cores_here)), [cores; 3]);
        assert_eq!(cores_here(), before);
        let panicked = std::panic::catch_unwind(|| lpf::unpinned(|| panic!("on purpose")));
        assert!(panicked.is_err());
        assert_eq!(cores_here(), before);
        ctx.sync()
    });
    ended.unwrap();
    assert_eq!(cores_here(), [cores; 3]);
    assert_eq!(lpf::unpinned(cores_here), [cores; 3]);
}

#[test]
fn threads_and_programs_that_unpinned_starts_have_all_cores() {
    let cores = lpf::settings::cores();
    let folder = Folder::new("unpinned");
    for (pin, inherited) in [("none", cores), ("compact", 1), ("scatter", 1)] {
        let (out, err) = child_in("child_that_starts_threads", &folder.0, &[("LPF_PIN", pin)]);
        let text = format!("in the section: {:?}\n", [inherited; 3]);
        assert!(out.contains(&text) && out.contains("test result: ok. 1 passed"), "{out}{err}");
    }
}

/// Leaves a thread behind that it has started inside a section, and prints whether the section was pinned.
#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn child_that_leaves_a_thread() {
    let cores = lpf::settings::cores();
    let wait = || std::thread::sleep(std::time::Duration::from_secs(600));
    let ended = lpf::exec(4 * cores, |ctx| {
        if ctx.pid() == 1 {
            match std::env::var_os("BY_UNPINNED") {
                None => drop(std::thread::spawn(wait)),
                Some(_) => drop(lpf::unpinned(|| std::thread::spawn(wait))),
            }
            let here = std::thread::available_parallelism().unwrap().get();
            println!("pinned: {}", here < cores);
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        ctx.sync()
    });
    ended.unwrap();
}

/// Whether threads are pinned by themselves depends on what else the machine does.
#[test]
fn a_thread_that_inherits_one_core_by_itself_is_reported() {
    let folder = Folder::new("strays");
    let said = "was started inside a section and stays on one core";
    let child = |settings: &[(&str, &str)]| {
        let (out, err) = child_in("child_that_leaves_a_thread", &folder.0, settings);
        assert!(out.contains("test result: ok. 1 passed"), "{out}{err}");
        (out.contains("pinned: true"), err.matches(said).count(), err)
    };
    for _ in 0..10 {
        let (is_pinned, reports, err) = child(&[]);
        assert_eq!(reports, usize::from(is_pinned), "{err}");
        let (_, reports, err) = child(&[("BY_UNPINNED", "1")]);
        assert_eq!(reports, 0, "{err}");
        if is_pinned {
            break;
        }
    }
    // Who asks for it knows it.
    let (_, reports, err) = child(&[("LPF_PIN", "compact")]);
    assert_eq!(reports, 0, "{err}");
}

/// The last process computes, and the others wait for it, in a sync or for messages of a collective.
#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn child_that_is_late() {
    let procs = std::env::var("PROCESSES").unwrap().parse().unwrap();
    let ended = lpf::exec(procs, |ctx| {
        let mut all = lpf::collectives::Collectives::new(ctx)?;
        ctx.sync()?;
        if ctx.pid() + 1 == ctx.nprocs() {
            let begin = std::time::Instant::now();
            while begin.elapsed() < std::time::Duration::from_secs(2) {
                std::hint::spin_loop();
            }
            eprintln!("the late process returns");
        }
        match std::env::var_os("BY_A_COLLECTIVE") {
            Some(_) => all.allreduce_value(ctx, &lpf::collectives::Sum, 1_u32).map(drop),
            None => ctx.sync(),
        }
    });
    println!("exec: {}", ended.unwrap_err());
}

#[test]
fn a_thread_that_is_late_is_named_while_it_goes_on() {
    let folder = Folder::new("late");
    let check = |processes: u32, collective: &[(&str, &str)]| {
        let text = processes.to_string();
        let settings = [&[("LPF_TIMEOUT", "0.4"), ("PROCESSES", &text)], collective].concat();
        let (out, err) = child_in("child_that_is_late", &folder.0, &settings);
        let late = format!("process {}, superstep ", processes - 1);
        let lines: Vec<&str> = err.lines().filter(|line| line.starts_with("lpf: ")).collect();
        let [line] = lines[..] else { panic!("one line is expected: {err}{out}") };
        assert!(line.contains(&late) && line.contains("within 0.4 s (LPF_TIMEOUT)"), "{line}");
        assert!(line.ends_with("; the section ends when this process returns"), "{line}");
        assert!(err.find(line) < err.find("the late process returns"), "{err}");
        assert!(out.contains("exec: fatal: ") && out.contains(&late), "{out}");
    };
    let check = &check;
    std::thread::scope(|scope| {
        for (processes, by_a_collective) in [(3, false), (3, true), (5, true), (7, false)] {
            let collective: &[_] = if by_a_collective { &[("BY_A_COLLECTIVE", "1")] } else { &[] };
            scope.spawn(move || check(processes, collective));
        }
    });
}
