//! Says what is missing also where this crate is a part of another workspace, in which the bindings have
//! their own `build-probe-mpi`: then it often comes before their build scripts.

#[allow(unreachable_pub, reason = "of the library")]
#[path = "probe/src/check.rs"]
mod check;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=probe/src");
    if std::env::var_os("CARGO_FEATURE_MPI").is_some() {
        check::check();
    }
}
