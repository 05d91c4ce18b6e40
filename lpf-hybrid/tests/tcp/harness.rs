//! Sections on nodes that are processes of the system.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use lpf_conformance::{Harness, Mode, Pace, Story};
use lpf_core::runtime::{Process, section};
use lpf_core::settings::Exchange;
use lpf_core::{Args, Lpf, Pid, Result};
use lpf_hybrid::{Hybrid, run_node};
use lpf_messages::Messages;
use lpf_pthreads::Config;
use lpf_tcp::{TcpJob, TcpProcess};

use crate::members::{self, Role, Team};

/// How many processes the nodes have room for: known to all nodes by the type.
pub(crate) trait Layout: Copy + Send + Sync + 'static {
    const ROOMS: &'static [Pid];
}

macro_rules! layouts {
    ($($name:ident: $rooms:expr),* $(,)?) => {
        $(
            #[derive(Clone, Copy)]
            pub(crate) struct $name;

            impl Layout for $name {
                const ROOMS: &'static [Pid] = &$rooms;
            }
        )*
    };
}

layouts! {
    TwoByFour: [4, 4],
    Unequal: [4, 2, 2],
}

/// Sections on nodes of this layout.
pub(crate) struct Nodes<L>(PhantomData<L>);

impl<L> Nodes<L> {
    pub(crate) const NEW: Self = Nodes(PhantomData);
}

/// The servers of all sections, one section at a time, by the number of nodes.
static TEAMS: Mutex<Vec<Option<(Team, TcpJob)>>> = Mutex::new(Vec::new());

/// A node with room for its part of `L`; of a section of `wanted` processes if it is the first one.
fn node<L: Layout>(
    process: TcpProcess,
    wanted: Pid,
    args: Args<'_>,
    story: impl Story<<Nodes<L> as Harness>::Process>,
) -> Result<()> {
    let config = Config::from_environment()?;
    let room = L::ROOMS[process.pid()];
    run_node(process, &config, (room, wanted), args, section(story), section(story))
}

impl<L: Layout> Harness for Nodes<L> {
    type Process =
        Process<Hybrid<Messages<lpf_tcp::sockets::Sockets<lpf_control::plane::ControlPlane>>>>;

    fn exec(
        &self,
        mode: Mode,
        procs: Pid,
        story: impl Story<Self::Process>,
        args: Args<'_>,
    ) -> Result<()> {
        let nodes = L::ROOMS.len();
        let mut teams = TEAMS.lock().unwrap_or_else(PoisonError::into_inner);
        if teams.len() <= nodes {
            teams.resize_with(nodes + 1, || None);
        }
        let (_, job) = teams[nodes].get_or_insert_with(|| Team::start(nodes, Role::Serve, false));
        job.exec(
            &Arc::new(mode.between_processes(Exchange::Direct)),
            procs.min(nodes),
            args,
            move |process: TcpProcess, args: Args<'_>| node::<L>(process, 0, args, story),
            move |process: TcpProcess, args: Args<'_>| node::<L>(process, procs, args, story),
        )
    }

    fn spreads_over_nodes(&self) -> bool {
        true
    }

    fn pace(&self) -> Pace {
        Pace::of_processes(members::are_apart())
    }
}
