#!/usr/bin/env bash
# Unit and integration tests of every member, the conformance suite among them.
source "$(dirname "$0")/common.sh"
# Doc tests have a check of their own. --no-fail-fast: all failures in one run.
cargo test --locked --workspace --lib --bins --tests --no-fail-fast
