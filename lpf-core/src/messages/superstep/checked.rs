//! Checked mode between processes: the lists of requests and registrations travel to everybody before
//! a byte moves. It is for finding mistakes, so it allocates and is slow.

use serde::{Deserialize, Serialize};

use super::super::blob::{Bad, Incoming, Outgoing};
use super::super::control::Control;
use super::super::meeting::nonsense;
use super::super::process::Process;
use super::super::tags;
use super::super::transport::Transport;
use super::super::watch::Stop;
use super::super::wire::Kind;
use super::InMeeting;
use crate::Pid;
use crate::check::{Checker, Registration, Tracked, difference, report};
use crate::error::{Error, Result};
use crate::slot::GlobalSlot;

/// What one process tells the others.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in super::super) struct Told {
    pub(in super::super) requests: Vec<Tracked>,
    calls: Vec<Registration>,
}

impl<T: Transport> Process<T> {
    /// Reads and writes of the same bytes, and registrations that differ: after the meeting, when
    /// nobody queues or registers.
    pub(super) fn check_superstep(&mut self, net: &mut T) -> Result<()> {
        let all = self.tell_everybody(net)?;
        let (pid, superstep) = (self.local.pid, self.local.superstep);
        let differ = difference(all.iter().map(|told| &told.calls[..]));
        let slots = &self.local.slots;
        let base = |slot: GlobalSlot| slots.area(slot.into()).map(|(base, _)| base as usize);
        let mut checker = Checker::new(pid);
        checker.own(&all[pid as usize].requests);
        for (origin, told) in all.iter().enumerate() {
            checker.from(origin as Pid, &told.requests, base);
        }
        let found = differ.or_else(|| Some((pid, checker.overlap()?)));
        drop(checker);
        if let Some(checks) = &mut self.local.checks {
            checks.others = all;
        }
        match found {
            None => Ok(()),
            Some((pid, cause)) => {
                let error = Error::fatal(pid, superstep, cause);
                Err(net.control().declare(self.watch.section, error))
            }
        }
    }

    /// Exchanges what all processes have tracked.
    fn tell_everybody(&mut self, net: &mut T) -> Result<Vec<Told>> {
        let Process { local, links, watch, context, .. } = self;
        let own = local.checks.as_ref().map(|checks| Told {
            requests: checks.pending.requests().to_vec(),
            calls: checks.registry.calls().to_vec(),
        });
        let own = own.unwrap_or_default();
        let mut out = Outgoing::new(postcard::to_stdvec(&own).unwrap_or_default());
        let tag = tags::checks(*context);
        let superstep = local.superstep;
        let members = watch.members.clone();
        let mut coming = Vec::new();
        let others = (0..members.len()).filter(|&other| other != local.pid as usize);
        let begun = others.clone().try_for_each(|other| {
            out.send(net, members[other], tag)?;
            coming.push(Incoming::post(net, members[other], tag)?);
            Ok(())
        });
        let mut what = InMeeting { local, links, kind: Kind::Sync, missing: 0 };
        let waited = match begun {
            Err(stop) => Err(watch.stopped(net.control(), superstep, stop)),
            Ok(()) => watch.wait(net, &mut what, |what, net| {
                what.links.progress(net, what.local)?;
                let mut done = true;
                for (one, from) in coming.iter_mut().zip(others.clone()) {
                    done &= one.has_come(net).map_err(|bad| match bad {
                        Bad::Stopped(stop) => stop,
                        Bad::TooLong => Stop::Fatal(nonsense(from as Pid)),
                    })?;
                }
                Ok(done & out.has_left(net)?)
            }),
        };
        if let Err(error) = waited {
            out.give_up(net);
            coming.into_iter().for_each(|one| one.give_up(net));
            return Err(error);
        }
        let mut all: Vec<Told> = (0..members.len()).map(|_| Told::default()).collect();
        for (one, from) in coming.into_iter().zip(others) {
            all[from] = postcard::from_bytes(&one.into_bytes())
                .map_err(|_| net.control().declare(watch.section, nonsense(from as Pid)))?;
        }
        all[local.pid as usize] = own;
        Ok(all)
    }

    /// Reports the requests that are lost at the end of a section, and the slots that it leaves registered.
    pub(in super::super) fn report_leaks(&self) {
        if let Some(checks) = &self.local.checks {
            report(checks.pending.lost(self.local.pid));
            report(checks.registry.leaks(self.local.pid));
        }
    }
}
