//! What has to be known of MPI before it is used, and the duplicate of a communicator.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use lpf_messages::{Broken, Outcome, Rank};
use mpi::ffi;

use super::library::{Comm, Library, check, no_request};

pub(crate) fn broken(reason: impl Into<String>) -> Broken {
    Broken { peer: None, reason: reason.into() }
}

/// Whether the program has initialised MPI.
pub fn is_up() -> bool {
    let mut is_up = 0;
    // SAFETY: may be called at any time.
    unsafe { ffi::MPI_Initialized(&mut is_up) };
    is_up != 0
}

/// Whether MPI has been finalised, after which it cannot be called.
pub(crate) fn is_over() -> bool {
    let mut is_over = 0;
    // SAFETY: may be called at any time.
    unsafe { ffi::MPI_Finalized(&mut is_over) };
    is_over != 0
}

/// Which threads may call MPI, where it is not all.
pub(crate) fn only_thread(provided: c_int) -> Outcome<Option<thread::ThreadId>> {
    // SAFETY: constants of the library's.
    let (funneled, serialized) =
        unsafe { (ffi::RSMPI_THREAD_FUNNELED, ffi::RSMPI_THREAD_SERIALIZED) };
    if provided >= serialized {
        return Ok(None);
    }
    if provided < funneled {
        let text = "MPI is initialised for a program with one thread, and this one has more: initialise \
             it with MPI_Init_thread and MPI_THREAD_SERIALIZED, or at least MPI_THREAD_FUNNELED";
        return Err(broken(text));
    }
    let mut is_main = 0;
    // SAFETY: MPI is initialised.
    check(unsafe { ffi::MPI_Is_thread_main(&mut is_main) }, "MPI_Is_thread_main")?;
    if is_main == 0 {
        let text = "MPI was initialised with MPI_THREAD_FUNNELED, and this thread is not the one that \
             may call it; MPI_THREAD_SERIALIZED allows any";
        return Err(broken(text));
    }
    Ok(Some(thread::current().id()))
}

/// Where launchers of MPI say how many processes they started: Open MPI's, and MPICH's, as which srun starts
/// them with --mpi=pmi2.
const LAUNCHERS_SAY: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];

/// Name and version of the MPI that this was built with, up to a comma or the end of the line.
pub fn library_version() -> String {
    let mut text = [0_u8; ffi::MPI_MAX_LIBRARY_VERSION_STRING as usize];
    let mut length = 0;
    // SAFETY: the buffer is as long as MPI asks for.
    unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr().cast::<c_char>(), &mut length) };
    let text = String::from_utf8_lossy(&text[..(length as usize).min(text.len())]);
    let name = text.split([',', '\n', '\0']).next().unwrap_or_default();
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether MPI knows of more than this process, or there are no more: those that another MPI's launcher
/// started, or srun in a way that this MPI does not know, are a world of its own each.
pub(crate) fn is_whole(size: Rank) -> Outcome<()> {
    match alone_among(size, |name| std::env::var(name).ok()) {
        None => Ok(()),
        Some(why) => Err(broken(format!("{why} (the library is {})", library_version()))),
    }
}

/// Why a world of `size` processes is not all that the environment tells of.
fn alone_among(size: Rank, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let number = |name: &str| variable(name)?.trim().parse::<Rank>().ok();
    if size > 1 {
        return None;
    }
    // What a launcher of MPI says goes before Slurm's variables: it may itself run in a step, or as one.
    if let Some(said) = LAUNCHERS_SAY.iter().filter_map(|name| number(name)).max() {
        return (said > 1).then(|| {
            format!(
                "the launcher started {said} processes, but MPI knows only this one, because the launcher is of \
                 another MPI than the library. Start the program with the library's own (mpirun.openmpi or \
                 mpiexec.mpich if both are installed), or build it for the launcher's MPI (MPICC)"
            )
        });
    }
    let tasks = step_tasks(&variable).filter(|&tasks| tasks > 1)?;
    Some(format!(
        "srun started {tasks} processes, but MPI knows only this one: start them with srun --mpi=pmix or \
         srun --mpi=pmi2, whichever the library can do (srun --mpi=list shows what Slurm has), or with the \
         library's mpirun"
    ))
}

/// The tasks of the Slurm step that this process is one of. A batch script is told of all tasks of its job
/// (`SLURM_NTASKS`), and so is what it starts without srun, but runs in no step, or in one of its own kind.
fn step_tasks(variable: &impl Fn(&str) -> Option<String>) -> Option<Rank> {
    // The highest numbers are for the steps of batch scripts, of interactive shells and the like.
    const FIRST_SPECIAL: Rank = 0xffff_fff0;
    let number = |name: &str| variable(name)?.trim().parse::<Rank>().ok();
    let step = variable("SLURM_STEP_ID");
    if step.is_some() && number("SLURM_STEP_ID").is_none_or(|step| step >= FIRST_SPECIAL) {
        return None;
    }
    let told = number("SLURM_STEP_NUM_TASKS");
    let tasks = told.or_else(|| step.and_then(|_| number("SLURM_NTASKS")))?;
    (number("SLURM_PROCID")? < tasks).then_some(tasks)
}

