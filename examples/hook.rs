//! Threads that exist already, here of the standard library, run an SPMD function together.

use lpf::threads::Team;
use lpf::{Args, Context, Lpf, Result};

/// Every process brings a number in its input and gets the largest as its output.
fn largest<L: Lpf>(ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()> {
    let (mut own, all) = ctx.alloc((1, ctx.nprocs() as usize))?;
    ctx.write(&mut own).copy_from_slice(args.input);
    for to in 0..ctx.nprocs() {
        ctx.put(&own, .., to, &all, ctx.pid() as usize)?;
    }
    ctx.sync()?;
    args.output[0] = *ctx.read(&all).iter().max().expect("at least one process");
    Ok(())
}

fn main() -> Result<()> {
    let numbers = [3, 14, 15];
    let team = Team::new(3)?;
    let join = |pid: usize| -> Result<u8> {
        let mut answer = [0];
        let mut init = team.join(pid as u32)?;
        // An Init can hook any number of times; each process hands in its own arguments.
        let args = Args::in_out(&numbers[pid..=pid], &mut answer);
        init.hook(args, largest)?;
        Ok(answer[0])
    };
    std::thread::scope(|scope| {
        let threads = [0, 1, 2].map(|pid| scope.spawn(move || join(pid)));
        for (pid, thread) in threads.into_iter().enumerate() {
            println!("thread {pid}: the largest is {}", thread.join().expect("no panic")?);
        }
        Ok(())
    })
}
