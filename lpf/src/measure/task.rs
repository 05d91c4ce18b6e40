//! Measuring inside a section for a caller outside of it, on any backend.
//!
//! Between processes no closures travel, so what is to be done in a section is a type, a [`Task`]; its
//! order is process 0's, which sends it to the others: they may run on another host, whose memory and
//! caches are others. What process 0 finds goes back to the caller through a place of its thread.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::time::Duration;

use lpf_core::{Args, Cause, Context, Error, Lpf, Program, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::share::from_first;

/// Who is told how far a task is: the time since it began, and a text if it is wanted.
pub type Watch = Rc<dyn Fn(Duration, &dyn Fn() -> String)>;

/// A watch that looks away.
pub fn unwatched() -> Watch {
    Rc::new(|_, _| {})
}

/// Something to be measured by all processes of a section.
pub trait Task: Copy + Send + Sync + 'static {
    /// What all processes have to know.
    type Order: Serialize + DeserializeOwned;
    /// What process 0 finds.
    type Found: 'static;

    /// What every process does. Collective; what it returns has a meaning at process 0 only, and
    /// `watch` is told nothing at the others.
    ///
    /// # Errors
    /// *Mitigable* where memory is refused, *fatal* where the section failed.
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
