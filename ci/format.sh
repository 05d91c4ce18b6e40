#!/usr/bin/env bash
# Source text is as rustfmt writes it.
source "$(dirname "$0")/common.sh"
cargo fmt --version >/dev/null 2>&1 || needs "rustfmt is not installed (rustup component add rustfmt)"
cargo fmt --all --check
