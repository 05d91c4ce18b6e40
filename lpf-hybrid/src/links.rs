//! Links between threads of different nodes: each is a link of `N` between their nodes.
//!
//! An inbox of `N` has the rings of all threads of a node, those of each thread together: ring r of the thread with seat s is
//! ring s·R + r, if the inbox has R rings. A thread decides, by the counts of its own link, when a message may leave and what is
//! awaited. The link of `N` has the same counts before each step of the thread's, and gives what it has learned after it.

mod plain;

use std::sync::Arc;

use lpf_core::arrivals::{Arrival, InboxShape, Link, Queued, never_awaited};
use lpf_core::runtime::links::{Ends, FormerSenders, LinkTable, OpenLink, Opening};
use lpf_core::runtime::{
    Carrier, Engine, Former, Head, LinkCall, LinkMedium, LocalState, Process, Stopped, Tables,
};
use lpf_core::waits::{Status, Stream};
use lpf_core::{Error, Result};

use crate::engine::Hybrid;
use crate::node::Node;
use crate::waits::OnBoth;
use plain::OnPlain;

/// The link of `N` under a link to a thread of another node; none if the section had failed when it was opened.
#[derive(Debug)]
pub(crate) struct End(Option<Link>);

impl End {
    pub(crate) fn arrival<N: Engine>(&self, node: &Node<N>, link: &OpenLink, nth: u64) -> Arrival {
        let end = self.0.expect("no message arrives on a link of a section that has failed");
        let arrival = node.process().arrival_at_node(end, nth, |open| bring(link, open));
        arrival.expect("the node keeps the link until the thread closes it")
    }

    pub(crate) fn former_senders<N: Engine>(&self, node: &Node<N>) -> Result<FormerSenders> {
        match self.0 {
            Some(end) => node.process().on_node_links(FormerSendersOf(end)),
            None => Ok(FormerSenders::default()),
        }
    }
}

/// The processes that have the two rings of a link before it does.
struct FormerSendersOf(Link);

impl LinkCall for FormerSendersOf {
    type Output = FormerSenders;

    fn run<M: LinkMedium>(self, medium: &mut M, tables: &mut Tables) -> Result<FormerSenders> {
        let open = tables.links.get(&tables.local, self.0)?;
        Ok(medium.former_senders(open))
    }
}

impl<N: Engine + 'static> Hybrid<N> {
    /// Memory for the next inbox: a thread's own, and once for the node.
    pub(crate) fn add_both_inboxes(&mut self, local: &LocalState, shape: InboxShape) -> Result<()> {
        self.threads.add_inbox(local, shape)?;
        let Some(node) = &self.node else { return Ok(()) };
        self.inboxes += 1;
        let mut of_node = node.inboxes.lock();
        if *of_node < self.inboxes {
            let added = node.process().add_inbox_as_node(node.shape_between(shape));
            added.map_err(|error| {
                Error::mitigable(local.pid, local.superstep, error.cause().clone())
            })?;
            *of_node += 1;
        }
        Ok(())
    }

    /// Opens a link to a thread of another node.
    pub(crate) fn open_between(
        &mut self,
        node: &Node<N>,
        tables: &mut Tables,
        opening: Opening,
    ) -> Result<Link> {
        let Opening { shape, ring, peer, peer_ring, .. } = opening;
        let of_peer = node.nodes.of(peer);
        let [here, there] = [
            node.threads().seat(tables.local.pid) * shape.rings + ring,
            node.nodes.node(of_peer).seat(peer) * shape.rings + peer_ring,
        ];
        let shape = node.shape_between(shape);
        // Its streams have the names that the threads give them.
        let between = Opening { shape, ring: here, peer: of_peer, peer_ring: there, ..opening };
        let mut process = node.process();
        // A failure shows in the next wait, and not before.
        let end = match process.failure_of_node() {
            Some(_) => None,
            None => Some(process.open_as_node(between)?),
        };
        let (link, open) = tables.links.add(opening, false);
        open.in_flight.reserve(shape.window as usize);
        self.ends.add(open, End(end));
        Ok(link)
    }
}

