//! Threads that exist already, here of the standard library, run an SPMD function together.

use lpf::threads::Team;
use lpf::{Context, Lpf, Result};

/// The largest of the numbers that the processes bring.
fn largest<L: Lpf>(ctx: &mut Context<'_, L>, number: u32) -> Result<u32> {
    let (mut own, all) = ctx.alloc((1, ctx.nprocs()))?;
    ctx.write(&mut own)[0] = number;
    for to in 0..ctx.nprocs() {
        ctx.put(&own, .., to, &all, ctx.pid())?;
    }
    ctx.sync()?;
    Ok(*ctx.read(&all).iter().max().expect("at least one process"))
}

fn main() -> Result<()> {
    let numbers = [3, 14, 15];
    let team = Team::new(3)?;
    let join = |pid: usize| -> Result<u32> {
        // An Init can hook any number of times.
        let mut init = team.join(pid)?;
        init.hook(|ctx| largest(ctx, numbers[pid]))
    };
    std::thread::scope(|scope| {
        let threads = [0, 1, 2].map(|pid| scope.spawn(move || join(pid)));
        for (pid, thread) in threads.into_iter().enumerate() {
            println!("thread {pid}: the largest is {}", thread.join().expect("no panic")?);
        }
        Ok(())
    })
}
