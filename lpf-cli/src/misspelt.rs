//! Names that look like something that exists: what may have been meant.

use lpf::settings::misspelt::{meant, unknown_once, verdict};

use crate::output;
use crate::started;

/// Says on standard error which variables are no settings.
pub(crate) fn say() {
    let info = started::command("info");
    for name in unknown_once() {
        let verdict = verdict(&name);
        output::say(output::named(format!("{name} is {verdict} ({info} lists them)")));
    }
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
}
