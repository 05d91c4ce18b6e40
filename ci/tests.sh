#!/usr/bin/env bash
# Unit and integration tests of every member. The conformance suites of the backends and the doc tests
# have checks of their own.
source "$(dirname "$0")/common.sh"
backends=(lpf-pthreads lpf-tcp)
# --no-fail-fast: all failures in one run.
cargo test --locked --workspace "${backends[@]/#/--exclude=}" --features lpf-core/conformance \
    --lib --bins --tests --no-fail-fast
for backend in "${backends[@]}"; do
    suites=()
    for test in "$backend"/tests/*; do
        name="$(basename "$test" .rs)"
        [ "$name" = conformance ] || [ "$name" = collectives ] || suites+=(--test "$name")
    done
    cargo test --locked -p "$backend" --lib "${suites[@]}" --no-fail-fast
done
