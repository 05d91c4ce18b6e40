//! Sections on nodes: how a process of `N` becomes a node with threads.

use std::sync::{Arc, Weak};

use lpf_core::runtime::{Engine, Nodes, Process, Residents};
use lpf_core::{Args, Lpf, Pid, Result, Runtime, SyncAttr};
use lpf_pthreads::{Config, Threads};

use crate::engine::Hybrid;
use crate::layout::spread;
use crate::node::Node;

/// Runs the node that a process of `N` stands for, up to its end: `room` threads at most, of a section of `wanted`
/// processes. Of these numbers, `wanted` counts at the first node.
///
/// The first process of the node runs `own` on this thread, the others run `section`. Both end in
/// [`run_section`](lpf_core::run_section). Three supersteps of `N` for the layout.
///
/// # Errors
/// *Fatal* if the section failed; *mitigable* if threads or memory are refused here, which is *fatal* for the other
/// nodes. Else what `own` returned.
pub fn run_node<N: Engine + 'static, R>(
    mut process: Process<N>,
    config: &Config,
    (room, wanted): (Pid, Pid),
    args: Args<'_>,
    section: impl Fn(Process<Hybrid<N>>, Args<'_>) -> Result<()> + Sync,
    own: impl FnOnce(Process<Hybrid<N>>, Args<'_>) -> Result<R>,
) -> Result<R> {
    let number = process.pid();
    let all = gather(&mut process, [room as u64, wanted as u64])?;
    let rooms: Vec<Pid> = all.iter().map(|[room, _]| (*room).max(1) as Pid).collect();
    let nodes = Nodes::new(&spread((all[0][1] as Pid).max(rooms.len()), &rooms));
    let (is_checked, strict) = (process.is_checked(), process.strict());
    let mut residents = Residents::new(nodes.clone(), number);
    if is_checked {
        residents.checks.resize_with(residents.processes(), Default::default);
    }
    let node = Node::new(nodes.clone(), rooms.iter().sum(), number, process.into_node(residents)?);
    let threads = node.threads();
    let inside = |process: Threads| {
        node.show(&process);
        process.map(|threads| Hybrid::of(threads, Some(node.clone())))
    };
    let config = config.clone().procs(room).check(is_checked).strict(strict);
    let outside: Weak<Node<N>> = Arc::downgrade(&node);
    let ended = config.timeout(node.time_limit()).exec_node(
        threads,
        (nodes.processes(), outside),
        args,
        |process, args| section(inside(process), args),
        |process, args| own(inside(process), args),
    );
    ended.inspect_err(|error| node.fail_to_begin(error))
}

/// Two words of each process, at all.
fn gather<N: Engine>(process: &mut Process<N>, mine: [u64; 2]) -> Result<Vec<[u64; 2]>> {
    let (pid, nprocs) = (process.pid(), process.nprocs());
    process.resize_memory_register(1)?;
    process.resize_message_queue(2 * nprocs)?;
    process.sync(SyncAttr::Default)?;
    let mut all = vec![[0; 2]; nprocs];
    all[pid] = mine;
    let each = size_of::<[u64; 2]>();
    // The processes' own memory: written by the others up to the end of the second sync, and leaked if that fails.
    let words = Box::leak(all.into_boxed_slice());
    // SAFETY: the memory is valid and is not touched otherwise before the slot is gone.
    let slot = unsafe {
        process.register_global(words.as_mut_ptr().cast(), nprocs * each, Default::default())
    }?;
    process.sync(SyncAttr::Default)?;
    for to in (0..nprocs).filter(|&to| to != pid) {
        process.put(slot.into(), pid * each, to, slot, pid * each, each)?;
    }
    process.sync(SyncAttr::Default)?;
    process.deregister(slot.into())?;
    // SAFETY: the box was leaked above, and no request names its memory any more.
    Ok(unsafe { Box::from_raw(words) }.into_vec())
}