/// A duplicate of a communicator, whose error handler is left as it was.
///
/// # Safety
/// `comm` is a communicator of this MPI.
pub(crate) unsafe fn duplicate(comm: Comm, end: Instant) -> Outcome<Comm> {
    // SAFETY: the caller's promise. The new handle is in memory that is kept as long as MPI may write
    // to it.
    unsafe {
        let mut before = ffi::RSMPI_ERRORS_RETURN;
        check(ffi::MPI_Comm_get_errhandler(comm, &mut before), "MPI_Comm_get_errhandler")?;
        let code = ffi::MPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN);
        check(code, "MPI_Comm_set_errhandler")?;
        let made = Box::into_raw(Box::new(ffi::RSMPI_COMM_NULL));
        let mut request = no_request();
        let begun = check(ffi::MPI_Comm_idup(comm, made, &mut request), "MPI_Comm_idup");
        let done = begun.and_then(|()| {
            wait(end, || {
                let mut done = 0;
                let code = ffi::MPI_Test(&mut request, &mut done, ffi::RSMPI_STATUS_IGNORE);
                check(code, "MPI_Comm_idup").map(|()| done != 0)
            })
        });
        let code = ffi::MPI_Comm_set_errhandler(comm, before);
        check(code, "MPI_Comm_set_errhandler")?;
        check(ffi::MPI_Errhandler_free(&mut before), "MPI_Errhandler_free")?;
        if !done? {
            return Err(broken(
                "not all processes arrived at the duplication of the communicator in time",
            ));
        }
        Ok(*Box::from_raw(made))
    }
}

/// The greatest tag; 32,767 at the least.
pub(crate) fn tag_limit(library: &Library) -> Outcome<u32> {
    let (mut limit, mut is_known) = (ptr::null_mut::<c_int>(), 0);
    // SAFETY: the attribute of this communicator is the address of an int that MPI keeps.
    unsafe {
        let key = ffi::MPI_TAG_UB as c_int;
        let limit_at = (&raw mut limit).cast::<c_void>();
        let code = ffi::MPI_Comm_get_attr(ffi::RSMPI_COMM_WORLD, key, limit_at, &mut is_known);
        library.judge(code, "MPI_Comm_get_attr", None)?;
        let limit = if is_known != 0 && !limit.is_null() { *limit } else { 0 };
        Ok(limit.max(32_767) as u32)
    }
}

/// Asks until it is so, or the time is up.
pub(crate) fn wait(end: Instant, mut is_so: impl FnMut() -> Outcome<bool>) -> Outcome<bool> {
    let begin = Instant::now();
    while !is_so()? {
        let now = Instant::now();
        if now >= end {
            return Ok(false);
        }
        if now.duration_since(begin) < Duration::from_millis(1) {
            thread::yield_now();
        } else {
            thread::sleep(Duration::from_micros(100));
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said to a process that is a world of its own.
    fn said(variables: &[(&str, &str)]) -> Option<String> {
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name);
        alone_among(1, |name| value(name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn who_was_started_alone_is_alone() {
        assert_eq!(said(&[]), None);
        assert_eq!(said(&[("OMPI_COMM_WORLD_SIZE", "1")]), None);
        assert_eq!(said(&[("PMI_SIZE", "1")]), None);
    }

    #[test]
    fn processes_of_another_mpis_launcher_are_told_so() {
        for name in LAUNCHERS_SAY {
            let text = said(&[(name, "4")]).unwrap();
            assert!(text.contains("started 4 processes") && text.contains("another MPI"), "{text}");
            assert_eq!(alone_among(4, |_| Some("4".into())), None);
        }
    }

    #[test]
    fn tasks_of_a_slurm_step_that_mpi_does_not_know_of_are_told_what_to_do() {
        let step = [("SLURM_PROCID", "2"), ("SLURM_STEP_ID", "0")];
        let whole = [&step[..], &[("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_NTASKS", "8")]].concat();
        let text = said(&whole).unwrap();
        assert!(text.starts_with("srun started 4 processes"), "{text}");
        assert!(text.contains("srun --mpi=pmix or srun --mpi=pmi2"), "{text}");
        assert_eq!(alone_among(4, |_| Some("1".into())), None);
        // Not every Slurm says it of the step.
        assert!(said(&[&step[..], &[("SLURM_NTASKS", "4")]].concat()).is_some());
        assert_eq!(said(&[&step[..], &[("SLURM_STEP_NUM_TASKS", "1")]].concat()), None);
    }

    #[test]
    fn a_batch_script_is_no_step_and_neither_is_what_it_starts_by_itself() {
        let script = [("SLURM_JOB_ID", "7"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")];
        assert_eq!(said(&script), None);
        for step in ["batch", "4294967291", "4294967290"] {
            assert_eq!(said(&[&script[..], &[("SLURM_STEP_ID", step)]].concat()), None);
        }
    }

    #[test]
    fn a_launcher_inside_of_a_slurm_step_goes_before_it() {
        // Open MPI's starts a daemon on each host by srun, and these the processes.
        let daemon = [("SLURM_PROCID", "1"), ("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "2")];
        assert_eq!(said(&[&daemon[..], &[("OMPI_COMM_WORLD_SIZE", "1")]].concat()), None);
        assert!(said(&daemon).is_some());
    }
}
