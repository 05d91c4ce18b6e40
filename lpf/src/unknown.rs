//! Variables of the environment that look like settings and are not, reported when a program starts its first section.

use lpf_core::settings::misspelt::{unknown_once, verdict};
use lpf_core::settings::{Launched, by_mpi_launcher};

use crate::launcher::{is_told_to_lpf_run, say};

/// Reports them on standard error, once: process 0 of a job does, unless `lpf run` has.
pub(crate) fn say_unknown() {
    if !is_told_to_lpf_run() && is_first_of_job() {
        for name in unknown_once() {
            let verdict = verdict(&name);
            say(&format!("{} is {verdict} (lpf info lists the settings)", name.escape_debug()));
        }
    }
}

fn is_first_of_job() -> bool {
    let launched = Launched::from_environment().ok().flatten().map(|job| job.rank);
    launched.or(by_mpi_launcher().map(|(rank, _)| rank)).is_none_or(|rank| rank == 0)
}
