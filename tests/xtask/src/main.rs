//! `cargo xtask`: the commands of the project.
fn main() {}
