# Sourced by the two sanitizer checks. They work with the stable toolchain:
#   RUSTC_BOOTSTRAP=1   lets it take -Z flags
#   --target            compiles build scripts and macros, which run in the compiler, without them
# The standard library itself is not instrumented; what it inlines is.
sanitizer_target=x86_64-unknown-linux-gnu
[ "$(rustc -vV | sed -n 's/^host: //p')" = "$sanitizer_target" ] ||
    needs "this needs the toolchain of $sanitizer_target"

# sanitized NAME FLAGS ARGS...: cargo test under RUSTFLAGS, in a folder of its own. A sanitizer sees each access of
# the source: the optimiser would cost a third of the build, and only hide some.
sanitized() {
    local name="$1" flags="$2"
    shift 2
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="$flags" CARGO_TARGET_DIR="$target_root/$name" \
        cargo test --locked --target "$sanitizer_target" --no-fail-fast \
        --config profile.dev.package.lpf-pthreads.opt-level=0 --config profile.dev.package.lpf-mpi.opt-level=0 "$@"
}
