//! A bar with the current estimate, on standard error and only on a terminal.

use std::rc::Rc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lpf::measure::task::Watch;

/// A command's progress. Nothing is drawn where standard error is no terminal.
#[derive(Clone, Debug)]
pub(crate) struct Bar(ProgressBar);

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
        Bar(bar)
    }

    /// The bar as one who is told how far a task is; it goes with it.
    pub(crate) fn watch(self) -> Watch {
        Rc::new(move |elapsed, estimate| self.show(elapsed, estimate))
    }

    /// How far it is, and the estimate.
    pub(crate) fn show(&self, elapsed: Duration, estimate: impl FnOnce() -> String) {
        if !self.0.is_hidden() {
            self.0.set_position(elapsed.as_millis() as u64);
            self.0.set_message(estimate());
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
