//! Preferences hold from the next call on, also for calls whose schedule is cached: on threads.

use lpf_collectives::{Collectives, Mode, Sum};
use lpf_core::Args;
use lpf_pthreads::Config;

#[test]
fn a_changed_preference_holds_for_a_call_that_was_made_before() {
    let done = Config::new().procs(3).exec(3, Args::none(), |ctx, _args| {
        let mut all = Collectives::new(ctx)?;
        let colour = (ctx.pid() < 2).then_some(0);
        let Some(mut pair) = all.split(ctx, colour)? else { return ctx.sync() };
        for _ in 0..2 {
            assert_eq!(pair.allreduce_value(ctx, &Sum, 1u64)?, 2);
        }
        pair.preferences_mut().mode = Some(Mode::Full);
        let refused = pair.allreduce_value(ctx, &Sum, 1u64);
        assert!(refused.expect_err("a pair of three has no full supersteps").is_misuse());
        pair.preferences_mut().mode = None;
        assert_eq!(pair.allreduce_value(ctx, &Sum, 1u64)?, 2);
        ctx.sync()
    });
    done.unwrap();
}
