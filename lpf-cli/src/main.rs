//! lpf
fn main() {}
