//! Measuring inside a section for a caller outside of it, on any backend.
//!
//! Closures do not travel between processes, so a section gets its work as a type, a [`Task`]. Process 0 sends its order
//! to the others, because they may run on another host, with other memory and caches. The result of process 0 goes back
//! to the caller through a variable of its thread.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::time::Duration;

use lpf_core::{Args, Cause, Context, Error, Lpf, Program, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::share::from_first;

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
    fn run<L: Lpf>(
        ctx: &mut Context<'_, L>,
        order: &Self::Order,
        watch: &Watch,
    ) -> Result<Self::Found>;
}

/// The program of a task.
#[derive(Clone, Copy, Debug)]
pub struct Perform<T>(PhantomData<fn() -> T>);

thread_local! {
    static WATCH: RefCell<Watch> = RefCell::new(unwatched());
    static FOUND: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

// Hidden from hints about other types: it is the measuring commands' own.
#[diagnostic::do_not_recommend]
impl<T: Task> Program for Perform<T> {
    fn run<L: Lpf>(self, ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()> {
        let order = from_first(ctx, args.input)?;
        let order = serde_json::from_slice(&order).map_err(Error::setting)?;
        if ctx.pid() != 0 {
            return T::run(ctx, &order, &unwatched()).map(|_| ());
        }
        // Process 0 of a section is the thread that began it.
        let watch = WATCH.with_borrow(Watch::clone);
        let found = T::run(ctx, &order, &watch)?;
        FOUND.set(Some(Box::new(found)));
        Ok(())
    }
}

/// Performs a task in a section, which `exec` begins with the program and the arguments that it is given.
///
/// # Errors
/// Those of `exec`.
pub fn perform<T: Task>(
    order: &T::Order,
    watch: Watch,
    exec: impl FnOnce(Perform<T>, Args<'_>) -> Result<()>,
) -> Result<T::Found> {
    let input = serde_json::to_vec(order).map_err(Error::setting)?;
    WATCH.set(watch);
    FOUND.set(None);
    let ended = exec(Perform(PhantomData), Args::input(&input));
    WATCH.set(unwatched());
    let found = FOUND.take();
    ended?;
    let found = found.and_then(|found| found.downcast().ok());
    found.map(|found| *found).ok_or_else(|| {
        let (what, reason) = ("a measurement".into(), "its section did not run".into());
        Error::refused(Cause::Refused { what, reason })
    })
}
