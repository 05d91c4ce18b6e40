//! What the typed layer forbids does not compile, and for the reason given in each file.
//!
//! The reason is the compiler's message, kept beside each program. Messages change between
//! compilers, so they are compared under the one they were recorded with; under another this test
//! says that it was left out (the `compile_fail` examples in the documentation still run).
//! To record them again: `TRYBUILD=overwrite cargo test -p lpf-core --test compile_fail`.

use std::path::PathBuf;
use std::process::Command;

/// The compiler whose messages are recorded.
const RECORDED_WITH: &str = "rustc 1.95.";

fn rustc() -> String {
    std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into())
}

fn compiler() -> String {
    let output = Command::new(rustc()).arg("--version").output().expect("rustc runs");
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

/// Whether the standard library's sources are installed: the compiler then quotes them.
fn quotes_std() -> bool {
    let output = Command::new(rustc()).args(["--print", "sysroot"]).output().expect("rustc runs");
    let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    sysroot.join("lib/rustlib/src/rust/library/std").exists()
}

#[test]
fn misuse_of_the_typed_layer_does_not_compile() {
    let compiler = compiler();
    if !compiler.starts_with(RECORDED_WITH) {
        println!("left out: the messages are those of {RECORDED_WITH}x, this is {compiler}");
        return;
    }
    let tests = trybuild::TestCases::new();
    tests.pass("tests/compile_fail/what_is_right.rs");
    tests.compile_fail("tests/compile_fail/*_fails.rs");
    if quotes_std() {
        println!("left out: *_quotes_std.rs, recorded without the component rust-src");
    } else {
        tests.compile_fail("tests/compile_fail/*_quotes_std.rs");
    }
}
