//! The boundary of a program that chooses its backend at start.

use lpf_core::settings::{Launched, Settings, Source, by_mpi_launcher};
use lpf_core::{Args, Error, MAX_P, Pid, Program, Result};

use crate::exec::configure;
use crate::job;

/// The backends built into this program, by the names that `LPF_BACKEND` takes.
pub const BACKENDS: &[&str] =
    if cfg!(feature = "mpi") { &["threads", "tcp", "mpi"] } else { &["threads", "tcp"] };

/// All backends that a build can have.
const KNOWN: &[&str] =
    &["threads", "tcp", "mpi", "ibverbs", "hybrid", "hybrid:tcp", "hybrid:mpi", "hybrid:ibverbs"];

/// Checks a backend's name against what is built in.
///
/// # Errors
/// *Misuse* for a name that is no backend's or that this program was built without; the text says
/// what there is.
pub fn backend(name: &str) -> Result<&'static str> {
    backend_or(name, WITH_MPI)
}

/// How a program gets the backend mpi.
const WITH_MPI: &str =
    "give its dependency the feature in Cargo.toml: lpf = { ..., features = [\"mpi\"] }";

/// As [`backend`]; `with_mpi` is how this program gets the backend mpi: for the program `lpf`, whose build is another
/// one than that of its users' programs.
///
/// # Errors
/// As there.
#[doc(hidden)]
pub fn backend_or(name: &str, with_mpi: &str) -> Result<&'static str> {
    if let Some(built_in) = BACKENDS.iter().find(|&&built_in| built_in == name) {
        return Ok(built_in);
    }
    Err(Error::setting(if KNOWN.contains(&name) {
        not_built_in(name, with_mpi)
    } else {
        format!(
            "\"{name}\" is no backend (LPF_BACKEND, --backend); this program has {}",
            BACKENDS.join(", ")
        )
    }))
}

/// That this program was built without a backend, and what to do: in the same words wherever it is found.
fn not_built_in(name: &str, with_mpi: &str) -> String {
    let built_in = BACKENDS.join(", ");
    let how = if name == "mpi" { format!(": {with_mpi}") } else { String::new() };
    format!("backend \"{name}\" is not built into this program, which has {built_in}{how}")
}

/// Runs an SPMD program on all processes that are available, on the backend that `LPF_BACKEND`
/// names: by default tcp where `lpf run` started this process or `LPF_MEET` is set, mpi where MPI's or
/// Slurm's launcher started it, else threads.
///
/// What stands before this call in `main` runs on every process of a launcher, and should have no
/// side effects; what stands behind it runs on process 0 alone.
///
/// ```
/// lpf::program! {
///     /// Says hello.
///     pub fn Hello(ctx, _args) {
///         println!("hello from {} of {}", ctx.pid(), ctx.nprocs());
///         Ok(())
///     }
/// }
///
/// fn main() -> lpf::Result<()> {
///     lpf::run(Hello)
/// }
/// ```
///
/// # Errors
/// *Misuse* for a backend that is not built in or another setting that cannot be used, and between processes
/// inside of a section that this has begun; else as [`exec`](crate::exec).
pub fn run<P: Program>(program: P) -> Result<()> {
    run_args(MAX_P, program, Args::none())
}

/// As [`run`], on `procs` processes and with arguments. A job has no more processes than were started: if these
/// are fewer than `procs`, all of them run the program, and a line on standard error says so, as on threads if
/// `LPF_PROCS` is less.
///
/// # Errors
/// As [`run`].
pub fn run_args<P: Program>(procs: Pid, program: P, args: Args<'_>) -> Result<()> {
    let settings = Settings::from_environment()?;
    match chosen(&settings)? {
        "threads" => configure(&settings, procs)?.exec_program(procs, program, args),
        backend => job::run(backend, procs, program, args),
    }
}

/// The backend that the settings name, or that fits how this process was started.
///
/// # Errors
/// *Misuse* for a backend that is not built in, and for a job of which something is missing; the text
/// says what to do.
pub fn chosen(settings: &Settings) -> Result<&'static str> {
    chosen_or(settings, WITH_MPI)
}

/// As [`chosen`], with the hint of [`backend_or`].
///
/// # Errors
/// As there.
#[doc(hidden)]
pub fn chosen_or(settings: &Settings, with_mpi: &str) -> Result<&'static str> {
    if settings.backend.source != Source::Default {
        return backend_or(&settings.backend.value, with_mpi);
    }
    if Launched::from_environment()?.is_some() {
        return Ok("tcp");
    }
    match by_mpi_launcher() {
        // One process is no job, whoever started it.
        Some((_, 1)) if !cfg!(feature = "mpi") => Ok("threads"),
        Some((_, size)) if !cfg!(feature = "mpi") => Err(Error::setting(format!(
            "MPI's or Slurm's launcher started {size} processes: {}; or start it with lpf run, or set LPF_BACKEND=tcp and LPF_MEET=HOST:PORT, or LPF_BACKEND=threads for each on its own",
            not_built_in("mpi", with_mpi)
        ))),
        Some(_) => Ok("mpi"),
        None => Ok("threads"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_that_is_not_built_in_is_a_plain_error() {
        assert_eq!(backend("threads").unwrap(), "threads");
        let known = backend("ibverbs").unwrap_err();
        assert!(known.is_misuse());
        assert!(known.to_string().contains("\"ibverbs\" is not built into this program"));
        assert!(backend("pigeons").unwrap_err().to_string().contains("is no backend"));
    }

    #[test]
    #[cfg(not(feature = "mpi"))]
    fn without_mpi_the_hint_is_what_a_package_writes_into_its_own_manifest() {
        let text = backend("mpi").unwrap_err().to_string();
        assert!(text.contains("\"mpi\" is not built into this program, which has"), "{text}");
        assert!(text.ends_with("Cargo.toml: lpf = { ..., features = [\"mpi\"] }"), "{text}");
        let text = backend_or("mpi", "type this").unwrap_err().to_string();
        assert!(text.ends_with(": type this"), "{text}");
        let text = backend("ibverbs").unwrap_err().to_string();
        assert!(!text.contains("mpi"), "{text}");
    }
}
