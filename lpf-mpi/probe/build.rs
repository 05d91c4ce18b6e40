//! Comes before the build scripts of the bindings, which depend on this crate.

#[allow(unreachable_pub, reason = "of the library")]
#[path = "src/check.rs"]
mod check;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src");
    check::check();
}
