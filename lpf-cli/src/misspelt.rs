//! Variables that look like settings and are none: nothing else would say that they have no effect.

use lpf::settings::{NAMES, unknown};

use crate::output;
use crate::started;

/// A name in the form that is compared: capital letters, hyphens and underscores do not count.
fn plain(name: &str) -> String {
    name.to_lowercase().replace(['-', '_'], "")
}

/// Letters to be changed, left out, added or swapped to make one name of the other.
fn edits(wrong: &str, known: &str) -> usize {
    strsim::damerau_levenshtein(&plain(wrong), &plain(known))
}

/// Whether one may have been meant by the other: of three letters at most one is wrong.
pub(crate) fn is_close(wrong: &str, known: &str) -> bool {
    let letters = plain(wrong).chars().count().max(plain(known).chars().count());
    3 * edits(wrong, known) <= letters
}

/// The name that may have been meant.
fn meant<'a>(wrong: &str, all: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let best = all.into_iter().min_by_key(|known| edits(wrong, known));
    best.filter(|best| is_close(wrong, best))
}

/// Says on standard error which variables are no settings.
pub(crate) fn say() {
    let info = started::command("info");
    for name in unknown() {
        let verdict = verdict(&name);
        output::say(output::named(format!("{name} is {verdict} ({info} lists them)")));
    }
}

/// That it is no setting, and which one may have been meant.
pub(crate) fn verdict(name: &str) -> String {
    match setting(name) {
        Some(meant) => format!("not a setting; did you mean {meant}?"),
        None => "not a setting".into(),
    }
}

/// The setting that may have been meant. All begin alike, so only what follows counts.
fn setting(name: &str) -> Option<&'static str> {
    let end = |name: &'static str| name.trim_start_matches("LPF_");
    let best = meant(name.trim_start_matches("LPF_"), NAMES.map(end));
    NAMES.into_iter().find(|known| best == Some(end(known)))
}

/// That there is no such pattern, which one may have been meant, and all that there are.
pub(crate) fn pattern(name: &str, all: &[&str]) -> String {
    one_of("pattern", name, all)
}

/// The same of other things.
pub(crate) fn one_of(what: &str, name: &str, all: &[&str]) -> String {
    let then = match meant(name, all.iter().copied()) {
        Some(best) => format!("did you mean {best}? There"),
        None => "there".into(),
    };
    let name = output::named(name);
    format!("there is no {what} \"{name}\"; {then} are:\n  {}", all.join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_pattern_finds_the_one_meant_and_lists_all() {
        let all = ["sync", "put8", "random-8B", "random-get-8B"];
        let list = "\n  sync\n  put8\n  random-8B\n  random-get-8B";
        for (name, meant) in [("snyc", "sync"), ("random8B", "random-8B"), ("PUT8", "put8")] {
            let expected =
                format!("there is no pattern \"{name}\"; did you mean {meant}? There are:{list}");
            assert_eq!(pattern(name, &all), expected);
        }
        for strange in ["xyz", "snake", "put1024", "get-random"] {
            let expected = format!("there is no pattern \"{strange}\"; there are:{list}");
            assert_eq!(pattern(strange, &all), expected);
        }
        assert!(pattern("a\n\u{1b}", &all).starts_with("there is no pattern \"a\\n\\u{1b}\"; "));
    }

    #[test]
    fn a_misspelt_name_finds_the_setting_meant_and_a_strange_one_finds_none() {
        let cases = [
            ("LPF_PINN", Some("LPF_PIN")),
            ("LPF_PROC", Some("LPF_PROCS")),
            ("LPF_NPROCS", Some("LPF_PROCS")),
            ("LPF_TIME_OUT", Some("LPF_TIMEOUT")),
            ("LPF_CHEKC", Some("LPF_CHECK")),
            ("LPF_HOME", None),
            ("LPF_TIMER", None),
            ("LPF_", None),
        ];
        for (name, expected) in cases {
            assert_eq!(setting(name), expected, "{name}");
        }
    }
}
