//! Rules on `Cargo.toml` and `Cargo.lock` files, read as text: shared settings are inherited, versions stand at the
//! root, and nothing comes from a git repository.

use crate::Finding;
use crate::tree::File;

/// What a member of the main workspace inherits.
const INHERITED: [&str; 5] = [
    "version.workspace = true",
    "edition.workspace = true",
    "rust-version.workspace = true",
    "license.workspace = true",
    "publish.workspace = true",
];

/// Checks one file.
#[must_use]
pub fn check(file: &File) -> Vec<Finding> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    match name {
        "Cargo.lock" => lines(file, |line| {
            line.contains("source = \"git+")
                .then(|| "a dependency from a git repository".to_owned())
        }),
        "Cargo.toml" => {
            let mut findings = lines(file, |line| {
                let is_git = line.contains("git = \"") && !line.trim_start().starts_with('#');
                is_git.then(|| "a dependency from a git repository".to_owned())
            });
            let is_member = file.path != "Cargo.toml" && !file.text.contains("[workspace]");
            if is_member && file.text.contains("[package]") {
                findings.extend(member(file));
            }
            findings
        }
        _ => Vec::new(),
    }
}

fn member(file: &File) -> Vec<Finding> {
    let has = |wanted: &str| file.text.lines().any(|line| line.trim() == wanted);
    let mut findings: Vec<_> = INHERITED
        .iter()
        .filter(|wanted| !has(wanted))
        .map(|wanted| Finding::new(&file.path, 0, format!("lacks `{wanted}`")))
        .collect();
    if !file.text.contains("[lints]\nworkspace = true") {
        findings.push(Finding::new(
            &file.path,
            0,
            "does not inherit the workspace's lints",
        ));
    }
    findings.extend(lines(file, |line| {
        let table_free = line
            .split_once('=')
            .map(|(key, value)| (key.trim(), value.trim()));
        let (key, value) = table_free?;
        let is_version = value.starts_with("{ version =") || value.starts_with("{version");
        is_version.then(|| {
            format!("the version of `{key}` belongs into the root's `[workspace.dependencies]`")
        })
    }));
    findings
}

fn lines(file: &File, rule: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let numbered = file.text.lines().enumerate();
    numbered
        .filter_map(|(number, line)| Some(Finding::new(&file.path, number + 1, rule(line)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_inherit_and_nothing_comes_from_git() {
        let good = format!(
            "[package]\nname = \"a\"\n{}\n\n[lints]\nworkspace = true\n",
            INHERITED.join("\n")
        );
        let count = |path: &str, text: &str| check(&File::new(path, text)).len();
        assert_eq!(count("core/Cargo.toml", &good), 0);
        assert_eq!(count("core/Cargo.toml", "[package]\nname = \"a\"\n"), 6);
        assert_eq!(
            count("tests/fuzz/Cargo.toml", "[package]\n[workspace]\n"),
            0
        );
        let pinned = format!("{good}[dependencies]\nbytes = {{ version = \"1\" }}\n");
        assert_eq!(count("core/Cargo.toml", &pinned), 1);
        let git = format!("{good}[dependencies]\nbytes = {{ git = \"x\" }}\n");
        assert_eq!(count("core/Cargo.toml", &git), 1);
        assert_eq!(
            count("Cargo.lock", "source = \"git+https://example.org/x#1\"\n"),
            1
        );
        assert_eq!(count("Cargo.lock", "source = \"registry+x\"\n"), 0);
    }
}
