//! An MPI program passes half of its processes to LPF and goes on with MPI afterwards:
//! `mpirun -n 4 target/release/examples/hook_mpi`, built with `--features mpi`

use std::time::Duration;

use lpf::mpi::World;
use lpf::{Args, Context, Lpf, Member, Result};
use mpi::collective::SystemOperation;
use mpi::topology::Color;
use mpi::traits::{Communicator, CommunicatorCollectives};

/// Every process brings a number in its input and gets the sum as its output.
fn sum<L: Lpf>(ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()> {
    let (mut own, all) = ctx.alloc((1, ctx.nprocs() as usize))?;
    ctx.write(&mut own).copy_from_slice(args.input);
    for to in 0..ctx.nprocs() {
        ctx.put(&own, .., to, &all, ctx.pid() as usize)?;
    }
    ctx.sync()?;
    args.output[0] = ctx.read(&all).iter().sum();
    Ok(())
}

fn main() -> Result<()> {
    // LPF has a thread of its own, which never calls MPI: Funneled is enough.
    let started = mpi::initialize_with_threading(mpi::Threading::Funneled);
    let world = started.as_ref().expect("MPI starts").0.world();
    let half = world.split_by_color(Color::with_value(world.rank() % 2)).expect("a half");
    let mut answer = [0];
    let communicator = World::of_communicator(&half, Duration::from_secs(60))?;
    let mut member = Member::of_world(communicator)?;
    member.hook(Args::in_out(&[world.rank() as u8], &mut answer), sum)?;
    // From here on `half` is MPI's alone.
    drop(member);
    let mut all = 0;
    half.all_reduce_into(&answer[0], &mut all, SystemOperation::max());
    println!("process {}: the sum of my half is {}, MPI has {all}", world.rank(), answer[0]);
    Ok(())
}
