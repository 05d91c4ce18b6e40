//! Waits of a thread, which look at its node and at the network between nodes.
//!
//! Any thread that waits looks at the network for all threads of its node, unless another one does so at that moment.

use std::time::Duration;

use lpf_core::runtime::links::{Ends, FormerSenders, OpenLink};
use lpf_core::runtime::{Carrier, Engine, LinkMedium, Medium};
use lpf_core::wait::{Patience, Step};
use lpf_core::waits::Status;
use lpf_core::{Error, Pid};
use lpf_pthreads::Outside;

use crate::links::{Both, End};
use crate::node::{Node, StatusOf};

/// The longest sleep of a thread with links to other nodes: no process rings for their messages.
const NAP: Duration = Duration::from_micros(200);

/// What a wait of a thread needs: that of its own node, and looks at the network.
pub(crate) struct OnBoth<'a, N: Engine, M> {
    inside: &'a mut M,
    node: &'a Node<N>,
    ends: &'a mut Ends<End>,
    /// The failure that the last look at the network has found.
    failure: Option<Error>,
}

impl<'a, N: Engine, M> OnBoth<'a, N, M> {
    pub(crate) fn new(inside: &'a mut M, node: &'a Node<N>, ends: &'a mut Ends<End>) -> Self {
        OnBoth { inside, node, ends, failure: None }
    }
}

impl<N: Engine, M: Medium> Medium for OnBoth<'_, N, M> {
    const ASKS: bool = true;

    fn process(&self) -> (Pid, Pid) {
        (self.inside.process().0, self.node.nodes.processes())
    }

    fn patience(&self) -> Patience {
        self.inside.patience()
    }

    fn limit(&self) -> Option<Duration> {
        self.inside.limit()
    }

    fn now(&self) -> Duration {
        self.inside.now()
    }

    #[inline]
    fn look_again(&mut self) {
        self.failure = self.node.look();
        self.inside.look_again();
    }

    #[inline]
    fn failure(&mut self) -> Option<Error> {
        self.inside.failure().or_else(|| self.failure.clone())
    }

    fn publish(&mut self, status: Status) {
        self.inside.publish(status);
    }

    fn statuses(&self) -> impl FnMut(Pid) -> Option<Status> {
        let mut inside = self.inside.statuses();
        let node = self.node;
        let mut outside = None;
        move |pid| match node.has(pid) {
            true => inside(pid),
            false => outside.get_or_insert_with(|| node.statuses()).get(pid).cloned().flatten(),
        }
    }

    fn statuses_now(&self) -> impl FnMut(Pid) -> Option<Status> {
        let mut inside = self.inside.statuses_now();
        let node = self.node;
        move |pid| match node.has(pid) {
            true => inside(pid),
            false => node.process().on_node_links(StatusOf(pid)).ok().flatten(),
        }
    }

    fn former_senders(&self, link: &OpenLink) -> FormerSenders {
        let mut former = match self.ends.get(link) {
            None => self.inside.former_senders(link),
            // A failure shows in the wait.
            Some(end) => end.former_senders(self.node).unwrap_or_default(),
        };
        if !link.has_granted {
            former.here = link.former_sender.or(former.here);
        }
        former
    }

    #[inline]
    fn pause(&mut self, step: Step) {
        self.inside.pause(match step {
            Step::Sleep(time) => Step::Sleep(time.min(NAP)),
            step => step,
        });
    }
}

impl<N: Engine, M: LinkMedium> LinkMedium for OnBoth<'_, N, M> {
    fn carrier(&mut self) -> impl Carrier + '_ {
        Both { inside: self.inside.carrier(), node: self.node, ends: self.ends }
    }

    fn is_long(&self) -> bool {
        self.inside.is_long()
    }

    fn awaits_record(&mut self) {
        self.inside.awaits_record();
    }
}
