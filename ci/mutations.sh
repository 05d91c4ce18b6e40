#!/usr/bin/env bash
# Breaks each protected rule on purpose, once, and requires that a test finds it.
#
#   ci/mutations.sh [NAME...]     NAME: a patch of ci/mutations without its ending; default all
#
# A patch says which rule it breaks and which tests have to find it:
#   Rule: TEXT
#   Found by: KIND FILTER...      KIND loom         models of lpf-pthreads under --cfg loom
#                                      conformance  the suite on threads
#                                      rules        lpf-pthreads/tests/rules.rs
#                                      core         unit tests of lpf-core
#                                      messages     both suites over the protocol between processes, in memory
#                                      tcp          the suite on processes over TCP
#                                      sealed       a relay between two processes over TCP
#                                      collectives  the collectives' suite on threads
#                                      algorithms   unit tests of lpf-collectives
#                                      mpi          unit tests of lpf-mpi, with an MPI
#                                      control      unit tests of lpf-control
#                                      protocol     unit tests of lpf-messages
#                                      network      unit tests of lpf-tcp
# The mutated tree has to compile, and at least one of the tests has to fail, within a time limit: a
# test that only hangs has found nothing. The outcome is written as a table to
# target/mutations/table.md; that of the last complete run is in docs/src/mutations.md.
# Not part of ./test: it takes an hour or two.
source "$(dirname "$0")/common.sh"
root="$PWD"
tree="$target_root/mutations/tree"
limit=400
rm -rf "$target_root/mutations/tree"
mkdir -p "$target_root/mutations/logs"
tree="$(cd "$target_root/mutations" && pwd)/tree"
logs="$(dirname "$tree")/logs"
table="$(dirname "$tree")/table.md"

# A fresh copy of what git knows or would take. Times of unchanged files are kept: cargo rebuilds
# only what a mutation touches.
copy_tree() {
    mkdir -p "$tree"
    git ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' file; do
            [ -f "$file" ] || continue
            cmp -s "$file" "$tree/$file" && continue
            mkdir -p "$tree/$(dirname "$file")"
            cp "$file" "$tree/$file"
        done
}

# tests KIND ARGS...: cargo test of one kind in the copied tree.
tests() {
    local kind="$1"
    shift
    case "$kind" in
        loom) RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$target_root/mutations/loom" \
            cargo test --locked --release -p lpf-pthreads --lib "$@" ;;
        conformance | rules | collectives) CARGO_TARGET_DIR="$target_root/mutations/plain" \
            cargo test --locked -p lpf-pthreads --test "$kind" "$@" ;;
        core) CARGO_TARGET_DIR="$target_root/mutations/plain" \
            cargo test --locked -p lpf-core --lib "$@" ;;
        messages) CARGO_TARGET_DIR="$target_root/mutations/plain" \
            cargo test --locked -p lpf-messages --test messages "$@" ;;
        protocol) CARGO_TARGET_DIR="$target_root/mutations/plain" \
            cargo test --locked -p lpf-messages --lib "$@" ;;
        algorithms) CARGO_TARGET_DIR="$target_root/mutations/plain" \
            cargo test --locked -p lpf-collectives --lib "$@" ;;
        mpi) CARGO_TARGET_DIR="$target_root/mutations/mpi" \
            cargo test --locked -p lpf-mpi --features mpi --lib "$@" ;;
        control) CARGO_TARGET_DIR="$target_root/mutations/plain" \
            cargo test --locked -p lpf-control --lib "$@" ;;
        network) CARGO_TARGET_DIR="$target_root/mutations/plain" \
            cargo test --locked -p lpf-tcp --lib "$@" ;;
        tcp) CARGO_TARGET_DIR="$target_root/mutations/plain" \
            cargo test --locked -p lpf-tcp --test conformance "$@" ;;
        sealed) CARGO_TARGET_DIR="$target_root/mutations/plain" \
            cargo test --locked -p lpf-tcp --test sealed "$@" ;;
        *) echo "no kind of tests: $kind"; return 1 ;;
    esac
}

# The first test that failed, and the first line of what it said.
finder() {
    sed -n "s/^test \(.*\) \.\.\. FAILED.*/\1/p
        s/^conformance: case \([^ ]*\) hangs:.*/\1/p" "$1" | head -n 1 || true
}
message() {
    { grep -m 1 -E "^conformance: case .* hangs" "$1" ||
        awk '/ panicked at / { getline; print; found = 1; exit } END { exit !found }' "$1" ||
        grep -m 1 -o "(signal: [0-9]*[^)]*)" "$1"; } | cut -c 1-120 | tr '|`' "/'" || true
}

names=("$@")
[ ${#names[@]} -gt 0 ] || names=($(cd ci/mutations && ls -- *.patch | sed 's/\.patch$//'))
failed=0
{
    echo "| rule | broken by | found by | message |"
    echo "|---|---|---|---|"
} >"$table"
for name in "${names[@]}"; do
    patch="$root/ci/mutations/$name.patch"
    [ -f "$patch" ] || { echo "ci/mutations/$name.patch is not there"; exit 2; }
    rule="$(sed -n 's/^Rule: //p' "$patch")"
    read -r kind filters <<<"$(sed -n 's/^Found by: //p' "$patch")"
    log="$logs/$name.log"
    begin=$SECONDS
    copy_tree
    outcome=""
    if ! patch --quiet --directory "$tree" --strip 1 --forward <"$patch" >"$log" 2>&1; then
        outcome="the patch does not apply"
    elif ! (cd "$tree" && tests "$kind" --no-run) >"$log" 2>&1; then
        outcome="the mutated tree does not compile"
    else
        status=0
        # shellcheck disable=SC2086
        (cd "$tree" && export -f tests && export target_root &&
            RUST_BACKTRACE=0 CASE_LIMIT=10 timeout --kill-after=5 "$limit" bash -c 'tests "$@"' tests \
                "$kind" -- $filters) >"$log" 2>&1 || status=$?
        case "$status" in
            101) ;;
            0) outcome="NOT FOUND" ;;
            124 | 137) outcome="not found within $limit s" ;;
            # Not a test that failed.
            *) outcome="status $status" ;;
        esac
    fi
    if [ -z "$outcome" ]; then
        by="$(finder "$log")"
        said="$(message "$log")"
        printf 'found      %-24s %4d s  %s\n' "$name" $((SECONDS - begin)) "${by:-$kind}: $said"
        echo "| $rule | \`$name\` | $kind: \`${by:-$filters}\` | \`$said\` |" >>"$table"
    else
        failed=$((failed + 1))
        printf 'NOT FOUND  %-24s %4d s  %s\n' "$name" $((SECONDS - begin)) "$outcome; see $log"
        echo "| $rule | \`$name\` | nothing: $outcome | |" >>"$table"
    fi
done
echo
echo "${#names[@]} rules broken, $((${#names[@]} - failed)) found; the table: $table"
[ "$failed" = 0 ]
