//! Bytes of process 0, at all.

use lpf_core::{Context, Lpf, Result};

/// The bytes of process 0, at every process. The bytes that others pass are ignored. Collective.
///
/// # Errors
/// *Mitigable* if memory is refused, *fatal* if the section failed.
pub fn from_first<L: Lpf>(ctx: &mut Context<'_, L>, bytes: &[u8]) -> Result<Vec<u8>> {
    // Its slots go with the inner context.
    ctx.rehook(|ctx| share(ctx, bytes))
}

fn share<L: Lpf>(ctx: &mut Context<'_, L>, bytes: &[u8]) -> Result<Vec<u8>> {
    ctx.resize(4, ctx.nprocs() + 1)?;
    ctx.sync()?;
    let (mut spoken, heard) = (ctx.local::<u64>(1)?, ctx.area::<u64>(1)?);
    ctx.sync()?;
    if ctx.pid() == 0 {
        ctx.write(&mut spoken)[0] = bytes.len() as u64;
        for to in 0..ctx.nprocs() {
            ctx.put(&spoken, .., to, &heard, 0)?;
        }
    }
    ctx.sync()?;
    let length = ctx.read(&heard)[0] as usize;
    let (mut spoken, heard) = (ctx.local::<u8>(length)?, ctx.area::<u8>(length)?);
    ctx.sync()?;
    if ctx.pid() == 0 {
        ctx.write(&mut spoken).copy_from_slice(bytes);
        for to in 0..ctx.nprocs() {
            ctx.put(&spoken, .., to, &heard, 0)?;
        }
    }
    ctx.sync()?;
    Ok(ctx.read(&heard).to_vec())
}

#[cfg(test)]
mod tests {
    use lpf_core::Args;
    use lpf_pthreads::Config;

    use super::*;

    #[test]
    fn what_process_0_gives_all_have() {
        for length in [0, 1, 100_000] {
            let config = Config::new().procs(3);
            config
                .exec(3, Args::none(), |ctx, _args| {
                    let bytes = vec![7 + ctx.pid() as u8; length + ctx.pid()];
                    assert_eq!(from_first(ctx, &bytes)?, vec![7; length]);
                    Ok(())
                })
                .unwrap();
        }
    }
}
