//! Files that a user names, and the numbers in them.

use std::path::Path;

use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::output::named;

/// What is in the file that an option names, which has to hold this.
pub(crate) fn text(option: &str, path: &Path, wanted: &str) -> Result<String> {
    let shown = named(path.display());
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::Usage(format!("{option} {shown} cannot be read ({error}); name another file"))
    })?;
    match text.trim().is_empty() {
        true => {
            let text = format!("{option} {shown} is empty; it has to hold {wanted}");
            Err(Failure::Usage(text))
        }
        false => Ok(text),
    }
}

/// A whole number, or what is wrong with it, for people.
pub(crate) fn whole(name: &str, value: &Value) -> std::result::Result<u64, String> {
    // 5e3, and what no word of 64 bits holds, are read as numbers that may have been rounded.
    value.as_u64().ok_or_else(|| {
        format!(
            "{name} is {value}; it has to be a whole number from 0 to below 2^64, written with digits only"
        )
    })
}
