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
        # These are about processes that are started, signalled and waited for; what the processes do with
        # memory is in the tests of the crates.
        lpf-cli/tests/run.rs | lpf-cli/tests/faults | lpf-cli/tests/cluster) ;;
        # ci/mpi.sh has a build with MPI for it.
        lpf-mpi/*) ;;
        lpf-tcp/*) ;;
        # A folder without a program holds what tests read.
        *) if [[ -f $test || -f $test/main.rs ]]; then tests+=(--test "$(basename "$test" .rs)"); fi ;;
    esac
done
# --cfg asan: bounds on time are wider, see lpf-core/src/conformance/verdict.rs.
flags="-Zsanitizer=address --cfg asan"
status=0
sanitized asan "$flags" --workspace --exclude lpf-mpi --exclude lpf-tcp --lib --bins "${tests[@]}" || status=1
# Its suites are those of the protocol, which lpf-core/tests runs in one process: the sockets under them.
sanitized asan "$flags" -p lpf-tcp --lib --test control --test rendezvous --test sockets || status=1
exit "$status"
