//! The backends built into this program, and how it gets MPI.

use lpf::settings::Settings;

/// How the program `lpf` gets the backend mpi: in a clone of its repository.
pub(crate) const WITH_MPI: &str =
    "build lpf, in its repository, with cargo build --release --features mpi -p lpf-cli";

/// As [`lpf::backend`].
pub(crate) fn backend(name: &str) -> lpf::Result<&'static str> {
    lpf::backend_or(name, WITH_MPI)
}

/// As [`lpf::chosen`].
pub(crate) fn chosen(settings: &Settings) -> lpf::Result<&'static str> {
    lpf::chosen_or(settings, WITH_MPI)
}
