#!/usr/bin/env bash
# The conformance suite and that of the collectives on every backend: on threads with the barrier that this machine chooses by
# itself, with those of a larger one, level by level, and with the groups of processes that share a
# pinned core; between processes over TCP, with both ways of the first exchange.
source "$(dirname "$0")/common.sh"
# A plain run has ten minutes: it leaves other barriers to ./test --all, and below the second way of the first
# exchange.
barriers=(LPF_CHECK=0 LPF_TOPOLOGY=2x2x2 LPF_PIN=compact)
[ "${PLAIN_TEST:-0}" = 0 ] || barriers=(LPF_CHECK=0)
for settings in "${barriers[@]}"; do
    echo "== threads, $settings"
    env "$settings" cargo test --locked -p lpf-pthreads --test conformance
done
# Collectives have no barrier of their own.
cargo test --locked -p lpf-pthreads --test collectives
ways=()
[ "${PLAIN_TEST:-0}" = 0 ] || ways=(direct:: serve)
echo "== tcp ${ways[*]:-, both ways}"
cargo test --locked -p lpf-tcp --test conformance -- "${ways[@]}"
cargo test --locked -p lpf-tcp --test collectives
