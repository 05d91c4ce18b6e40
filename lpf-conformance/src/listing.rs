//! The lists of cases: one `#[test]` for each, and no case forgotten.

/// One `#[test]` for each case of the lists, in a module with the name of its list. Lists can be in lists.
#[doc(hidden)]
#[macro_export]
macro_rules! cases {
    ($harness:expr; $cases:tt $($lists:tt)*) => {
        /// Here and not in the modules, where the expression would have another meaning.
        fn conformance_harness() -> impl $crate::Harness {
            $harness
        }
        $crate::cases! { @lists $cases $($lists)* }
    };
    (@lists $cases:tt $($list:ident: $listed:tt)*) => {$(
        mod $list {
            use super::conformance_harness;
            $crate::cases! { @list $cases $listed }
        }
    )*};
    (@list $cases:tt { $($lists:tt)* }) => {
        $crate::cases! { @lists $cases $($lists)* }
    };
    (@list $cases:tt [$($case:ident,)*]) => {
        $($crate::cases! { @case $cases $case })*
    };
    (@case [$($cases:tt)*] $case:ident) => {
        #[test]
        fn $case() {
            let harness = conformance_harness();
            $crate::begin(&harness);
            $($cases)*::$case(&harness);
        }
    };
}

/// Asserts that a suite's list names every case of these sources, and gives how many there are.
#[cfg(test)]
pub(crate) fn listed(list: &str, sources: &[&str]) -> usize {
    let mut cases = 0;
    for line in sources.iter().flat_map(|source| source.lines()) {
        let Some(rest) = line.trim_start().strip_prefix("pub fn ") else { continue };
        // Others are what cases share.
        if !rest.contains("(harness: &H) {") && !rest.contains("] |") {
            continue;
        }
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        assert!(list.contains(&format!(" {name},\n")), "case {name} is in no list");
        cases += 1;
    }
    cases
}
