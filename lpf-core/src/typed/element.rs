//! Element types.

use bytemuck::Pod;

/// What areas and messages consist of: plain old data. Every [`Pod`] type is an element type, and no other: this trait
/// exists for the compiler's message about a type that is not.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain old data (`bytemuck::Pod`), which areas and messages consist of",
    label = "expected plain old data",
    note = "for a type of your own: `#[repr(C)]` and `#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]`, with `bytemuck = {{ version = \"1\", features = [\"derive\"] }}` in Cargo.toml",
    note = "for a type of another crate: switch on that crate's feature `bytemuck`, if it has one",
    note = "instead of a `bool`, `char` or enum take `u8` or `u32`; instead of a tuple, a struct or an array; instead of a `Vec` or a reference, the elements themselves"
)]
pub trait Element: Pod {}

#[diagnostic::do_not_recommend]
impl<T: Pod> Element for T {}
