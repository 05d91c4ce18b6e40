//! MPI's functions as they are used here: on a communicator of our own, none of them blocking but the
//! first and the last ones, every return code looked at.

use std::ffi::{c_char, c_int, c_void};
use std::io::Write;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use lpf_core::process::Maker;
use lpf_messages::{Broken, Outcome, Rank};
use mpi::ffi;

/// How long an error of MPI's waits for a better reason.
const EXPLAINED: Duration = Duration::from_millis(100);

/// How long a call of MPI's that is under way at a death may still take.
const STUCK: Duration = Duration::from_secs(2);

pub(crate) type Request = ffi::MPI_Request;
pub(crate) type Datatype = ffi::MPI_Datatype;
/// A communicator, as the MPI that this was built with has it.
pub type Comm = ffi::MPI_Comm;

/// Ends the use of MPI in this process, from any thread.
///
/// After a death no process may call MPI again: its behaviour is then undefined, and it may wait for ever or end the
/// process. The first thread that learns of the death throws the switch, for example that of the control plane. Every
/// call on the network is an error from then on.
#[derive(Clone, Debug, Default)]
pub struct OffSwitch(Arc<Switch>);

#[derive(Debug, Default)]
struct Switch {
    reason: OnceLock<String>,
    /// Calls of MPI's begun and ended: odd while a thread is inside one. They follow each other, so that no two threads
    /// write at once.
    calls: AtomicU64,
}

impl OffSwitch {
    /// No call of MPI begins after this returns, except by a thread that is inside the network. The
    /// first reason stands.
    pub fn throw(&self, reason: impl Into<String>) {
        let _ = self.0.reason.set(reason.into());
    }

    /// Why MPI is not called any more.
    pub fn reason(&self) -> Option<&str> {
        self.0.reason.get().map(String::as_str)
    }

    /// Ends this process, which is process `rank`, if a call of MPI's that was under way when the switch was thrown does
    /// not return within 2 s. Open MPI 4.1.4 has been seen to loop without end in `MPI_Test` after the connection to a
    /// killed process was reset. No error can leave such a call, and the process would never end.
    pub fn end_if_stuck(&self, rank: Rank) {
        let switch = self.clone();
        let watch = move || {
            if switch.is_stuck() {
                let reason = switch.reason().unwrap_or_default();
                let seconds = STUCK.as_secs();
                // Nothing else can be done about a standard error that is closed.
                let _ = writeln!(
                    std::io::stderr(),
                    "lpf: process {rank} ends: {reason}, and MPI has not returned from a call for {seconds} s since"
                );
                // SAFETY: a number alone. What runs at a regular exit would call MPI.
                unsafe { libc::_exit(1) };
            }
        };
        // Without a thread the process is as badly off as without this call.
        let _ = thread::Builder::new().name("lpf-mpi-end".into()).spawn(watch);
    }

    /// Waits until no call is under way, or the same one for [`STUCK`]. After the switch few calls follow.
    fn is_stuck(&self) -> bool {
        loop {
            let before = self.0.calls.load(Ordering::Relaxed);
            thread::sleep(STUCK);
            if self.0.calls.load(Ordering::Relaxed) == before {
                return !before.is_multiple_of(2);
            }
        }
    }
}

/// A call of MPI's that is under way.
struct Call<'a>(&'a Switch);

impl<'a> Call<'a> {
    #[inline]
    fn begin(switch: &'a Switch) -> Self {
        let call = Call(switch);
        call.count();
        call
    }

    #[inline]
    fn count(&self) {
        let calls = &self.0.calls;
        calls.store(calls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

impl Drop for Call<'_> {
    #[inline]
    fn drop(&mut self) {
        self.count();
    }
}

/// MPI, while it may be called, and the communicator.
pub(crate) struct Library {
    pub(crate) comm: Comm,
    switch: OffSwitch,
    /// The one thread that may call MPI, where MPI allows only that.
    only: Option<ThreadId>,
    /// The process that MPI knows: a child that was forked from it must not call MPI.
    maker: Maker,
}

/// What MPI says of a message that has come.
pub(crate) struct Came {
    pub(crate) from: Rank,
    pub(crate) bytes: usize,
}

/// A code as its own text.
#[cold]
fn failed(code: c_int, call: &str) -> String {
    let mut text = [0_u8; ffi::MPI_MAX_ERROR_STRING as usize];
    let mut length = 0;
    // SAFETY: the buffer is as long as MPI asks for.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast::<c_char>(), &mut length) };
    let text = String::from_utf8_lossy(&text[..(length as usize).min(text.len())]);
    format!("{call}: {}", text.trim_end())
}

/// Whether a call succeeded. For calls before there is a [`Library`].
pub(crate) fn check(code: c_int, call: &str) -> Outcome<()> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    Err(Broken { peer: None, reason: failed(code, call) })
}

impl Library {
    pub(crate) fn new(comm: Comm, only: Option<ThreadId>) -> Self {
        Library { comm, switch: OffSwitch::default(), only, maker: Maker::this() }
    }

