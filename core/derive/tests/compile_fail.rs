//! What must not compile, and what the compiler says where.
//!
//! The words around the macros' own are the compiler's, and change with it: other compilers than the
//! one below are not asked. After a change of it, or of a message, `TRYBUILD=overwrite cargo test -p
//! messina-derive --test compile_fail` writes them anew; read them before you commit.

use std::process::Command;

/// The compiler that CI has.
const COMPILER: &str = "rustc 1.95.";

#[test]
fn wrong_attributes_are_errors_at_their_place() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    if !version.starts_with(COMPILER) {
        eprintln!("not run: this is {version}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/failing/*.rs");
}
