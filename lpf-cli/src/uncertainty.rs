//! How well the g and l of a table are known.

use lpf::machine::Row;

use crate::output;

/// Half an interval as wide as this share of its value makes what is computed with it of little
/// worth.
pub(crate) const UNCERTAIN: f64 = 0.5;

/// Which g and l of a table are hardly known, and what to do about it.
pub(crate) fn caveat(rows: &[Row]) -> Option<String> {
    let g = |row: &Row| row.g_ci95 >= UNCERTAIN * row.g_ns_per_byte;
    let l = |row: &Row| row.l_ci95 >= UNCERTAIN * row.l_ns;
    let of = |name: &str, is_uncertain: &dyn Fn(&Row) -> bool| {
        let words = rows.iter().filter(|row| is_uncertain(row));
        let words: Vec<_> = words.map(|row| output::size(row.word_bytes)).collect();
        (!words.is_empty()).then(|| format!("{name} for words of {}", words.join(", ")))
    };
    let uncertain: Vec<_> = of("g", &g).into_iter().chain(of("l", &l)).collect();
    let which = match uncertain.len() {
        0 => return None,
        _ if rows.iter().all(|row| g(row) && l(row)) => "every g and l is".into(),
        1 => format!("{} is", uncertain[0]),
        _ => format!("{} are", uncertain.join(" and ")),
    };
    Some(format!(
        "{which} known to +-50 % or worse only: probe again longer (--seconds) or on a quiet machine"
    ))
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
        assert_eq!(caveat(&rows), None);
        for nth in [0, 3] {
            rows[nth].g_ci95 = 0.6 * rows[nth].g_ns_per_byte;
        }
        let one = caveat(&rows).unwrap();
        assert!(one.contains("g for words of 8 B, 1 MiB is known to +-50 % or worse"), "{one}");
        rows[1].l_ci95 = rows[1].l_ns;
        let both = "g for words of 8 B, 1 MiB and l for words of 64 B are known to +-50 % or worse";
        let two = caveat(&rows).unwrap();
        assert!(two.contains(both), "{two}");
        rows.truncate(1);
        rows[0].l_ci95 = rows[0].l_ns;
        let all = caveat(&rows).unwrap();
        assert!(all.starts_with("every g and l is known to +-50 %"), "{all}");
    }
}
