//! Checked mode between processes: every process receives the lists of requests and registrations of all others before
//! data moves. It is for finding mistakes, so it allocates and is slow.

use super::super::blob::{Bad, Incoming, Outgoing};
use super::super::meeting::InMeeting;
use super::super::protocol::Protocol;
use super::super::tags;
use super::super::transport::Transport;
use super::super::watch::Stop;
use super::scratch::Told;
use lpf_core::error::Result;
use lpf_core::runtime::{Purpose, Tables};

impl Protocol {
    /// Finds reads and writes of the same bytes, and registrations that differ. Called after the barrier, when no process
    /// queues or registers.
    pub(in super::super) fn check_requests<T: Transport>(
        &mut self,
        net: &mut T,
        tables: &mut Tables,
    ) -> Result<()> {
        let told = self.tell_everybody(net, tables)?;
        let all = told.iter().map(|told| (&told.requests[..], &told.calls[..]));
        let found = tables.local.check_superstep(all);
        self.scratch.told = told;
        found
    }

    /// Exchanges the lists of all processes.
    fn tell_everybody<T: Transport>(
        &mut self,
        net: &mut T,
        tables: &mut Tables,
    ) -> Result<Vec<Told>> {
        let Protocol { rings, watch, context, .. } = self;
        let local = &tables.local;
        let pid = local.pid;
        let own: Vec<Told> = local.all_checks().iter().map(Told::of).collect();
        let mut out = Outgoing::new(postcard::to_stdvec(&own).unwrap_or_default());
        let tag = tags::checks(*context);
        let superstep = local.superstep;
        let members = watch.members.clone();
        let mut coming = Vec::new();
        let others = (0..members.len()).filter(|&other| other != pid);
        let begun = others.clone().try_for_each(|other| {
            out.send(net, members[other], tag)?;
            coming.push(Incoming::post(net, members[other], tag)?);
            Ok(())
        });
        let mut what = InMeeting::new(tables, rings, Purpose::Sync);
        what.missing = 0;
        let waited = match begun {
            Err(stop) => Err(watch.stopped(net.control(), superstep, stop)),
            Ok(()) => watch.wait(net, &mut what, |what, net| {
                what.links.progress(net, what.local)?;
                let mut done = true;
                for (one, from) in coming.iter_mut().zip(others.clone()) {
                    done &= one.has_come(net).map_err(|bad| match bad {
                        Bad::Stopped(stop) => stop,
                        Bad::TooLong => Stop::Invalid(from),
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
        let mut all: Vec<Vec<Told>> = (0..members.len()).map(|_| Vec::new()).collect();
        for (one, from) in coming.into_iter().zip(others) {
            all[from] = postcard::from_bytes(&one.into_bytes())
                .map_err(|_| watch.invalid(net.control(), superstep, from))?;
        }
        all[pid] = own;
        Ok(all.into_iter().flatten().collect())
    }
}
