//! What happens under a launcher of MPI alone.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lpf_conformance::{allowed, assert_in_time};

use super::{
    PATIENCE, again, command, count, last, limited, run, send, starts_others, stderr, stdout,
};

#[test]
fn a_launcher_of_mpi_that_may_open_too_few_files_is_not_waited_for() {
    // Open MPI's would wait for ever. It has to be killed, and leaves its files then.
    let begin = Instant::now();
    let files = std::env::temp_dir().join(format!("lpf-{}", std::process::id()));
    std::fs::create_dir(&files).unwrap();
    let limits = format!("-n 32; export LPF_MEET_TIMEOUT=3 TMPDIR={}", files.display());
    let output = limited(&limits, &["-n", "8", "--backend", "mpi", "--grace", "1"]);
    let said = stderr(&output);
    assert_ne!(output.status.code(), Some(0), "{said}");
    assert!(last(&said).starts_with("lpf: "), "{said}");
    assert_in_time(begin.elapsed(), Duration::from_secs(20));
    for host in std::fs::read_dir(&files).unwrap() {
        let left: Vec<_> = std::fs::read_dir(host.unwrap().path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
    std::fs::remove_dir_all(&files).unwrap();
}

#[test]
fn processes_of_an_mpis_launcher_that_do_not_join_are_told_of_too() {
    let output = run(&["-n", "2", "--backend", "mpi", "true"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(last(&said).contains("none of the 2 processes joined the others"), "{said}");
}

/// This program's function stands before the library's: one process may die in it.
#[unsafe(no_mangle)]
extern "C" fn MPI_Finalize() -> std::ffi::c_int {
    unsafe extern "C" {
        fn PMPI_Finalize() -> std::ffi::c_int;
    }
    let own = std::env::var("OMPI_COMM_WORLD_RANK").or(std::env::var("PMI_RANK"));
    if own.is_ok() && own == std::env::var("DIES_IN_THE_END") {
        // SAFETY: it takes a number.
        unsafe { libc::raise(libc::SIGKILL) };
    }
    // SAFETY: whoever calls this function may call that one.
    unsafe { PMPI_Finalize() }
}

/// As above: all processes may be killed while they make the memory that they share.
#[unsafe(no_mangle)]
extern "C" fn MPI_Iallgather(
    own: *const std::ffi::c_void,
    own_count: std::ffi::c_int,
    own_kind: mpi::ffi::MPI_Datatype,
    all: *mut std::ffi::c_void,
    all_count: std::ffi::c_int,
    all_kind: mpi::ffi::MPI_Datatype,
    comm: mpi::ffi::MPI_Comm,
    request: *mut mpi::ffi::MPI_Request,
) -> std::ffi::c_int {
    use std::sync::atomic::{AtomicU32, Ordering};
    static CALLS: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C" {
        fn PMPI_Iallgather(
            own: *const std::ffi::c_void,
            own_count: std::ffi::c_int,
            own_kind: mpi::ffi::MPI_Datatype,
            all: *mut std::ffi::c_void,
            all_count: std::ffi::c_int,
            all_kind: mpi::ffi::MPI_Datatype,
            comm: mpi::ffi::MPI_Comm,
            request: *mut mpi::ffi::MPI_Request,
        ) -> std::ffi::c_int;
    }
    let call = CALLS.fetch_add(1, Ordering::Relaxed).to_string();
    if std::env::var("DIES_IN_SHARING") == Ok(call) {
        // SAFETY: it takes a number.
        unsafe { libc::raise(libc::SIGKILL) };
    }
    // SAFETY: whoever calls this function may call that one.
    unsafe { PMPI_Iallgather(own, own_count, own_kind, all, all_count, all_kind, comm, request) }
}

/// Files in memory that are LPF's.
fn files_in_memory() -> Vec<String> {
    let entries = std::fs::read_dir("/dev/shm").unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("lpf")).collect()
}

#[test]
fn no_file_is_left_in_memory_if_all_processes_are_killed_as_they_make_it() {
    let before = files_in_memory();
    // Names of hosts, offers of memory, the memory: each process is killed as it begins one of them.
    for call in ["0", "1", "2"] {
        let mut command = again(&["-n", "3", "--backend", "mpi", "--grace", "1"], "member");
        let output = command.env("DIES_IN_SHARING", call).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(128 + libc::SIGKILL), "{call}: {said}");
        assert_eq!(files_in_memory(), before, "{call}: {said}");
    }
}

#[test]
fn who_dies_in_the_end_of_mpi_does_not_leave_the_others_there() {
    for who in ["1", "0"] {
        let mut command = again(&["-n", "3", "--backend", "mpi", "--grace", "1"], "member");
        let begin = Instant::now();
        let output = command.env("DIES_IN_THE_END", who).output().unwrap();
        let (out, said) = (stdout(&output), stderr(&output));
        assert_eq!(out.matches("counted 3").count(), 1, "{out}{said}");
        assert_ne!(output.status.code(), Some(0), "{said}");
        assert!(last(&said).starts_with(&format!("lpf: process {who} (pid ")), "{said}");
        assert!(last(&said).contains(" was ended by SIGKILL"), "{said}");
        assert!(begin.elapsed() < allowed(PATIENCE), "{said}");
    }
}

#[test]
fn nor_does_it_under_a_launcher_of_mpi_itself() {
    let (launcher, flag) = match lpf::mpi::library_version().contains("Open MPI") {
        true => ("mpirun.openmpi", &["--oversubscribe", "--allow-run-as-root"][..]),
        false => ("mpiexec.mpich", &[][..]),
    };
    for rank in ["0", "1"] {
        let mut command = Command::new(launcher);
        command.args(flag).args(["-n", "2"]).arg(std::env::current_exe().unwrap());
        command.args(["--exact", "starts", "--nocapture", "--quiet"]).env("LPF_BACKEND", "mpi");
        starts_others(rank, &mut command);
    }
}

/// The program of the next test, which starts this one alone.
#[test]
fn runs_or_is_a_member() {
    match std::env::var("OMPI_COMM_WORLD_RANK").or(std::env::var("PMI_RANK")).as_deref() {
        Ok("0") => println!("said: {}", lpf::run(count).unwrap_err()),
        Ok(_) => {
            let world = lpf::mpi::World::init(PATIENCE).unwrap();
            println!("said: {}", lpf::Member::of_world(world).unwrap_err());
        }
        Err(_) => {}
    }
}

#[test]
fn processes_of_which_some_run_and_some_are_members_are_told_so_on_mpi_too() {
    let mut command = again(&["-n", "2", "--backend", "mpi"], "mpi::runs_or_is_a_member");
    let output = command.env("LPF_MEET_TIMEOUT", "2").output().unwrap();
    let said = stdout(&output) + &stderr(&output);
    let text =
        "process 1 comes as a Member and process 0 by lpf::run: let all processes of the job";
    assert!(said.contains(&format!("misuse: process 0 refused this process: {text}")), "{said}");
    assert!(
        said.contains("fatal: process 1, superstep 0: process 1 has not arrived at "),
        "{said}"
    );
    assert_eq!(said.matches(text).count(), 2, "both are told why: {said}");
}

#[test]
fn a_signal_that_ends_nothing_comes_once_to_each_under_a_launcher_of_mpi() {
    let script = r#"
        trap 'n=$((n+1))' USR1; echo set
        while [ -z $n ]; do sleep 0.1; done
        for i in 1 2 3 4 5 6 7 8; do sleep 0.1; done; echo got $n"#;
    let mut command = command(&["-n", "2", "--backend", "mpi", "sh", "-c", script]);
    let mut launcher = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(launcher.stdout.take().unwrap()).lines();
    let set = lines.by_ref().take(2).filter(|line| line.as_ref().unwrap() == "set").count();
    if set == 2 {
        send(launcher.id() as i32, libc::SIGUSR1);
    }
    let got: Vec<_> = lines.map(|line| line.unwrap()).collect();
    let output = launcher.wait_with_output().unwrap();
    let said = stderr(&output);
    assert_eq!(
        (output.status.code(), &*got),
        (Some(0), &["got 1", "got 1"].map(String::from)[..]),
        "{said}"
    );
}
