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
