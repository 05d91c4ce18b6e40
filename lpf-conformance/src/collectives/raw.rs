//! Collectives on bytes do what their typed namesakes do.

use lpf_collectives::{Collectives, Place, RawCall, RawOperator, Sum};
use lpf_core::{Area, Context, Lpf, Memory};

use super::world;

/// Longer than a cell, and no multiple of anything.
const LEN: usize = 5003;

fn place(area: &Area<'_, u8>) -> Place {
    Place { slot: area.slot(), offset: 0, data: area.data() }
}

/// Adds bytes.
fn add(left: *const u8, right: *const u8, into: *mut u8, bytes: usize) {
    for at in 0..bytes {
        // SAFETY: an operator's operands are as long as it is told.
        unsafe { into.add(at).write(left.add(at).read().wrapping_add(right.add(at).read())) };
    }
}

/// What this member has, other bytes in each call.
fn fill<'s, L: Lpf>(ctx: &mut Context<'s, L>, x: &mut Area<'s, u8>, salt: usize) {
    let me = ctx.pid();
    for (at, byte) in ctx.write(x).iter_mut().enumerate() {
        *byte = (at * 7 + me * 31 + salt * 13) as u8;
    }
}

/// Compares a typed call's result with the raw one's.
macro_rules! same {
    ($ctx:ident, $c:ident, $x:ident, $y:ident, $z:ident, $salt:expr, $typed:expr, $raw:expr) => {
        for area in [&mut $x, &mut $y, &mut $z] {
            fill($ctx, area, $salt);
        }
        $typed?;
        // SAFETY: areas' memory is the section's, and nobody else touches it in the call.
        unsafe { $raw }?;
        assert_eq!($ctx.read(&$y), $ctx.read(&$z), "call {}", $salt);
    };
}

case! {
    /// Every collective on bytes, beside its typed namesake.
    pub fn raw_calls_give_what_typed_ones_give both_ways [1, 2, 3] |ctx| {
        let mut c: Collectives<'_> = world(ctx, 3, 0)?;
        let (p, me) = (c.len(), c.me());
        let all = p * LEN;
        let (mut x, mut y, mut z) = (ctx.area::<u8>(all)?, ctx.area::<u8>(all)?, ctx.area::<u8>(all)?);
        ctx.sync()?;
        let (from, to) = (place(&x), place(&z));
        let mut adding = |l: *const u8, r: *const u8, i: *mut u8, n: usize| add(l, r, i, n);
        macro_rules! adds {
            () => {
                RawOperator { element: 1, commutes: true, name: "add", combine: &mut adding }
            };
        }
        let root = p - 1;
        // Those of nobody, of one and of many.
        let counts: Vec<usize> = (0..p).map(|member| member * 17 + member / 2).collect();
        let total: usize = counts.iter().sum();
        let receives = vec![counts[me]; p];
        let taken = p * counts[me];
        same!(ctx, c, x, y, z, 0, c.broadcast(ctx, root, (&mut y, ..LEN)),
            c.raw(ctx, RawCall::broadcast(root, to, LEN)));
        same!(ctx, c, x, y, z, 1, c.reduce(ctx, root, &Sum, (&x, ..LEN), (&mut y, ..LEN)),
            c.raw(ctx, RawCall::reduce(root, adds!(), (from, to, LEN))));
        same!(ctx, c, x, y, z, 2, c.allreduce(ctx, &Sum, (&x, ..LEN), (&mut y, ..LEN)),
            c.raw(ctx, RawCall::allreduce(adds!(), (from, to, LEN))));
        same!(ctx, c, x, y, z, 3, c.reduce_scatter(ctx, &Sum, &x, (&mut y, ..LEN)),
            c.raw(ctx, RawCall::reduce_scatter(adds!(), (from, to, LEN))));
        same!(ctx, c, x, y, z, 4, c.scan(ctx, &Sum, (&x, ..LEN), (&mut y, ..LEN)),
            c.raw(ctx, RawCall::scan(adds!(), (from, to, LEN))));
        same!(ctx, c, x, y, z, 5, c.exscan(ctx, &Sum, (&x, ..LEN), (&mut y, ..LEN)),
            c.raw(ctx, RawCall::exscan(adds!(), (from, to, LEN))).map(|()| {
                // The raw one leaves the first member's as it is.
                if me == 0 {
                    to.data.write_bytes(0, LEN);
                }
            }));
        same!(ctx, c, x, y, z, 6, c.gather(ctx, root, (&x, ..LEN), &mut y),
            c.raw(ctx, RawCall::gather(root, (from, to, LEN))));
        same!(ctx, c, x, y, z, 7, c.scatter(ctx, root, &x, (&mut y, ..LEN)),
            c.raw(ctx, RawCall::scatter(root, (from, to, LEN))));
        same!(ctx, c, x, y, z, 8, c.allgather(ctx, (&x, ..LEN), &mut y),
            c.raw(ctx, RawCall::allgather((from, to, LEN))));
        same!(ctx, c, x, y, z, 9, c.alltoall(ctx, &x, &mut y), c.raw(ctx, RawCall::alltoall((from, to, LEN))));
        same!(ctx, c, x, y, z, 10, c.gather_v(ctx, root, (&x, ..counts[me]), &counts, (&mut y, ..total)),
            c.raw(ctx, RawCall::gather_v(root, (from, to, &counts))));
        same!(ctx, c, x, y, z, 11, c.scatter_v(ctx, root, (&x, ..total), &counts, (&mut y, ..counts[me])),
            c.raw(ctx, RawCall::scatter_v(root, (from, to, &counts))));
        same!(ctx, c, x, y, z, 12, c.allgather_v(ctx, (&x, ..counts[me]), &counts, (&mut y, ..total)),
            c.raw(ctx, RawCall::allgather_v((from, to, &counts))));
        same!(ctx, c, x, y, z, 13, c.alltoall_v(ctx, (&x, ..total), &counts, (&mut y, ..taken), &receives),
            c.raw(ctx, RawCall::alltoall_v((from, to), &counts, &receives)));
        let refused = [
            // SAFETY: as above.
            unsafe { c.raw(ctx, RawCall::broadcast(p, to, LEN)) },
            // SAFETY: as above.
            unsafe { c.raw(ctx, RawCall::allgather_v((from, to, &counts[1..]))) },
        ];
        for call in refused {
            assert!(call.expect_err("it is wrong in itself").is_misuse());
        }
        ctx.sync()?;
    }
}
