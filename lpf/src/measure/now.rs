//! g and l of a network between processes, measured inside a job: `LPF_PROBE`.

use std::time::Duration;

use lpf_core::machine::{Growth, Parameters};
use lpf_core::{Args, Pid, Result};
use serde::{Deserialize, Serialize};

use super::task::{Task, Watch, perform, unwatched};
use super::{Alone, Measured, Plan, measure};
use crate::Context;

/// Measures g and l; the task of [`measured_now`].
#[derive(Clone, Copy, Debug)]
pub struct Now;

/// The plan, and the numbers measured on one process before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    plan: Plan,
    alone: Alone,
}

impl Task for Now {
    type Order = Order;
    type Found = Measured;

    fn run(ctx: &mut Context<'_>, order: &Order, _watch: &Watch) -> Result<Measured> {
        measure(ctx, &order.plan, &order.alone, Growth::MessagePassing, &|_| {}, &|| false)
    }
}

/// The parameters for a section of `procs` processes of a job under `LPF_PROBE`: g and l, measured for about `time` in
/// a section of their own. Process 0 calls it. It begins that section by `exec`, which gets the arguments for
/// [`work`](super::task::work), without checked mode.
///
/// # Errors
/// Those of `exec`.
pub fn measured_now(
    procs: Pid,
    time: Duration,
    exec: impl FnOnce(Args<'_>) -> Result<Measured>,
) -> Result<Parameters> {
    let plan = Plan::new(procs, Growth::MessagePassing, time, false);
    let order = Order { alone: Alone::measure(&plan, &|| false), plan };
    Ok(perform::<Now>(&order, unwatched(), exec)?.parameters)
}

/// The same in a section that all processes have hooked into for this. Collective; only the result of process 0 has
/// a meaning.
///
/// # Errors
/// *Mitigable* if memory is refused, *fatal* if the section failed.
pub fn measured_here(ctx: &mut Context<'_>, time: Duration) -> Result<Parameters> {
    let plan = Plan::new(ctx.nprocs(), Growth::MessagePassing, time, false);
    let alone = if ctx.pid() == 0 { Alone::measure(&plan, &|| false) } else { Alone::default() };
    // Another host has another memory and other caches, and so another plan.
    let order = serde_json::to_vec(&Order { plan, alone }).map_err(lpf_core::Error::setting)?;
    let order = super::share::from_first(ctx, &order)?;
    let order = serde_json::from_slice(&order).map_err(lpf_core::Error::setting)?;
    Ok(Now::run(ctx, &order, &unwatched())?.parameters)
}
