//! Variables that look like settings and are not: nothing else would show that they have no effect.

use std::sync::atomic::{AtomicBool, Ordering};

use super::NAMES;

/// A name in the form that is compared: capital letters, hyphens and underscores do not count.
fn plain(name: &str) -> String {
    name.to_lowercase().replace(['-', '_'], "")
}

/// Letters to be changed, left out, added or swapped to make one name of the other.
fn edits(wrong: &str, known: &str) -> usize {
    strsim::damerau_levenshtein(&plain(wrong), &plain(known))
}

/// Whether one may have been meant by the other: of three letters at most one is wrong.
pub fn is_close(wrong: &str, known: &str) -> bool {
    let letters = plain(wrong).chars().count().max(plain(known).chars().count());
    3 * edits(wrong, known) <= letters
}

/// The name that may have been meant.
pub fn meant<'a>(wrong: &str, all: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let best = all.into_iter().min_by_key(|known| edits(wrong, known));
    best.filter(|best| is_close(wrong, best))
}

/// The setting that may have been meant. All begin alike, so only what follows counts.
fn setting(name: &str) -> Option<&'static str> {
    let end = |name: &'static str| name.trim_start_matches("LPF_");
    let best = meant(name.trim_start_matches("LPF_"), NAMES.map(end));
    NAMES.into_iter().find(|known| best == Some(end(known)))
}

/// That a name is not a setting, and which one may have been meant.
pub fn verdict(name: &str) -> String {
    match setting(name) {
        Some(meant) => format!("not a setting; did you mean {meant}?"),
        None => "not a setting".into(),
    }
}

/// The names of variables of this environment that begin like settings but are not settings: probably misspelt, and
/// without effect.
pub fn unknown() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut unknown: Vec<_> =
        names.filter(|name| name.starts_with("LPF_") && !NAMES.contains(&&**name)).collect();
    unknown.sort();
    unknown
}

/// As [`unknown`], for the first caller in this process; others get no names, so that each is reported once.
pub fn unknown_once() -> Vec<String> {
    static ASKED: AtomicBool = AtomicBool::new(false);
    if ASKED.swap(true, Ordering::Relaxed) { Vec::new() } else { unknown() }
}

#[cfg(test)]
mod tests {
    use super::*;

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
