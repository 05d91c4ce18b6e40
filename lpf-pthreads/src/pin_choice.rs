//! Whether a section pins its threads.

use std::time::{Duration, Instant};

use lpf_core::process::PerProcess;
use lpf_core::settings::Pin;
use parking_lot::Mutex;

use crate::pool;

/// The pinning of a section of `processes` that starts now.
///
/// Pinned threads keep their caches and, if they share a core, gather in it; but they cannot move to a free core. So
/// `auto` pins if nothing else runs on the machine, neither another program nor another section of this one. A section
/// inside a section is never pinned, because its processors are those of one process.
pub(crate) fn resolve(pin: &Pin, processes: usize, nested: bool) -> Pin {
    match pin {
        _ if nested => Pin::None,
        Pin::Auto if processes > 1 && pool::is_quiet() && is_machine_free() => Pin::Compact,
        Pin::Auto => Pin::None,
        chosen => chosen.clone(),
    }
}

/// How long an answer of [`is_machine_free`] stands: asking takes longer than a short section.
const STANDS_FOR: Duration = Duration::from_millis(50);

/// Whether nothing but this thread and idle workers is running, as far as the system says.
fn is_machine_free() -> bool {
    static LAST: PerProcess<Mutex<Option<(Instant, bool)>>> = PerProcess::new(Mutex::default);
    let mut last = LAST.get().lock();
    match *last {
        Some((when, free)) if when.elapsed() < STANDS_FOR => free,
        _ => {
            last.insert((
                Instant::now(),
                runnable().is_some_and(|count| count <= 1 + pool::awake()),
            ))
            .1
        }
    }
}

/// Threads that run or could run now on the whole machine, the caller included.
fn runnable() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().nth(3)?.split('/').next()?.parse().ok()
}
