//! Variables that look like settings and are none: nothing else would say that they have no effect.

use lpf::settings::{NAMES, unknown};

use crate::output;
use crate::started;

/// Names at least so alike are taken for each other; clap's measure and bound for its arguments.
const ALIKE: f64 = 0.7;

/// Says on standard error which variables are no settings.
pub(crate) fn say() {
    let info = started::command("info");
    for name in unknown() {
        output::say(format!("{name} is {} ({info} lists them)", verdict(&name)));
    }
}

/// That it is no setting, and which one may have been meant.
pub(crate) fn verdict(name: &str) -> String {
    match meant(name) {
        Some(meant) => format!("not a setting; did you mean {meant}?"),
        None => "not a setting".into(),
    }
}

/// The setting most like it. All begin alike, so only what follows counts.
fn meant(name: &str) -> Option<&'static str> {
    let likeness = |known: &&str| {
        strsim::jaro(name.trim_start_matches("LPF_"), known.trim_start_matches("LPF_"))
    };
    let best = NAMES.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    best.filter(|best| likeness(best) > ALIKE)
}

/// That there is no such pattern, which one may have been meant, and all that there are.
pub(crate) fn pattern(name: &str, all: &[&str]) -> String {
    one_of("pattern", name, all)
}

/// The same of other things.
pub(crate) fn one_of(what: &str, name: &str, all: &[&str]) -> String {
    let plain = |name: &str| name.to_lowercase().replace(['-', '_'], "");
    let likeness = |known: &&&str| strsim::jaro(&plain(name), &plain(known));
    let best = all.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let then = match best.filter(|best| likeness(best) > ALIKE) {
        Some(best) => format!("did you mean {best}? There"),
        None => "there".into(),
    };
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
        let strange = pattern("xyz", &all);
        assert_eq!(strange, format!("there is no pattern \"xyz\"; there are:{list}"));
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
            ("LPF_", None),
        ];
        for (name, expected) in cases {
            assert_eq!(meant(name), expected, "{name}");
        }
    }
}
