#!/usr/bin/env bash
# The backend on MPI, under every MPI that is here: its network, the conformance suite, and deaths, all
# on processes that the MPI's own launcher starts. And what a build says where MPI or libclang is missing.
source "$(dirname "$0")/common.sh"
end_badly+='|run'

# By family: the compiler and the launcher. Debian's names for when it has both; else whichever is there.
declare -A compilers=() launchers=()
for family in openmpi:mpirun mpich:mpiexec; do
    name="${family%:*}" launcher="${family#*:}"
    command -v "mpicc.$name" >/dev/null || continue
    compilers[$name]="mpicc.$name" launchers[$name]="$launcher.$name"
done
if [ ${#compilers[@]} = 0 ] && command -v mpicc >/dev/null; then
    case "$(mpiexec --version 2>&1 || true)" in
        *"Open MPI"* | *OpenRTE*) name=openmpi launcher=mpirun ;;
        *) name=mpich launcher=mpiexec ;;
    esac
    compilers[$name]=mpicc launchers[$name]="$launcher"
fi

# is_second NAME: whether it is MPICH, and Open MPI is there, too. What differs above MPI need not be tried on each.
is_second() { [ "$1${#compilers[@]}" = mpich2 ]; }

# use NAME: the MPI that what follows is built with. A folder each: going from one to the other builds nothing anew.
# Under one of two it is enough that the compiler changes the order of what it does.
packages=("${with_mpi[@]}")
use() {
    export MPICC="${compilers[$1]}" CARGO_TARGET_DIR="$target_root/$1"
    packages=("${with_mpi[@]}")
    ! is_second "$1" || packages+=(--config profile.dev.package.lpf-mpi.opt-level=0)
}

# build: a build with the feature. Where something is missing, the build says what, and with which
# packages it comes.
sentence() { sed -n 's/^error: .*\(the feature `mpi` needs .*\)/\1/p' "$log" | head -n 1; }
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
build() {
    cargo build --locked "${packages[@]}" --bins --examples >"$log" 2>&1 && return
    [ -z "$(sentence)" ] || needs "$(sentence)"
    cat "$log"
    return 1
}
if [ ${#compilers[@]} = 0 ]; then
    CARGO_TARGET_DIR="$target_root/mpi-missing" build
    needs "an MPI is known to pkg-config, but has no mpicc, so that its launcher is not known"
fi

# With nothing to be found, that sentence comes before any other crate's panic, also from one job.
# PKG_CONFIG_LIBDIR: where pkg-config looks, in place of the system's folders.
nowhere="$target_root/nowhere"
if env -u MPI_PKG_CONFIG -u CRAY_MPICH_DIR MPICC="$nowhere/mpicc" LIBCLANG_PATH="$nowhere" \
    PKG_CONFIG_LIBDIR="$nowhere" PKG_CONFIG_PATH= CARGO_TARGET_DIR="$target_root/mpi-missing" \
    cargo check --locked -j 1 -p lpf-mpi --features mpi >"$log" 2>&1; then
    echo "a build without MPI and libclang succeeded"
    exit 1
fi
case "$(sentence)" in
    *"MPI (its compiler mpicc, and mpi.h) and libclang"*"apt install"*) ;;
    *) cat "$log"; echo "a build without MPI and libclang did not say what is missing"; exit 1 ;;
esac
if grep panicked "$log"; then
    cat "$log"
    echo "a build without MPI and libclang panicked"
    exit 1
fi

# four LAUNCHER CMD...: four processes of CMD, as a user of MPI starts them, for a minute at most.
four() {
    local launcher="$1" flags=()
    shift
    case "$launcher" in *mpirun*) flags=(--oversubscribe --allow-run-as-root) ;; esac
    timeout 60 "$launcher" -n 4 "${flags[@]}" "$@"
}

# as_expected HOW NAME CMD...: CMD prints, in the order of the alphabet, what is expected of the example.
as_expected() {
    local out
    out="$("${@:3}" | in_order)" || { echo "$2 failed under $1"; exit 1; }
    diff <(echo "$out") "examples/expected/$2.txt" ||
        { echo "$2 printed something else under $1"; exit 1; }
}

# hook_mpi LAUNCHER: the example of a program of MPI's own.
hook_mpi() {
    [ "${BUILD_ONLY:-0}" = 0 ] || return 0
    as_expected "$1" hook_mpi four "$1" "$CARGO_TARGET_DIR/debug/examples/hook_mpi"
}

# first_program LAUNCHER: the README's program, as it stands there, in a package of its own.
first_program() {
    local package="$CARGO_TARGET_DIR/first-program"
    mkdir -p "$package/src"
    block() { awk -v open="\`\`\`$1" '$0 == open { inside = 1; next } /^```/ { inside = 0 } inside' README.md; }
    block rust >"$package/src/main.rs"
    cat >"$package/Cargo.toml" <<TOML
[package]
name = "first-program"
version = "0.1.0"
edition = "2024"
[dependencies]
lpf = { path = "$PWD/lpf", features = ["mpi"] }
[workspace]
[patch.crates-io]
build-probe-mpi = { path = "$PWD/lpf-mpi/probe" }
TOML
    cp Cargo.lock "$package/Cargo.lock"
    cargo build --quiet --offline --manifest-path "$package/Cargo.toml"
    [ "${BUILD_ONLY:-0}" = 0 ] || return 0
    diff <(four "$1" "$CARGO_TARGET_DIR/debug/first-program" | in_order) <(block text | in_order) ||
        { echo "the README's program printed something else under $1"; exit 1; }
}

