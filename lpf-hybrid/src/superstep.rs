//! The barrier of a section on nodes, and the exchange between them.
//!
//! 1. Each thread passes its requests for other nodes to the node's process of `N`, and the threads meet.
//! 2. The first thread carries out a whole superstep of `N`, for all: its barrier, and the requests between nodes. The
//!    others wait at the next barrier of the node, so nothing else touches their memory meanwhile.
//! 3. At that barrier all learn what all nodes announced.
//! 4. Each thread carries out what threads of its own node want from it.
//!
//! All requests between nodes come before all requests inside a node. Each level takes a serial order of whole requests, so
//! both together do, and neither resolves conflicts of the other.

use std::sync::atomic::Ordering::Relaxed;

use lpf_core::request::Request;
use lpf_core::runtime::{Announced, Engine, LocalState, Purpose, Tables, Together};
use lpf_core::{Result, SyncAttr};

use crate::engine::Hybrid;
use crate::links::Release;
use crate::node::Node;

/// What core acts on.
const NEWS: u32 = Announced::REGISTERED | Announced::RESIZED | Announced::ABANDONED;
/// Requests between nodes were carried out.
const MOVED: u32 = 1 << 31;

impl<N: Engine + 'static> Hybrid<N> {
    /// The barrier of all nodes, with all that is carried out between them.
    pub(crate) fn meet_on(
        &mut self,
        node: &Node<N>,
        tables: &mut Tables,
        purpose: Purpose,
        attr: SyncAttr<'_>,
    ) -> Result<Announced> {
        if purpose == Purpose::Sync {
            forward(node, &mut tables.local);
        }
        let inside = self.threads.meet(tables, purpose, attr)?;
        if tables.local.pid == node.threads().first {
            match self.exchange(node, tables, inside, purpose, attr) {
                Ok(announced) => node.announced.store(announced, Relaxed),
                Err(error) => {
                    self.threads.fail_meeting(error.clone());
                    return Err(error);
                }
            }
        }
        self.threads.meet_within(tables)?;
        let all = node.announced.load(Relaxed);
        if all & MOVED != 0 {
            let seat = node.threads().seat(tables.local.pid);
            let requests = node.process().residents().take_aimed(seat);
            tables.local.count_from_afar(requests);
        }
        Ok(Announced(inside.0 & !NEWS | all))
    }

    /// The superstep between nodes, when all threads of this one have arrived.
    fn exchange(
        &mut self,
        node: &Node<N>,
        tables: &mut Tables,
        inside: Announced,
        purpose: Purpose,
        attr: SyncAttr<'_>,
    ) -> Result<u32> {
        if tables.links.are_in_use() {
            self.threads.show_arrival(tables);
        }
        let mut process = node.process();
        if tables.links.are_in_use() {
            self.threads.on_links(tables, Release(&mut process))?;
        }
        let mut together = process.residents().announced;
        together.kinds = Announced(inside.0 & NEWS);
        if inside.is_news() {
            let all = self.threads.agreed(&tables.local);
            let abandoned = if all.agrees_on_abandoned() { all.abandoned[0] } else { 0 };
            let (requests, registrations) = (all.requests, [all.lowest, all.highest]);
            together = Together { requests, registrations, abandoned, ..together };
        }
        let local = &tables.local;
        let announced = process.meet_as_node(together, purpose, attr)?;
        match purpose {
            Purpose::Sync => {
                let mut found = Ok(());
                if announced.is_news() {
                    let agreed = process.agreed_by_nodes();
                    *node.agreed.lock() = Some(agreed);
                    if announced.has(Announced::REGISTERED) {
                        found = local.compare_registrations(agreed.lowest, agreed.highest);
                    }
                    if agreed.agrees_on_abandoned() {
                        process.residents().announced.abandoned = 0;
                    }
                }
                process.complete_as_node(announced, &local.slots, found)?;
            }
            Purpose::Rehook => {
                process.end_barrier_as_node(purpose)?;
                let inner = process.rehook_as_node(node.residents(local.is_checked()))?;
                node.begin_inner(inner);
            }
            Purpose::Count | Purpose::Close => process.end_barrier_as_node(purpose)?,
        }
        let moved = purpose == Purpose::Sync && announced.0 & !NEWS != 0;
        let moved = if moved { MOVED } else { 0 };
        Ok(announced.0 & NEWS | moved)
    }
}

/// Passes the requests of a thread for other nodes to the node's process.
fn forward<N: Engine>(node: &Node<N>, local: &mut LocalState) {
    let LocalState { pid, queue, .. } = local;
    if queue.used() == 0 {
        return;
    }
    let own = node.threads().seat(*pid);
    let mut process = None;
    for place in 0..queue.places() {
        let Some((way, other)) = queue.list_at(place).filter(|&(_, other)| !node.has(other)) else {
            continue;
        };
        let list = queue.finish(way, other);
        let process = process.get_or_insert_with(|| node.process());
        let to = node.nodes.of(other);
        let seats = [node.nodes.node(to).seat(other), own];
        let passed: std::result::Result<(), ()> =
            // SAFETY: this thread has just finished the list, and does not change the queue meanwhile.
            unsafe {
                list.for_each(|request| {
                    let Request { address, bytes, slot, offset } = request;
                    let number = process.residents().number(slot, seats);
                    process.forward(way, to, (address, bytes), (number, offset));
                    Ok(())
                })
            };
        debug_assert!(passed.is_ok());
    }
}
