# Sourced by every check. A check is a script that runs alone, from any folder:
#   exit status 0    passed
#   exit status 77   left out: the last line says why
#   anything else    failed
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Checks never colour their output: it is read from logs.
export CARGO_TERM_COLOR=never
# A dependency's progress bars and ours stay out of logs.
export CARGO_TERM_PROGRESS_WHEN=never

# Where builds go. Checks that need other compiler flags get a folder each, so that going from one
# check to the next rebuilds nothing.
target_root="${CARGO_TARGET_DIR:-$PWD/target}"

# leave_out REASON: this machine cannot run this check.
leave_out() {
    echo "left out: $*"
    exit 77
}

# What tests are chosen from, for cargo: all packages but the network on MPI, whichever are then tested. Cargo chooses
# the features of dependencies by the packages that are named, and would build them anew for each choice.
workspace=(--workspace --exclude lpf-mpi --features lpf-core/conformance)

# The packages that use MPI, likewise.
with_mpi=(-p lpf-mpi -p lpf-cli -p lpf-examples --features "lpf-mpi/mpi,lpf-cli/mpi,lpf-examples/mpi")

# beside CMD...: CMD, beside what comes next: for what waits more than it computes.
# all_well: waits for all of those, prints what each has said, and fails where one has failed.
begun=()
beside() {
    local log
    log="$(mktemp)"
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

# built ARGUMENTS...: where cargo put the test program that these arguments build.
built() {
    command cargo test --locked --no-run --message-format=json-render-diagnostics "$@" |
        sed -n 's/.*"executable":"\([^"]*\/deps\/[^"]*\)".*/\1/p' | tail -n 1
}

# programs ARGUMENTS...: likewise all of them, a line each: the folder of its package, its name, and where it is.
programs() {
    command cargo test --locked --no-run --message-format=json-render-diagnostics "$@" |
        sed -n 's/.*"manifest_path":"\([^"]*\)\/Cargo.toml".*"name":"\([^"]*\)","src_path".*"executable":"\([^"]*\/deps\/[^"]*\)".*/\1 \2 \3/p'
}

# What an example prints, in the order of the alphabet: without times, and how many phases it foresaw.
in_order() {
    sed -E 's/[0-9.]+ ms/TIME/g; s/[0-9]+ of 20 foreseen/SOME foreseen/' | LC_ALL=C sort
}

# What jobs could leave on this machine: processes of a test's, which a port would have, too; files in shared
# memory; folders of Open MPI's for a job.
traces() {
    pgrep -af "^$target_root/.*/deps/" || true
    find /dev/shm -maxdepth 1 -regex '.*/\(vader_segment\|ompi\|mpich\|ucx_shm\|lpf\).*' || true
    find "${TMPDIR:-/tmp}" -mindepth 2 -maxdepth 2 -path '*/ompi.*/*' 2>/dev/null || true
}

# leaves_nothing CMD...: CMD, a few seconds after which there is no trace that was not there before.
leaves_nothing() {
    local before left='' status=0
    before="$(traces | sort)"
    "$@" || status=$?
    for _ in 1 2 3 4 5; do
        left="$(comm -13 <(echo "$before") <(traces | sort))"
        [ -n "$left" ] || return "$status"
        sleep 1
    done
    printf '%s\n' "left behind by $*:" "$left"
    return 1
}

# With BUILD_ONLY=1 a check builds what it will run, and runs nothing: ./test --all has that done while
# other checks wait more than they compute.
if [ "${BUILD_ONLY:-0}" = 1 ]; then
    cargo() {
        case " $* " in
            *" --no-run "*) command cargo "$@" ;;
            " test "*) command cargo test --no-run "${@:2}" ;;
            *) command cargo "$@" ;;
        esac
    }
    # Nothing runs here, and what does elsewhere comes and goes.
    leaves_nothing() { "$@"; }
fi
