//! Counts calls of MPI: this program's functions stand before the library's, which remain callable under
//! their other names.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mpi::ffi::*;

static FORBIDDEN: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);
static CALLED: Mutex<Vec<&str>> = Mutex::new(Vec::new());

/// From now on nobody in this process may call MPI.
pub(crate) fn forbid() {
    FORBIDDEN.store(true, Ordering::SeqCst);
}

/// What was called since, but for the questions that may be asked at any time.
pub(crate) fn forbidden() -> Vec<&'static str> {
    CALLED.lock().unwrap().clone()
}

/// All calls so far: if there were none, nothing is counted here.
pub(crate) fn counted() -> u64 {
    CALLS.load(Ordering::SeqCst)
}

macro_rules! counted {
    ($($name:ident = $inner:ident($($argument:ident: $kind:ty),*);)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $kind),*) -> c_int {
                CALLS.fetch_add(1, Ordering::SeqCst);
                if FORBIDDEN.load(Ordering::SeqCst) {
                    CALLED.lock().unwrap().push(stringify!($name));
                }
                // SAFETY: the caller's promises.
                unsafe { $inner($($argument),*) }
            }
        )*
    };
}

counted! {
    MPI_Cancel = PMPI_Cancel(a: *mut MPI_Request);
    MPI_Comm_free = PMPI_Comm_free(a: *mut MPI_Comm);
    MPI_Comm_idup = PMPI_Comm_idup(a: MPI_Comm, b: *mut MPI_Comm, c: *mut MPI_Request);
    MPI_Error_string = PMPI_Error_string(a: c_int, b: *mut c_char, c: *mut c_int);
    MPI_Finalize = PMPI_Finalize();
    MPI_Get_count = PMPI_Get_count(a: *const MPI_Status, b: MPI_Datatype, c: *mut c_int);
    MPI_Ibarrier = PMPI_Ibarrier(a: MPI_Comm, b: *mut MPI_Request);
    MPI_Ibcast = PMPI_Ibcast(
        a: *mut c_void, b: c_int, c: MPI_Datatype, d: c_int, e: MPI_Comm, f: *mut MPI_Request
    );
    MPI_Irecv = PMPI_Irecv(
        a: *mut c_void, b: c_int, c: MPI_Datatype, d: c_int, e: c_int, f: MPI_Comm,
        g: *mut MPI_Request
    );
    MPI_Isend = PMPI_Isend(
        a: *const c_void, b: c_int, c: MPI_Datatype, d: c_int, e: c_int, f: MPI_Comm,
        g: *mut MPI_Request
    );
    MPI_Recv_init = PMPI_Recv_init(
        a: *mut c_void, b: c_int, c: MPI_Datatype, d: c_int, e: c_int, f: MPI_Comm,
        g: *mut MPI_Request
    );
    MPI_Request_free = PMPI_Request_free(a: *mut MPI_Request);
    MPI_Start = PMPI_Start(a: *mut MPI_Request);
    MPI_Test = PMPI_Test(a: *mut MPI_Request, b: *mut c_int, c: *mut MPI_Status);
    MPI_Type_commit = PMPI_Type_commit(a: *mut MPI_Datatype);
    MPI_Type_create_hindexed = PMPI_Type_create_hindexed(
        a: c_int, b: *const c_int, c: *const MPI_Aint, d: MPI_Datatype, e: *mut MPI_Datatype
    );
    MPI_Type_create_hvector = PMPI_Type_create_hvector(
        a: c_int, b: c_int, c: MPI_Aint, d: MPI_Datatype, e: *mut MPI_Datatype
    );
    MPI_Type_free = PMPI_Type_free(a: *mut MPI_Datatype);
}
