//! What a process knows of its machine: the primitive probe, its clock and its host.

use std::time::Duration;

use lpf_core::SyncAttr;

use crate::verdict::room;

/// Sizes below, at, between and far above those that are measured.
const SIZES: [usize; 12] = [0, 1, 7, 8, 9, 64, 65, 1000, 4096, 1 << 20, (1 << 30) + 1, usize::MAX];

case! {
    /// Every process chooses from bitwise equal numbers.
    pub fn parameters_are_bitwise_equal_on_every_process everywhere [1, 2, 4, 8] |ctx| {
        let machine = ctx.probe();
        let mut own = vec![machine.p() as u64];
        for p in [1, 2, ctx.nprocs(), machine.p(), 1000] {
            for bytes in SIZES {
                for attr in [SyncAttr::Default, SyncAttr::NoConflict, SyncAttr::Flush] {
                    own.push(machine.g(p, bytes, &attr).to_bits());
                    own.push(machine.l(p, bytes, &attr).to_bits());
                }
            }
        }
        let n = ctx.nprocs();
        room(ctx, 2, 2 * n)?;
        let (mut mine, all) = (ctx.local::<u64>(own.len())?, ctx.area::<u64>(n * own.len())?);
        ctx.sync()?;
        ctx.write(&mut mine).copy_from_slice(&own);
        for to in 0..ctx.nprocs() {
            ctx.put(&mine, .., to, &all, ctx.pid() * own.len())?;
        }
        ctx.sync()?;
        for (pid, theirs) in ctx.read(&all).chunks(own.len()).enumerate() {
            assert!(theirs == own, "process {pid} has other numbers");
        }
    }
}

case! {
    /// g and l are positive and finite for every size and number of processes.
    pub fn parameters_are_positive_for_every_size everywhere [1, 3] |ctx| {
        let machine = ctx.probe();
        assert!(machine.p() >= ctx.nprocs());
        assert!((1..=machine.p()).contains(&machine.free_p()));
        for p in [1, 2, 3, 8, 1 << 16] {
            for bytes in SIZES {
                let g = machine.g(p, bytes, &SyncAttr::Default);
                let l = machine.l(p, bytes, &SyncAttr::Default);
                assert!(g.is_finite() && g > 0.0, "g = {g} for {bytes} bytes, {p} processes");
                assert!(l.is_finite() && l > 0.0, "l = {l} for {bytes} bytes, {p} processes");
            }
        }
    }
}

case! {
    /// The clock of a process goes on, through supersteps, and does not go back.
    pub fn the_clock_goes_on everywhere [1, 2, 3] |ctx| {
        let begin = ctx.now();
        ctx.sync()?;
        let synced = ctx.now();
        assert!(synced >= begin);
        std::thread::sleep(Duration::from_millis(2));
        assert!(ctx.now() - synced >= Duration::from_millis(2));
    }
}

case! {
    /// Each process has the name of its own host.
    pub fn a_host_has_a_name everywhere [1, 2] |ctx| {
        assert_eq!(ctx.host(), lpf_core::host::name());
        assert!(!ctx.host().is_empty());
    }
}
