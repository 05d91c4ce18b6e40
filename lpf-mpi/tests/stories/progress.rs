//! What a helper thread that drives the network would bring and cost: times, for who decides. Two processes;
//! `LPF_TEST_PROGRESS=1`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lpf_messages::Transport;

use crate::support::{Net, pattern, receive, send};

/// Between two looks of the helper.
const PAUSES: [Option<Duration>; 3] =
    [None, Some(Duration::from_micros(50)), Some(Duration::from_millis(1))];
const SAMPLES: usize = 41;
const COMPUTING: Duration = Duration::from_millis(5);

/// So many steps of computing, which take time of a core and not of a clock.
fn compute(steps: u64) {
    for step in 0..steps {
        std::hint::black_box(step);
    }
}

/// Steps that take 5 ms alone.
fn calibrated() -> u64 {
    let times = (0..9).map(|_| {
        let begin = Instant::now();
        compute(10_000_000);
        begin.elapsed()
    });
    let fastest = times.min().expect("nine");
    (1e7 * COMPUTING.as_secs_f64() / fastest.as_secs_f64()) as u64
}

/// Time that is seen of a message each way beside 5 ms of computing, and of an exchange of 8 bytes.
pub(crate) fn who_drives(net: &mut Net) {
    let steps = calibrated();
    for pause in PAUSES {
        let small = with_helper(net, pause, |net| time_of(net, 8, 0));
        let large: Vec<f64> = [64 << 10, 1 << 20, 8 << 20]
            .map(|bytes| with_helper(net, pause, |net| time_of(net, bytes, steps)))
            .to_vec();
        if net.rank() == 0 {
            println!(
                "helper {:>10}: 8 B {small:.2} us; beside 5 ms of computing 64 KiB {:.0} us, 1 MiB {:.0} us, \
                 8 MiB {:.0} us",
                pause.map_or("none".into(), |pause| format!("{pause:?}")),
                large[0],
                large[1],
                large[2]
            );
        }
    }
}

fn with_helper<R>(
    net: &mut Net,
    pause: Option<Duration>,
    measure: impl FnOnce(&Mutex<&mut Net>) -> R,
) -> R {
    let (net, over) = (Mutex::new(net), AtomicBool::new(false));
    std::thread::scope(|scope| {
        if let Some(pause) = pause {
            let (net, over) = (&net, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    net.lock().unwrap().progress().unwrap();
                    std::thread::sleep(pause);
                }
            });
        }
        let measured = measure(&net);
        over.store(true, Ordering::Relaxed);
        measured
    })
}

/// The median, in microseconds, less the time spent computing.
fn time_of(net: &Mutex<&mut Net>, bytes: usize, steps: u64) -> f64 {
    let alone = if steps > 0 { COMPUTING } else { Duration::ZERO };
    let out = pattern(1, bytes);
    let mut into = vec![0; bytes];
    let mut times: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            // Both begin together.
            exchange(net, &[1], &mut [0], 0);
            let begin = Instant::now();
            exchange(net, &out, &mut into, steps);
            (begin.elapsed().as_secs_f64() - alone.as_secs_f64()) * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[SAMPLES / 2]
}

fn exchange(net: &Mutex<&mut Net>, out: &[u8], into: &mut [u8], steps: u64) {
    let (sent, received) = {
        let mut net = net.lock().unwrap();
        let other = 1 - net.rank();
        let received = receive(&mut net, other, 1, into);
        (send(&mut net, other, 1, out), received)
    };
    compute(steps);
    for ticket in [received, sent] {
        while net.lock().unwrap().test(&ticket).unwrap().is_none() {}
    }
}
