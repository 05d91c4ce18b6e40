#!/usr/bin/env bash
# The conformance suite and that of the collectives on every backend: on threads with the barrier that this machine chooses by
# itself, with those of a larger one, level by level, and with the groups of processes that share a
# pinned core; between processes over TCP, with both ways of the first exchange. All of them at once: a suite
# computes for a tenth of its time.
source "$(dirname "$0")/common.sh"
barriers=(LPF_CHECK=0 LPF_TOPOLOGY=2x2x2 LPF_PIN=compact)
ways=()
collectives=(lpf-pthreads lpf-tcp)
less=(--exclude lpf-core)
if [ "${PLAIN_TEST:-0}" = 1 ]; then
    # It has ten minutes, also on a machine with other work.
    echo "without: other barriers, the second way of the first exchange, collectives over TCP"
    barriers=(LPF_CHECK=0)
    ways=(direct:: serve)
    collectives=(lpf-pthreads)
    less+=(--exclude lpf-tcp)
fi
built="$(programs "${workspace[@]}" --exclude lpf-core --test conformance)"
built+=$'\n'"$(programs "${workspace[@]}" "${less[@]}" --test collectives)"
[ "${BUILD_ONLY:-0}" = 0 ] || exit 0

# suite SETTING PACKAGE NAME ARGUMENTS...: one of them, as cargo would run it.
suite() {
    local program
    program="$(sed -n "s|.*/$2 $3 ||p" <<<"$built")"
    cd "$2"
    env "$1" "$program" "${@:4}"
}
for setting in "${barriers[@]}"; do
    beside suite "$setting" lpf-pthreads conformance
done
beside suite LPF_CHECK=0 lpf-tcp conformance "${ways[@]}"
# Collectives have no barrier of their own.
for backend in "${collectives[@]}"; do
    beside suite LPF_CHECK=0 "$backend" collectives
done
all_well
