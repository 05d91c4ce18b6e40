//! Collectives on bytes, for interfaces without types: on threads.

use lpf_collectives::*;
use lpf_core::Args;
use lpf_pthreads::Config;

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
        let x = Place { slot: from.into(), offset: 0, data: x.as_mut_ptr() };
        let y = Place { slot: to.into(), offset: 0, data: y.as_mut_ptr() };
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
                RawOperator { element: 5, commutes: true, name: "add", combine: &mut add }
            };
        }
        // SAFETY: the buffers are registered, and nobody else touches them.
        unsafe {
            all.raw(ctx, RawCall::allreduce(operator!(), (x, y, 8)))?;
            assert_eq!(read(40), [6; 40]);
            all.raw(ctx, RawCall::scan(operator!(), (x, y, 8)))?;
            assert_eq!(read(40), [(0..=pid).sum::<u8>(); 40]);
            all.raw(ctx, RawCall::reduce(2, operator!(), (x, y, 8)))?;
            assert!(pid != 2 || read(40) == [6; 40]);
            all.raw(ctx, RawCall::reduce_scatter(operator!(), (x, y, 2)))?;
            assert_eq!(read(10), [6; 10]);
            all.raw(ctx, RawCall::allgather((x, y, 40)))?;
            let whole: Vec<u8> = (0..4).flat_map(|member| [member; 40]).collect();
            assert_eq!(read(160), whole);
            all.raw(ctx, RawCall::alltoall((x, y, 10)))?;
            assert_eq!(read(40), (0..4).flat_map(|m| [m; 10]).collect::<Vec<u8>>());
            all.raw(ctx, RawCall::gather(1, (x, y, 40)))?;
            assert!(pid != 1 || read(160) == whole);
            all.raw(ctx, RawCall::scatter(3, (x, y, 10)))?;
            assert_eq!(read(10), [3; 10]);
            all.raw(ctx, RawCall::broadcast(1, x, 40))?;
            all.raw(ctx, RawCall::allgather((x, y, 40)))?;
            assert_eq!(read(160), [1; 160]);
        }
        ctx.raw().deregister(from)?;
        ctx.raw().deregister(to)?;
        ctx.sync()
    });
    done.unwrap();
}
