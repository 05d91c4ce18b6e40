//! Sections on threads. `LPF_TOPOLOGY` and `LPF_PIN` choose among the barriers: see `ci/conformance.sh`.

use std::thread;

use lpf_conformance::{Harness, Hooked, Mode, Story};
use lpf_core::{Args, Pid, Result};
use lpf_pthreads::Config;

/// A machine of this many.
pub(crate) struct Threads(pub(crate) Pid);

impl Threads {
    fn config(&self, mode: Mode) -> Config {
        let config = Config::from_environment().expect("settings that can be understood");
        config.procs(self.0).check(mode.check).strict(mode.strict).timeout(mode.timeout)
    }
}

impl Harness for Threads {
    type Process = lpf_pthreads::Threads;

    fn procs(&self) -> Pid {
        self.0
    }

    fn exec(
        &self,
        mode: Mode,
        procs: Pid,
        story: impl Story<Self::Process>,
        args: Args<'_>,
    ) -> Result<()> {
        self.config(mode).exec(procs, args, story)
    }

    fn hook(
        &self,
        mode: Mode,
        inputs: &[Vec<u8>],
        output_bytes: usize,
        story: impl Story<Self::Process>,
    ) -> Option<Vec<Hooked>> {
        let team = self.config(mode).team(inputs.len()).expect("a team");
        let one = |pid: Pid, input: &[u8]| {
            let mut output = vec![0; output_bytes];
            let args = Args::in_out(input, &mut output);
            let hooked = team.join(pid).and_then(|mut init| init.hook(|ctx| story(ctx, args)));
            Hooked { result: hooked.map_err(|error| error.to_string()), output }
        };
        Some(thread::scope(|scope| {
            let start = |(pid, input)| scope.spawn(move || one(pid, input));
            let started: Vec<_> = (0..).zip(inputs.iter().map(Vec::as_slice)).map(start).collect();
            started.into_iter().map(|thread| thread.join().expect("hooks do not panic")).collect()
        }))
    }
}
