#!/usr/bin/env bash
# Every example builds, has at most 40 lines, and prints what examples/expected says.
#
# They are written for up to four processes (LPF_PROCS: here exactly four, whatever the machine has),
# which print in any order: lines are sorted before they are compared. Each runs three times,
# also checked (LPF_CHECK=1) and with threads that may sit anywhere (LPF_PIN=none).
source "$(dirname "$0")/common.sh"
cargo build --locked --release -p lpf-examples --examples
export LC_ALL=C
failed=0
for source in examples/*.rs; do
    name="$(basename "$source" .rs)"
    [ "$name" = lib ] && continue
    lines="$(wc -l <"$source")"
    [ "$lines" -le 40 ] || { echo "$source has $lines lines"; failed=1; }
    for setting in LPF_CHECK=0 LPF_CHECK=1 LPF_PIN=none; do
        # The program alone, bounded: a hang is a failure. Cargo would add its own lines.
        if ! out="$(env LPF_PROCS=4 "$setting" timeout 60 "$target_root/release/examples/$name" | sort)"; then
            echo "$name failed under $setting"
            failed=1
        elif ! diff <(echo "$out") "examples/expected/$name.txt"; then
            echo "$name printed something else under $setting (left: printed, right: expected)"
            failed=1
        fi
    done
    [ "$failed" = 1 ] || echo "$name: as expected"
done
exit "$failed"
