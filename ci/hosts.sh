#!/usr/bin/env bash
# A cluster on one machine: hosts with names and network stacks of their own, each with one cable of a
# given rate to a common switch. Sockets, the start of an MPI over a remote shell, and failures of links
# are real; what is not: hosts share processors, memory, disks and the clock.
#
#   ci/hosts.sh with N RATE CMD...   CMD beside hosts h1 to hN, RATE as tc writes it (100mbit); CMD itself
#                                    runs on none of them, but may call the commands below
#   ci/hosts.sh up N [RATE]          the same hosts until `down`
#   ci/hosts.sh down                 ends what runs on them, and them
#   ci/hosts.sh on HOST CMD...       CMD on HOST
#   ci/hosts.sh link HOST up|down|SECONDS   plugs HOST's cable in, pulls it, or pulls it for so long
#   ci/hosts.sh lossy PERCENT        loses this percentage of the frames on their way to each host
#   ci/hosts.sh between HOST HOST up|down   lets what they send each other through, or loses it
#   ci/hosts.sh mpirun SLOTS [OPTION...] -- CMD...   an Open MPI job from h1, with SLOTS processes on each host
#   ci/hosts.sh missing              says what this machine lacks for hosts, and fails; or nothing
#
# Host K has the address 10.77.0.K. All lives in a process, a mount and a network namespace that end with
# CMD, or with `down`, however that ends: nothing is left. Needs root, or user namespaces, and iproute2.
set -euo pipefail
self=$(readlink -f "${BASH_SOURCE[0]}")
subnet=10.77.0
# Of the hosts that `up` made: the first process there, which keeps them, and the one around it.
keeper="${XDG_RUNTIME_DIR:-/tmp}/lpf-hosts-$(id -u)"

fail() { echo "ci/hosts.sh: $*" >&2; exit 1; }

# apart CMD...: CMD as the first process of namespaces that end with it. Who is not root is it there.
apart() {
    local user=()
    [ "$(id -u)" = 0 ] || user=(--user --map-root-user)
    exec unshare "${user[@]}" --mount --net --pid --mount-proc --fork --kill-child "$@"
}

# Where namespaces are named, and nowhere else.
private_run() { mount -t tmpfs none /run && mkdir /run/netns && mount -t tmpfs none /dev/shm; }

