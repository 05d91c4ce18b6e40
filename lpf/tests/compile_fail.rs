//! Closures that may run in other processes and capture variables do not compile, and the compiler says what to do.
//!
//! Its message is kept beside each program, and compared under the compiler that it was recorded with. To record it again:
//! `TRYBUILD=overwrite cargo test -p lpf --test compile_fail`.

use std::process::Command;

/// The compiler whose messages are recorded.
const RECORDED_WITH: &str = "rustc 1.95.";

#[test]
fn captured_variables_do_not_travel_between_processes() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().expect("rustc runs");
    let compiler = String::from_utf8_lossy(&output.stdout);
    if !compiler.starts_with(RECORDED_WITH) {
        println!("left out: the messages are those of {RECORDED_WITH}x, this is {compiler}");
        return;
    }
    let tests = trybuild::TestCases::new();
    tests.pass("tests/compile_fail/what_is_right.rs");
    tests.compile_fail("tests/compile_fail/*_fails.rs");
}
