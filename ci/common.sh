# Sourced by every check. A check is a script that also runs alone, from any folder. Its exit status is 0 if it
# passed, 77 if it could not run for want of a network (its last line gives the reason), and another one if it failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The output is read from logs: no colours, no progress bars.
export CARGO_TERM_COLOR=never CARGO_TERM_PROGRESS_WHEN=never
# What makes a second build faster makes the first a third slower, and the target folder twice as large.
export CARGO_INCREMENTAL=0

# Where builds go. Checks with other compiler flags get a folder each, so that no check rebuilds what another one built.
target_root="${CARGO_TARGET_DIR:-$PWD/target}"

# needs REASON: this machine cannot run this check.
needs() {
    echo "error: $*"
    exit 1
}

# The packages that use MPI. The checks on threads and TCP select the whole workspace, whichever tests they run: cargo
# chooses the features of dependencies by the selected packages, and builds them anew for each selection.
with_mpi=(-p lpf-mpi -p lpf-cli -p lpf-examples --features "lpf-mpi/mpi,lpf-cli/mpi,lpf-examples/mpi")

# beside CMD...: CMD, beside what follows: for what waits more than it computes.
# all_well: waits for all of those, prints the output of each, and fails if one has failed.
begun=()
parts="$target_root/checks/$(basename "$0" .sh).parts"
beside() {
    local log="$parts/${#begun[@]}"
    mkdir -p "$parts"
    { echo "== $*"; "$@"; } >"$log" 2>&1 &
    begun+=("$! $log")
}
all_well() {
    local one status=0
    for one in "${begun[@]}"; do
        wait "${one%% *}" || status=1
        cat "${one#* }"
        rm -f "${one#* }"
    done
    begun=()
    return "$status"
}

# programs ARGUMENTS...: builds test programs as `cargo test ARGUMENTS...` does, and prints a line for each: the
# folder of its package, its name, and its path.
programs() {
    command cargo test --locked --no-run --message-format=json-render-diagnostics "$@" |
        sed -n 's/.*"manifest_path":"\([^"]*\)\/Cargo.toml".*"name":"\([^"]*\)","src_path".*"executable":"\([^"]*\/deps\/[^"]*\)".*/\1 \2 \3/p'
}

# built ARGUMENTS...: the path of the only one.
built() { programs "$@" | sed -n '$s/.* //p'; }

# What an example prints, sorted: without times, and without the number of predicted phases.
in_order() {
    sed -E 's/[0-9.]+ ms/TIME/g; s/[0-9]+ of 20 predicted/SOME predicted/' | LC_ALL=C sort
}

# What jobs could leave on this machine: processes of these test programs of the present build folder, which a port would
# have, too; files in shared memory; folders of Open MPI's for a job. Other checks run beside.
end_badly='deaths|faults'
traces() {
    pgrep -af "^${CARGO_TARGET_DIR:-$target_root}/debug/deps/($end_badly)-" || true
    find /dev/shm -maxdepth 1 -regex '.*/\(vader_segment\|ompi\|mpich\|ucx_shm\|lpf\).*' || true
    find "${TMPDIR:-/tmp}" -mindepth 2 -maxdepth 2 -path '*/ompi.*/*' 2>/dev/null || true
}

# leaves_nothing CMD...: CMD, half a minute after which at the latest there is no trace that was not there before.
leaves_nothing() {
    local before left='' status=0
    before="$(traces | sort)"
    "$@" || status=$?
    for _ in {1..30}; do
        left="$(comm -13 <(echo "$before") <(traces | sort))"
        [ -n "$left" ] || return "$status"
        sleep 1
    done
    printf '%s\n' "left behind by $*:" "$left"
    return 1
}

# With BUILD_ONLY=1 a check builds what it will run, and runs nothing: ./test --all builds at the lowest priority
# while other checks wait more than they compute.
if [ "${BUILD_ONLY:-0}" = 1 ]; then
    cargo() {
        case " $* " in
            *" --no-run "*) command cargo "$@" ;;
            " test "*) command cargo test --no-run "${@:2}" ;;
            *) command cargo "$@" ;;
        esac
    }
    # Nothing runs here, and the traces of other checks come and go.
    leaves_nothing() { "$@"; }
fi
