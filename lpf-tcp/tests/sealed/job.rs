//! A job of two processes, the second of which finds the first by a relay.

use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lpf_conformance::{Mode, NoControl};
use lpf_control::rendezvous::{Joined, MeetError, Meeting, Secret};
use lpf_core::settings::Exchange;
use lpf_core::{Context, Lpf, Result, run_section};
use lpf_messages::{Environment, Piece, Tag, Transport};
use lpf_tcp::sockets::Sockets;
use lpf_tcp::{TcpJob, TcpProcess};

use crate::PATIENCE;
use crate::relay::{Direction, Relay};

/// What a process sends to the other in a superstep, and what that is made of.
pub(crate) const BYTES: usize = 256 << 10;
pub(crate) const PATTERN: &[u8; 16] = b"0 a pattern of 0";

/// The error of a process that has received something else.
pub(crate) const DIFFERS: &str = "what was received differs from what was sent";

/// What the processes say of sealing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sealed {
    ByDefault,
    UnlessFirstSaysNo,
    UnlessOtherSaysNo,
}

/// How one process ended.
pub(crate) type Outcome = std::result::Result<(), String>;

/// Runs a job by a relay: so many supersteps, or until one fails.
pub(crate) fn run(relay: &Relay, sealed: Sealed, supersteps: Option<u32>) -> [Outcome; 2] {
    let joined = join(relay, sealed);
    relay.arm();
    let ended = joined.map(|joined| {
        let (ends, ended) = channel();
        thread::spawn(move || ends.send(process(joined, supersteps)));
        ended
    });
    ended.map(|ended| ended.recv_timeout(PATIENCE).expect("the job hangs"))
}

/// The processes of a job, which have just joined.
fn join(relay: &Relay, sealed: Sealed) -> [Joined; 2] {
    joining(relay, sealed, PATIENCE).map(|joining| joining.join().unwrap().unwrap())
}

/// The processes of a job join until the time is up.
pub(crate) fn joining(
    relay: &Relay,
    sealed: Sealed,
    time: Duration,
) -> [JoinHandle<std::result::Result<Joined, MeetError>>; 2] {
    let first = relay.listener();
    let mut meetings = [0, 1].map(|rank| {
        let mut meeting = Meeting::new(relay.address.to_string(), rank, 2);
        meeting.time = time;
        meeting.secret = Some(Secret::new("a secret of these tests").unwrap());
        meeting
    });
    meetings[0].listener = Some(first);
    match sealed {
        Sealed::ByDefault => {}
        Sealed::UnlessFirstSaysNo => meetings[0].seal_data = false,
        Sealed::UnlessOtherSaysNo => meetings[1].seal_data = false,
    }
    meetings.map(|meeting| thread::spawn(|| meeting.join()))
}

/// One process sends the other a single message, and both sleep or look until more arrives: the error of the receiver.
pub(crate) fn last_message(
    relay: &Relay,
    direction: Direction,
    bytes: usize,
    sleeps: bool,
) -> String {
    let joined = join(relay, Sealed::ByDefault);
    relay.arm();
    let network = |joined: Joined| Sockets::new(joined.rank, joined.streams, NoControl).unwrap();
    let [first, other] = joined.map(network);
    let (mut sender, mut receiver) = match direction {
        Direction::ToFirst => (other, first),
        Direction::FromFirst => (first, other),
    };
    let (to, from) = (receiver.rank(), sender.rank());
    let tag = Tag { context: 1, channel: 1 };
    sender.send_copy(to, tag, &vec![1; bytes]).unwrap();
    let mut bytes = vec![0; bytes];
    // SAFETY: the bytes live longer than the receiver, and are not touched.
    let ticket = unsafe { receiver.receive(from, tag, &[Piece::of_mut(&mut bytes)]) }.unwrap();
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        for waiting in [&mut sender, &mut receiver] {
            if sleeps {
                waiting.idle(Duration::from_millis(10));
            }
            waiting.progress().unwrap();
        }
        match receiver.test(&ticket) {
            Ok(None) => {}
            Ok(Some(_)) => return "the message has arrived".into(),
            Err(broken) => return broken.reason,
        }
    }
    "nothing has happened".into()
}

/// The processes leave a section, after which the second one does nothing: the error of the first.
pub(crate) fn last_word(relay: &Relay) -> String {
    let [first, other] = join(relay, Sealed::ByDefault);
    let (ends, ended) = channel();
    let all_came = Arc::new(Barrier::new(2));
    let came = Arc::clone(&all_came);
    thread::spawn(move || {
        let mut job = lpf_tcp::job(first).unwrap();
        let left = hook(&mut job, |ctx| {
            ctx.sync()?;
            came.wait();
            Ok(())
        });
        ends.send(left)
    });
    let mut job = lpf_tcp::job(other).unwrap();
    let left = hook(&mut job, |ctx| {
        ctx.sync()?;
        // The other has all that was sent before.
        all_came.wait();
        relay.arm();
        Ok(())
    });
    left.expect("nothing was left out of what the first sent");
    let left = ended.recv_timeout(PATIENCE).expect("the first waits");
    left.expect_err("the last word has arrived").to_string()
}

fn hook<R>(
    job: &mut TcpJob,
    f: impl for<'s> FnOnce(&mut Context<'s, TcpProcess>) -> Result<R>,
) -> Result<R> {
    job.hook(environment(), |process| run_section(process, f))
}

fn environment() -> Environment {
    Mode::default().between_processes(Exchange::Direct)
}

fn process(joined: Joined, supersteps: Option<u32>) -> Outcome {
    let mut job = lpf_tcp::job(joined).unwrap();
    let exchanged = hook(&mut job, |ctx| exchange(ctx, supersteps));
    job.leave();
    match exchanged {
        Err(error) => Err(error.to_string()),
        Ok(true) => Ok(()),
        Ok(false) => Err(DIFFERS.into()),
    }
}

/// Each process sends the other the pattern in every superstep; whether that has arrived.
fn exchange<L: Lpf>(ctx: &mut Context<'_, L>, supersteps: Option<u32>) -> Result<bool> {
    ctx.resize(2, 2)?;
    ctx.sync()?;
    let (mut own, other) = (ctx.local::<u8>(BYTES)?, ctx.area::<u8>(BYTES)?);
    ctx.sync()?;
    let pattern = PATTERN.repeat(BYTES / PATTERN.len());
    ctx.write(&mut own).copy_from_slice(&pattern);
    let (mut is_right, began) = (true, Instant::now());
    for superstep in 0.. {
        if supersteps.is_some_and(|last| superstep == last) || began.elapsed() > PATIENCE / 2 {
            break;
        }
        ctx.put(&own, .., 1 - ctx.pid(), &other, 0)?;
        ctx.sync()?;
        is_right &= ctx.read(&other) == pattern;
    }
    Ok(is_right)
}
