//! The boundary of a program that chooses its backend at start.

use lpf_core::settings::Settings;
use lpf_core::{Args, Error, MAX_P, Pid, Program, Result};

use crate::exec::configure;

/// The backends built into this program, by the names that `LPF_BACKEND` takes.
pub const BACKENDS: &[&str] = &["threads"];

/// All backends that a build can have.
const KNOWN: &[&str] =
    &["threads", "tcp", "mpi", "ibverbs", "hybrid", "hybrid:tcp", "hybrid:mpi", "hybrid:ibverbs"];

/// Checks a backend's name against what is built in.
///
/// # Errors
/// *Misuse* for a name that is no backend's or that this program was built without; the text says
/// what there is.
pub fn backend(name: &str) -> Result<&'static str> {
    if let Some(built_in) = BACKENDS.iter().find(|&&built_in| built_in == name) {
        return Ok(built_in);
    }
    let built_in = BACKENDS.join(", ");
    Err(Error::setting(if KNOWN.contains(&name) {
        format!("backend \"{name}\" is not built into this program, which has {built_in}")
    } else {
        format!("\"{name}\" is no backend; this program has {built_in}")
    }))
}

/// Runs an SPMD program on all processes that are available, on the backend that `LPF_BACKEND`
/// names (default: threads).
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
/// *Misuse* for a backend that is not built in or another setting that cannot be used; else as
/// [`exec`](crate::exec).
pub fn run<P: Program>(program: P) -> Result<()> {
    run_args(MAX_P, program, Args::none())
}

/// As [`run`], on up to `procs` processes and with arguments.
///
/// # Errors
/// As [`run`].
pub fn run_args<P: Program>(procs: Pid, program: P, args: Args<'_>) -> Result<()> {
    let settings = Settings::from_environment()?;
    backend(&settings.backend.value)?;
    configure(&settings, procs)?.exec_program(procs, program, args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_that_is_not_built_in_is_a_plain_error() {
        assert_eq!(backend("threads").unwrap(), "threads");
        let known = backend("mpi").unwrap_err();
        assert!(known.is_misuse());
        assert!(known.to_string().contains("\"mpi\" is not built into this program"));
        assert!(backend("pigeons").unwrap_err().to_string().contains("is no backend"));
    }
}
