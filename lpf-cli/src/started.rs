//! What to type for a command of this program, as it was started: hints are pasted.

use std::env;

/// `lpf probe`, `target/release/lpf probe`, or by way of cargo as the README has it.
pub(crate) fn command(name: &str) -> String {
    // Cargo tells what it runs which package that is from.
    if env::var("CARGO_PKG_NAME").is_ok_and(|package| package == env!("CARGO_PKG_NAME")) {
        return format!("cargo run --release -- {name}");
    }
    let typed = env::args().next().unwrap_or_else(|| "lpf".into());
    format!("{typed} {name}")
}
