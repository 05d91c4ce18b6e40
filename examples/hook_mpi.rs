//! An MPI program passes half of its processes to LPF and goes on with MPI afterwards:
//! `mpirun -n 4 target/release/examples/hook_mpi`, built with `--features mpi`

use std::time::Duration;

use lpf::mpi::World;
use lpf::{Context, Member, Result};
use mpi::collective::SystemOperation;
use mpi::topology::Color;
use mpi::traits::{Communicator, CommunicatorCollectives};

/// The sum of the numbers that the processes bring.
fn sum(ctx: &mut Context<'_>, number: u64) -> Result<u64> {
    let (mut own, all) = ctx.alloc((1, ctx.nprocs()))?;
    ctx.write(&mut own)[0] = number;
    for to in 0..ctx.nprocs() {
        ctx.put(&own, .., to, &all, ctx.pid())?;
    }
    ctx.sync()?;
    Ok(ctx.read(&all).iter().sum())
}

fn main() -> Result<()> {
    // LPF has a thread of its own, which never calls MPI: Funneled is enough.
    let started = mpi::initialize_with_threading(mpi::Threading::Funneled);
    let world = started.as_ref().expect("MPI starts").0.world();
    let half = world.split_by_color(Color::with_value(world.rank() % 2)).expect("a half");
    let communicator = World::of_communicator(&half, Duration::from_secs(60))?;
    let mut member = Member::of_world(communicator)?;
    let answer = member.hook(|ctx| sum(ctx, world.rank() as u64))?;
    // From here on `half` is MPI's alone.
    drop(member);
    let mut all = 0;
    half.all_reduce_into(&answer, &mut all, SystemOperation::max());
    println!("process {}: the sum of my half is {answer}, MPI has {all}", world.rank());
    Ok(())
}
