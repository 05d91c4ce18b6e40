//! Collectives on threads: a first look at each.

use lpf_collectives::*;
use lpf_core::{Args, Context, Result};
use lpf_pthreads::{Config, Threads};

fn own(pid: u32, nth: usize) -> u64 {
    u64::from(pid) * 1000 + nth as u64 * 7 + 1
}

#[test]
fn every_collective_of_the_whole_context_and_of_groups() {
    for (procs, strict) in (1..=6).flat_map(|procs| [(procs, false), (procs, true)]) {
        let done =
            Config::new().procs(procs).strict(strict).exec(procs, Args::none(), |ctx, _args| {
                ctx.resize(8, 0)?;
                let mut world = Collectives::new(ctx)?;
                let pid = ctx.pid();
                let mut half = world.split(ctx, Some(pid % 2))?.expect("a colour was named");
                let odd = world.strided(ctx, 1, 2, 100)?;
                assert_eq!(odd.is_some(), pid % 2 == 1);
                for (len, mode) in [0usize, 1, 5, 64, 5000, 40_000]
                    .into_iter()
                    .flat_map(|len| [(len, Mode::Expected), (len, Mode::Full)])
                {
                    all(ctx, &mut world, len, mode)?;
                    all(ctx, &mut half, len, Mode::Expected)?;
                }
                assert_eq!(world.allreduce_value(ctx, &Max, pid)?, procs - 1);
                assert_eq!(world.broadcast_value(ctx, procs as usize - 1, pid)?, procs - 1);
                ctx.sync()
            });
        done.unwrap();
    }
}

fn all<'s>(
    ctx: &mut Context<'s, Threads>,
    c: &mut Collectives<'s>,
    len: usize,
    mode: Mode,
) -> Result<()> {
    let (me, q) = (c.me(), c.len());
    let members: Vec<u32> = c.members().to_vec();
    let pid = members[me];
    let sum = |members: &[u32], nth: usize| -> u64 { members.iter().map(|&m| own(m, nth)).sum() };
    let is = |y: &[u64], expected: &dyn Fn(usize) -> u64, way: &str| {
        let wrong = y.iter().enumerate().find(|&(nth, &y)| y != expected(nth));
        assert!(wrong.is_none(), "{way}: {wrong:?}, member {me} of {q}, {len}");
    };
    let (mut x, mut y) = (ctx.local::<u64>(len)?, ctx.local::<u64>(len)?);
    let (mut long, mut back) = (ctx.local::<u64>(q * len)?, ctx.local::<u64>(q * len)?);
    let fill = |x: &mut [u64]| x.iter_mut().enumerate().for_each(|(nth, x)| *x = own(pid, nth));
    fill(ctx.write(&mut x));
    fill(ctx.write(&mut long));
    let root = q / 2;
    c.preferences_mut().mode = Some(mode);

    for way in Allreduce::ALL {
        c.preferences_mut().allreduce = Some(*way);
        c.allreduce(ctx, &Sum, &x, &mut y)?;
        is(ctx.read(&y), &|nth| sum(&members, nth), way.name());
        fill(ctx.write(&mut y));
        c.allreduce_in_place(ctx, &Sum, &mut y)?;
        is(ctx.read(&y), &|nth| sum(&members, nth), way.name());
    }
    for way in Reduce::ALL {
        c.preferences_mut().reduce = Some(*way);
        ctx.write(&mut y).fill(3);
        c.reduce(ctx, root, &Sum, &x, &mut y)?;
        is(ctx.read(&y), &|nth| if me == root { sum(&members, nth) } else { 3 }, way.name());
    }
    for way in Broadcast::ALL {
        c.preferences_mut().broadcast = Some(*way);
        fill(ctx.write(&mut y));
        c.broadcast(ctx, root, &mut y)?;
        is(ctx.read(&y), &|nth| own(members[root], nth), way.name());
    }
    for way in Scan::ALL {
        c.preferences_mut().scan = Some(*way);
        c.scan(ctx, &Sum, &x, &mut y)?;
        is(ctx.read(&y), &|nth| sum(&members[..=me], nth), way.name());
        c.exscan(ctx, &Sum, &x, &mut y)?;
        is(ctx.read(&y), &|nth| sum(&members[..me], nth), way.name());
    }
    for way in Allgather::ALL {
        c.preferences_mut().allgather = Some(*way);
        ctx.write(&mut back).fill(0);
        c.allgather(ctx, &x, &mut back)?;
        is(ctx.read(&back), &|nth| own(members[nth / len], nth % len), way.name());
    }
    for way in Alltoall::ALL {
        c.preferences_mut().alltoall = Some(*way);
        ctx.write(&mut back).fill(0);
        c.alltoall(ctx, &long, &mut back)?;
        is(ctx.read(&back), &|nth| own(members[nth / len], me * len + nth % len), way.name());
    }
    for way in Gather::ALL {
        (c.preferences_mut().gather, c.preferences_mut().scatter) = (Some(*way), Some(*way));
        ctx.write(&mut back).fill(0);
        c.gather(ctx, root, &x, &mut back)?;
        if me == root {
            is(ctx.read(&back), &|nth| own(members[nth / len], nth % len), way.name());
        }
        ctx.write(&mut y).fill(0);
        c.scatter(ctx, root, &long, &mut y)?;
        is(ctx.read(&y), &|nth| own(members[root], me * len + nth), way.name());
    }
    for way in ReduceScatter::ALL {
        c.preferences_mut().reduce_scatter = Some(*way);
        c.reduce_scatter(ctx, &Sum, &long, &mut y)?;
        is(ctx.read(&y), &|nth| sum(&members, me * len + nth), way.name());
    }
    *c.preferences_mut() = Preferences::default();
    for area in [x, y, long, back] {
        ctx.deregister(area).map_err(|(error, _)| error)?;
    }
    Ok(())
}

