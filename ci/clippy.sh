#!/usr/bin/env bash
# No warning of compiler or clippy anywhere; an unsafe block without its reason is an error.
source "$(dirname "$0")/common.sh"
cargo clippy --version >/dev/null 2>&1 || needs "clippy is not installed (rustup component add clippy)"
# --all-targets: tests and examples too. -D warnings: a warning fails the check.
cargo clippy --locked --workspace --all-targets -- -D warnings
