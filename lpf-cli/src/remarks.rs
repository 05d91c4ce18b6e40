//! What a reader should know about the numbers of a row: the field `remarks`, and lines under a
//! table.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

/// Sentences about a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remarks(Vec<String>);

impl FromIterator<String> for Remarks {
    fn from_iter<I: IntoIterator<Item = String>>(remarks: I) -> Self {
        Remarks(remarks.into_iter().collect())
    }
}

/// As one text, empty where there is nothing to remark: CSV has no lists.
impl Serialize for Remarks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.join("; "))
    }
}

/// Prints each remark once, behind the names of the rows it is about if it is not about all.
pub(crate) fn print<'a>(
    out: &mut dyn Write,
    rows: impl Iterator<Item = (String, &'a Remarks)> + Clone,
) -> io::Result<()> {
    let mut said: Vec<&String> = Vec::new();
    for remark in rows.clone().flat_map(|(_, remarks)| &remarks.0) {
        if said.contains(&remark) {
            continue;
        }
        said.push(remark);
        let has_it = |remarks: &Remarks| remarks.0.contains(remark);
        if rows.clone().all(|(_, remarks)| has_it(remarks)) {
            writeln!(out, "{remark}")?;
        } else {
            let names = rows.clone().filter(|(_, remarks)| has_it(remarks)).map(|(name, _)| name);
            let mut names: Vec<_> = names.collect();
            names.dedup();
            writeln!(out, "{}: {remark}", names.join(", "))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_is_printed_once_with_its_rows_unless_all_have_it() {
        let remarks = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Remarks>();
        let rows = [
            ("a", remarks(&["busy", "below"])),
            ("b", remarks(&["busy"])),
            ("c", remarks(&["busy", "below"])),
        ];
        let mut out = Vec::new();
        print(&mut out, rows.iter().map(|(name, remarks)| (name.to_string(), remarks))).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "busy\na, c: below\n");
        assert_eq!(serde_json::to_string(&rows[0].1).unwrap(), "\"busy; below\"");
        assert_eq!(serde_json::to_string(&Remarks::default()).unwrap(), "\"\"");
    }
}