    /// The same again, switch included.
    pub(crate) fn share(&self) -> Self {
        let Library { comm, only, maker, .. } = *self;
        Library { comm, switch: self.switch.clone(), only, maker }
    }

    pub(crate) fn switch(&self) -> &OffSwitch {
        &self.switch
    }

    /// To be held during a call of MPI's that makes progress: in these it may loop after a death.
    #[inline]
    fn call(&self) -> Call<'_> {
        Call::begin(&self.switch.0)
    }

    /// Whether this thread may call MPI now.
    #[inline]
    pub(crate) fn may_call(&self) -> Outcome<()> {
        if self.switch.reason().is_none() && self.only.is_none() && self.is_here() {
            return Ok(());
        }
        self.why_not()
    }

    /// Whether this process has MPI, and is no child that was forked from it.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        self.maker.is_here()
    }

    #[cold]
    fn why_not(&self) -> Outcome<()> {
        if !self.is_here() {
            let reason =
                "this process was forked from one that uses MPI, and has no MPI of its own".into();
            return Err(Broken { peer: None, reason });
        }
        if let Some(reason) = self.switch.reason() {
            return Err(Broken { peer: None, reason: reason.into() });
        }
        if self.only.is_some_and(|only| only != thread::current().id()) {
            let reason =
                "MPI was initialised with MPI_THREAD_FUNNELED, and this thread is not the one \
                          that may call it; MPI_THREAD_SERIALIZED allows any"
                    .into();
            return Err(Broken { peer: None, reason });
        }
        Ok(())
    }

    /// Whether a call succeeded; if not, it was the last one.
    #[inline]
    pub(crate) fn judge(&self, code: c_int, call: &str, peer: Option<Rank>) -> Outcome<()> {
        if code == ffi::MPI_SUCCESS as c_int { Ok(()) } else { Err(self.fail(code, call, peer)) }
    }

    #[cold]
    fn fail(&self, code: c_int, call: &str, peer: Option<Rank>) -> Broken {
        let reason = failed(code, call);
        // MPI may see a death before the control plane does, which knows better what has happened.
        let end = Instant::now() + EXPLAINED;
        while self.switch.reason().is_none() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        self.switch.throw(reason.clone());
        Broken { peer, reason: self.switch.reason().map_or(reason, Into::into) }
    }

    /// With `waits` it is complete when its receive is posted, and not before.
    ///
    /// # Safety
    /// The memory of so many `kind`s is valid for reads, and not written, until the request is
    /// complete.
    pub(crate) unsafe fn send(
        &self,
        waits: bool,
        base: *const u8,
        count: usize,
        kind: Datatype,
        to: Rank,
        tag: c_int,
    ) -> Outcome<Request> {
        let (mut request, comm) = (no_request(), self.comm);
        let (base, count, to_rank) = (base.cast::<c_void>(), count as c_int, to as c_int);
        let _call = self.call();
        // SAFETY: the caller's promise; the communicator is ours.
        let (code, call) = unsafe {
            match waits {
                false => {
                    let code = ffi::MPI_Isend(base, count, kind, to_rank, tag, comm, &mut request);
                    (code, "MPI_Isend")
                }
                true => {
                    let code = ffi::MPI_Issend(base, count, kind, to_rank, tag, comm, &mut request);
                    (code, "MPI_Issend")
                }
            }
        };
        self.judge(code, call, Some(to)).map(|()| request)
    }

    /// # Safety
    /// The memory of so many `kind`s is valid for writes, and not touched, until the request is
    /// complete.
    pub(crate) unsafe fn receive(
        &self,
        base: *mut u8,
        count: usize,
        kind: Datatype,
        from: Rank,
        tag: c_int,
    ) -> Outcome<Request> {
        let mut request = no_request();
        let _call = self.call();
        // SAFETY: the caller's promise; the communicator is ours.
        let code = unsafe {
            let (base, count) = (base.cast::<c_void>(), count as c_int);
            ffi::MPI_Irecv(base, count, kind, from as c_int, tag, self.comm, &mut request)
        };
        self.judge(code, "MPI_Irecv", Some(from)).map(|()| request)
    }

    /// A receive from anybody that can be started again and again.
    ///
    /// # Safety
    /// The memory is valid for writes, and not touched, from every start to its end.
    pub(crate) unsafe fn standing_receive(
        &self,
        base: *mut u8,
        bytes: usize,
        tag: c_int,
    ) -> Outcome<Request> {
        let mut request = no_request();
        // SAFETY: the caller's promise; the communicator is ours.
        let code = unsafe {
            let (base, from) = (base.cast::<c_void>(), ffi::RSMPI_ANY_SOURCE);
            let bytes = bytes as c_int;
            ffi::MPI_Recv_init(base, bytes, byte(), from, tag, self.comm, &mut request)
        };
        self.judge(code, "MPI_Recv_init", None).map(|()| request)
    }

    /// Starts a standing receive.
    ///
    /// # Safety
    /// As [`standing_receive`](Self::standing_receive); the request is one, and not under way.
    #[inline]
    pub(crate) unsafe fn start(&self, request: &mut Request) -> Outcome<()> {
        let _call = self.call();
        // SAFETY: the caller's promise.
        let code = unsafe { ffi::MPI_Start(request) };
        self.judge(code, "MPI_Start", None)
    }

    /// Whether a send, a receive or a collective is complete.
    #[inline]
    pub(crate) fn is_complete(&self, request: &mut Request, peer: Option<Rank>) -> Outcome<bool> {
        let mut done = 0;
        let _call = self.call();
        // SAFETY: the request is of a call of ours; it is no request any more when it is complete.
        let code = unsafe { ffi::MPI_Test(request, &mut done, ffi::RSMPI_STATUS_IGNORE) };
        self.judge(code, "MPI_Test", peer).map(|()| done != 0)
    }

    /// What a standing receive has got.
    #[inline]
    pub(crate) fn came(&self, request: &mut Request) -> Outcome<Option<Came>> {
        let (mut done, mut status) = (0, MaybeUninit::<ffi::MPI_Status>::zeroed());
        let _call = self.call();
        // SAFETY: the request is of a call of ours; the status is room for one.
        let code = unsafe { ffi::MPI_Test(request, &mut done, status.as_mut_ptr()) };
        self.judge(code, "MPI_Test", None)?;
        if done == 0 {
            return Ok(None);
        }
        let mut bytes = 0;
        // SAFETY: a complete receive has written its status.
        let (code, source) = unsafe {
            let code = ffi::MPI_Get_count(status.as_ptr(), byte(), &mut bytes);
            (code, (*status.as_ptr()).MPI_SOURCE)
        };
        self.judge(code, "MPI_Get_count", None)?;
        Ok(Some(Came { from: source as Rank, bytes: usize::try_from(bytes).unwrap_or(0) }))
    }

    /// Asks for the end of a receive; it is complete soon afterwards, cancelled or not.
    pub(crate) fn cancel(&self, request: &mut Request) -> Outcome<()> {
        let _call = self.call();
        // SAFETY: the request is of a receive of ours that is under way.
        let code = unsafe { ffi::MPI_Cancel(request) };
        self.judge(code, "MPI_Cancel", None)
    }

    /// Gives up a standing receive that is not under way.
    pub(crate) fn free_request(&self, request: &mut Request) -> Outcome<()> {
        // SAFETY: the request is a standing receive of ours.
        let code = unsafe { ffi::MPI_Request_free(request) };
        self.judge(code, "MPI_Request_free", None)
    }

    /// Lets go of a derived type; what is under way with it is not concerned.
    pub(crate) fn free_type(&self, kind: &mut Datatype) -> Outcome<()> {
        // SAFETY: the type is one that we made.
        let code = unsafe { ffi::MPI_Type_free(kind) };
        self.judge(code, "MPI_Type_free", None)
    }
}

/// The type of a byte: of equal size and meaning everywhere, so nothing is converted.
#[inline]
pub(crate) fn byte() -> Datatype {
    // SAFETY: a constant of the library's.
    unsafe { ffi::RSMPI_UINT8_T }
}

#[inline]
pub(crate) fn no_request() -> Request {
    // SAFETY: a constant of the library's.
    unsafe { ffi::RSMPI_REQUEST_NULL }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_does_not_return_is_stuck_and_one_that_has_is_not() {
        let switch = OffSwitch::default();
        let call = Call::begin(&switch.0);
        assert!(switch.is_stuck());
        drop(call);
        assert!(!switch.is_stuck());
    }
}
