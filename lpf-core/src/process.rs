//! State that belongs to one process of the system.
//!
//! After `fork` the child has copies of all memory and all descriptors, but one thread only. State that needs threads of
//! its parent (pools, helpers), shared connections, or locks that such a thread may have held does not work in the child.
//! Using it can harm the parent. So such state remembers the process that made it ([`Maker`]): the child begins with
//! empty state of its own ([`PerProcess`]), or gets an error.
//!
//! The same holds for `OnceLock` and `Once`: a child that is forked while another thread initialises one waits for that
//! thread for ever. A value that takes long to compute is therefore kept as an [`inherited`](PerProcess::inherited) one.

use std::io::Write;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::Pid;
use crate::error::{Cause, Error, Result};

/// The process of the system that made something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maker(u32);

impl Maker {
    /// This process.
    pub fn this() -> Self {
        Maker(id())
    }

    /// Whether this is still the same process, and not one that it has forked. Two loads.
    #[inline]
    pub fn is_here(self) -> bool {
        id() == self.0
    }

    /// An error in a process that was forked.
    ///
    /// # Errors
    /// *Fatal*, naming the process of the section that was forked.
    #[inline]
    pub fn check(self, pid: Pid, superstep: u64) -> Result<()> {
        if self.is_here() { Ok(()) } else { Err(self.forked(pid, superstep)) }
    }

    /// The error of such a process.
    #[cold]
    pub fn forked(self, pid: Pid, superstep: u64) -> Error {
        Error::fatal(pid, superstep, Cause::Forked { parent: self.0, child: id() })
    }
}

/// Ends a child that was forked inside a section and has returned from its function. The code that called the function
/// acts for the parent, so the child has nothing to return to.
#[cold]
pub fn end_child() -> ! {
    let id = std::process::id();
    // Nothing else can be done about a standard error that is closed.
    let _ = writeln!(
        std::io::stderr(),
        "lpf: process {id} of the system was forked inside a section and has returned from its function; it ends, because the section is its parent's"
    );
    std::process::exit(1)
}

/// A value that every process makes for itself when it first asks for it, also after a fork. There is no lock:
/// threads that ask at the same time may each make one, and one of these is kept.
#[derive(Debug)]
pub struct PerProcess<T> {
    latest: AtomicPtr<Made<T>>,
    make: fn() -> T,
    is_inherited: bool,
}

#[derive(Debug)]
struct Made<T> {
    by: Maker,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// Made by `make`.
    pub const fn new(make: fn() -> T) -> Self {
        PerProcess { latest: AtomicPtr::new(ptr::null_mut()), make, is_inherited: false }
    }

    /// Made by `make`; a child keeps what its parent has made.
    pub const fn inherited(make: fn() -> T) -> Self {
        PerProcess { latest: AtomicPtr::new(ptr::null_mut()), make, is_inherited: true }
    }

    fn holds(&self, made: &Made<T>) -> bool {
        self.is_inherited || made.by.is_here()
    }

