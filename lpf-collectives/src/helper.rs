//! One thread beside all contexts of this operating-system process, for what goes on while they compute. It exists
//! while there is work for it. A child that is forked has a helper of its own once it has work of its own, and leaves its
//! parent's alone.
//!
//! It belongs to no context, so its sleeps are by the clock of the system. They only pace it: what it writes comes from
//! the members, by the clock of their engine.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lpf_core::Result;
use lpf_core::process::{Maker, PerProcess};
use parking_lot::{Condvar, Mutex};

/// What the helper does for somebody, again and again.
pub(crate) trait Work: Send {
    /// Does what there is to do, and says whether there was anything. After a *fatal* error it is not looked at again:
    /// the section has failed, which its members learn in their calls. After another one, for memory, it is.
    fn go_on(&mut self) -> Result<bool>;

    /// When to look again, after so many looks without news: never, unless it is woken, where that is nothing.
    fn again(&self, quiet: u32) -> Option<Duration>;
}

/// Somebody's work, until it is dropped: then nobody looks at it any more.
#[derive(Debug)]
pub(crate) struct Helped {
    number: u64,
    maker: Maker,
}

#[derive(Default)]
struct Helper {
    tasks: Mutex<Tasks>,
    changed: Condvar,
}

#[derive(Default)]
struct Tasks {
    next: u64,
    /// When each is to be looked at.
    all: BTreeMap<u64, Task>,
    thread: Option<JoinHandle<()>>,
    /// Threads so far: one that is not the last has to end, though there may be work again.
    threads: u64,
}

struct Task {
    work: Arc<Mutex<dyn Work>>,
    at: Option<Instant>,
    /// Looks since there was anything to do.
    quiet: u32,
}

/// What is due so soon is looked at together, for it costs more to wake up than to look.
const TOGETHER: Duration = Duration::from_micros(300);

/// Looks at somebody's work: how many looks were in vain by now, and when to look again.
fn look(work: &Mutex<dyn Work>, quiet: u32) -> (u32, Option<Duration>) {
    let mut work = work.lock();
    let quiet = match work.go_on() {
        Ok(true) => 0,
        Err(error) if error.is_fatal() => return (0, None),
        Ok(false) | Err(_) => quiet.saturating_add(1),
    };
    (quiet, work.again(quiet))
}

static HELPER: PerProcess<Helper> = PerProcess::new(Helper::default);

/// Has all work looked at soon.
pub(crate) fn wake_all() {
    let (now, helper) = (Instant::now(), HELPER.get());
    helper.tasks.lock().all.values_mut().for_each(|task| task.at = Some(now));
    helper.changed.notify_all();
}

/// Has the helper look at this, from now on.
///
/// # Errors
/// Where the system refuses a thread.
pub(crate) fn help(work: impl Work + 'static) -> io::Result<Helped> {
    let helper = HELPER.get();
    let mut tasks = helper.tasks.lock();
    if tasks.thread.is_none() {
        let nth = tasks.threads + 1;
        let thread = std::thread::Builder::new().name("lpf-monitor".into());
        tasks.thread = Some(thread.spawn(move || run(helper, nth))?);
        tasks.threads = nth;
    }
    let number = tasks.next;
    tasks.next += 1;
    let (work, at) = (Arc::new(Mutex::new(work)), Some(Instant::now()));
    let task = Task { work, at, quiet: 0 };
    tasks.all.insert(number, task);
    drop(tasks);
    helper.changed.notify_all();
    Ok(Helped { number, maker: Maker::this() })
}

impl Helped {
    /// Has it looked at soon: a call of the system, if the helper sleeps.
    pub(crate) fn wake(&self) {
        if !self.maker.is_here() {
            return;
        }
        let helper = HELPER.get();
        if let Some(task) = helper.tasks.lock().all.get_mut(&self.number) {
            task.at = Some(Instant::now());
        }
        helper.changed.notify_all();
    }
}

impl Drop for Helped {
    fn drop(&mut self) {
        if !self.maker.is_here() {
            return;
        }
        let helper = HELPER.get();
        let mut tasks = helper.tasks.lock();
        let task = tasks.all.remove(&self.number);
        // The last one ends the thread.
        let thread = if tasks.all.is_empty() { tasks.thread.take() } else { None };
        tasks.threads += u64::from(thread.is_some());
        drop(tasks);
        helper.changed.notify_all();
        if let Some(thread) = thread {
            // It panics in no other way than a panic of a board, which has failed its section.
            let _ = thread.join();
        } else if let Some(task) = task {
            // Who looks at it now is done with it after this.
            drop(task.work.lock());
        }
    }
}

fn run(helper: &Helper, nth: u64) {
    let mut tasks = helper.tasks.lock();
    // Until when what is due is looked at, after a sleep.
    let mut until = Instant::now();
    while tasks.threads == nth {
        let due = tasks.all.iter().find(|(_, task)| task.at.is_some_and(|at| at <= until));
        if let Some((&number, task)) = due {
            let (work, quiet) = (task.work.clone(), task.quiet);
            if let Some(task) = tasks.all.get_mut(&number) {
                // Who wakes it while it is looked at has it looked at again.
                task.at = None;
            }
            drop(tasks);
            let (quiet, again) = look(&*work, quiet);
            let again = again.map(|after| Instant::now() + after);
            tasks = helper.tasks.lock();
            if let Some(task) = tasks.all.get_mut(&number) {
                (task.quiet, task.at) = (quiet, task.at.or(again));
            }
            continue;
        }
        let next = tasks.all.values().filter_map(|task| task.at).min();
        match next {
            None => helper.changed.wait(&mut tasks),
            Some(next) => {
                helper.changed.wait_until(&mut tasks, next);
            }
        }
        until = Instant::now() + TOGETHER;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Counts(Arc<AtomicUsize>, Option<Duration>);

    impl Work for Counts {
        fn go_on(&mut self) -> Result<bool> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(false)
        }

        fn again(&self, _quiet: u32) -> Option<Duration> {
            self.1
        }
    }

    /// Threads of this process that bear the helper's name.
    fn helpers() -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
        let names =
            tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.trim() == "lpf-monitor").count()
    }

    fn until(what: &str, is_so: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(10);
        while !is_so() {
            assert!(Instant::now() < end, "{what}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_helper_looks_when_it_is_time_or_woken_and_is_gone_with_the_last_task() {
        let (often, seldom) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let one = help(Counts(often.clone(), Some(Duration::from_micros(100)))).unwrap();
        let other = help(Counts(seldom.clone(), None)).unwrap();
        until("it is looked at again", || often.load(Ordering::SeqCst) > 20);
        until("it is looked at once", || seldom.load(Ordering::SeqCst) == 1);
        assert_eq!(helpers(), 1);
        other.wake();
        until("who is woken is looked at", || seldom.load(Ordering::SeqCst) == 2);
        drop(one);
        let before = often.load(Ordering::SeqCst);
        other.wake();
        until("the other one goes on", || seldom.load(Ordering::SeqCst) == 3);
        assert_eq!(often.load(Ordering::SeqCst), before, "dropped, and looked at all the same");
        drop(other);
        assert_eq!(helpers(), 0);
        // And begins again.
        drop(help(Counts(often, None)).unwrap());
        assert_eq!(helpers(), 0);
    }
}
