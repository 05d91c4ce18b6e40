#!/usr/bin/env bash
# What the README tells a newcomer works as it stands there: its commands word for word, and its program in a new package
# with the dependency lines it gives.
source "$(dirname "$0")/common.sh"
scratch="$(mktemp -d)" readme="$PWD/README.md"
trap 'rm -rf "$scratch"' EXIT
# What is measured here is thrown away, so a build that takes less time will do.
export CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_DEBUG=0
# Measured tables of this machine are not this check's to replace.
export LPF_TABLE="$scratch/tables"

# block LANGUAGE: the lines of the README's fenced blocks of that language.
block() {
    awk -v open="\`\`\`$1" '$0 == open { inside = 1; next } /^```/ { inside = 0 } inside' "$readme"
}

# The commands. `./test` is left out of itself: it is what runs this check. The time limit ends only what hangs: some
# commands build first, and the machine may be busy.
failed=0
while IFS= read -r line; do
    command="${line%%  #*}"
    case "$command" in
        "" | "./test"* | "git clone"* | "cd "*) continue ;;
    esac
    echo "\$ $command"
    if ! timeout 900 bash -c "$command" </dev/null >"$scratch/out" 2>&1; then
        tail -n 20 "$scratch/out"
        echo "failed: $command"
        failed=1
    fi
done < <(block sh)

# The program.
mkdir -p "$scratch/hello/src"
ln -s "$PWD" "$scratch/lpf"
cat >"$scratch/hello/Cargo.toml" <<'TOML'
[package]
name = "hello"
version = "0.1.0"
edition = "2024"

TOML
block toml >>"$scratch/hello/Cargo.toml"
block rust >"$scratch/hello/src/main.rs"
cp Cargo.lock "$scratch/hello/Cargo.lock"
cd "$scratch/hello"
# An inherited setting would put things elsewhere than the README says.
unset CARGO_TARGET_DIR
same() { diff <(LC_ALL=C sort <<<"$1") <(block text | LC_ALL=C sort) || { echo "the program printed something else"; failed=1; }; }
echo "\$ LPF_PROCS=4 cargo run   # the program, in a package of its own"
# --offline: what the workspace was built with is enough.
out="$(LPF_PROCS=4 timeout 900 cargo run --quiet --offline)" || failed=1
same "$out"
echo "\$ $(block bash)"
out="$(timeout 900 bash -ec "$(block bash)")" || failed=1
same "$out"
exit "$failed"
