#!/usr/bin/env bash
# The reference documentation builds without a warning, the book's table of contents is whole, the texts of its page on
# errors are those of the sources, and the list of mutations is whole.
source "$(dirname "$0")/common.sh"
# -D warnings: a broken link between items fails the check.
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

# Every page is in the table of contents, every entry is a page, every page's code is tested, and
# every link from page to page leads somewhere.
failed=0
for page in docs/src/*.md; do
    name="$(basename "$page")"
    [ "$name" = SUMMARY.md ] && continue
    grep -qF "($name)" docs/src/SUMMARY.md || { echo "$page is not in SUMMARY.md"; failed=1; }
    grep -qF "\"src/$name\"" docs/lib.rs || { echo "$page is not in docs/lib.rs"; failed=1; }
done
for page in docs/src/*.md docs/*.md README.md CONTRIBUTING.md; do
    folder="$(dirname "$page")"
    for link in $(grep -oE '\]\([^)# ]+' "$page" | sed 's/^](//' | grep -vE '^(https?|mailto):' || true); do
        [ -e "$folder/$link" ] || { echo "$page links to $link, which is not there"; failed=1; }
    done
done

# Every piece of a source file that a page shows is there: mdBook leaves it out otherwise.
for page in docs/src/*.md; do
    for piece in $(sed -n 's/^{{#include \(.*:.*\)}}$/\1/p' "$page"); do
        grep -qs "ANCHOR: ${piece#*:}\$" "docs/src/${piece%:*}" || { echo "$page shows $piece, which is not there"; failed=1; }
    done
done

# Every text in the first column of the page on errors is in the strings of the sources. Numbers, n, words in capitals and
# three dots stand for what differs; of the rest each part of 16 characters or more is looked for. A part may be put
# together of two strings, of which one has 12 characters or more.
texts_are_in() { LC_ALL=C awk '
function is_there(text,    at) {
    if (index(strings, text)) return 1
    for (at = 2; at < length(text); at++)
        if (substr(text, at, 1) == " " && (at > 12 || length(text) - at >= 12) &&
            index(strings, substr(text, 1, at - 1)) && index(strings, substr(text, at + 1))) return 1
    return 0
}
function check(text,    n, k, part) {
    text = " " text " "
    gsub(/\.\.\.|[0-9]+|"/, "\t", text)
    while (match(text, /[^A-Za-z0-9_](n|[A-Z][A-Z][A-Z][A-Z]+)[^A-Za-z0-9_]/))
        text = substr(text, 1, RSTART) "\t" substr(text, RSTART + RLENGTH - 1)
    n = split(text, part, "\t")
    for (k = 1; k <= n; k++) {
        gsub(/^[^A-Za-z]+|[^A-Za-z]+$/, "", part[k])
        if (length(part[k]) >= 16 && !is_there(part[k])) {
            printf "%s:%d: no string of the sources has \"%s\"\n", FILENAME, FNR, part[k]
            failed = 1
        }
    }
}
FILENAME == "-" { strings = $0; next }
/^\| text / { in_table = 1; next }
!/^\|/ { in_table = 0 }
in_table {
    split($0, column, / \| /)
    n = split(column[1], text, "`")
    for (k = 2; k <= n; k += 2) check(text[k])
}
END { exit failed }
' RS='\001' - RS='\n' "$1"; }
# Strings that go on in the next line, in one line; no comments.
strings="$(git ls-files 'lpf*.rs' | xargs cat | sed -e 's|^ *//.*||' -e ':a' -e '/\\$/{N;s/\\\n *//;ba' -e '}' -e 's/\\"/"/g')"
texts_are_in docs/src/errors.md <<<"$strings" || failed=1
sample="$(mktemp)"
trap 'rm -f "$sample"' EXIT
printf '| text |\n|---|\n| `process n does not exist` |\n| `process n has ceased to be there` |\n' >"$sample"
found="$({ texts_are_in "$sample" <<<"  format!(\"process {pid} does not exist\")" || true; } | sed 's/^[^:]*//')"
if [ "$found" != ':4: no string of the sources has "has ceased to be there"' ]; then
    echo "docs.sh does not find what it should in its sample: $found"
    failed=1
fi

# Every mutation applies to the source as it is, and a test of the name that has to find it is there. (ci/mutations.sh
# takes too long to be run each time.)
for patch in ci/mutations/*.patch; do
    git apply --check "$patch" || { echo "$patch does not apply any more: make it anew"; failed=1; }
    for test in $(sed -n 's/^Found by: [a-z]* //p' "$patch"); do
        grep -rqF "${test##*::}" --include='*.rs' lpf*/ || { echo "$patch: no test is called $test"; failed=1; }
    done
done
exit "$failed"
