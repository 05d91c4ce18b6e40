//! Puts in parts: one put, as many messages as it fills cells.

use lpf_core::{SyncAttr, Travel};

use super::{Mesh, bodies, body, expect, latest, message, send, send_as, send_landing};
use crate::memory::Buffer;
use crate::verdict::refused;

/// The parts of `bytes` bytes in cells of `cell`.
fn parts(bytes: usize, cell: usize) -> usize {
    bytes.div_ceil(cell).max(1)
}

case! {
    /// A put in parts is as many messages as cells, in order, whatever their number is to the window's.
    pub fn a_put_in_parts_comes_cell_by_cell both_ways [2, 3] |ctx| {
        const CELL: usize = 48;
        let lengths = [0, 1, CELL - 1, CELL, CELL + 1, 2 * CELL, 5 * CELL + 7, 64 * CELL + 1];
        let mesh = Mesh::open(ctx, 1, 0, 2, CELL)?;
        let longest = 64 * CELL + 1;
        let (_kept, source) = bodies(ctx, 1, longest)?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let (right, left) = ((me + 1) % p, (me + p - 1) % p);
        for bytes in lengths {
            send_as(ctx, source, 0..bytes, mesh.with(right), Travel::Parts(CELL))?;
            let mut came = Vec::new();
            for part in 0..parts(bytes, CELL) {
                expect(ctx, &[(mesh.with(left), 1)])?;
                let bytes_here = latest(ctx, mesh.with(left))?;
                assert_eq!(bytes_here.len(), CELL.min(bytes - part * CELL), "part {part} of {bytes}");
                came.extend(bytes_here);
            }
            assert_eq!(came, body(0, longest)[..bytes]);
        }
        ctx.sync()?;
    }
}

case! {
    /// Parts, whole messages and landings on one link keep their order; a put in parts is one of the W
    /// puts of a superstep; a flush waits until the last part has left.
    pub fn parts_keep_their_place_among_other_messages both_ways [2] |ctx| {
        const CELL: usize = 64;
        let mesh = Mesh::open(ctx, 3, 0, 3, CELL)?;
        let (mut kept, source) = bodies(ctx, 1, 20 * CELL)?;
        let room = Buffer::of(&[0; 3 * CELL]);
        let landing = room.local(ctx)?;
        let (me, peer) = (ctx.pid(), 1 - ctx.pid());
        let link = mesh.with(peer);
        for round in 0..20 {
            if me == 0 {
                let longest = ctx.raw().longest_part(link)?;
                for part in [Some(0), longest.checked_add(1)].into_iter().flatten() {
                    let unfit = send_as(ctx, source, 0..9, link, Travel::Parts(part));
                    refused!(unfit, Misuse, Link(_));
                }
                send_as(ctx, source, 0..20 * CELL, link, Travel::Parts(CELL))?;
                send(ctx, source, CELL..CELL + 5, link)?;
                send_landing(ctx, source, 0..3 * CELL, link)?;
                let one_more = send_as(ctx, source, 0..1, link, Travel::Parts(CELL));
                refused!(one_more, Misuse, Link(_));
                ctx.sync_with(SyncAttr::Flush)?;
                // What has left is the sender's again.
                kept.fill(round);
                kept.write(0, &body(0, 20 * CELL));
            } else {
                // SAFETY: the buffer is not touched until its message was awaited.
                unsafe { ctx.raw().offer(link, landing, 0, 3 * CELL)? };
                let whole = body(0, 20 * CELL);
                for part in 0..20 {
                    expect(ctx, &[(link, 1)])?;
                    assert_eq!(latest(ctx, link)?, whole[part * CELL..][..CELL]);
                }
                expect(ctx, &[(link, 2)])?;
                let end = ctx.raw().awaited(link)?;
                assert_eq!(message(ctx, link, end - 2)?, whole[CELL..CELL + 5]);
                assert_eq!(message(ctx, link, end - 1)?, whole[..3 * CELL]);
            }
        }
        ctx.sync()?;
    }
}

case! {
    /// Two puts in parts towards each other, each longer than its window, while both receive: nobody waits
    /// for credit to receive.
    pub fn long_parts_cross_each_other both_ways [2, 4] |ctx| {
        const CELL: usize = 32;
        let mesh = Mesh::open(ctx, 1, 0, 1, CELL)?;
        let bytes = 1000 * CELL;
        let (_kept, source) = bodies(ctx, 1, bytes)?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        for other in (1..p).map(|step| (me + step) % p) {
            send_as(ctx, source, 0..bytes, mesh.with(other), Travel::Parts(CELL))?;
        }
        let whole = body(0, bytes);
        for other in (1..p).map(|step| (me + p - step) % p) {
            for part in 0..1000 {
                expect(ctx, &[(mesh.with(other), 1)])?;
                assert_eq!(latest(ctx, mesh.with(other))?, whole[part * CELL..][..CELL]);
            }
        }
        ctx.sync()?;
    }
}