missing() {
    local command said
    [ "$(uname -s)" = Linux ] || { echo "network namespaces are Linux's"; return 1; }
    for command in ip tc; do
        command -v "$command" >/dev/null || { echo "$command is not installed (apt install iproute2)"; return 1; }
    done
    for command in unshare nsenter; do
        command -v "$command" >/dev/null || { echo "$command is not installed (apt install util-linux)"; return 1; }
    done
    # Of a rate and a cable as they are made below.
    said=$( (apart bash -c "$(declare -f private_run)"'
        private_run && ip netns add a && ip link add s type bridge && ip link add v type veth peer name e netns a &&
            tc qdisc add dev v root tbf rate 1mbit burst 16kb latency 50ms && '"$(declare -f lose)"' && lose a e 1') 2>&1) && return
    if [ "$(id -u)" = 0 ]; then
        echo "network namespaces cannot be made here: $(tail -n 1 <<<"$said")"
    else
        echo "network namespaces need root, or a system that allows them to users: $(tail -n 1 <<<"$said")"
    fi
    return 1
}

# lose HOST DEVICE PERCENT: loses frames that arrive there, which their sender does not see. netem would too, but not
# every kernel has it. The filter: load a random number of 32 bits; is it above the bound? pass : drop.
lose() {
    tc -n "$1" qdisc replace dev "$2" clsact
    tc -n "$1" filter replace dev "$2" ingress pref 1 handle 1 bpf direct-action bytecode \
        "4,32 0 0 $((0xfffff000 + 56)),53 0 1 $(($3 * 0xffffffff / 100)),6 0 0 $((0xffffffff)),6 0 0 2"
}

make_hosts() {
    local count=$1 rate=$2 i
    private_run
    ip link set lo up
    ip link add switch type bridge
    ip link set switch up
    for i in $(seq 1 "$count"); do
        ip netns add "h$i"
        ip link add "h$i" type veth peer name eth0 netns "h$i"
        ip link set "h$i" master switch up
        ip -n "h$i" addr add "$subnet.$i/24" dev eth0
        ip -n "h$i" link set lo up
        ip -n "h$i" link set eth0 up
        # Both directions of the cable.
        tc qdisc add dev "h$i" root tbf rate "$rate" burst 16kb latency 50ms
        tc -n "h$i" qdisc add dev eth0 root tbf rate "$rate" burst 16kb latency 50ms
        # For short paths, as hosts of a cluster have it, whatever this machine has for its own way to the
        # world; this one may be set everywhere.
        nsenter --net="/run/netns/h$i" sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control'
    done
}

hosts() { ls /run/netns | sort -V; }

is_host() { [ -e "/run/netns/$1" ] || fail "there is no host $1, only $(hosts | paste -sd' ')"; }

# The first process of the namespaces: who asks it to end takes all with it.
first() {
    trap 'exit 143' TERM
    trap 'exit 130' INT
    make_hosts "$1" "$2"
    shift 2
    "$@" <&0 &
    wait $! && exit 0 || exit $?
}

# is_kept: whether that process is there, and its number not another's by now.
is_kept() {
    first='' around=''
    [ -s "$keeper" ] && read -r first around <"$keeper" && grep -qsa "^sleep.infinity" "/proc/$first/cmdline"
}

down() {
    # The one around it: the first process goes with it.
    ! is_kept || kill -9 "$around"
    rm -f "$keeper"
}

# among CMD...: this script with CMD in the namespaces of `up`, unless it is there already.
among() {
    [ -z "${HOSTS_HERE:-}" ] || return 0
    is_kept || fail "there are no hosts: ci/hosts.sh up N, or with N RATE CMD"
    local user=()
    [ "$(id -u)" = 0 ] || user=(--user --preserve-credentials)
    export HOSTS_HERE=1
    exec nsenter --target "$first" "${user[@]}" --mount --net --pid --wd="$PWD" -- "$self" "$@"
}

[ $# -gt 0 ] || set -- help
command=$1
case "$command" in on | link | lossy | between | mpirun | agent) among "$@" ;; esac
shift
case "$command" in
    missing) missing ;;
    with)
        [ $# -ge 3 ] || fail "with N RATE CMD..."
        reason=$(missing) || fail "$reason"
        export HOSTS_HERE=1
        apart "$self" first "$@" ;;
    first) first "$@" ;;
    up)
        [ $# -ge 1 ] || fail "up N [RATE]"
        reason=$(missing) || fail "$reason"
        down
        # A session of their own: nothing that ends here ends them.
        read -r _ < <(exec setsid "$self" keep "$1" "${2:-100mbit}" </dev/null) || fail "the hosts do not come up"
        read -r first _ <"/proc/$!/task/$!/children" || true   # its last line has no end
        echo "$first $!" >"$keeper" ;;
    keep) apart "$self" kept "$@" ;;
    kept)
        make_hosts "$1" "$2"
        echo up
        exec sleep infinity >/dev/null 2>&1 ;;
    down) down ;;
    on)
        is_host "$1"
        # A host name each: an MPI takes equal names for one node.
        exec nsenter --net="/run/netns/$1" unshare --uts sh -c 'hostname "$0" && exec "$@"' "$@" ;;
    # What mpirun calls in place of ssh.
    agent) host=$1; shift; exec "$self" on "$host" sh -c "$*" ;;
    link)
        is_host "$1"
        # At the switch, where the first process is: as of a cable, the host sees that there is no carrier.
        at_switch=(nsenter --net=/proc/1/ns/net)
        case "$2" in
            up | down) "${at_switch[@]}" ip link set "$1" "$2" ;;
            # In one process: on a busy machine the outage takes little longer than it says.
            *) "${at_switch[@]}" sh -c 'ip link set "$0" down; sleep "$1"; ip link set "$0" up' "$1" "$2" ;;
        esac ;;
    lossy) for host in $(hosts); do lose "$host" eth0 "$1"; done ;;
    between)
        is_host "$1"; is_host "$2"
        for pair in "$1 $2" "$2 $1"; do
            read -r from to <<<"$pair"
            at="$subnet.${to#h}"
            # A host that is none: the switch finds nobody, and says nothing.
            case "$3" in
                down) ip -n "$from" neigh replace "$at" lladdr 02:00:00:00:00:01 dev eth0 nud permanent ;;
                *) ip -n "$from" neigh del "$at" dev eth0 ;;
            esac
        done ;;
    mpirun)
        slots=$1; shift
        options=()
        while [ "${1:?ci/hosts.sh: mpirun SLOTS [OPTION...] -- CMD...}" != -- ]; do options+=("$1"); shift; done
        shift
        launcher=$(command -v mpirun.openmpi || command -v mpirun) ||
            fail "Open MPI is not installed (apt install openmpi-bin)"
        case "$("$launcher" --version 2>&1)" in
            *"Open MPI"* | *OpenRTE*) ;;
            *) fail "Open MPI is not installed (apt install openmpi-bin): $launcher is another MPI's" ;;
        esac
        list=$(hosts | sed "s/\$/:$slots/" | paste -sd,)
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        # mpi_yield_when_idle: hosts share cores.
        exec "$self" on h1 "$launcher" --host "$list" --mca plm_rsh_agent "$self agent" \
            --mca oob_tcp_if_include "$subnet.0/24" --mca btl_tcp_if_include "$subnet.0/24" \
            --mca btl tcp,self,vader --mca mpi_yield_when_idle 1 "${options[@]}" "$@" ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$self"; exit 2 ;;
esac