/// Lets the engine between nodes grant the rings of threads that wait at the barrier, if these rings have no former sender
/// in this node. All threads are at the barrier, so no link inside the node is closed before it ends.
pub(crate) struct Release<'a, N: Engine>(pub(crate) &'a mut Process<N>);

impl<N: Engine> LinkCall for Release<'_, N> {
    type Output = ();

    fn run<M: LinkMedium>(self, medium: &mut M, tables: &mut Tables) -> Result<()> {
        let (inside, local) = (medium.carrier(), &tables.local);
        let release = |_: &mut Between<'_>, _: &LocalState, links: &mut LinkTable| {
            let mut withheld =
                links.iter_mut().filter(|open| open.is_withheld && !open.has_granted);
            withheld.try_for_each(|open| {
                let Stream { to: owner, ring, .. } = open.to_me;
                let former = inside.former_sender(owner, open.to_me, ring, &Status::default());
                open.is_withheld = !is_free(local, open, former)?;
                Ok(())
            })
        };
        self.0.on_node_links(OnPlain(release))
    }
}

/// A call on the links of a thread, with what waits and carries on both levels.
pub(crate) struct Within<'a, N: Engine, C> {
    pub(crate) call: C,
    pub(crate) node: &'a Arc<Node<N>>,
    pub(crate) ends: &'a mut Ends<End>,
}

impl<N: Engine, C: LinkCall> LinkCall for Within<'_, N, C> {
    type Output = C::Output;

    #[inline]
    fn run<M: LinkMedium>(self, medium: &mut M, tables: &mut Tables) -> Result<C::Output> {
        let Within { call, node, ends } = self;
        call.run(&mut OnBoth::new(medium, node, ends), tables)
    }
}

/// Why a call on a link cannot go on.
pub(crate) enum Stop<S> {
    /// As the engine of threads says.
    Inside(S),
    /// An error.
    Whole(Error),
}

impl<S> From<Error> for Stop<S> {
    fn from(error: Error) -> Self {
        Stop::Whole(error)
    }
}

/// What carries the messages of all links of a thread.
pub(crate) struct Both<'a, N: Engine, C> {
    pub(crate) inside: C,
    pub(crate) node: &'a Node<N>,
    pub(crate) ends: &'a mut Ends<End>,
}

/// What carries the messages of links between nodes.
type Between<'a> = dyn Carrier<Stop = Error> + 'a;

impl<N: Engine, C: Carrier> Both<'_, N, C> {
    /// One step on a link: by `N`, with its link, or by threads. After a failure of the section nothing moves between nodes,
    /// which is `nothing`.
    #[inline]
    fn step<R>(
        &mut self,
        link: &mut OpenLink,
        nothing: R,
        between: impl FnOnce(&mut Between<'_>, &LocalState, &mut OpenLink) -> Result<R>,
        inside: impl FnOnce(&mut C, &mut OpenLink) -> Stopped<C, R>,
    ) -> std::result::Result<R, Stop<C::Stop>> {
        let Some(&End(end)) = self.ends.get(link) else {
            return inside(&mut self.inside, link).map_err(Stop::Inside);
        };
        let done = on_link_of(self.node, end, |carrier, local, open| {
            bring(link, open);
            let done = between(carrier, local, open);
            learn(link, open);
            done
        });
        Ok(done?.unwrap_or(nothing))
    }

    /// The former sender on another node into the ring of a link inside this one.
    fn former_between(&mut self, link: &OpenLink) -> Result<Former> {
        let mut process = self.node.process();
        if process.failure_of_node().is_some() {
            return Ok(Former::None);
        }
        let shape = self.node.shape_between(link.shape);
        process.on_node_links(OnPlain(
            |carrier: &mut Between<'_>, local: &LocalState, links: &mut LinkTable| {
                let ring = local.ring_here(&link.to_me, shape);
                Ok(carrier.former_sender(local.pid, link.to_me, ring, &links.known))
            },
        ))
    }

    /// As [`step`](Self::step), of a link that does not change.
    fn look_at<R>(
        &mut self,
        link: &OpenLink,
        nothing: R,
        between: impl FnOnce(&mut Between<'_>, &mut OpenLink) -> Result<R>,
        inside: impl FnOnce(&mut C) -> Stopped<C, R>,
    ) -> std::result::Result<R, Stop<C::Stop>> {
        let Some(&End(end)) = self.ends.get(link) else {
            return inside(&mut self.inside).map_err(Stop::Inside);
        };
        let done = on_link_of(self.node, end, |carrier, _, open| {
            bring(link, open);
            between(carrier, open)
        });
        Ok(done?.unwrap_or(nothing))
    }
}

