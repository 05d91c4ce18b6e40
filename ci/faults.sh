#!/usr/bin/env bash
# Every fault in every place, in real processes over TCP: what the survivors are told, and how soon. ci/mpi.sh does
# the same on MPI. BRIEF=1 leaves out what takes a minute, and what takes all cores.
source "$(dirname "$0")/common.sh"
leaves_nothing cargo test --locked --workspace --test faults
[ "${BRIEF:-0}" = 1 ] || leaves_nothing cargo test --locked --workspace --test faults -- --ignored
