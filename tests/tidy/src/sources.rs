//! Rules on Rust sources that no lint covers: module documentation, leftovers, exceptions with reasons, and what
//! core may not name.

use crate::Finding;
use crate::rust_source::{code, line_of, without_unit_tests, words};
use crate::tree::File;

const LEFTOVERS: [(&str, &str); 4] = [
    ("todo!", "finish it or leave it out"),
    ("unimplemented!", "finish it or leave it out"),
    ("dbg!", "left over from debugging"),
    ("#[ignore", "a test that does not run tests nothing"),
];

/// What core may not name outside its unit tests, except in the files that are named below.
const BANNED_IN_CORE: [(&str, &str); 6] = [
    ("std::time", "time is passed in"),
    (
        "std::collections",
        "`hashbrown` with a seeded hasher, or a sorted vector",
    ),
    ("std::thread", "core does not know threads"),
    ("std::net", "`core::net`; sockets belong to transports"),
    ("std::sync", "only `sync.rs` knows threads"),
    (
        "sync::Arc",
        "`sync::Shared`, which exists without compare-and-swap too",
    ),
];

/// The only file of core that names locks and `Arc`.
const OWNS_THREADS: &str = "core/src/sync";

/// The only file of core that names collections whose order is that of chance: users bind them.
const BINDS_COLLECTIONS: &str = "core/src/types/std_collections.rs";

/// Crates that may hold unsafe code or must: all other roots say `#![forbid(unsafe_code)]`.
const MAY_BE_UNSAFE: [&str; 6] = [
    "bindings-wasm/",
    "transports/",
    "tests/bench/",
    "tests/footprint/",
    "tests/trace/device/",
    "examples/embassy-qemu/",
];

/// Checks one file.
#[must_use]
pub fn check(file: &File) -> Vec<Finding> {
    if !file.is("rs") {
        return Vec::new();
    }
    let code = code(&file.text);
    let mut findings = Vec::new();
    if !file
        .text
        .trim_start_matches(['\u{feff}', '\n'])
        .starts_with("//!")
    {
        findings.push(Finding::new(
            &file.path,
            1,
            "a file starts with `//!`: what it is, what it is not",
        ));
    }
    named(file, &code, &LEFTOVERS, &mut findings);
    exceptions(file, &code, &mut findings);
    let is_core = file.path.starts_with("core/src/") && !file.is_unit_test();
    let may_name_std = [OWNS_THREADS, BINDS_COLLECTIONS]
        .iter()
        .any(|owner| file.path.starts_with(owner));
    if is_core && !may_name_std {
        named(
            file,
            without_unit_tests(&code),
            &BANNED_IN_CORE,
            &mut findings,
        );
    }
    let is_root = ["src/lib.rs", "src/main.rs"]
        .iter()
        .any(|root| file.path.ends_with(root));
    let may_be_unsafe = MAY_BE_UNSAFE
        .iter()
        .any(|folder| file.path.starts_with(folder));
    if is_root && !may_be_unsafe && !code.contains("#![forbid(unsafe_code)]") {
        findings.push(Finding::new(
            &file.path,
            1,
            "the crate's root lacks `#![forbid(unsafe_code)]`",
        ));
    }
    findings
}

fn named(file: &File, code: &str, banned: &[(&str, &str)], findings: &mut Vec<Finding>) {
    for (name, why) in banned {
        let found = words(code, name);
        findings.extend(
            found.map(|at| Finding::new(&file.path, line_of(code, at), format!("`{name}`: {why}"))),
        );
    }
}

/// Every `allow` and `expect` attribute carries a reason.
fn exceptions(file: &File, code: &str, findings: &mut Vec<Finding>) {
    for name in ["allow", "expect"] {
        for at in words(code, name) {
            let is_attribute = code[..at].ends_with("#[")
                || code[..at].ends_with("#![")
                || code[..at].ends_with(", ");
            let Some(arguments) = code[at + name.len()..].strip_prefix('(') else {
                continue;
            };
            let end = arguments.find(')').unwrap_or(arguments.len());
            if is_attribute && !arguments[..end].contains("reason =") {
                let what = format!("`{name}(..)` without `reason = \"..\"`");
                findings.push(Finding::new(&file.path, line_of(code, at), what));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&File::new(path, &format!("//! Words.\n{text}\n"))).len()
    }

    #[test]
    fn every_rule_finds_its_breach() {
        let module = "core/src/wire/reader.rs";
        let cases = [
            (module, "fn f() { todo!() }", 1),
            (module, "// todo!()", 0),
            (module, "#[test] #[ignore] fn f() {}", 1),
            (module, "#[allow(dead_code)] fn f() {}", 1),
            (module, "#![allow(dead_code, reason = \"x (y)\")]", 0),
            (module, "#[cfg_attr(test, allow(dead_code))]", 1),
            (module, "#[expect(clippy::panic)]", 1),
            (module, "value.expect(\"word\")", 0),
            (module, "f(a, b.expect(c))", 0),
            (module, "use std::time::Instant;", 1),
            (module, "use alloc::sync::Arc;", 1),
            (
                module,
                "#[cfg(test)]\nmod tests {\n    use std::sync::Arc;\n}",
                0,
            ),
            ("core/src/sync.rs", "use alloc::sync::Arc;", 0),
            (
                "core/src/cluster/tests/world.rs",
                "use alloc::sync::Arc;",
                0,
            ),
            ("core/src/cluster/tests.rs", "use std::time::Instant;", 0),
            ("transports/tokio/src/link.rs", "use std::sync::Arc;", 0),
            ("core/src/lib.rs", "#![no_std]", 1),
            ("core/src/lib.rs", "#![forbid(unsafe_code)]", 0),
            ("transports/tokio/src/lib.rs", "mod link;", 0),
        ];
        for (path, text, expected) in cases {
            assert_eq!(count(path, text), expected, "{path}: {text}");
        }
    }

    #[test]
    fn a_file_starts_with_its_documentation() {
        assert_eq!(
            check(&File::new("core/src/a.rs", "use crate::b;\n")).len(),
            1
        );
        assert_eq!(
            check(&File::new("core/src/a.rs", "\n//! Words.\n")).len(),
            0
        );
        assert_eq!(check(&File::new("core/a.txt", "words")).len(), 0);
    }
}
