#!/usr/bin/env bash
# Every example builds, has at most 60 lines, and prints what examples/expected says.
#
# They are written for up to four processes (LPF_PROCS: here exactly four, whatever the machine has),
# which print in any order: lines are sorted before they are compared. Each runs three times,
# also checked (LPF_CHECK=1) and with threads that may sit anywhere (LPF_PIN=none). Times are not compared,
# nor how many phases were predicted.
source "$(dirname "$0")/common.sh"
cargo test --locked --workspace --no-run
export LC_ALL=C
failed=0

# as_expected NAME HOW COMMAND...: what it prints, in the order of the alphabet, is what is expected.
as_expected() {
    local name="$1" how="$2" out
    shift 2
    if ! out="$(timeout 60 "$@" | in_order)"; then
        echo "$name failed $how"
        failed=1
    elif ! diff <(echo "$out") "examples/expected/$name.txt"; then
        echo "$name printed something else $how (left: printed, right: expected)"
        failed=1
    fi
}

# by_hand NAME: four processes, as somebody would start them.
by_hand() {
    local rank
    for rank in 1 2 3; do "$target_root/debug/examples/$1" "$rank" 4 "$2" & done
    "$target_root/debug/examples/$1" 0 4 "$2"
    wait
}
for source in examples/*.rs; do
    name="$(basename "$source" .rs)"
    [ "$name" = lib ] && continue
    lines="$(wc -l <"$source")"
    [ "$lines" -le 60 ] || { echo "$source has $lines lines"; failed=1; }
    program="$target_root/debug/examples/$name"
    case "$name" in
        hook_mpi) continue ;; # ci/mpi.sh runs it
        hook_tcp)
            export -f by_hand
            export target_root
            # A port that is free, most likely still when it is needed.
            port=$((20000 + RANDOM % 10000))
            as_expected "$name" "by hand" bash -c "by_hand $name 127.0.0.1:$port" ;;
        *)
            # The program alone, bounded: a hang is a failure. Cargo would add its own lines.
            for setting in LPF_CHECK=0 LPF_CHECK=1 LPF_PIN=none; do
                as_expected "$name" "under $setting" env LPF_PROCS=4 "$setting" "$program"
            done
            # The same program, unchanged, between processes.
            if grep -q 'lpf::run' "$source"; then
                as_expected "$name" "under lpf run" "$target_root/debug/lpf" run -n 4 "$program"
            fi ;;
    esac
    [ "$failed" = 1 ] || echo "$name: as expected"
done
exit "$failed"
