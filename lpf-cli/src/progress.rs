//! How far a command is, on standard error: a bar with the current estimate on a terminal, else a line from time to time.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lpf::measure::task::Watch;

use crate::output;

/// Between two lines in a file or a pipe. A quick measurement ends before the first.
const EACH: Duration = Duration::from_secs(15);

/// A command's progress.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    what: String,
    time: Duration,
    /// When the next line is due.
    next: Cell<Duration>,
}

impl Bar {
    /// A bar that is full after `time`.
    pub(crate) fn new(what: &str, time: Duration) -> Self {
        let bar = ProgressBar::with_draw_target(
            Some(time.as_millis() as u64),
            ProgressDrawTarget::stderr(),
        );
        let style = ProgressStyle::with_template("{prefix} [{bar:24}] {elapsed} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        bar.set_prefix(what.to_string());
        Bar { bar, what: what.into(), time, next: Cell::new(EACH) }
    }

    /// The bar as one who is told how far a task is; it goes with it.
    pub(crate) fn watch(self) -> Watch {
        Rc::new(move |elapsed, estimate| self.show(elapsed, estimate))
    }

    /// How far it is, and the estimate.
    pub(crate) fn show(&self, elapsed: Duration, estimate: impl FnOnce() -> String) {
        if !self.bar.is_hidden() {
            self.bar.set_position(elapsed.as_millis() as u64);
            self.bar.set_message(estimate());
        } else if self.is_due(elapsed) {
            let (done, all) = (elapsed.as_secs(), self.time.as_secs());
            output::say(format!("{}: {done} of {all} s; {}", self.what, estimate()));
        }
    }

    /// Whether a line is due; if so, the next one is due later.
    fn is_due(&self, elapsed: Duration) -> bool {
        let is_due = elapsed >= self.next.get();
        if is_due {
            self.next.set(elapsed + EACH);
        }
        is_due
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_a_few_times_a_minute() {
        let bar = Bar::new("probe", Duration::from_secs(60));
        let due = |second: &u64| bar.is_due(Duration::from_secs(*second));
        assert_eq!((0..60).filter(due).collect::<Vec<_>>(), [15, 30, 45]);
    }
}
