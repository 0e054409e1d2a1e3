//! The files of the tree: what git tracks, and what it would track if it were added now.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, str};

/// A text file of the tree.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct File {
    /// From the root of the tree, with `/`.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl File {
    /// A file as given, for tests of rules.
    #[must_use]
    pub fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// Whether the path ends so.
    #[must_use]
    pub fn is(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|found| found == extension)
    }

    /// Whether the whole file is a module of unit tests, as a large `mod tests` is.
    #[must_use]
    pub fn is_unit_test(&self) -> bool {
        let is_test = self.path.contains("/tests/") || self.path.ends_with("/tests.rs");
        self.path.contains("/src/") && is_test
    }
}

/// The root of the tree.
#[must_use]
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest
        .ancestors()
        .nth(2)
        .unwrap_or(manifest)
        .to_path_buf()
}

/// Every path that is tracked or neither tracked nor ignored.
///
/// # Errors
///
/// When git is missing or the tree is no checkout.
pub fn paths(root: &Path) -> io::Result<Vec<String>> {
    let arguments = [
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ];
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(arguments)
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut paths: Vec<String> = text
        .split('\0')
        .filter(|path| !path.is_empty() && root.join(path).exists())
        .map(str::to_owned)
        .collect();
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

/// Every text file; a file that is not UTF-8 or holds a zero byte is not text.
///
/// # Errors
///
/// As [`paths`], or when a file cannot be read.
pub fn files(root: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    for path in paths(root)? {
        let bytes = fs::read(root.join(&path))?;
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => files.push(File { path, text }),
            _ => {}
        }
    }
    Ok(files)
}
