#!/usr/bin/env bash
# ThreadSanitizer over the conformance suite and the collectives' on threads: no data race in the protocol.
source "$(dirname "$0")/common.sh"
source ci/sanitizer.sh
# -Cunsafe-allow-abi-mismatch: the standard library was built without it.
# --cfg tsan: copies between processes are made of atomic words, so that a race that a program
# makes by mistake (which the contract allows for) is not reported as one of the protocol.
# halt_on_error: a report ends the run. suppressions: reports about the standard library, see there.
# allocator_may_return_null: refused memory is an error to be tested, not the end.
export TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/ci/tsan-suppressions.txt allocator_may_return_null=1 ${TSAN_OPTIONS:-}"
# --nocapture: the test harness's capture of output is a lock of the standard library too.
race_free() {
    sanitized tsan "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg tsan" \
        -p lpf-pthreads "$@" -- --nocapture
}
race_free --lib --test conformance --test rules --test collectives --no-run
[ "${BUILD_ONLY:-0}" = 0 ] || exit 0
beside race_free --test conformance
beside race_free --test collectives
beside race_free --lib --test rules
all_well