#[test]
fn on_bytes_collectives_do_what_they_do_on_elements() {
    let done = Config::new().procs(4).exec(4, Args::none(), |ctx, _args| {
        ctx.resize(2, 0)?;
        let mut all = Collectives::new(ctx)?;
        let pid = ctx.pid() as u8;
        // Both outlive the section's last use of them: it ends with a full sync.
        let (mut x, mut y) = (vec![pid; 40], vec![0u8; 160]);
        // SAFETY: the vectors live until the slots are gone and a full sync has returned.
        let (from, to) = unsafe {
            let mut raw = ctx.raw();
            let from = raw.register_local(x.as_mut_ptr(), x.len())?;
            (from, raw.register_local(y.as_mut_ptr(), y.len())?)
        };
        let x = Bytes { slot: from.into(), offset: 0, data: x.as_mut_ptr() };
        let y = Bytes { slot: to.into(), offset: 0, data: y.as_mut_ptr() };
        let read = |bytes: usize| -> Vec<u8> {
            // SAFETY: no collective is at work.
            unsafe { std::slice::from_raw_parts(y.data, bytes) }.to_vec()
        };
        // Elements of five bytes, added byte by byte.
        let mut add = |a: *const u8, b: *const u8, into: *mut u8, bytes: usize| {
            assert!(bytes.is_multiple_of(5));
            // SAFETY: operands of so many bytes.
            (0..bytes)
                .for_each(|i| unsafe { into.add(i).write(a.add(i).read() + b.add(i).read()) });
        };
        macro_rules! operator {
            () => {
                RawOperator { element: 5, commutes: true, combine: &mut add }
            };
        }
        // SAFETY: the buffers are registered, and nobody else touches them.
        unsafe {
            all.allreduce_raw(ctx, operator!(), (x, y, 8))?;
            assert_eq!(read(40), [6; 40]);
            all.scan_raw(ctx, operator!(), (x, y, 8), false)?;
            assert_eq!(read(40), [(0..=pid).sum::<u8>(); 40]);
            all.reduce_raw(ctx, 2, operator!(), (x, y, 8))?;
            assert!(pid != 2 || read(40) == [6; 40]);
            all.reduce_scatter_raw(ctx, operator!(), (x, y, 2))?;
            assert_eq!(read(10), [6; 10]);
            all.allgather_raw(ctx, (x, y, 40))?;
            let whole: Vec<u8> = (0..4).flat_map(|member| [member; 40]).collect();
            assert_eq!(read(160), whole);
            all.alltoall_raw(ctx, (x, y, 10))?;
            assert_eq!(read(40), (0..4).flat_map(|m| [m; 10]).collect::<Vec<u8>>());
            all.gather_raw(ctx, 1, (x, y, 40))?;
            assert!(pid != 1 || read(160) == whole);
            all.scatter_raw(ctx, 3, (x, y, 10))?;
            assert_eq!(read(10), [3; 10]);
            all.broadcast_raw(ctx, 1, x, 40)?;
            all.allgather_raw(ctx, (x, y, 40))?;
            assert_eq!(read(160), [1; 160]);
        }
        ctx.raw().deregister(from)?;
        ctx.raw().deregister(to)?;
        ctx.sync()
    });
    done.unwrap();
}
