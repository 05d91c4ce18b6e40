#!/usr/bin/env bash
# The conformance suite on the barriers that a small machine does not choose by itself: each level
# of a larger one, and the groups of processes that share a pinned core.
source "$(dirname "$0")/common.sh"
for settings in LPF_TOPOLOGY=2x2x2 LPF_PIN=compact; do
    echo "== $settings"
    env "$settings" cargo test --locked -p lpf-pthreads --test conformance
done
