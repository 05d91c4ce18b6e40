//! How well the g and l of a table are known.

use lpf::machine::Row;

use crate::output;

/// Half an interval as wide as this share of its value makes what is computed with it of little
/// worth.
pub(crate) const UNCERTAIN: f64 = 0.5;

/// Which g and l of a table are hardly known; else nothing.
pub(crate) fn caveat(rows: &[Row]) -> String {
    let of = |name: &str, is_uncertain: fn(&&Row) -> bool| {
        let words = rows.iter().filter(is_uncertain).map(|row| output::size(row.word_bytes));
        let words = words.collect::<Vec<_>>().join(", ");
        (!words.is_empty()).then(|| format!("{name} for words of {words}"))
    };
    let g = of("g", |row| row.g_ci95 >= UNCERTAIN * row.g_ns_per_byte);
    let l = of("l", |row| row.l_ci95 >= UNCERTAIN * row.l_ns);
    let uncertain: Vec<_> = g.into_iter().chain(l).collect();
    let verb = if uncertain.len() == 1 { "is" } else { "are" };
    if uncertain.is_empty() {
        return String::new();
    }
    format!(
        ", although {} {verb} known to +-50 % or worse only: probe again longer (--seconds) or on a quiet machine",
        uncertain.join(" and ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use lpf::machine::{Growth, Parameters};

    #[test]
    fn a_saved_table_in_which_g_or_l_is_hardly_known_says_so() {
        let mut rows = Parameters::guess(Growth::SharedMemory).rows;
        for row in &mut rows {
            (row.g_ci95, row.l_ci95) = (0.4 * row.g_ns_per_byte, 0.4 * row.l_ns);
        }
        assert_eq!(caveat(&rows), "");
        for nth in [0, 3] {
            rows[nth].g_ci95 = 0.6 * rows[nth].g_ns_per_byte;
        }
        assert!(caveat(&rows).contains("g for words of 8 B, 1 MiB is known to +-50 % or worse"));
        rows[1].l_ci95 = rows[1].l_ns;
        let both = "g for words of 8 B, 1 MiB and l for words of 64 B are known to +-50 % or worse";
        assert!(caveat(&rows).contains(both), "{}", caveat(&rows));
    }
}
