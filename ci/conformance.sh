#!/usr/bin/env bash
# The conformance suite and that of the collectives on every backend: on threads with the barrier that this machine chooses by
# itself, with those of a larger one, level by level, and with the groups of processes that share a
# pinned core; between processes over TCP, with both ways of the first exchange.
source "$(dirname "$0")/common.sh"
barriers=(LPF_CHECK=0 LPF_TOPOLOGY=2x2x2 LPF_PIN=compact)
ways=()
if [ "${PLAIN_TEST:-0}" = 1 ]; then
    # It has ten minutes, also on a machine with other work.
    echo "without: other barriers, the second way of the first exchange, collectives over TCP"
    barriers=(LPF_CHECK=0)
    ways=(direct:: serve)
fi
for settings in "${barriers[@]}"; do
    echo "== threads, $settings"
    env "$settings" cargo test --locked -p lpf-pthreads --test conformance
done
# Collectives have no barrier of their own.
cargo test --locked -p lpf-pthreads --test collectives
echo "== tcp ${ways[*]:-, both ways}"
cargo test --locked -p lpf-tcp --test conformance -- "${ways[@]}"
[ "${PLAIN_TEST:-0}" = 1 ] || cargo test --locked -p lpf-tcp --test collectives
