//! The backend of a section: by its name, or by how this process was started.

use lpf_core::settings::misspelt::meant;
use lpf_core::settings::{Launched, Settings, Source, by_mpi_launcher};
use lpf_core::{Error, Result};

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
    let how = if name == "mpi" {
        ": in its Cargo.toml, the dependency lpf needs features = [\"mpi\"]; the command lpf is built with --features mpi"
    } else {
        ""
    };
    format!(
        "backend \"{name}\" (LPF_BACKEND, --backend) is not built into this program, which has {built_in}{how}"
    )
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
        // A launcher of one process starts no job.
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

    #[test]
    #[cfg(not(feature = "mpi"))]
    fn without_mpi_it_is_said_how_to_build_it() {
        let text = backend("mpi").unwrap_err().to_string();
        assert!(text.contains("is not built into this program, which has"), "{text}");
        assert!(text.ends_with("is built with --features mpi"), "{text}");
    }
}
