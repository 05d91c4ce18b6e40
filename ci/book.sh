#!/usr/bin/env bash
# The book builds. (Its code is tested by doctests.sh, its links by docs.sh: both need no mdBook.)
source "$(dirname "$0")/common.sh"
command -v mdbook >/dev/null || needs "mdbook is not installed (cargo install mdbook)"
# Into the target folder: nothing is written beside the sources.
mdbook build docs --dest-dir "$target_root/book"
