//! The message of a panic that ends the program at once, and with it the captured output of the test.

use std::backtrace::Backtrace;
use std::io::Write;
use std::sync::Once;

/// The function in which a panic ends the program: [`guarded`](lpf_core::runtime::guarded).
const GUARDED: &str = "guard::guarded";

/// Writes the message of such a panic past the capture of test output, from now on.
pub(crate) fn show_guarded() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            if Backtrace::force_capture().to_string().contains(GUARDED) {
                let text = format!("conformance: the runtime ends the program: {panic}\n");
                let _ = std::io::stderr().write_all(text.as_bytes());
            }
        }));
    });
}