/// Whether a ring has no former sender that must close first; noted at the link.
fn is_free(local: &LocalState, link: &mut OpenLink, former: Former) -> Result<bool> {
    link.former_sender = None;
    match former {
        Former::Holds(pid, opening) => {
            link.former_sender = Some((pid, opening));
            Ok(false)
        }
        Former::Left(_, left) if left > 0 => {
            let Stream { from, to, inbox, ring } = link.to_me;
            let cause = never_awaited(left, inbox, ring, from);
            Err(Error::fatal(to, local.superstep, cause))
        }
        _ => Ok(true),
    }
}

/// Carries out a step with a link of a node, unless the section has failed.
fn on_link_of<N: Engine, R>(
    node: &Node<N>,
    end: Option<Link>,
    step: impl FnOnce(&mut Between<'_>, &LocalState, &mut OpenLink) -> Result<R>,
) -> Result<Option<R>> {
    let mut process = node.process();
    let end = end.filter(|_| process.failure_of_node().is_none());
    let Some(end) = end else { return Ok(None) };
    let step = |carrier: &mut Between<'_>, local: &LocalState, links: &mut LinkTable| {
        step(carrier, local, links.get_mut(local, end)?)
    };
    process.on_node_links(OnPlain(step)).map(Some)
}

/// Gives the link of `N` the counts of the thread's.
fn bring(link: &OpenLink, between: &mut OpenLink) {
    let released = between.outgoing.released;
    between.outgoing = link.outgoing;
    between.outgoing.released = released;
    let reported = between.incoming.reported;
    between.incoming = link.incoming;
    between.incoming.reported = reported;
    between.landed = link.landed;
    (between.offered, between.offers_used) = (link.offered, link.offers_used);
    between.is_granted = link.is_granted;
}

/// Gives the thread's link what that of `N` has learned.
fn learn(link: &mut OpenLink, between: &OpenLink) {
    link.outgoing.released = between.outgoing.released;
    link.incoming.reported = between.incoming.reported;
    link.has_granted = between.has_granted;
    link.lent = between.lent;
    if link.in_flight != between.in_flight {
        link.in_flight.clone_from(&between.in_flight);
    }
}

