//! Rules of the thread backend that no case of the conformance suite can reach, one story each.

use lpf_core::{Args, MAX_P};
use lpf_pthreads::Config;

/// A larger table of slots is made at the resize, which may move the one that others look into.
/// Whoever gets in that very superstep must find the new one.
#[test]
fn a_get_finds_the_table_of_a_process_that_resized_in_the_same_superstep() {
    const WORDS: usize = 100;
    Config::new()
        .procs(2)
        .exec(MAX_P, Args::none(), |ctx, _| {
            ctx.resize(2, 4)?;
            ctx.sync()?;
            let (mut own, theirs) = (ctx.area::<u64>(WORDS)?, ctx.area::<u64>(WORDS)?);
            ctx.sync()?;
            let pid = u64::from(ctx.pid());
            for slots in [3, 40, 5_000] {
                ctx.write(&mut own).fill(100 * slots as u64 + pid);
                ctx.resize(slots, 4)?;
                // What was the table is somebody else's memory by now.
                let reused: Vec<Vec<u64>> = (0..64).map(|n| vec![u64::MAX; n + 1]).collect();
                ctx.get(1 - ctx.pid(), &own, .., &theirs, 0)?;
                ctx.sync()?;
                drop(reused);
                assert_eq!(ctx.read(&theirs), [100 * slots as u64 + 1 - pid; WORDS]);
                ctx.sync()?;
            }
            Ok(())
        })
        .unwrap();
}

/// What a panic drops may still sync: the section ends fatal, and the program goes on.
#[test]
fn a_sync_while_a_panic_unwinds_ends_the_section_alone() {
    struct SyncsWhenDropped<'a, 's>(&'a mut lpf_core::Context<'s, lpf_pthreads::Threads>);

    impl Drop for SyncsWhenDropped<'_, '_> {
        fn drop(&mut self) {
            self.0.sync().unwrap();
        }
    }

    let config = lpf_pthreads::Config::new().procs(2);
    let ended = config.exec(2, lpf_core::Args::none(), |ctx, _args| {
        let _guard = SyncsWhenDropped(ctx);
        panic!("on purpose");
    });
    assert!(matches!(ended.unwrap_err().cause(), lpf_core::Cause::Panicked { .. }));
}
