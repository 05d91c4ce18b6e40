#!/usr/bin/env bash
# AddressSanitizer over all tests: nothing is used outside its bounds or after it was freed, and
# nothing is leaked.
source "$(dirname "$0")/common.sh"
source ci/sanitizer.sh
# allocator_may_return_null: refused memory is an error to be tested, not the end.
export ASAN_OPTIONS="allocator_may_return_null=1 ${ASAN_OPTIONS:-}"
# --skip: the programs that must not compile are compiled, not run; their check is ci/tests.sh.
# --cfg asan: bounds on time are wider, see lpf-core/src/conformance/verdict.rs.
sanitized asan "-Zsanitizer=address --cfg asan" --workspace --lib --bins --tests -- --skip does_not_compile
