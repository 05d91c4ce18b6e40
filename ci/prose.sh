#!/usr/bin/env bash
# Pages, help, errors and the reference documentation avoid the words of ci/prose.txt and sentences of more than 35 words.
#
#   ci/prose.sh [FILE...]    FILE: *.md or *.rs; default: all that this check is for
#
# Prints FILE:LINE, what was found, and what to write instead. Of a Markdown file it reads the text outside of code; of
# CHANGELOG.md only the newest entry. Of a Rust file it reads the documentation of public items, and strings that
# contain a space; it leaves out unit tests.
source "$(dirname "$0")/common.sh"

files=("$@")
if [ ${#files[@]} = 0 ]; then
    files=(README.md CONTRIBUTING.md CHANGELOG.md docs/*.md docs/src/*.md lpf-mpi/README.md benches/README.md examples/*.rs)
    while IFS= read -r file; do files+=("$file"); done < <(find lpf lpf-* -path '*/src/*' -name '*.rs' |
        grep -vE '^lpf-conformance/|/(tests|models|roles)(/|\.rs$)' | sort)
fi

# Files whose own documentation is public: crates, and modules that are declared so.
public=" $(
    ls lpf*/src/lib.rs
    { grep -rE '^ *pub mod [a-z_]+;' lpf*/src || true; } | while IFS=: read -r file line; do
        name="${line##* mod }"
        folder="${file%.rs}"
        case "$folder" in */lib | */mod) folder="${folder%/*}" ;; esac
        printf '%s\n' "$folder/${name%;*}.rs" "$folder/${name%;*}/mod.rs"
    done
) "
prose() { LC_ALL=C awk -v longest=35 -v public_modules="${public//$'\n'/ }" '
function zeros(n,    text) {
    text = "0000000000000000"
    while (length(text) < n) text = text text
    return substr(text, 1, n)
}
# The text with everything that matches replaced by as many zeros: positions stay, and no word is found there.
function without(text, pattern,    done) {
    done = ""
    while (match(text, pattern)) {
        done = done substr(text, 1, RSTART - 1) zeros(RLENGTH)
        text = substr(text, RSTART + RLENGTH)
    }
    return done text
}

function line_of(at,    i) {
    for (i = pieces; i > 1; i--) if (begins[i] <= at) break
    return lines[i]
}
function report(at, found, suggestion) {
    printf "%s:%d: %s: %s\n", file, line_of(at), found, suggestion
    count++
}

# One sentence, whose first character is at position `at` of the paragraph.
function sentence(text, at, mark,    low, i, word, n, words, rest, from) {
    words = 0
    n = split(text, word, / +/)
    for (i = 1; i <= n; i++) if (word[i] ~ /[A-Za-z0-9]/) words++
    if (words > longest) report(at, words " words in a sentence", "split it: one idea per sentence, about 25 words")
    low = tolower(text)
    if (mark == "^" && low ~ /[?]["*_) ]*$/) mark = " "
    low = mark low " "
    for (i = 1; i <= allowed; i++) low = without(low, allow[i])
    if (low !~ any) return
    for (i = 1; i <= refused; i++) {
        rest = low
        from = 0
        while (match(rest, refuse[i])) {
            found = substr(rest, RSTART, RLENGTH)
            gsub(/^[^a-z_]+|[^a-z_]+$/, "", found)
            report(at + from + RSTART - 1, "\"" found "\"", instead[i])
            from += RSTART + RLENGTH - 2
            rest = substr(rest, RSTART + RLENGTH - 1)
        }
    }
}

# add LINE TEXT: a further line of the paragraph. flush MARK: the paragraph is complete; MARK is "^" if it has sentences.
function add(line, text) {
    pieces++
    if (pieces > 1) paragraph = paragraph " "
    begins[pieces] = length(paragraph) + 1
    lines[pieces] = line
    paragraph = paragraph text
}
function flush(mark,    text, at, rest, end, next_one) {
    if (pieces) {
        text = without(paragraph, "`[^`]*`")
        text = without(text, "\\]\\([^)]*\\)|https?://[^ ]*|<!--.*-->")
        at = 1
        while (1) {
            rest = substr(text, at)
            if (mark == "" || !match(rest, /[.!?:]["*_)]* +["*_(\[]*[A-Z0-9]/)) break
            end = RSTART + RLENGTH - 2
            # The words that begin the next sentence are left to it.
            while (end > RSTART && substr(rest, end, 1) != " ") end--
            sentence(substr(rest, 1, end), at, mark)
            at += end
        }
        sentence(rest, at, mark)
    }
    pieces = 0
    paragraph = ""
}

# One line of Markdown.
function markdown(line, text,    cell, n, i) {
    if (text ~ /^ *(```|~~~)/) { flush("^"); fenced = !fenced; return }
    if (fenced) return
    if (text ~ /^ *$/) { flush("^"); return }
    if (text ~ /^#+ /) { flush("^"); add(line, text); flush("#"); return }
    if (text ~ /^ *\|/) {
        flush("^")
        text = without(text, "`[^`]*`")
        n = split(text, cell, /\|/)
        for (i = 1; i <= n; i++) {
            gsub(/^ +| +$/, "", cell[i])
            if (cell[i] ~ /[a-z]/) { add(line, cell[i]); flush("|") }
        }
        return
    }
    if (text ~ /^ *([-*+]|[0-9]+[.)]) /) { flush("^"); sub(/^ *([-*+]|[0-9]+[.)]) /, "", text) }
    sub(/^ *>? */, "", text)
    add(line, text)
}

# A string of Rust, in its lines: those that begin with two spaces are examples, and end a paragraph.
function literal(    i, k, n, whole, part) {
    whole = ""
    for (i = 1; i <= held; i++) whole = whole " " string[i]
    if (whole ~ /[a-z] +[a-z{]|[a-z}] +[a-z]/) {
        for (i = 1; i <= held; i++) {
            gsub(/\{[^}]*\}/, "0", string[i])
            gsub(/\\"/, "\"", string[i])
            if (string[i] ~ /^( *$|  )/ && !joined[i]) flush("^")
            n = split(string[i], part, /\\n/)
            for (k = 1; k <= n; k++) {
                if (k > 1) flush("^")
                sub(/^ +/, "", part[k])
                add(string_line + i - 1, part[k])
            }
        }
        flush("^")
    }
}
function hold(text) { string[++held] = text; joined[held] = trim; trim = 0 }
function code(line, text,    quote) {
    while (1) {
        if (open_string) {
            if (trim) sub(/^ +/, "", text)
            if (raw) {
                quote = index(text, closing)
                if (!quote) { hold(text); return }
                hold(substr(text, 1, quote - 1))
                text = substr(text, quote + length(closing))
            } else {
                if (!match(text, /^([^"\\]|\\.)*"/)) {
                    if (text ~ /\\$/) { hold(substr(text, 1, length(text) - 1)); trim = 1 }
                    else hold(text)
                    return
                }
                hold(substr(text, 1, RLENGTH - 1))
                text = substr(text, RLENGTH + 1)
            }
            open_string = 0
            literal()
            continue
        }
        if (!match(text, /r#*"|"|\/\/|'"'"'(\\.|[^\\'"'"'])'"'"'/)) return
        found = substr(text, RSTART, RLENGTH)
        if (found == "//") return
        if (found ~ /"$/) {
            open_string = 1
            held = trim = 0
            string_line = line
            raw = found ~ /^r/
            closing = "\"" substr(found, 2, length(found) - 2)
        }
        text = substr(text, RSTART + RLENGTH)
    }
}

# Documentation waits until the item below it is seen.
function documentation(is_public,    i) {
    if (is_public) {
        for (i = 1; i <= documented; i++) markdown(doc_line[i], doc[i])
        flush("^")
        fenced = 0
    }
    documented = 0
}
function rust(text,    stripped) {
    stripped = text
    sub(/^ +/, "", stripped)
    if (!open_string) {
        if (stripped ~ /^\/\/\//) {
            documented++
            doc[documented] = substr(stripped, 4)
            sub(/^ /, "", doc[documented])
            doc_line[documented] = FNR
            return
        }
        if (stripped ~ /^\/\/!/) {
            stripped = substr(stripped, 4)
            sub(/^ /, "", stripped)
            if (public_module) markdown(FNR, stripped)
            return
        }
        if (paragraph != "") flush("^")
        # The fence of an example that is run only with a feature.
        if (public_module && stripped ~ /^#!.*doc = "```/) fenced = 1
        if (stripped ~ /^#!?\[/) attribute = 1
        if (attribute) {
            code(FNR, text)
            if (stripped ~ /\]$/) attribute = 0
            if (stripped ~ /^#\[cfg\(test\)\]/) last_line = FNR
            return
        }
        if (last_line && FNR == last_line + 1 && stripped ~ /^mod [a-z_]+ \{/) { skip = 1; return }
        if (stripped ~ /^(pub |macro_rules!)/ || public_body || all_documented) documentation(1)
        else documentation(0)
        if (public_body && substr(text, 1, length(public_body)) == public_body) public_body = ""
        if (text ~ /^ *pub (unsafe )?(enum|trait) .*\{$/) {
            match(text, /^ */)
            public_body = substr(text, 1, RLENGTH) "}"
        }
    }
    code(FNR, text)
}

BEGIN {
    while ((getline < "ci/prose.txt") > 0) {
        if ($0 ~ /^#/ || $0 == "") continue
        split($0, column, "\t")
        pattern = column[2]
        sub(/^\^/, "\\^", pattern)
        pattern = "(^|[^a-z_])(" pattern ")[^a-z_]"
        if (column[1] == "allow") allow[++allowed] = pattern
        else {
            refuse[++refused] = pattern
            instead[refused] = column[3]
            any = any (any ? "|" : "") pattern
        }
    }
}
FNR == 1 {
    flush("^")
    file = FILENAME
    skip = fenced = documented = open_string = attribute = last_line = 0
    entry = 0
    public_body = ""
    is_markdown = FILENAME ~ /\.md$/
    all_documented = FILENAME ~ /lpf-cli\/src\/args\.rs$/
    if (FILENAME ~ /^examples\//) all_documented = public_module = 1
    else public_module = index(public_modules, " " FILENAME " ")
}
skip { next }
FILENAME ~ /CHANGELOG\.md$/ && /^## / { if (++entry == 2) { flush("^"); skip = 1; next } }
is_markdown { markdown(FNR, $0); next }
{ rust($0) }
END {
    flush("^")
    if (count) printf "\n%d found. ci/prose.txt has the words; CONTRIBUTING.md the rules.\n", count
    exit count > 0
}
' "$@"; }

# This check finds what it should in a sample of each kind of text, and nothing else there.
sample="$(mktemp -d)"
trap 'rm -rf "$sample"' EXIT
cat >"$sample/sample.md" <<'END'
# Nobody here
A sentence over two lines names
nobody. `nobody` and there is no end.

| a cell | nobody |
|---|---|

```text
nobody
```
1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36
END
cat >"$sample/sample.rs" <<'END'
/// Nobody.
#[derive(Debug)]
pub enum Public {
    /// Nobody.
    Variant,
}
/// Nobody.
struct Private; // nobody
fn say() {
    println!("nobody is here \
        and nobody, {}", 'n', "nobody", '"');
    println!(r#"here is "nobody""#);
}
#[cfg(test)]
mod tests {
    const TEXT: &str = "nobody is here";
}
END
found="$({ prose "$sample/sample.md" "$sample/sample.rs" || true; } | sed -n "s|^$sample/sample.\(.*:[0-9]*\): .*|\1|p" | tr '\n' ' ')"
if [ "$found" != "md:1 md:3 md:5 md:11 rs:1 rs:4 rs:10 rs:11 rs:12 " ]; then
    echo "prose.sh does not find what it should in its sample: $found"
    exit 1
fi

prose "${files[@]}"
