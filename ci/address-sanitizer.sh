#!/usr/bin/env bash
# AddressSanitizer over the tests: nothing is used outside its bounds or after it was freed, and
# nothing is leaked.
source "$(dirname "$0")/common.sh"
source ci/sanitizer.sh
# allocator_may_return_null: refused memory is an error to be tested, not the end.
export ASAN_OPTIONS="allocator_may_return_null=1 ${ASAN_OPTIONS:-}"
tests=()
for test in lpf*/tests/*; do
    case "$test" in
        # Programs that must not compile are compiled, not run.
        */compile_fail*) ;;
        # Below.
        */conformance | */collectives | */messages) ;;
        # These are about processes that are started, signalled and waited for; what the processes do with
        # memory is in the tests of the crates.
        lpf-cli/tests/run.rs | lpf-cli/tests/faults | lpf-cli/tests/cluster) ;;
        # ci/mpi.sh has a build with MPI for it.
        lpf-mpi/*) ;;
        # A folder without a program holds what tests read.
        *) if [[ -f $test || -f $test/main.rs ]]; then tests+=(--test "$(basename "$test" .rs)"); fi ;;
    esac
done
# --cfg asan: bounds on time are wider, see lpf-core/src/conformance/verdict.rs.
sanitized_tests() { sanitized asan "-Zsanitizer=address --cfg asan" "${workspace[@]}" "$@"; }
# Those of lpf-tcp are the suites of the protocol, which lpf-core/tests runs in one process.
suite() { sanitized_tests --exclude lpf-tcp --exclude lpf-mpi --test "$@"; }
suites=(conformance collectives messages)
sanitized_tests --no-run --lib --bins "${tests[@]}"
sanitized_tests --no-run --exclude lpf-tcp --exclude lpf-mpi "${suites[@]/#/--test=}"
[ "${BUILD_ONLY:-0}" = 0 ] || exit 0
for name in "${suites[@]}"; do
    beside suite "$name"
done
all_well
# The commands' tests compute, and some measure.
sanitized_tests --lib --bins "${tests[@]}"
