#!/usr/bin/env bash
# Four hosts with links of 100 Mbit/s, which ci/hosts.sh makes on this machine: the conformance suite with
# its processes spread over them, over TCP and over Open MPI; then pulled cables, processes killed on other
# hosts, and jobs that are put together wrongly.
source "$(dirname "$0")/common.sh"
reason="$(ci/hosts.sh missing)" || needs "$reason"
hosts="$PWD/ci/hosts.sh"

tcp="$(programs --workspace | sed -n 's|.*/lpf-tcp conformance ||p')"
# As ci/mpi.sh builds them, in the same folder.
mpi='' why=''
export MPICC=mpicc.openmpi
command -v "$MPICC" >/dev/null || export MPICC=mpicc
if ! "$MPICC" --showme:version >/dev/null 2>&1; then
    why="Open MPI is not installed (apt install libopenmpi-dev openmpi-bin libclang-dev)"
elif ! CARGO_TARGET_DIR="$target_root/openmpi" cargo build --locked "${with_mpi[@]}" --bins --examples 2>"$target_root/cluster-mpi"; then
    why="$(sed -n 's/^error: .*\(the feature `mpi` needs .*\)/\1/p' "$target_root/cluster-mpi" | head -n 1)"
    [ -n "$why" ] || { cat "$target_root/cluster-mpi"; exit 1; }
else
    mpi="$(CARGO_TARGET_DIR="$target_root/openmpi" built "${with_mpi[@]}" --test conformance)"
fi
if [ -n "$mpi" ]; then
    faults="$(CARGO_TARGET_DIR="$target_root/openmpi" built "${with_mpi[@]}" --test cluster)"
else
    faults="$(built --workspace --test cluster)"
fi

# over_tcp HOSTS ARGUMENTS...: the suite, process r on the one number r of HOSTS, again and again.
over_tcp() {
    LPF_TEST_HOSTS="$1" LPF_TEST_ON_HOST="$hosts on" LPF_TEST_FIRST_HOST=10.77.0.1 \
        "$hosts" with 4 100mbit "$hosts" on h1 "$tcp" "${@:2}"
}
# over_mpi ARGUMENTS...: the same; the tests themselves are on no host.
over_mpi() {
    LPF_TEST_LAUNCHER="$hosts mpirun 2 --map-by node --" "$hosts" with 4 100mbit "$mpi" "$@"
}

# faulty ARGUMENTS...: what goes wrong, on hosts of its own.
faulty() {
    "$hosts" with 4 100mbit "$hosts" on h1 "$faults" --ignored --test-threads=1 --nocapture "$@"
}

# Lanes, each on hosts of its own: they wait much more than they compute. Of few processes, each has a
# host to itself in the first, and shares one in the second.
logs="$(mktemp -d)"
trap 'rm -rf "$logs"' EXIT
everywhere=every_fault_in_every_place
faulty "$everywhere" >"$logs/faults" 2>&1 &
faults_lane=$!
mpi_lane=''
if [ -n "$mpi" ]; then
    over_mpi direct:: serve >"$logs/mpi" 2>&1 &
    mpi_lane=$!
fi
status=0
echo "== tcp, round robin"
over_tcp h1,h2,h3,h4 direct:: serve || status=1
echo "== tcp, neighbours share a host"
over_tcp h1,h1,h2,h2,h3,h3,h4,h4 bruck:: || status=1
if [ -n "$mpi_lane" ]; then
    wait "$mpi_lane" || status=1
    echo "== Open MPI, round robin"
    cat "$logs/mpi"
fi
wait "$faults_lane" || status=1
echo "== every fault in every place"
cat "$logs/faults"
echo "== pulled cables, meetings"
faulty --skip what_communication_costs --skip "$everywhere" || status=1
[ -n "$mpi" ] || [ "$status" = 1 ] || needs "all passed over TCP, but $why"
exit "$status"
