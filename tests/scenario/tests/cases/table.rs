//! The table of cases in the crate's documentation names tests that exist.

use std::collections::BTreeSet;
use std::path::Path;

const TABLE: &str = include_str!("../../src/lib.rs");

/// Cases that must be in the table.
const CASES: [&str; 41] = [
    "F1", "F3", "F4", "F6", "P3", "P7", "G1", "S1", "S3", "S5", "S7", "N7", "O1", "O3", "W4", "L1",
    "L4", "E3", "E5", "P1", "P5", "G3", "E1", "T1", "T3", "T5", "O7", "W1", "N1", "N3", "N5", "O5",
    "E7", "E9", "V1", "V2", "V4", "V6", "V8", "V10", "V12",
];

#[test]
fn every_named_test_exists_and_every_case_is_named() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut named = BTreeSet::new();
    for line in TABLE.lines().filter(|line| line.starts_with("//! | ")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, case, _, file, test, _] = cells[..] else {
            panic!("{line}");
        };
        let (file, test) = (file.trim_matches('`'), test.trim_matches('`'));
        if !file.ends_with(".rs") {
            continue;
        }
        let text = std::fs::read_to_string(root.join(file));
        let text = text.unwrap_or_else(|error| panic!("{file}: {error}"));
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let declared = lines.iter().position(|line| {
            let line = line.strip_prefix("async ").unwrap_or(line);
            line.starts_with(&format!("fn {test}("))
        });
        let declared = declared.unwrap_or_else(|| panic!("{file} has no {test}"));
        let marked = lines[..declared]
            .iter()
            .rev()
            .take(3)
            .any(|line| ["#[test]", "#[tokio::test]"].contains(line));
        assert!(marked, "{test} is not a test");
        named.insert(case);
    }
    assert_eq!(named, CASES.into_iter().collect());
}
