#!/usr/bin/env bash
# Unit and integration tests of every member, and the commands. The suites, the faults and the code in the
# documentation have checks of their own. BRIEF=1 leaves out compile_fail, which builds most of the workspace once more:
# the doctests have code that must not compile, too.
source "$(dirname "$0")/common.sh"
commands=() others=(--lib --bins)
for test in lpf*/tests/*; do
    name="$(basename "$test" .rs)"
    # A folder without a program holds what tests read.
    [[ -f $test || -f $test/main.rs ]] || continue
    case "$test" in
        */conformance | */collectives | */messages | */toy | */faults | lpf-hybrid/*) ;;
        # These need the feature mpi.
        lpf-mpi/tests/deaths | lpf-mpi/tests/stories) ;;
        */compile_fail.rs) [ "${BRIEF:-0}" = 1 ] || others+=(--test "$name") ;;
        lpf-cli/*) commands+=(--test "$name") ;;
        *) others+=(--test "$name") ;;
    esac
done
# --no-fail-fast: all failures in one run.
tests() { cargo test --locked --workspace --no-fail-fast "$@"; }
# The commands wait more than they compute.
beside tests "${commands[@]}"
beside tests "${others[@]}"
# The network once more, on sealed connections. A hostile peer has no seal; most of the hundred MiB is to make them.
sealed() { LPF_TEST_SEALED=1 tests --test sockets -- --skip hostile:: --skip a_hundred_mebibytes; }
beside sealed
all_well
