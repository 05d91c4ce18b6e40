#!/usr/bin/env bash
# loom runs the barrier, the counters of the rings and the failure flag, for 2 and 3 threads, through
# the orders of memory operations that the memory model allows. What is bounded is said in
# lpf-pthreads/src/models.rs.
source "$(dirname "$0")/common.sh"
# --cfg loom: the same sources on loom's atomics. --lib: the models are unit tests, they see what is private; other unit
# tests would use loom's atomics outside of a model. Its own target folder: the flag changes every crate. The search is
# long: what takes part in it is optimised, and nothing else.
optimised=()
for package in loom generator lpf-pthreads; do
    optimised+=(--config "profile.dev.package.$package.opt-level=3")
done
RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$target_root/loom" \
    cargo test --locked "${optimised[@]}" -p lpf-pthreads --lib models::
