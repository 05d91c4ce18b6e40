//! MPI's own collectives, in a job of their own that takes turns with ours.

use lpf::Pid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::harness::Pacing;
use super::shapes::Shape;
use crate::bench::reduce::wanted::Wanted;
use crate::failure::Result;
use crate::place::Place;

/// What is asked of it.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::bench) enum Asked {
    /// Each of these, from a common start.
    Together(Vec<(Shape, Pacing)>),
    /// Each of these by processes that arrive as it says.
    Arriving(Vec<Wanted>),
}

/// MPI's own collectives, where they can be measured.
pub(in crate::bench) struct Rival {
    #[cfg(feature = "mpi")]
    jobs: Option<crate::place::Beside>,
    /// Whether they have measured anything.
    #[cfg(feature = "mpi")]
    has_run: bool,
    /// Of so many processes this one is one, and can call them itself.
    here: Option<Pid>,
    /// Why they cannot.
    missing: Option<String>,
}

impl Rival {
    #[cfg(feature = "mpi")]
    pub(in crate::bench) fn new(place: &Place) -> Self {
        let jobs = place.beside("mpi-own");
        let text = "MPI's own collectives are measured only if lpf starts the processes: leave out the launcher";
        let missing = jobs.is_none().then(|| text.to_string());
        Rival { jobs, has_run: false, here: None, missing }
    }

    /// The same, where a job of MPI's may call them between its own.
    pub(in crate::bench) fn or_here(place: &Place) -> Self {
        let here = place.size().filter(|_| cfg!(feature = "mpi") && place.backend == "mpi");
        let mut rival = Self::new(place);
        if here.is_some() {
            (rival.here, rival.missing) = (here, None);
        }
        rival
    }

    #[cfg(not(feature = "mpi"))]
    pub(in crate::bench) fn new(_place: &Place) -> Self {
        let text = "MPI's own collectives are not measured: build with --features mpi for them";
        Rival { here: None, missing: Some(text.into()) }
    }

    /// Whether these p processes, a job of MPI's, can call it themselves.
    pub(in crate::bench) fn is_here(&self, p: Pid) -> bool {
        self.here == Some(p)
    }

    /// What calls itself so, if there is any.
    pub(in crate::bench) fn name(&self) -> Option<&'static str> {
        #[cfg(feature = "mpi")]
        if self.jobs.is_some() || self.here.is_some() {
            let is_open = lpf::mpi::library_version().contains("Open MPI");
            return Some(if is_open { "openmpi" } else { "mpich" });
        }
        None
    }

    /// Why it is not beside, if it is not.
    pub(in crate::bench) fn missing(self) -> Option<String> {
        self.missing
    }

    #[cfg(feature = "mpi")]
    pub(in crate::bench) fn measure<F: DeserializeOwned>(
        &mut self,
        place: &Place,
        p: Pid,
        asked: &Asked,
    ) -> Result<Option<F>> {
        let Some(jobs) = &mut self.jobs else { return Ok(None) };
        match jobs.ask(p, asked) {
            Ok(found) => {
                self.has_run = true;
                Ok(Some(found))
            }
            // It can be done without.
            Err(_) if place.backend != "mpi" => {
                self.jobs = None;
                let text = match self.has_run {
                    true => {
                        "MPI's own collectives are measured for a part of the time: their job ended early, for the reason above"
                    }
                    false => {
                        "MPI's own collectives are not measured: their job could not be started, for the reason above"
                    }
                };
                self.missing = Some(text.into());
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    #[cfg(not(feature = "mpi"))]
    #[allow(clippy::unused_self, reason = "as with an MPI")]
    pub(in crate::bench) fn measure<F: DeserializeOwned>(
        &mut self,
        _place: &Place,
        _p: Pid,
        _asked: &Asked,
    ) -> Result<Option<F>> {
        Ok(None)
    }
}
