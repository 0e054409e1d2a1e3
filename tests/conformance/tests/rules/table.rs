//! The tables cannot rot: every test that they name exists, and what is missing is known.
#![expect(
    clippy::print_stdout,
    reason = "the rules that are missing are shown with --nocapture"
)]

use std::collections::BTreeMap;
use std::path::Path;

use crate::rule::{Concerns, Held, Rule};
use crate::{awareness, extensions, pitfalls};

/// The rules that nothing holds yet. It may only become shorter, by the test that holds a rule.
const MISSING: [&str; 0] = [];

fn rules() -> impl Iterator<Item = &'static Rule> {
    let tables = [pitfalls::RULES, extensions::RULES, awareness::RULES];
    tables.into_iter().flatten()
}

/// Whether a source text declares a test of this name.
fn declares_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let start = format!("fn {name}(");
    let declared = lines
        .iter()
        .position(|line| line.trim_start_matches("async ").starts_with(&start));
    declared.is_some_and(|at| {
        // Attributes and comments stand between.
        let mut above = lines[..at].iter().rev();
        above
            .by_ref()
            .take(8)
            .take_while(|line| **line != "}")
            .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}

#[test]
fn every_named_test_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = BTreeMap::new();
    let mut absent = Vec::new();
    for rule in rules() {
        let Held::By(tests) = rule.held else { continue };
        assert!(!tests.is_empty(), "{} is held by nothing", rule.number);
        for test in tests {
            let (file, name) = test.split_once(": ").expect("`path: name`");
            let text = texts
                .entry(file)
                .or_insert_with(|| std::fs::read_to_string(root.join(file)).unwrap_or_default());
            if !declares_test(text, name) {
                absent.push(format!("{}: {test}", rule.number));
            }
        }
    }
    assert!(absent.is_empty(), "{}", absent.join("\n"));
}

#[test]
fn tests_are_told_from_what_only_looks_alike() {
    for (text, is_test) in [
        ("#[test]\nfn it() {\n}\n", true),
        (
            "    #[test]\n    #[cfg(feature = \"lz4\")]\n    fn it() {\n",
            true,
        ),
        (
            "#[tokio::test(start_paused = true)]\nasync fn it() {\n",
            true,
        ),
        ("#[test]\nfn other() {\n}\n\nfn it() {\n", false),
        ("fn it() {\n", false),
        ("#[test]\nfn it_too() {\n", false),
        ("// fn it()\n", false),
        ("", false),
    ] {
        assert_eq!(declares_test(text, "it"), is_test, "{text}");
    }
}

/// Numbers are a letter and a count without gaps, and titles differ.
#[test]
fn rules_are_numbered_through() {
    let mut titles = BTreeMap::new();
    for (letter, table, count) in [
        ('E', pitfalls::RULES, 57),
        ('P', extensions::RULES, extensions::RULES.len()),
        ('T', awareness::RULES, awareness::RULES.len()),
    ] {
        assert_eq!(table.len(), count);
        for (place, rule) in (1..).zip(table) {
            assert_eq!(rule.number, format!("{letter}{place}"));
            let earlier = titles.insert(rule.title, rule.number);
            assert_eq!(earlier, None, "{} has the title of another", rule.number);
        }
    }
}

#[test]
fn only_what_is_known_to_be_missing_is_missing() {
    let (mut missing, mut counts) = (Vec::new(), BTreeMap::new());
    for rule in rules() {
        let concerned = match rule.concerns {
            Concerns::Driver => "driver",
            Concerns::Node => "node",
            Concerns::Both => "both",
        };
        let (held, all) = counts.entry(concerned).or_insert((0, 0));
        *all += 1;
        match rule.held {
            Held::By(_) => *held += 1,
            Held::Missing(why) => {
                println!(
                    "missing ({concerned}) {}: {}: {why}",
                    rule.number, rule.title
                );
                missing.push(rule.number);
            }
        }
    }
    for (concerned, (held, all)) in counts {
        println!("{concerned}: {held} of {all} rules held");
    }
    assert_eq!(missing, MISSING);
}
