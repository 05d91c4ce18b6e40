#!/usr/bin/env bash
# The conformance suite and that of the collectives on every backend: on threads, between processes over TCP, and on
# a network in memory. All of them at once: a suite computes for a tenth of its time.
#
# BRIEF=1 leaves out variants: on threads the barriers of a larger machine, level by level, and of processes that share
# a pinned core; over TCP the second algorithm of the first exchange, and collectives; and the network in memory.
source "$(dirname "$0")/common.sh"
programs="$(programs "${workspace[@]}")"

# suite PACKAGE NAME [SETTING...] [-- ARGUMENTS...]: one of them, as cargo would run it.
suite() {
    local program settings=()
    program="$(sed -n "s|.*/$1 $2 ||p" <<<"$programs")"
    cd "$1"
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    env "${settings[@]}" "$program" "${@:2}"
}
beside suite lpf-pthreads conformance
beside suite lpf-pthreads collectives
if [ "${BRIEF:-0}" = 1 ]; then
    beside suite lpf-tcp conformance -- direct:: serve
else
    beside suite lpf-tcp conformance
    beside suite lpf-tcp collectives
    beside suite lpf-core messages
    beside suite lpf-core collectives
    beside suite lpf-pthreads conformance LPF_TOPOLOGY=2x2x2
    beside suite lpf-pthreads conformance LPF_PIN=compact
fi
all_well
