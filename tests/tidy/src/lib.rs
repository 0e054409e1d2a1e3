//! Checks on the tree itself, which no compiler makes: layers, banned names, links in documents, licences.
//!
//! Each module holds one kind of rule as functions from text to [`Finding`]s, with tests of its own on text that
//! breaks the rule; `tests/tree.rs` applies them all to the tree. Nothing here builds or changes anything.

#![forbid(unsafe_code)]

pub mod layers;
pub mod layout;
pub mod links;
pub mod manifests;
pub mod packages;
pub mod rust_source;
pub mod sources;
pub mod tree;
pub mod words;

use core::fmt;

/// A broken rule and where.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The file, from the root of the tree.
    pub path: String,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong and what the rule is.
    pub what: String,
}

impl Finding {
    /// A finding at a line.
    pub fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}
