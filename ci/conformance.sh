#!/usr/bin/env bash
# The conformance suite and that of the collectives on every backend: on threads, between processes over TCP, on a
# network in memory, on the toy engine of the book, and on nodes: of threads, and of processes that TCP connects. Several of them at once: a suite computes for a third of its
# time, and what waits for a process that has no core computes, too.
#
# BRIEF=1 leaves out variants: on threads the barriers of a larger machine, level by level, and of processes that share
# a pinned core; over TCP the second algorithm of the first exchange, and collectives; and what runs in memory.
source "$(dirname "$0")/common.sh"
programs="$(programs --workspace)"

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

# suites SUITE...: those that are given, a word each, one after the other: PACKAGE:NAME[:SETTING].
suites() {
    local one status=0
    for one in "$@"; do
        # shellcheck disable=SC2086 # the words of one
        (suite ${one//:/ }) || status=1
    done
    return "$status"
}
# Long vectors are computed in memory as they are elsewhere, in minutes.
# shellcheck disable=SC2046 # words
in_memory() {
    suite "$@" -- $(printf -- '--skip ::%s ' long_sums sums_ vectors_longer every_algorithm elements_of)
}
if [ "${BRIEF:-0}" = 1 ]; then
    beside suite lpf-pthreads conformance
    beside suite lpf-pthreads collectives
    beside suite lpf-tcp conformance -- direct:: serve
    beside suite lpf-hybrid threads -- two_by_four::
else
    beside suites lpf-pthreads:{conformance,collectives,conformance:LPF_TOPOLOGY=2x2x2,conformance:LPF_PIN=compact}
    beside suites lpf-tcp:{collectives,conformance}
    beside in_memory lpf-messages messages
    beside in_memory lpf-conformance toy
    beside in_memory lpf-hybrid threads
    beside suite lpf-hybrid tcp -- two_by_four:: serve
fi
all_well
