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
        */conformance | */collectives | */messages | lpf-mpi/*) ;;
        # These are about processes that are started, signalled and waited for; what the processes do with
        # memory is in the tests of the crates.
        lpf-cli/tests/run.rs | lpf-cli/tests/faults | lpf-cli/tests/cluster) ;;
        # Below: of the commands, those that measure have memory of their own.
        lpf-cli/tests/cli.rs) ;;
        # A folder without a program holds what tests read.
        *) if [[ -f $test || -f $test/main.rs ]]; then tests+=(--test "$(basename "$test" .rs)"); fi ;;
    esac
done
# --cfg asan: bounds on time are wider, see lpf-core/src/conformance/verdict.rs.
sanitized_tests() { sanitized asan "-Zsanitizer=address --cfg asan" "${workspace[@]}" "$@"; }
# The network on MPI. The search for leaks is left out: MPI keeps much, and the stories about giving up leave memory to
# it on purpose.
on_mpi() {
    ASAN_OPTIONS="detect_leaks=0 $ASAN_OPTIONS" \
        sanitized asan "-Zsanitizer=address --cfg asan" -p lpf-mpi --features mpi --test stories "$@"
}
# Those of lpf-tcp are the suites of the protocol, which lpf-core/tests runs in one process: the conformance suite alone,
# as the collectives would take a quarter of an hour there under the sanitizer.
suite() { sanitized_tests --exclude lpf-tcp --exclude lpf-mpi --test "$@"; }
suites=(conformance collectives messages)
sanitized_tests --no-run --exclude lpf-tcp --exclude lpf-mpi "${suites[@]/#/--test=}"
sanitized_tests --no-run --lib --bins --test cli "${tests[@]}"
on_mpi --no-run
[ "${BUILD_ONLY:-0}" = 0 ] || exit 0
beside suite conformance
beside suite collectives
beside suite messages -- --skip collectives::
all_well
beside sanitized_tests --lib --bins "${tests[@]}"
beside sanitized_tests --test cli -- bench
beside on_mpi
all_well
