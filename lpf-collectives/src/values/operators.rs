//! The operators that another member may have passed: built-in ones in the place of this member's, on its elements or on
//! numbers of another type.

use std::any::type_name;

use crate::operators::{And, Max, MaxAt, Min, MinAt, Or, Product, Sum, Xor};
use crate::signature::OperatorName;

/// An operator by its name, and its elements.
pub(super) struct Other {
    /// As the compiler has it.
    pub(super) name: String,
    /// Bytes of an element.
    pub(super) element: usize,
    /// Whether operands may change places.
    pub(super) commutes: bool,
}

fn built_in() -> [&'static str; 9] {
    [
        type_name::<Sum>(),
        type_name::<Product>(),
        type_name::<Min>(),
        type_name::<Max>(),
        type_name::<And>(),
        type_name::<Or>(),
        type_name::<Xor>(),
        type_name::<MinAt>(),
        type_name::<MaxAt>(),
    ]
}

/// The types of numbers, and their bytes.
fn numbers() -> [(&'static str, usize); 14] {
    macro_rules! of {
        ($($type:ty),*) => { [$((type_name::<$type>(), size_of::<$type>())),*] };
    }
    of!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64)
}

/// The built-in operators, and this operator with another built-in one in each place where it has one, as pairs do.
fn replaced(operator: &str) -> Vec<String> {
    let mut all: Vec<String> = built_in().map(String::from).into();
    for old in built_in() {
        for (at, _) in operator.match_indices(old) {
            let (before, after) = (&operator[..at], &operator[at + old.len()..]);
            all.extend(built_in().map(|new| format!("{before}{new}{after}")));
        }
    }
    all
}

/// The operators that another member may have passed instead of `own`, which works on elements of `element` bytes. Without
/// any if the name of `own` cannot be taken apart.
pub(super) fn others(own: OperatorName<'_>, element: usize, commutes: bool) -> Vec<Other> {
    let Some((operator, of)) = own.parts() else { return Vec::new() };
    let mut all = Vec::new();
    for (of, element) in std::iter::once((of, element)).chain(numbers()) {
        let name = |operator: &str| format!("fn({operator}) -> {of}");
        all.push(Other { name: name(operator), element, commutes });
        let replaced = replaced(operator).into_iter();
        all.extend(replaced.map(|other| Other { name: name(&other), element, commutes: true }));
    }
    all.retain(|other| other.name != own.0);
    all
}
