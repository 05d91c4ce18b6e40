#!/usr/bin/env bash
# Every fault in every place, in real processes over TCP: what the survivors are told, and how soon. On
# MPI ci/mpi.sh does the same.
source "$(dirname "$0")/common.sh"
leaves_nothing cargo test --locked "${workspace[@]}" --test faults
# Takes a minute, or all cores.
[ "${PLAIN_TEST:-0}" = 1 ] || leaves_nothing cargo test --locked "${workspace[@]}" --test faults -- --ignored
