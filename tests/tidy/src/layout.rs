//! The names at the top of the tree are fixed: a new one is a decision, not an accident.

use crate::Finding;

/// Everything at the top but dot-files and dot-folders, which are free.
const TOP: [&str; 16] = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
    "bindings-wasm",
    "clippy.toml",
    "core",
    "deny.toml",
    "examples",
    "rustfmt.toml",
    "tests",
    "transports",
];

/// Names at the top that do not belong there, and names that are missing.
#[must_use]
pub fn check(paths: &[String]) -> Vec<Finding> {
    let mut names: Vec<&str> = paths
        .iter()
        .filter_map(|path| path.split('/').next())
        .collect();
    names.dedup();
    let extra = names
        .iter()
        .filter(|name| !name.starts_with('.') && !TOP.contains(name));
    let extra = extra.map(|name| Finding::new(name, 0, "does not belong at the top of the tree"));
    let missing = TOP.iter().filter(|name| !names.contains(name));
    extra
        .chain(missing.map(|name| Finding::new(name, 0, "missing at the top of the tree")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_and_missing_names_are_found() {
        let mut paths: Vec<String> = TOP.iter().map(|name| (*name).to_owned()).collect();
        paths.push(".ci/run".to_owned());
        assert_eq!(check(&paths), []);
        paths.push("notes.txt".to_owned());
        assert_eq!(check(&paths).len(), 1);
        paths.remove(0);
        assert_eq!(check(&paths).len(), 2);
    }
}
