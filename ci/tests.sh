#!/usr/bin/env bash
# Unit and integration tests of every member. The conformance suites of the backends and the doc tests
# have checks of their own.
source "$(dirname "$0")/common.sh"
# The suites on the network in memory, which wait most of their time.
suite() { cargo test --locked "${workspace[@]}" --exclude lpf-pthreads --exclude lpf-tcp --test "$@"; }
# All others, by their names.
rest=(--lib --bins)
for test in lpf*/tests/*; do
    case "$test" in
        */conformance | */collectives | */messages) ;;
        # ci/faults.sh and ci/mpi.sh have them.
        */faults | lpf-mpi/tests/deaths | lpf-mpi/tests/stories) ;;
        # A folder without a program holds what tests read.
        *) if [[ -f $test || -f $test/main.rs ]]; then rest+=(--test "$(basename "$test" .rs)"); fi ;;
    esac
done
# --no-fail-fast: all failures in one run.
others() { cargo test --locked --workspace --features lpf-core/conformance --no-fail-fast "${rest[@]}" "$@"; }
others --no-run
suite messages --test collectives --no-run
beside suite messages
beside suite collectives
beside others
all_well