# front_door LAUNCHER: the examples that run anywhere, by lpf run and as a user of MPI starts them, and the
# commands that measure.
front_door() {
    local source example said status command bin="$CARGO_TARGET_DIR/debug"
    [ "${BUILD_ONLY:-0}" = 0 ] || return 0
    for source in $(grep -l 'lpf::run' examples/*.rs); do
        example="$(basename "$source" .rs)"
        as_expected "$1" "$example" four "$1" "$bin/examples/$example"
        as_expected "lpf run" "$example" timeout 60 "$bin/lpf" run -n 4 --backend mpi "$bin/examples/$example"
    done
    for command in "probe" "bench --pattern sync" "comply --pattern empty"; do
        status=0
        # shellcheck disable=SC2086 # a command and its options
        said="$(XDG_DATA_HOME="$CARGO_TARGET_DIR/tables" timeout 120 \
            "$bin/lpf" $command --backend mpi -p 2 --quick --seconds 1 --json)" || status=$?
        # What a debug build measures means nothing: comply may find that.
        case "${command%% *}:$status:$said" in
            *':0:{"backend":"mpi","p":2,'* | 'comply:'[13]':{"backend":"mpi","p":2,'*) ;;
            *) echo "lpf $command ended with status $status, and said: $said"; exit 1 ;;
        esac
    done
}

# no_copies LAUNCHER: lpf::exec under a launcher is refused in every process, as each would run a copy.
no_copies() {
    local out
    [ "${BUILD_ONLY:-0}" = 0 ] || return 0
    if out="$(four "$1" "$CARGO_TARGET_DIR/debug/examples/rehook" 2>&1)" ||
        ! grep -q 'of 4 (a launcher of MPI or Slurm says so), .* call lpf::run' <<<"$out"; then
        echo "four copies of the example rehook under $1 said: $out"
        exit 1
    fi
}

# without_memory LAUNCHER SIZE PROGRAM: where /dev/shm has no room for the rings between the processes of a
# host, MPI has their messages; where it has none for the cells of links, or for those of one process alone, the
# rings have them. MPI's own shared memory is elsewhere.
without_memory() {
    [ "${BUILD_ONLY:-0}" = 0 ] || return 0
    as_expected "$1 with $2 of shared memory" "$3" env OMPI_MCA_btl_vader_backing_directory=/tmp unshare -m \
        sh -c 'mount -t tmpfs -o size=$0 none /dev/shm; exec "$@"' "$2" \
        timeout 60 "$1" -n 4 --oversubscribe --allow-run-as-root "$CARGO_TARGET_DIR/debug/examples/$3"
}

# death LAUNCHER: a process that is killed under a plain launcher, which ends the others then: who was the
# first is said before, unless the launcher is faster: MPICH's is in one of thirty where a core is free, in one of
# four where none is.
death() {
    local program out tries
    program="$(built "${packages[@]}" --test faults)"
    [ "${BUILD_ONLY:-0}" = 0 ] || return 0
    for tries in {1..20}; do
        out="$(FAULT_OF_JOB=kill PLACE_OF_FAULT=sync LPF_BACKEND=mpi four "$1" \
            "$program" --exact a_member_of_a_job --nocapture --test-threads=1 2>&1 || true)"
        ! grep 'lpf: process 2 of the job ended: ' <<<"$out" || return 0
        [[ "$1" = *mpiexec* ]] || break
    done
    echo "$out"
    echo "nobody said who died, in $tries tries"
    exit 1
}

run_tests() { cargo test --locked "${packages[@]}" "$@"; }
for name in "${!compilers[@]}"; do
    command -v "${launchers[$name]}" >/dev/null ||
        needs "${launchers[$name]} is not installed (apt install $([ "$name" = mpich ] && echo mpich || echo openmpi-bin))"
    use "$name"
    build
    suites=(--test conformance)
    is_second "$name" || suites+=(--test collectives)
    run_tests --no-run --lib --test stories --test probe --test deaths --test faults --test run "${suites[@]}"
done

# Both suites at once: they compute for a tenth of their time.
suite() {
    use "$1"
    run_tests --test "${@:2}"
}
for name in "${!compilers[@]}"; do
    [ "${BUILD_ONLY:-0}" = 0 ] || continue
    # Of two MPIs, each has one of the two algorithms of the first exchange. ci/cluster.sh tries the direct one on Open MPI.
    case "$name${#compilers[@]}" in
        mpich2) beside suite "$name" conformance -- direct:: serve ;;
        openmpi2) beside suite "$name" conformance -- bruck:: serve ;;
        *) beside suite "$name" conformance ;;
    esac
    is_second "$name" || beside suite "$name" collectives
    all_well
done

for name in "${!compilers[@]}"; do
    echo "== $name"
    use "$name"
    run_tests --lib --test stories --test probe --no-fail-fast
    leaves_nothing run_tests --test deaths
    leaves_nothing run_tests --test faults
    leaves_nothing run_tests --test faults -- --ignored
    hook_mpi "${launchers[$name]}"
    first_program "${launchers[$name]}"
    front_door "${launchers[$name]}"
    no_copies "${launchers[$name]}"
    if [ "$name" = openmpi ]; then
        without_memory "${launchers[$name]}" 100k sample_sort
        # Rings take 4 MiB, the cells of each process 6.
        without_memory "${launchers[$name]}" 5m power_iteration
        without_memory "${launchers[$name]}" 12m power_iteration
    fi
    leaves_nothing death "${launchers[$name]}"
    # What lpf run does with a launcher of MPI between. The rest of these tests uses no MPI.
    leaves_nothing run_tests --test run mpi
    run_tests --test run mpi -- --ignored
done
