//! Processes that exist already join each other at an address and call LPF any number of times, without MPI:
//! `for rank in 0 1 2 3; do target/release/examples/hook_tcp $rank 4 127.0.0.1:4711 & done; wait`

use lpf::control::rendezvous::{Meeting, Secret};
use lpf::{Args, Context, Lpf, Member, Result};

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
    let mut words = std::env::args().skip(1);
    let mut number = || words.next().and_then(|word| word.parse::<u32>().ok());
    let (Some(rank), Some(size)) = (number(), number()) else {
        eprintln!(
            "usage: hook_tcp RANK SIZE [HOST:PORT of process 0], with a RANK from 0 for each"
        );
        std::process::exit(2);
    };
    let mut meeting = Meeting::new(words.next().unwrap_or("127.0.0.1:4711".into()), rank, size);
    // Between machines the processes need a secret.
    meeting.secret = std::env::var("LPF_SECRET").ok().map(Secret::new).transpose()?;
    let mut member = Member::new(meeting)?;
    for round in 1..4 {
        let own = 10 * round + rank as u8;
        let mut answer = [0];
        member.hook(Args::in_out(&[own], &mut answer), largest)?;
        println!("round {round}: {rank} brought {own}, the largest is {}", answer[0]);
    }
    Ok(()) // here the member leaves the job
}
