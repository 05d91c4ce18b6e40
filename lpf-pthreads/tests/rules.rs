//! Rules of the thread backend that no case of the conformance suite can reach, one story each.

use std::time::Duration;

use lpf_core::{Args, InboxShape, MAX_P};
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

/// The destination executes what is aimed at it, one request after another: of large puts onto the
/// same bytes one is whole, in every superstep. Large and many, so that two writers would meet, and
/// one overtake the other.
#[test]
fn of_large_conflicting_puts_one_is_whole() {
    const BYTES: usize = 4 << 20;
    Config::new()
        .procs(4)
        .exec(MAX_P, Args::none(), |ctx, _args| {
            ctx.resize(2, 8)?;
            ctx.sync()?;
            let (mut own, mut hit) = (ctx.area::<u8>(BYTES)?, ctx.area::<u8>(BYTES)?);
            ctx.sync()?;
            let pid = ctx.pid() as u8;
            for round in 0..60u8 {
                ctx.write(&mut own).fill(4 * round + pid);
                ctx.write(&mut hit).fill(u8::MAX);
                // Meet, so that both writers would begin together.
                ctx.sync()?;
                ctx.put(&own, .., 0, &hit, 0)?;
                ctx.sync()?;
                if pid == 0 {
                    let winner = ctx.read(&hit)[0];
                    assert!(winner / 4 == round, "round {round}: {winner} is nobody's byte");
                    let other = ctx.read(&hit).iter().position(|&byte| byte != winner);
                    assert_eq!(other, None, "round {round}: bytes of both");
                }
            }
            Ok(())
        })
        .unwrap();
}

/// A message that waits for credit when its flush begins: the flush waits for it, because its source
/// is rewritten behind it.
#[test]
fn a_flush_waits_for_a_message_without_credit() {
    Config::new()
        .procs(2)
        .exec(MAX_P, Args::none(), |ctx, _args| {
            ctx.resize(1, 0)?;
            let inbox = ctx.inbox(InboxShape { rings: 1, window: 1, cell_bytes: 8 })?;
            ctx.sync()?;
            let peer = 1 - ctx.pid();
            let mut channel = ctx.open::<u64>(inbox, 0, peer, 0)?;
            let mut part = ctx.outbox::<u64>(1, 1)?.remove(0);
            for number in 1..=10 {
                if ctx.pid() == 0 {
                    part[0] = number;
                    let sent = ctx.send(&mut channel, part, ..).map_err(|(error, _)| error)?;
                    let flushed = ctx.flush()?;
                    part = sent.part(&flushed).map_err(|_| "flushed").unwrap();
                    part[0] = 0;
                } else {
                    // The sender is at its next message, and has no credit for it.
                    std::thread::sleep(Duration::from_millis(5));
                    let [message] = ctx.expect([&mut channel])?;
                    assert_eq!(message[..], [number]);
                }
            }
            ctx.sync()
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
