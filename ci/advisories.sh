#!/usr/bin/env bash
# No dependency has a known vulnerability. Needs the advisory database, so a network.
source "$(dirname "$0")/common.sh"
database=https://github.com/RustSec/advisory-db
timeout 20 git ls-remote --quiet "$database" HEAD >/dev/null 2>&1 || {
    echo "no network: $database cannot be reached"
    exit 77
}
cargo audit --version >/dev/null 2>&1 || needs "cargo-audit is not installed (cargo install cargo-audit)"
cargo audit
