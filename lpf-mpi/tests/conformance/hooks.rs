//! Hooks: processes that MPI started take a communicator of their own, join, and hook.
//!
//! They are told to by a section on the very processes, which hands out what each needs and collects what
//! each has got.

use std::ptr;

use lpf_conformance::{Hooked, Story};
use lpf_control::plane::Beats;
use lpf_control::rendezvous::By;
use lpf_core::{Args, Context, Lpf, Result, Symbol, run_section};
use lpf_messages::Environment;
use lpf_mpi::{Comm, MpiProcess, World, join};
use mpi::ffi;
use serde::{Deserialize, Serialize};

use super::machine::{self, Asked, PATIENCE};

/// What each process of a hook is told.
#[derive(Serialize, Deserialize)]
struct Told {
    environment: Environment,
    inputs: Vec<Vec<u8>>,
    output_bytes: usize,
}

/// What it got.
#[derive(Serialize, Deserialize)]
struct Got {
    error: Option<String>,
    output: Vec<u8>,
}

/// What each process calls, with what it is told and room for what it got.
type Call = fn(&[u8], &mut [u8]);

/// Room for what a process got.
const ROOM: usize = 8 << 10;

/// Hooks with as many processes as there are inputs.
pub(crate) fn hook<S: Story<MpiProcess>>(
    environment: Environment,
    inputs: &[Vec<u8>],
    output_bytes: usize,
    _story: S,
) -> Vec<Hooked> {
    let procs = inputs.len();
    let told = Told { environment: environment.clone(), inputs: inputs.to_vec(), output_bytes };
    let told = postcard::to_stdvec(&told).expect("plain data");
    let symbols = [Symbol::new(hook_here::<S> as Call)];
    let mut all = vec![0; ROOM * procs];
    let args = Args { input: &told, output: &mut all, symbols: &symbols };
    let asked = Asked::exec(environment, procs, hook_together, &args);
    machine::ask(&asked, args.output).expect("the section that tells of a hook");
    let hooked = all.chunks_exact(ROOM).map(|bytes| {
        let Got { error, output } = read(bytes);
        Hooked { result: error.map_or(Ok(()), Err), output }
    });
    hooked.collect()
}

/// Hooks as one of the processes.
fn hook_here<S: Story<MpiProcess>>(told: &[u8], got: &mut [u8]) {
    // SAFETY: a value without size is read from any place that is aligned; the suite had one.
    let story: S = unsafe { ptr::NonNull::<S>::dangling().read() };
    let Told { environment, inputs, output_bytes } =
        postcard::from_bytes(told).expect("what this program wrote");
    let mut comm = first_processes(inputs.len());
    // SAFETY: it is one, of these processes.
    let world = unsafe { World::hook(comm, PATIENCE) }.expect("MPI");
    let mut job = join(world, By::Member, Beats::On, PATIENCE).expect("the others come");
    let mut output = vec![0; output_bytes];
    let args = Args::in_out(&inputs[job.rank()], &mut output);
    let result = job.hook(environment, |process| run_section(process, |ctx| story(ctx, args)));
    job.leave();
    // SAFETY: nobody uses it any more.
    assert_eq!(unsafe { ffi::MPI_Comm_free(&mut comm) }, 0);
    let error = result.err().map(|error| error.to_string());
    write(got, &Got { error, output });
}

/// A communicator of the first processes, which all of them call this for.
fn first_processes(count: usize) -> Comm {
    let mut first = [[0, count as i32 - 1, 1]];
    // SAFETY: handles of MPI and room for them; it is up, or these processes would have no section.
    unsafe {
        let (mut all, mut some) = (ffi::RSMPI_GROUP_NULL, ffi::RSMPI_GROUP_NULL);
        let mut comm = ffi::RSMPI_COMM_NULL;
        assert_eq!(ffi::MPI_Comm_group(ffi::RSMPI_COMM_WORLD, &mut all), 0);
        assert_eq!(ffi::MPI_Group_range_incl(all, 1, first.as_mut_ptr(), &mut some), 0);
        assert_eq!(ffi::MPI_Comm_create_group(ffi::RSMPI_COMM_WORLD, some, 1, &mut comm), 0);
        assert_eq!(ffi::MPI_Group_free(&mut all), 0);
        assert_eq!(ffi::MPI_Group_free(&mut some), 0);
        comm
    }
}

/// Behind their length.
fn write(room: &mut [u8], got: &Got) {
    let bytes = postcard::to_stdvec(got).expect("plain data");
    let (length, room) = room.split_at_mut(8);
    length.copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    room[..bytes.len()].copy_from_slice(&bytes);
}

fn read(bytes: &[u8]) -> Got {
    let (length, bytes) = bytes.split_first_chunk().expect("its length");
    let length = u64::from_le_bytes(*length) as usize;
    postcard::from_bytes(&bytes[..length]).expect("what this program wrote")
}

/// The section that tells of a hook: process 0's input goes to everybody, who calls the symbol; what they
/// got is process 0's output.
fn hook_together<L: Lpf>(ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()> {
    let processes = ctx.nprocs();
    let call: Call = args.symbols[0].get().expect("its signature");
    ctx.resize(4, 2 * processes)?;
    ctx.sync()?;
    let mut length = ctx.area::<u64>(1)?;
    ctx.sync()?;
    if ctx.pid() == 0 {
        ctx.write(&mut length)[0] = args.input.len() as u64;
        for other in 1..ctx.nprocs() {
            ctx.put(&length, .., other, &length, 0)?;
        }
    }
    ctx.sync()?;
    let mut told = ctx.area::<u8>(ctx.read(&length)[0] as usize)?;
    let mut got = ctx.local::<u8>(ROOM)?;
    let all = ctx.area::<u8>(ROOM * processes)?;
    ctx.sync()?;
    if ctx.pid() == 0 {
        ctx.write(&mut told).copy_from_slice(args.input);
        for other in 1..ctx.nprocs() {
            ctx.put(&told, .., other, &told, 0)?;
        }
    }
    ctx.sync()?;
    let told = ctx.read(&told).to_vec();
    call(&told, ctx.write(&mut got));
    ctx.put(&got, .., 0, &all, ROOM * ctx.pid())?;
    ctx.sync()?;
    if ctx.pid() == 0 {
        args.output.copy_from_slice(ctx.read(&all));
    }
    Ok(())
}
