//! Algorithm 2 of the LPF paper: a write conflict reports an error to all processes, without a buffer.

use lpf::{Args, Result};

lpf::program! {
    /// The input, at process 0 only, is a matrix size; the output is 0, or 1 if it is too small.
    fn Spmd(ctx, args) {
        let (s, p) = (ctx.pid() as i32, ctx.nprocs() as i32);
        ctx.resize(3, 2 * p as usize).and_then(|()| ctx.sync())?;
        let mut own_error = ctx.local::<i32>(1)?;
        let (error, mut size) = (ctx.area::<i32>(1)?, ctx.area::<i32>(2)?);
        for (side, bytes) in ctx.write(&mut size).iter_mut().zip(args.input.chunks_exact(4)) {
            *side = i32::from_ne_bytes(bytes.try_into().expect("chunks of 4"));
        }
        ctx.sync()?;
        if s != 0 {
            ctx.get(0, &size, .., &size, 0)?;
        }
        ctx.sync()?;
        let (rows, columns) = ((ctx.read(&size)[0] + p - s - 1) / p, ctx.read(&size)[1]);
        if rows <= 0 || columns <= 0 {
            ctx.write(&mut own_error)[0] = 1;
            for to in 0..ctx.nprocs() {
                ctx.put(&own_error, .., to, &error, 0)?; // many may write here: one of them wins
            }
        }
        ctx.sync()?;
        args.output.copy_from_slice(&ctx.read(&error)[0].to_ne_bytes()[..args.output.len()]);
        Ok(())
    }
}

fn main() -> Result<()> {
    for size in [[1000i32, 10], [2, 10], [0, 0]] {
        let (input, mut output) = (size.map(i32::to_ne_bytes).concat(), [0; 4]);
        lpf::run_args(4, Spmd, Args::in_out(&input, &mut output))?;
        println!("{size:?}: error {}", i32::from_ne_bytes(output));
    }
    Ok(())
}
