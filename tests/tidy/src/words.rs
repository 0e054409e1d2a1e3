//! Words that no file of the tree may hold: places outside the tree, hosts of registries, and leftovers.
//!
//! The tree stands alone: a path on somebody's machine or a registry's host is wrong on every other machine.

use crate::Finding;
use crate::tree::File;

/// Cut in two, so that this file does not break its own rule.
const FORBIDDEN: [(&str, &str, &str); 15] = [
    ("../sha", "red", "the tree refers to nothing outside it"),
    ("/wo", "rk/", "a path on one machine"),
    ("/ro", "ot/", "a path on one machine"),
    ("/ho", "me/", "a path on one machine"),
    ("/tmp/tar", "get", "a path on one machine"),
    ("static.crat", "es.io", "a registry's host"),
    ("index.crat", "es.io", "a registry's host"),
    ("registry.npm", "js.org", "a registry's host"),
    ("repo1.mav", "en.org", "a registry's host"),
    ("repo.mav", "en.apache.org", "a registry's host"),
    ("files.python", "hosted.org", "a registry's host"),
    ("py", "pi.org", "a registry's host"),
    ("deb.deb", "ian.org", "a registry's host"),
    ("proxy.go", "lang.org", "a registry's host"),
    ("<<<<", "<<< ", "a merge conflict"),
];

/// Checks one file.
#[must_use]
pub fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        for (head, tail, why) in FORBIDDEN {
            let word = [head, tail].concat();
            if line.contains(&word) {
                findings.push(Finding::new(
                    &file.path,
                    number + 1,
                    format!("`{word}`: {why}"),
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_found_with_its_line() {
        for (head, tail, _) in FORBIDDEN {
            let text = format!("first\nsee {head}{tail} there\n");
            let findings = check(&File::new("a.md", &text));
            assert_eq!(
                findings
                    .iter()
                    .map(|finding| finding.line)
                    .collect::<Vec<_>>(),
                [2],
                "{text}"
            );
        }
        assert!(check(&File::new("a.md", "work/ and shared are words")).is_empty());
    }
}
