//! First things first.
use lpf_core::{Args, MAX_P, PutAttr, SyncAttr};
use lpf_pthreads::Config;

#[test]
fn ring_shift() {
    for p in [1, 2, 3, 4, 8] {
        Config::new()
            .procs(p)
            .exec(MAX_P, Args::none(), |ctx, _| {
                assert_eq!(ctx.nprocs(), p);
                ctx.resize(4, 2000)?;
                ctx.sync()?;
                let (mut own, left) = (ctx.area::<u32>(1000)?, ctx.area::<u32>(1000)?);
                ctx.sync()?;
                for round in 0..200u32 {
                    let pid = ctx.pid();
                    for (i, x) in ctx.write(&mut own).iter_mut().enumerate() {
                        *x = pid * 100000 + i as u32 + round;
                    }
                    let right = (ctx.pid() + 1) % ctx.nprocs();
                    let n = match round % 4 {
                        0 => 1,
                        1 => 3,
                        2 => 200,
                        _ => 900,
                    };
                    for i in 0..n {
                        if round % 8 < 4 {
                            ctx.put(&own, i..i + 1, right, &left, i)?;
                        } else {
                            ctx.get(right, &own, i..i + 1, &left, i)?;
                        }
                    }
                    ctx.sync()?;
                    let from = if round % 8 < 4 { (pid + p - 1) % p } else { right };
                    for i in 0..n {
                        assert_eq!(ctx.read(&left)[i], from * 100000 + i as u32 + round);
                    }
                    ctx.sync()?;
                }
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn panic_is_fatal_and_pool_survives() {
    let r = Config::new().procs(4).exec(MAX_P, Args::none(), |ctx, _| {
        ctx.sync()?;
        if ctx.pid() == 2 {
            panic!("oops");
        }
        let e = ctx.sync().unwrap_err();
        assert!(e.is_fatal());
        Err(e)
    });
    println!("{}", r.unwrap_err());
    let r = Config::new().procs(4).exec(MAX_P, Args::none(), |ctx, _| {
        ctx.sync()?;
        if ctx.pid() == 2 {
            return Ok(());
        }
        ctx.sync()
    });
    println!("{}", r.unwrap_err());
    Config::new().procs(4).exec(MAX_P, Args::none(), |ctx, _| ctx.sync()).unwrap();
}

#[test]
fn messages() {
    for p in [2u32, 3] {
        Config::new()
            .procs(p)
            .exec(MAX_P, Args::none(), |ctx, _| {
                ctx.resize(1, 0)?;
                let inbox =
                    ctx.inbox(lpf_core::InboxShape { rings: 1, window: 4, cell_bytes: 64 })?;
                ctx.sync()?;
                if ctx.pid() > 1 {
                    return ctx.sync();
                }
                let peer = 1 - ctx.pid();
                let mut ch = ctx.open::<u64>(inbox, 0, peer, 0)?;
                let mut parts = ctx.outbox::<u64>(1, 8)?;
                let mut part = parts.pop().unwrap();
                for round in 0..1000u64 {
                    let n = (round % 9) as usize;
                    for (i, x) in part.iter_mut().enumerate() {
                        *x = round * 10 + i as u64 + peer as u64;
                    }
                    let sent = ctx.send(&mut ch, part, 0..n).map_err(|e| e.0)?;
                    let [m] = ctx.expect([&mut ch])?;
                    assert_eq!(m.len(), n);
                    for i in 0..n {
                        assert_eq!(m[i], round * 10 + i as u64 + ctx.pid() as u64);
                    }
                    let f = ctx.flush()?;
                    part = sent.part(&f).unwrap();
                }
                ctx.sync()
            })
            .unwrap();
    }
}
