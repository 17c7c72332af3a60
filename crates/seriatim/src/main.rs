//! seriatim
fn main() {}
