//! Checked mode on shared memory: `lpf_core::check`, fed between the two meetings of a sync.

use lpf_core::check::Tracked;
use lpf_core::runtime::LocalState;
use lpf_core::{Cause, Error, Pid, Result};

use crate::threads::ThreadEngine;

impl ThreadEngine {
    /// The error of a request of `origin` that only this sync finds wrong: with the place of the
    /// latest that `is_it` knows, where checked mode keeps them.
    #[cold]
    pub(crate) fn found_late(
        &self,
        local: &LocalState,
        origin: Pid,
        cause: Cause,
        is_it: impl Fn(&Tracked) -> bool,
    ) -> Error {
        let error = Error::fatal(origin, local.superstep, cause);
        let checks = self.comm.peers[origin].checks.lock();
        error.at_known(checks.pending.latest(is_it))
    }

    /// Reads and writes of the same bytes, and registrations that differ: between the two meetings
    /// of a sync, when nobody queues or registers.
    pub(crate) fn check_requests(&self, local: &LocalState) -> Result<()> {
        let all: Vec<_> = self.comm.peers.iter().map(|peer| peer.checks.lock()).collect();
        let all = all.iter().map(|checks| (checks.pending.requests(), checks.registry.calls()));
        local.check_superstep(all)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use lpf_core::{Area, Args, Context, Result};

    use crate::{Config, Threads};

    const HINT: &str = "(run with LPF_CHECK=1 to see where)";

    /// What a section of two processes ends with that both do something wrong in, in the line given.
    fn told(check: bool, wrong: (u32, Wrong)) -> (String, String) {
        let config = Config::new().procs(2).check(check);
        let ended = config.exec(2, Args::none(), |ctx, _args| {
            ctx.resize(2, 1)?;
            ctx.sync()?;
            let (from, to) = (ctx.area(4)?, ctx.area(4)?);
            ctx.sync()?;
            (wrong.1)(ctx, &from, &to)?;
            ctx.sync()
        });
        let place = format!("(called at {}:{}:", file!(), wrong.0);
        (ended.unwrap_err().to_string(), place)
    }

    type Wrong =
        for<'s> fn(&mut Context<'s, Threads>, &Area<'s, u64>, &Area<'s, u64>) -> Result<()>;

    #[test]
    fn a_refused_call_names_its_place_in_any_mode() {
        let calls: [(u32, Wrong); 6] = [
            (line!(), |ctx, from, to| ctx.put(from, 2..5, 0, to, 0)),
            (line!(), |ctx, from, to| ctx.get(0, from, 0..2, to, 3)),
            (line!(), |ctx, from, to| ctx.put(from, .., 2, to, 0)),
            (line!(), |ctx, _, _| ctx.area::<u8>(1).map(drop)),
            (line!(), |ctx, _, _| ctx.resize(usize::MAX, 0)),
            (line!(), |ctx, from, to| (0..2).try_for_each(|_| ctx.put(from, .., 1, to, 0))),
        ];
        for call in calls {
            for check in [false, true] {
                let (text, place) = told(check, call);
                assert!(text.contains(&place), "{text}");
                assert!(!text.contains(HINT), "{text}");
            }
        }
    }

    #[test]
    fn checked_mode_names_the_place_of_what_a_sync_finds_and_the_plain_mode_how_to_find_it() {
        let requests: [(u32, Wrong); 3] = [
            (line!(), |ctx, from, to| ctx.put(from, .., 1 - ctx.pid(), to, 1)),
            (line!(), |ctx, from, to| ctx.get(1 - ctx.pid(), from, 3..5, to, 0)),
            // One is made and one comes, which is one more than reserved.
            (line!(), |ctx, from, to| ctx.put(from, .., 1 - ctx.pid(), to, 0)),
        ];
        for request in requests {
            let (text, _) = told(false, request);
            assert!(text.contains(HINT) && !text.contains("called at"), "{text}");
            let (text, place) = told(true, request);
            assert!(text.contains(&place) && !text.contains(HINT), "{text}");
        }
    }
}
