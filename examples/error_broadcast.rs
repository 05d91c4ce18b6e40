//! Algorithm 2 of the LPF paper: a write conflict reports an error to all processes, without a buffer.

use lpf::{Args, Context, Result};

/// The input, at process 0 only, is a matrix size; the output is 0, or 1 if it is too small.
fn report(ctx: &mut Context<'_>, args: Args<'_>) -> Result<()> {
    let (mut size, mut own_error, error) = ctx.alloc::<(i32, i32, i32), _>((2, 1, 1))?;
    let numbers = args.input.chunks_exact(4);
    for (number, bytes) in ctx.write(&mut size).iter_mut().zip(numbers) {
        *number = i32::from_ne_bytes(bytes.try_into().expect("chunks of 4"));
    }
    if ctx.pid() != 0 {
        ctx.get(0, &size, .., &size, 0)?;
    }
    ctx.sync()?;

    // This process's part of the rows, rounded up or down.
    let (pid, nprocs) = (ctx.pid() as i32, ctx.nprocs() as i32);
    let rows = (ctx.read(&size)[0] + nprocs - pid - 1) / nprocs;
    let columns = ctx.read(&size)[1];
    if rows <= 0 || columns <= 0 {
        ctx.write(&mut own_error)[0] = 1;
        for to in 0..ctx.nprocs() {
            // Many processes may write here: one of them wins.
            ctx.put(&own_error, .., to, &error, 0)?;
        }
    }
    ctx.sync()?;

    // Only process 0 has an output.
    let found = ctx.read(&error)[0].to_ne_bytes();
    args.output.copy_from_slice(&found[..args.output.len()]);
    Ok(())
}

fn main() -> Result<()> {
    for size in [[1000i32, 10], [2, 10], [0, 0]] {
        let input = size.map(i32::to_ne_bytes).concat();
        let mut output = [0; 4];
        lpf::run_args(4, Args::in_out(&input, &mut output), report)?;
        println!("{size:?}: error {}", i32::from_ne_bytes(output));
    }
    Ok(())
}
