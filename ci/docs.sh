#!/usr/bin/env bash
# The reference documentation builds without a warning, the book's table of contents is whole, and so is the list of
# mutations.
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

# Every mutation applies to the source as it is, and a test of the name that has to find it is there. (ci/mutations.sh
# takes too long to be run each time.)
for patch in ci/mutations/*.patch; do
    git apply --check "$patch" || { echo "$patch does not apply any more: make it anew"; failed=1; }
    for test in $(sed -n 's/^Found by: [a-z]* //p' "$patch"); do
        grep -rqF "${test##*::}" --include='*.rs' lpf*/ || { echo "$patch: no test is called $test"; failed=1; }
    done
done
exit "$failed"
