#!/usr/bin/env bash
# AddressSanitizer over the tests of the crates that a program is linked with: nothing is used outside its bounds or after
# it was freed, and nothing is leaked.
source "$(dirname "$0")/common.sh"
source ci/sanitizer.sh
# allocator_may_return_null: refused memory is an error to be tested, not the end.
export ASAN_OPTIONS="allocator_may_return_null=1 ${ASAN_OPTIONS:-}"
crates=(lpf-core lpf-messages lpf-collectives lpf-pthreads lpf-control lpf-tcp)
packages=("${crates[@]/#/--package=}")
tests=()
for test in $(printf '%s/tests/* ' "${crates[@]}"); do
    case "$test" in
        # Programs that must not compile are compiled, not run.
        */compile_fail*) ;;
        # Below.
        */conformance | */collectives | */messages) ;;
        # A folder without a program holds what tests read.
        *) if [[ -f $test || -f $test/main.rs ]]; then tests+=(--test "$(basename "$test" .rs)"); fi ;;
    esac
done
# --cfg asan: bounds on time are wider, see lpf-conformance/src/verdict.rs.
under_asan() { sanitized asan "-Zsanitizer=address --cfg asan" "$@"; }
# The suites of lpf-tcp are those of the protocol, which lpf-messages/tests runs in one process: the conformance suite alone, as
# the collectives would take a quarter of an hour there under the sanitizer.
suite() { under_asan -p lpf-messages -p lpf-collectives -p lpf-pthreads --test "$@"; }
# The network on MPI. The search for leaks is left out: MPI keeps much, and the stories about giving up leave memory to
# it on purpose. Open MPI's files are in a folder of this check: ci/mpi.sh, which may run beside, looks for what its own
# jobs leave.
on_mpi() {
    local files
    files="$(mktemp -d)"
    TMPDIR="$files" OMPI_MCA_btl_vader_backing_directory="$files" \
        ASAN_OPTIONS="detect_leaks=0 $ASAN_OPTIONS" under_asan -p lpf-mpi --features mpi --test stories "$@"
    rm -rf "$files"
}
under_asan "${packages[@]}" --no-run --lib "${tests[@]}"
suite conformance --test collectives --test messages --no-run
on_mpi --no-run
[ "${BUILD_ONLY:-0}" = 0 ] || exit 0
beside suite conformance
beside suite collectives
# The two algorithms of the first exchange differ in how many messages carry it: cases with much traffic show that.
beside suite messages -- direct:: traffic what_the_network bruck::{random::random_programs,communication::thousands_of_small,slots::sizes_may_differ}
all_well
under_asan "${packages[@]}" --lib "${tests[@]}"
on_mpi
