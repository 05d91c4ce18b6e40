//! What communication costs on a cluster: rows for `benches/runs`, from one process per host.

#[cfg(feature = "mpi")]
pub(crate) mod bare;

use std::fmt::Write;
use std::time::{Duration, Instant};

use lpf::{Context, Lpf, Pid, Result};

/// To each other process in the large total exchange.
const LARGE: usize = 1 << 20;

/// Each process sends at least this much in a sample, in as many supersteps as that takes: a link that was
/// idle takes some kilobytes at once (`burst` in `ci/hosts.sh`), which is no rate that it keeps.
const VOLUME: usize = 512 << 10;

/// The rows, with this header: all times are process 0's, of one superstep.
pub(crate) const HEADER: &str = "backend,p,pattern,messages,bytes,ns";

pub(crate) struct Rows {
    pub(crate) text: String,
    backend: &'static str,
    processes: Pid,
}

impl Rows {
    pub(crate) fn new(backend: &'static str, processes: Pid) -> Self {
        Rows { text: String::new(), backend, processes }
    }

    /// A sample: `messages` of so many bytes in all leave each process.
    pub(crate) fn add(&mut self, pattern: &str, messages: usize, bytes: usize, time: Duration) {
        let Rows { text, backend, processes } = self;
        let ns = time.as_nanos();
        writeln!(text, "{backend},{processes},{pattern},{messages},{bytes},{ns}")
            .expect("a string");
    }
}

/// What leaves each process in a superstep, evenly to all others.
#[derive(Clone, Copy)]
struct Load {
    /// About so many: as many to each.
    messages: usize,
    /// Of one message.
    bytes: usize,
    samples: usize,
}

impl Load {
    /// To each of the others.
    fn each(self, others: usize) -> usize {
        self.messages.div_ceil(others)
    }

    /// What process `own` sends, and what it gets: of the messages to each, `order` says which place the
    /// nth is for.
    fn messages(self, own: usize, others: usize, order: &[usize]) -> impl Iterator<Item = Message> {
        let each = order.len();
        order.iter().enumerate().flat_map(move |(nth, &place)| {
            (1..=others).map(move |distance| {
                // Where the target keeps what comes from this far.
                let first = (distance - 1) * each;
                Message {
                    to: (own + distance) % (others + 1),
                    from: (own + others + 1 - distance) % (others + 1),
                    place,
                    start: (first + nth) * self.bytes,
                    at: (first + place) * self.bytes,
                }
            })
        })
    }

    /// The supersteps of a sample.
    fn rounds(self) -> usize {
        (VOLUME / (self.messages * self.bytes)).max(1)
    }

    /// Of many small messages, and of larger ones: the most of those take 21 seconds.
    fn all() -> impl Iterator<Item = Load> {
        let load =
            |bytes| move |(log, samples): (u32, usize)| Load { messages: 1 << log, bytes, samples };
        let small = [(8, 9), (10, 9), (12, 9), (14, 9), (16, 9)].map(load(8));
        let large = [(8, 5), (10, 5), (12, 5), (14, 3), (16, 1)].map(load(4096));
        small.into_iter().chain(large)
    }
}

/// A message of a load, and the one that comes in its place from as far on the other side.
struct Message {
    to: usize,
    #[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "LPF asks for no receives"))]
    from: usize,
    /// Which of those to its receiver it is, there.
    #[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "LPF has no tags"))]
    place: usize,
    /// In the sender's memory, and in the receiver's.
    start: usize,
    at: usize,
}

/// An order without runs.
fn scattered(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for last in (1..count).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    order
}

/// A load, put into places that follow one another, or do not.
fn messages<L: Lpf>(
    ctx: &mut Context<'_, L>,
    rows: &mut Rows,
    pattern: &str,
    load: Load,
) -> Result<()> {
    let (own, others, bytes) = (ctx.pid(), ctx.nprocs() - 1, load.bytes);
    let each = load.each(others);
    let order = if pattern == "scattered" { scattered(each) } else { (0..each).collect() };
    ctx.resize(4, 2 * each * others + 64)?;
    ctx.sync()?;
    let mut from = ctx.local::<u8>(each * others * bytes)?;
    let into = ctx.area::<u8>(each * others * bytes)?;
    ctx.sync()?;
    for sample in 0..=load.samples {
        ctx.write(&mut from).fill(sample as u8);
        ctx.sync()?;
        let begin = Instant::now();
        for _ in 0..load.rounds() {
            for Message { to, start, at, .. } in load.messages(own, others, &order) {
                ctx.put(&from, start..start + bytes, to, &into, at)?;
            }
            ctx.sync()?;
        }
        // The first one warms up.
        if sample > 0 {
            let time = begin.elapsed() / load.rounds() as u32;
            rows.add(pattern, each * others, each * others * bytes, time);
        }
        assert!(ctx.read(&into).iter().all(|&byte| byte == sample as u8), "it has arrived");
    }
    ctx.deregister(from)?;
    ctx.deregister(into)?;
    ctx.sync()
}

/// All patterns.
pub(crate) fn all<L: Lpf>(ctx: &mut Context<'_, L>, rows: &mut Rows) -> Result<()> {
    ctx.resize(1, 64)?;
    ctx.sync()?;
    for _ in 0..60 {
        let begin = Instant::now();
        (0..50).try_for_each(|_| ctx.sync())?;
        rows.add("sync", 0, 0, begin.elapsed() / 50);
    }
    let exchange = Load { messages: ctx.nprocs() - 1, bytes: LARGE, samples: 15 };
    messages(ctx, rows, "exchange", exchange)?;
    for load in Load::all() {
        messages(ctx, rows, "run", load)?;
        messages(ctx, rows, "scattered", load)?;
    }
    Ok(())
}
