//! Measuring inside a section for a caller outside of it, on any backend.
//!
//! Captured variables do not travel between processes, so a section gets its work as a type, a [`Task`]. Process 0 sends
//! its order to the others, because they may run on another host, with other memory and caches. It finds the caller's
//! watch in a variable of its thread.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use lpf_core::{Args, Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::share::from_first;
use crate::Context;

/// Receives the progress of a task: the time since it began, and a function that makes a text.
pub type Watch = Rc<dyn Fn(Duration, &dyn Fn() -> String)>;

/// A watch that ignores the progress.
pub fn unwatched() -> Watch {
    Rc::new(|_, _| {})
}

/// Something to be measured by all processes of a section.
pub trait Task: Copy + Send + Sync + 'static {
    /// The data that all processes need.
    type Order: Serialize + DeserializeOwned;
    /// The result of process 0.
    type Found: 'static;

    /// The work of every process. Collective. Only the result of process 0 has a meaning, and only process 0 calls
    /// `watch`.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, *fatal* if the section failed.
    fn run(ctx: &mut Context<'_>, order: &Self::Order, watch: &Watch) -> Result<Self::Found>;
}

thread_local! {
    static WATCH: RefCell<Watch> = RefCell::new(unwatched());
}

/// The work of one process of a section for a task. Process 0 gets the order as its input.
///
/// # Errors
/// As [`Task::run`], and *misuse* for an order that cannot be read.
pub fn work<T: Task>(ctx: &mut Context<'_>, args: Args<'_>) -> Result<T::Found> {
    let order = from_first(ctx, args.input)?;
    let order = serde_json::from_slice(&order).map_err(Error::setting)?;
    // Process 0 of a section is the thread that began it.
    let watch = if ctx.pid() == 0 { WATCH.with_borrow(Watch::clone) } else { unwatched() };
    T::run(ctx, &order, &watch)
}

/// Performs a task in a section, which `exec` begins with the arguments that it is given, for [`work`].
///
/// # Errors
/// Those of `exec`.
pub fn perform<T: Task>(
    order: &T::Order,
    watch: Watch,
    exec: impl FnOnce(Args<'_>) -> Result<T::Found>,
) -> Result<T::Found> {
    let input = serde_json::to_vec(order).map_err(Error::setting)?;
    WATCH.set(watch);
    let found = exec(Args::input(&input));
    WATCH.set(unwatched());
    found
}