    /// This process's value. One that a parent made is never touched again, and stays in memory.
    pub fn get(&'static self) -> &'static T {
        let latest = self.latest.load(Ordering::Acquire);
        // SAFETY: what is published here was leaked, so it lives for ever, and is not changed.
        if let Some(made) = unsafe { latest.as_ref() }
            && self.holds(made)
        {
            return &made.value;
        }
        self.make_anew(latest)
    }

    #[cold]
    fn make_anew(&'static self, mut latest: *mut Made<T>) -> &'static T {
        let mine = Box::into_raw(Box::new(Made { by: Maker::this(), value: (self.make)() }));
        loop {
            let swapped =
                self.latest.compare_exchange(latest, mine, Ordering::AcqRel, Ordering::Acquire);
            let Err(now) = swapped else {
                // SAFETY: leaked just now, and never changed.
                return unsafe { &(*mine).value };
            };
            // SAFETY: as in `get`.
            if let Some(made) = unsafe { now.as_ref() }
                && self.holds(made)
            {
                // SAFETY: from `into_raw`, and no other thread has seen it.
                drop(unsafe { Box::from_raw(mine) });
                return &made.value;
            }
            latest = now;
        }
    }
}

/// The system's number of this process, kept in a page that the kernel empties in a child.
#[inline]
fn id() -> u32 {
    static PAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());
    // SAFETY: null, or a word that lives for ever.
    match unsafe { PAGE.load(Ordering::Acquire).as_ref() } {
        Some(word) => match word.load(Ordering::Relaxed) {
            0 => ask(word),
            known => known,
        },
        None => {
            PAGE.store(ptr::from_ref(page()).cast_mut(), Ordering::Release);
            std::process::id()
        }
    }
}

/// The word of a system that cannot empty pages: always 0.
static UNKNOWN: AtomicU32 = AtomicU32::new(0);

#[cold]
fn ask(word: &AtomicU32) -> u32 {
    let id = std::process::id();
    if !ptr::eq(word, &UNKNOWN) {
        word.store(id, Ordering::Relaxed);
    }
    id
}

/// A word that is 0 in every child. Threads that ask for it at the same time get one each; the last one stays.
#[cfg(all(target_os = "linux", not(miri)))]
fn page() -> &'static AtomicU32 {
    // SAFETY: a new mapping of one page, which the kernel places where nothing is; it is never unmapped if it is
    // used. A page is aligned for an AtomicU32, and zeroed.
    unsafe {
        let bytes = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let base = libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0);
        if base == libc::MAP_FAILED {
            return &UNKNOWN;
        }
        if libc::madvise(base, bytes, libc::MADV_WIPEONFORK) != 0 {
            libc::munmap(base, bytes);
            return &UNKNOWN;
        }
        &*base.cast()
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn page() -> &'static AtomicU32 {
    &UNKNOWN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_process_share_one_value() {
        static VALUE: PerProcess<AtomicU32> = PerProcess::new(|| AtomicU32::new(7));
        let threads = [0; 4].map(|_| {
            std::thread::spawn(|| {
                VALUE.get().fetch_add(1, Ordering::Relaxed);
                ptr::from_ref(VALUE.get()) as usize
            })
        });
        let places = threads.map(|thread| thread.join().unwrap());
        assert!(places.iter().all(|&place| place == places[0]));
        assert_eq!(VALUE.get().load(Ordering::Relaxed), 11);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_child_keeps_what_it_inherits_and_makes_the_rest_anew() {
        static OWN: PerProcess<u32> = PerProcess::new(std::process::id);
        static INHERITED: PerProcess<u32> = PerProcess::inherited(std::process::id);
        let own = std::process::id();
        assert_eq!((*OWN.get(), *INHERITED.get()), (own, own));
        // SAFETY: the child allocates one value, for which the C library sees to its locks, and calls _exit.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let is_right = *OWN.get() == libc::getpid() as u32 && *INHERITED.get() == own;
                libc::_exit(i32::from(!is_right));
            }
            let mut status = 1;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert_eq!(status, 0);
        }
        assert_eq!((*OWN.get(), *INHERITED.get()), (own, own));
    }

    #[test]
    fn a_process_is_the_maker_of_what_it_makes() {
        let maker = Maker::this();
        assert!(maker.is_here() && maker.check(0, 0).is_ok());
        assert_eq!(maker, Maker(std::process::id()));
        let other = Maker(std::process::id() + 1);
        assert!(!other.is_here());
        let error = other.check(3, 5).unwrap_err();
        assert_eq!(
            (error.process(), error.superstep(), error.is_fatal()),
            (Some(3), Some(5), true)
        );
    }

    /// The child does as little as a test that is forked from many threads may do: it compares numbers.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_child_and_its_child_are_not_the_makers() {
        let maker = Maker::this();
        assert!(maker.is_here());
        // SAFETY: the child calls nothing but fork, waitpid and _exit.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let own = Maker::this();
                let is_right = !maker.is_here() && own.is_here() && own != maker;
                let grandchild = libc::fork();
                if grandchild == 0 {
                    libc::_exit(i32::from(maker.is_here() || own.is_here()));
                }
                let mut status = 1;
                libc::waitpid(grandchild, &mut status, 0);
                libc::_exit(i32::from(!is_right || status != 0));
            }
            let mut status = 1;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert_eq!(status, 0);
        }
        assert!(maker.is_here());
    }
}
