//! Processes that exist already join each other at an address and call LPF any number of times, without MPI:
//! `for rank in 0 1 2 3; do target/release/examples/hook_tcp $rank 4 127.0.0.1:4711 & done; wait`

use lpf::control::rendezvous::{Meeting, Secret};
use lpf::{Context, Member, Result};

/// The largest of the numbers that the processes bring.
fn largest(ctx: &mut Context<'_>, number: usize) -> Result<usize> {
    let (mut own, all) = ctx.alloc((1, ctx.nprocs()))?;
    ctx.write(&mut own)[0] = number;
    for to in 0..ctx.nprocs() {
        ctx.put(&own, .., to, &all, ctx.pid())?;
    }
    ctx.sync()?;
    Ok(*ctx.read(&all).iter().max().expect("at least one process"))
}

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let mut number = || words.next().and_then(|word| word.parse().ok());
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
        let own = 10 * round + rank;
        let answer = member.hook(|ctx| largest(ctx, own))?;
        println!("round {round}: {rank} brought {own}, the largest is {answer}");
    }
    Ok(()) // here the member leaves the job
}
