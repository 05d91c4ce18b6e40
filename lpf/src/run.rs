//! The boundary of a program that chooses its backend at start.

use lpf_core::settings::misspelt::meant;
use lpf_core::settings::{Launched, Settings, Source, by_mpi_launcher};
use lpf_core::{Args, Error, MAX_P, Pid, Result, captures_nothing};

use crate::Context;
use crate::exec::{configure, exec_with};
use crate::job::{self, Runs};
use crate::unknown::say_unknown;

/// The backends built into this program, by the names that `LPF_BACKEND` takes.
pub const BACKENDS: &[&str] =
    if cfg!(feature = "mpi") { &["threads", "tcp", "mpi"] } else { &["threads", "tcp"] };

/// All backends that a build can have.
const KNOWN: &[&str] =
    &["threads", "tcp", "mpi", "ibverbs", "hybrid", "hybrid:tcp", "hybrid:mpi", "hybrid:ibverbs"];

/// Checks a backend's name against what is built in.
///
/// # Errors
/// *Misuse* for a name that is not that of a backend, or of one that this program was built without. The text lists the
/// backends.
pub fn backend(name: &str) -> Result<&'static str> {
    if let Some(built_in) = BACKENDS.iter().find(|&&built_in| built_in == name) {
        return Ok(built_in);
    }
    Err(Error::setting(if KNOWN.contains(&name) {
        not_built_in(name)
    } else {
        let then = match meant(name, BACKENDS.iter().copied()) {
            Some(meant) => format!("did you mean {meant}? This"),
            None => "this".into(),
        };
        format!(
            "\"{name}\" is not a backend (LPF_BACKEND, --backend); {then} program has {}",
            BACKENDS.join(", ")
        )
    }))
}

/// That this program was built without a backend, and what to do: in the same words wherever it is found.
fn not_built_in(name: &str) -> String {
    let built_in = BACKENDS.join(", ");
    let how = if name == "mpi" { ": build it with --features mpi" } else { "" };
    format!(
        "backend \"{name}\" (LPF_BACKEND, --backend) is not built into this program, which has {built_in}{how}"
    )
}

/// Runs `f` on all processes that are available, on the backend that `LPF_BACKEND` names, and returns the value of
/// process 0. The default is tcp if `lpf run` started this process or `LPF_MEET` is set, mpi if MPI's or Slurm's launcher
/// started it, else threads.
///
/// `f` is a function, or a closure that captures nothing: other processes find it by the name of its type. A closure that
/// captures a variable does not compile here. Data goes to process 0 in the arguments of [`run_args`], and from there to
/// the others by messages.
///
/// The code before this call in `main` runs on every process of a launcher, and should have no
/// side effects. The code after it runs on process 0 only.
///
/// ```
/// fn main() -> lpf::Result<()> {
///     lpf::run(|ctx| {
///         println!("hello from {} of {}", ctx.pid(), ctx.nprocs());
///         Ok(())
///     })
/// }
/// ```
///
/// # Errors
/// *Misuse* for a backend that is not built in, another setting that cannot be used, or a call inside a section that
/// `run` has begun. Else as [`exec`](crate::exec). If the processes of `lpf run` cannot join
/// each other, process 0 alone returns the error; the others end with status 1.
pub fn run<F, R>(f: F) -> Result<R>
where
    F: for<'s> Fn(&mut Context<'s>) -> Result<R> + Copy + Send + Sync,
{
    const { captures_nothing::<F>() };
    start(MAX_P, Args::none(), move |ctx, _args| f(ctx))
}

/// As [`run`], on `procs` processes and with arguments. A job has only the processes that were started. If these are
/// fewer than `procs`, all of them run the program, and a line on standard error says so. The same holds on threads if
/// `LPF_PROCS` is less.
///
/// # Errors
/// As [`run`].
pub fn run_args<F, R>(procs: Pid, args: Args<'_>, f: F) -> Result<R>
where
    F: for<'s> Fn(&mut Context<'s>, Args<'_>) -> Result<R> + Copy + Send + Sync,
{
    const { captures_nothing::<F>() };
    start(procs, args, f)
}

fn start<F, R>(procs: Pid, args: Args<'_>, f: F) -> Result<R>
where
    F: for<'s> Fn(&mut Context<'s>, Args<'_>) -> Result<R> + Copy + Send + Sync,
{
    say_unknown();
    let settings = Settings::from_environment()?;
    match chosen(&settings)? {
        "threads" => {
            drop(Runs::begin()?);
            exec_with(&configure(&settings, procs)?, procs, args, |ctx, args| {
                // Each thread is in a section that `run` began.
                let _runs = Runs::begin()?;
                f(ctx, args)
            })
        }
        backend => job::run(backend, procs, args, f),
    }
}

/// The backend that the settings name, or that fits how this process was started.
///
/// # Errors
/// *Misuse* for a backend that is not built in, and for a job that is not described completely; the text says what to
/// do.
pub fn chosen(settings: &Settings) -> Result<&'static str> {
    if settings.backend.source != Source::Default {
        return backend(&settings.backend.value);
    }
    if Launched::from_environment()?.is_some() {
        return Ok("tcp");
    }
    match by_mpi_launcher() {
        // One process is no job, whoever started it.
        Some((_, 1)) if !cfg!(feature = "mpi") => Ok("threads"),
        Some((_, size)) if !cfg!(feature = "mpi") => Err(Error::setting(format!(
            "MPI's or Slurm's launcher started {size} processes: {}, or start it with lpf run, or set LPF_BACKEND=tcp and LPF_MEET=HOST:PORT, or LPF_BACKEND=threads for each on its own",
            not_built_in("mpi")
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
        assert!(known.to_string().contains("\"ibverbs\" (LPF_BACKEND, --backend) is not"));
        let unknown = |name| backend(name).unwrap_err().to_string();
        assert!(unknown("pigeons").contains("is not a backend (LPF_BACKEND, --backend); this "));
        assert!(unknown("thread").contains("; did you mean threads? This program has threads"));
    }

    /// Calls `run` and `exec` in a section.
    fn nested(ctx: &mut Context<'_>) -> Result<()> {
        let error = run(nested).unwrap_err();
        assert!(error.is_misuse(), "{error}");
        assert!(error.to_string().contains("inside a section that it began"), "{error}");
        crate::exec(2, |inner| inner.sync())?;
        ctx.sync()
    }

    #[test]
    fn run_inside_its_own_section_is_misuse() {
        // The threads of the first section serve the second, too.
        for _ in 0..2 {
            run_args(2, Args::none(), |ctx, _args| nested(ctx)).unwrap();
        }
    }

    #[test]
    #[cfg(not(feature = "mpi"))]
    fn without_mpi_it_is_said_how_to_build_it() {
        let text = backend("mpi").unwrap_err().to_string();
        assert!(text.contains("is not built into this program, which has"), "{text}");
        assert!(text.ends_with("build it with --features mpi"), "{text}");
    }
}
