#!/usr/bin/env bash
# Every dependency may be used in a program of any licence. Works offline.
source "$(dirname "$0")/common.sh"
# -e all: what is linked, what builds, what tests; --target all: on every platform.
# A licence expression passes if each of its parts joined by AND offers a permitted alternative.
cargo tree --locked --workspace --target all -e normal,build,dev --prefix none -f '{p}|{l}' |
    sed 's/ (\*)$//; s/ ([^|]*)|/|/' | sort -u | awk -F'|' '
    BEGIN {
        n = split("MIT|MIT-0|Apache-2.0|Apache-2.0 WITH LLVM-exception|BSD-2-Clause|BSD-3-Clause|" \
                  "ISC|Zlib|0BSD|CC0-1.0|Unlicense|Unicode-3.0|Unicode-DFS-2016|BSL-1.0", names, "|")
        for (i = 1; i <= n; i++) permitted[names[i]] = 1
    }
    NF {
        packages++
        expression = $2
        gsub("/", " OR ", expression)
        terms = split(expression, parts, " AND ")
        good = terms > 0
        for (i = 1; i <= terms; i++) {
            gsub(/[()]/, "", parts[i])
            alternatives = split(parts[i], ways, " OR ")
            any = 0
            for (j = 1; j <= alternatives; j++) {
                gsub(/^ +| +$/, "", ways[j])
                any = any || (ways[j] in permitted)
            }
            good = good && any
        }
        if (!good) { print $1 ": licence \"" $2 "\" is not permitted"; bad = 1 }
    }
    END { print packages " packages, all permitted: " (bad || !packages ? "no" : "yes"); exit bad || !packages }'
