#!/usr/bin/env bash
# All test programs, commands and examples compile. The checks on threads and TCP run what this one builds.
source "$(dirname "$0")/common.sh"
cargo test --locked --workspace --no-run
