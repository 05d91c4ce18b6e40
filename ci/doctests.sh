#!/usr/bin/env bash
# The code in the documentation: of the crates, of the README, of every page of the book. Those
# marked compile_fail are tests of the typed layer: they have to be rejected.
source "$(dirname "$0")/common.sh"
cargo test --locked --workspace --doc --no-fail-fast
