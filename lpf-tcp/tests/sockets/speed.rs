//! How fast it is, against bare sockets in the same run. Prints, and checks nothing:
//!
//! ```text
//! cargo test --release -p lpf-tcp --test sockets -- --ignored --nocapture speed
//! ```

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use lpf_messages::{Ticket, Transport};

use crate::support::*;

/// What a process has: the same connection to the other one bare, and as a network.
struct Side {
    /// Waits in the system's calls.
    blocking: TcpStream,
    /// Does not wait, as the network does not.
    bare: TcpStream,
    net: Net,
    first: bool,
    source: Vec<u8>,
    target: Vec<u8>,
}

/// A wait: spins, then lets others run.
#[derive(Default)]
struct Wait(u32);

impl Wait {
    fn pause(&mut self) {
        self.0 += 1;
        if self.0 < 1000 { std::hint::spin_loop() } else { std::thread::yield_now() }
    }
}

/// Goes on where a call would have waited.
fn all(bytes: usize, mut step: impl FnMut(usize) -> std::io::Result<usize>) {
    let (mut done, mut wait) = (0, Wait::default());
    while done < bytes {
        match step(done) {
            Ok(more) => done += more,
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait.pause(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn finish(net: &mut Net, ticket: &Ticket, sleeps: bool) {
    let mut wait = Wait::default();
    while net.test(ticket).unwrap().is_none() {
        if sleeps { net.idle(Duration::from_secs(1)) } else { wait.pause() }
    }
}

impl Side {
    fn bare_exchange(&mut self) {
        let (mut stream, bytes) = (&self.bare, self.source.len());
        all(bytes, |done| stream.write(&self.source[done..]));
        all(bytes, |done| stream.read(&mut self.target[done..]));
    }

    fn exchange(&mut self) {
        let other = usize::from(self.first);
        let ticket = receive(&mut self.net, other, tag(1), &mut self.target);
        self.net.send_copy(other, tag(1), &self.source).unwrap();
        finish(&mut self.net, &ticket, false);
    }

    fn one_way(&mut self, stream: fn(&Side) -> &TcpStream) {
        let (mut stream, bytes) = (stream(self).try_clone().unwrap(), self.source.len());
        let mut done = [0];
        if self.first {
            all(bytes, |done| stream.write(&self.source[done..]));
            all(1, |_| stream.read(&mut done));
        } else {
            all(bytes, |done| stream.read(&mut self.target[done..]));
            all(1, |_| stream.write(&done));
        }
    }

    fn blocking_one_way(&mut self) {
        self.one_way(|side| &side.blocking);
    }

    fn bare_one_way(&mut self) {
        self.one_way(|side| &side.bare);
    }

    fn spinning_one_way(&mut self) {
        self.network_one_way(false);
    }

    fn sleeping_one_way(&mut self) {
        self.network_one_way(true);
    }

    fn network_one_way(&mut self, sleeps: bool) {
        let other = usize::from(self.first);
        let mut done = [0];
        if self.first {
            let end = receive(&mut self.net, other, tag(2), &mut done);
            let ticket = send(&mut self.net, other, tag(1), &self.source);
            finish(&mut self.net, &ticket, sleeps);
            finish(&mut self.net, &end, sleeps);
        } else {
            let ticket = receive(&mut self.net, other, tag(1), &mut self.target);
            finish(&mut self.net, &ticket, sleeps);
            self.net.send_copy(other, tag(2), &done).unwrap();
        }
    }
}

/// What a block does, under its name.
type Kind = (&'static str, fn(&mut Side));

/// Two processes of `p`.
fn sides(bytes: usize, p: usize) -> [Side; 2] {
    let listener = listener();
    let (blocking, bare) = (pair(&listener), pair(&listener));
    for stream in [&blocking.0, &blocking.1, &bare.0, &bare.1] {
        stream.set_nodelay(true).unwrap();
    }
    for stream in [&bare.0, &bare.1] {
        stream.set_nonblocking(true).unwrap();
    }
    let mut nets = networks(p);
    let mut side = |first: bool, blocking, bare| Side {
        blocking,
        bare,
        net: nets.remove(0),
        first,
        source: pattern(1, bytes),
        target: vec![0; bytes],
    };
    [side(true, blocking.0, bare.0), side(false, blocking.1, bare.1)]
}

/// Microseconds of one round of each kind, in blocks that take turns: the best block's and the
/// median one's.
fn measure(bytes: usize, rounds: u32, blocks: usize, kinds: &[Kind]) {
    let barrier = Barrier::new(2);
    let run = |mut side: Side| {
        let mut times = vec![Vec::new(); kinds.len()];
        for block in 0..blocks * kinds.len() {
            let kind = block % kinds.len();
            barrier.wait();
            let start = Instant::now();
            (0..rounds).for_each(|_| kinds[kind].1(&mut side));
            times[kind].push(start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds));
        }
        times
    };
    let [one, other] = sides(bytes, 2);
    let times = std::thread::scope(|scope| {
        scope.spawn(|| run(other));
        run(one)
    });
    for ((name, _), times) in std::iter::zip(kinds, times) {
        print(bytes, name, times);
    }
}

/// The same exchange with both sides in one thread, so that nothing waits: what the calls cost.
fn measure_calls(bytes: usize, p: usize) {
    let mut sides = sides(bytes, p);
    let mut times = [Vec::new(), Vec::new()];
    for block in 0..2000 {
        let start = Instant::now();
        for _ in 0..20 {
            let [one, other] = &mut sides;
            if block % 2 == 0 {
                for side in [&mut *one, &mut *other] {
                    let mut stream = &side.bare;
                    all(bytes, |done| stream.write(&side.source[done..]));
                }
                for side in [one, other] {
                    let mut stream = &side.bare;
                    all(bytes, |done| stream.read(&mut side.target[done..]));
                }
            } else {
                let tickets = [&mut *one, &mut *other].map(|side| {
                    let peer = usize::from(side.first);
                    let ticket = receive(&mut side.net, peer, tag(1), &mut side.target);
                    side.net.send_copy(peer, tag(1), &side.source).unwrap();
                    ticket
                });
                std::iter::zip([one, other], &tickets)
                    .for_each(|(side, ticket)| finish(&mut side.net, ticket, false));
            }
        }
        times[block % 2].push(start.elapsed().as_secs_f64() * 1e6 / 20.0);
    }
    let [bare, network] = times;
    print(bytes, "calls, bare", bare);
    print(bytes, &format!("calls, network of {p}"), network);
}

/// A message one way with both sides in one thread, in turn.
fn measure_calls_one_way(bytes: usize, blocks: usize) {
    let [mut one, mut other] = sides(bytes, 2);
    let mut times = [Vec::new(), Vec::new()];
    for block in 0..2 * blocks {
        let start = Instant::now();
        if block % 2 == 0 {
            let (mut from, mut to) = (&one.bare, &other.bare);
            let (mut written, mut read) = (0, 0);
            while read < bytes {
                written += from.write(&one.source[written..]).unwrap_or(0);
                read += to.read(&mut other.target[read..]).unwrap_or(0);
            }
        } else {
            let receiving = receive(&mut other.net, 0, tag(1), &mut other.target);
            let sending = send(&mut one.net, 1, tag(1), &one.source);
            while other.net.test(&receiving).unwrap().is_none() {
                one.net.progress().unwrap();
            }
            assert!(one.net.test(&sending).unwrap().is_some());
        }
        times[block % 2].push(start.elapsed().as_secs_f64() * 1e6);
    }
    let [bare, network] = times;
    print(bytes, "one way calls, bare", bare);
    print(bytes, "one way calls, network", network);
}

fn print(bytes: usize, name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let [best, quarter, median] = [0, times.len() / 4, times.len() / 2].map(|at| times[at]);
    println!(
        "{bytes:>9} bytes  {name:<22} best {best:>9.2} us  quarter {quarter:>9.2} us  median {median:>9.2} us"
    );
}

#[test]
#[ignore = "prints times, which mean something on an idle machine only"]
fn speed() {
    for bytes in [16, 1000, 8000, 60_000] {
        measure_calls(bytes, 2);
    }
    measure_calls(16, 3);
    for (bytes, blocks) in [(60_000, 1000), (256 << 10, 1000), (1 << 20, 200), (64 << 20, 10)] {
        measure_calls_one_way(bytes, blocks);
    }
    let exchanges: &[Kind] =
        &[("exchange, bare", Side::bare_exchange), ("exchange, network", Side::exchange)];
    for (bytes, rounds) in [(16, 50), (1000, 50), (8000, 50), (60_000, 20)] {
        measure(bytes, rounds, 500, exchanges);
    }
    for (bytes, blocks) in [(256 << 10, 1000), (1 << 20, 500), (4 << 20, 200), (64 << 20, 20)] {
        let kinds: &[Kind] = &[
            ("one way, blocking", Side::blocking_one_way),
            ("one way, bare", Side::bare_one_way),
            ("one way, network", Side::spinning_one_way),
            ("one way, net sleeps", Side::sleeping_one_way),
        ];
        measure(bytes, 1, blocks, kinds);
    }
}
