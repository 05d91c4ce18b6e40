//! The boundary of a program that chooses its backend at start.

use lpf_core::settings::Settings;
use lpf_core::{Args, MAX_P, Pid, Result, captures_nothing};

use crate::Context;
use crate::backend::chosen;
use crate::exec::{configure, exec_with};
use crate::job::{self, Runs};
use crate::unknown::say_unknown;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