impl<N: Engine, C: Carrier> Carrier for Both<'_, N, C> {
    type Stop = Stop<C::Stop>;

    fn error(&self, local: &LocalState, stop: Self::Stop) -> Error {
        match stop {
            Stop::Inside(stop) => self.inside.error(local, stop),
            Stop::Whole(error) => error,
        }
    }

    fn look(&mut self) -> Stopped<Self, ()> {
        self.inside.look().map_err(Stop::Inside)
    }

    /// A look at the network has heard for all threads of the node.
    fn hear(&mut self, links: &mut LinkTable) -> Stopped<Self, ()> {
        self.inside.hear(links).map_err(Stop::Inside)
    }

    /// A ring goes from a sender here to one on another node, and back: each level looks at the other first.
    fn grant(
        &mut self,
        local: &LocalState,
        link: &mut OpenLink,
        known: &Status,
    ) -> Stopped<Self, ()> {
        let Some(&End(end)) = self.ends.get(link) else {
            let former = self.former_between(link)?;
            if is_free(local, link, former)? {
                self.inside.grant(local, link, known).map_err(Stop::Inside)?;
            }
            return Ok(());
        };
        let former = self.inside.former_sender(local.pid, link.to_me, link.ring, known);
        if is_free(local, link, former)? {
            on_link_of(self.node, end, |carrier, local, open| {
                // The streams have the same names on both levels.
                if !open.has_granted {
                    carrier.grant(local, open, known)?;
                }
                link.former_sender = open.former_sender;
                learn(link, open);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn take_ring(&mut self, link: &OpenLink) -> Stopped<Self, Option<u64>> {
        self.look_at(
            link,
            None,
            |carrier, open| carrier.take_ring(open),
            |inside| inside.take_ring(link),
        )
    }

    fn learn_credit(&mut self, link: &mut OpenLink) {
        // A failure shows in the next step.
        let _ = self.step(
            link,
            (),
            |carrier, _, open| {
                carrier.learn_credit(open);
                Ok(())
            },
            |inside, link| {
                inside.learn_credit(link);
                Ok(())
            },
        );
    }

    fn finish_sends(&mut self, link: &mut OpenLink) -> Stopped<Self, ()> {
        self.step(
            link,
            (),
            |carrier, _, open| carrier.finish_sends(open),
            |inside, link| inside.finish_sends(link),
        )
    }

    fn offered(&mut self, link: &OpenLink) -> Option<usize> {
        let offered = self.look_at(
            link,
            None,
            |carrier, open| Ok(carrier.offered(open)),
            |inside| Ok(inside.offered(link)),
        );
        // A failure shows in the next step.
        offered.ok().flatten()
    }

    #[inline]
    unsafe fn send(&mut self, link: &mut OpenLink, message: &Queued) -> Stopped<Self, bool> {
        self.step(
            link,
            false,
            // SAFETY: the caller's promises are the same, and the link of `N` has the same counts.
            |carrier, _, open| unsafe { carrier.send(open, message) },
            // SAFETY: the caller's promises are the same.
            |inside, link| unsafe { inside.send(link, message) },
        )
    }

    #[inline]
    fn has_sent(&mut self, link: &OpenLink) {
        // A failure shows in the next step.
        let _ = self.look_at(
            link,
            (),
            |carrier, open| {
                carrier.has_sent(open);
                Ok(())
            },
            |inside| {
                inside.has_sent(link);
                Ok(())
            },
        );
    }

    fn report(&mut self, link: &mut OpenLink) -> Stopped<Self, ()> {
        self.step(
            link,
            (),
            |carrier, _, open| carrier.report(open),
            |inside, link| inside.report(link),
        )
    }

    fn has_arrived(&mut self, link: &OpenLink) -> Stopped<Self, bool> {
        self.look_at(
            link,
            false,
            |carrier, open| carrier.has_arrived(open),
            |inside| inside.has_arrived(link),
        )
    }

    #[inline]
    fn take(&mut self, local: &LocalState, link: &mut OpenLink) -> Stopped<Self, Option<Head>> {
        self.step(
            link,
            None,
            |carrier, local, open| carrier.take(local, open),
            |inside, link| inside.take(local, link),
        )
    }

    unsafe fn offer(
        &mut self,
        link: &OpenLink,
        number: u64,
        address: *mut u8,
        bytes: usize,
    ) -> Stopped<Self, ()> {
        self.look_at(
            link,
            (),
            // SAFETY: the caller's promises are the same.
            |carrier, open| unsafe { carrier.offer(open, number, address, bytes) },
            // SAFETY: the caller's promises are the same.
            |inside| unsafe { inside.offer(link, number, address, bytes) },
        )
    }

    fn close(&mut self, link: OpenLink) -> Stopped<Self, ()> {
        let Some(End(end)) = self.ends.remove(&link) else {
            return self.inside.close(link).map_err(Stop::Inside);
        };
        let mut process = self.node.process();
        let end = end.filter(|_| process.failure_of_node().is_none());
        let Some(end) = end else { return Ok(()) };
        let closed = process.on_node_links(OnPlain(
            |carrier: &mut Between<'_>, local: &LocalState, links: &mut LinkTable| {
                bring(&link, links.get_mut(local, end)?);
                links.remove(end).map_or(Ok(()), |open| carrier.close(open))
            },
        ));
        Ok(closed?)
    }
}
