//! One thread beside all contexts of this operating-system process, for what goes on while they compute. It exists
//! while somebody has work for it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What the helper does for somebody, again and again.
pub(super) trait Work: Send {
    /// Looks what there is to do, does it, and says when to look again: never, unless it is woken, where that is
    /// nothing.
    fn look(&mut self) -> Option<Duration>;
}

/// Somebody's work, until it is dropped: then nobody looks at it any more.
#[derive(Debug)]
pub(super) struct Helped {
    number: u64,
}

#[derive(Default)]
struct Tasks {
    next: u64,
    /// When each is to be looked at.
    all: BTreeMap<u64, Task>,
    thread: Option<JoinHandle<()>>,
}

struct Task {
    work: Arc<Mutex<dyn Work>>,
    at: Option<Instant>,
}

static TASKS: Mutex<Tasks> = Mutex::new(Tasks { next: 0, all: BTreeMap::new(), thread: None });
static CHANGED: Condvar = Condvar::new();

/// Nothing here panics while it holds a lock, but for a backend's board: then what it left is as good as any.
pub(super) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has all work looked at soon.
pub(super) fn wake_all() {
    let now = Instant::now();
    locked(&TASKS).all.values_mut().for_each(|task| task.at = Some(now));
    CHANGED.notify_one();
}

/// Has the helper look at this, from now on.
///
/// # Errors
/// Where the system refuses a thread.
pub(super) fn help(work: impl Work + 'static) -> io::Result<Helped> {
    let mut tasks = locked(&TASKS);
    if tasks.thread.is_none() {
        let thread = std::thread::Builder::new().name("lpf-monitor".into()).spawn(run)?;
        tasks.thread = Some(thread);
    }
    let number = tasks.next;
    tasks.next += 1;
    let task = Task { work: Arc::new(Mutex::new(work)), at: Some(Instant::now()) };
    tasks.all.insert(number, task);
    drop(tasks);
    CHANGED.notify_one();
    Ok(Helped { number })
}

impl Helped {
    /// Has it looked at soon: a call of the system, if the helper sleeps.
    pub(super) fn wake(&self) {
        if let Some(task) = locked(&TASKS).all.get_mut(&self.number) {
            task.at = Some(Instant::now());
        }
        CHANGED.notify_one();
    }
}

impl Drop for Helped {
    fn drop(&mut self) {
        let mut tasks = locked(&TASKS);
        let task = tasks.all.remove(&self.number);
        // The last one ends the thread, which sees that there is nothing left.
        let thread = if tasks.all.is_empty() { tasks.thread.take() } else { None };
        drop(tasks);
        CHANGED.notify_one();
        if let Some(thread) = thread {
            // It panics in no other way than a panic of a board, which has failed its section.
            let _ = thread.join();
        } else if let Some(task) = task {
            // Who looks at it now is done with it after this.
            drop(locked(&task.work));
        }
    }
}

fn run() {
    let mut tasks = locked(&TASKS);
    while !tasks.all.is_empty() {
        let now = Instant::now();
        let due = tasks.all.iter().find(|(_, task)| task.at.is_some_and(|at| at <= now));
        if let Some((&number, task)) = due {
            let work = task.work.clone();
            if let Some(task) = tasks.all.get_mut(&number) {
                // Who wakes it while it is looked at has it looked at again.
                task.at = None;
            }
            drop(tasks);
            let again = locked(&work).look().map(|after| Instant::now() + after);
            tasks = locked(&TASKS);
            if let Some(task) = tasks.all.get_mut(&number) {
                task.at = task.at.or(again);
            }
            continue;
        }
        let next = tasks.all.values().filter_map(|task| task.at).min();
        tasks = match next {
            None => CHANGED.wait(tasks).unwrap_or_else(PoisonError::into_inner),
            Some(next) => {
                let sleep = next.saturating_duration_since(now);
                let woken = CHANGED.wait_timeout(tasks, sleep);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Counts(Arc<AtomicUsize>, Option<Duration>);

    impl Work for Counts {
        fn look(&mut self) -> Option<Duration> {
            self.0.fetch_add(1, Ordering::SeqCst);
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
