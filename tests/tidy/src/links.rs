//! Links in Markdown: a relative link names a file of the tree, and an anchor a heading of that file. Links to other
//! hosts are not followed.

use std::collections::BTreeMap;

use crate::Finding;
use crate::tree::File;

/// Checks every Markdown file against all `paths` of the tree.
#[must_use]
pub fn check(files: &[File], paths: &[String]) -> Vec<Finding> {
    let texts: BTreeMap<&str, &str> = files
        .iter()
        .filter(|file| file.is("md"))
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let mut findings = Vec::new();
    for (path, text) in &texts {
        for (line, target) in targets(text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (name, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if name.is_empty() {
                (*path).to_owned()
            } else {
                resolve(path, name)
            };
            let folder = format!("{}/", file.trim_end_matches('/'));
            let exists = paths
                .iter()
                .any(|known| *known == file || known.starts_with(&folder));
            if !exists {
                findings.push(Finding::new(
                    path,
                    line,
                    format!("the link `{target}` leads nowhere"),
                ));
            } else if let Some(text) = texts.get(file.as_str()).filter(|_| !anchor.is_empty())
                && !anchors(text).any(|known| known == anchor)
            {
                findings.push(Finding::new(
                    path,
                    line,
                    format!("no heading for the link `{target}`"),
                ));
            }
        }
    }
    findings
}

/// `](target)` and `src="target"`, `href="target"` outside code, with line numbers.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, text) in prose(text) {
        for opening in ["](", "src=\"", "href=\""] {
            let closing = if opening == "](" { ')' } else { '"' };
            for (at, _) in text.match_indices(opening) {
                let rest = &text[at + opening.len()..];
                let is_code = text[..at].matches('`').count() % 2 == 1;
                if let Some(end) = rest.find(closing).filter(|_| !is_code) {
                    let target = rest[..end].split(' ').next().unwrap_or_default();
                    found.push((line, target.trim_matches(['<', '>'])));
                }
            }
        }
    }
    found
}

/// Lines outside fenced code, with their numbers from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        (!fenced && !is_fence).then_some((number + 1, line))
    })
}

/// Anchors as code hosts derive them from headings.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    prose(text)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| {
            let kept = line.trim_start_matches('#').trim().chars();
            kept.filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| {
                    if c == ' ' {
                        '-'
                    } else {
                        c.to_ascii_lowercase()
                    }
                })
                .collect()
        })
}

/// The path, from the root of the tree, that a link in the file `from` names.
fn resolve(from: &str, name: &str) -> String {
    let mut parts: Vec<&str> = if name.starts_with('/') {
        Vec::new()
    } else {
        from.split('/').collect()
    };
    parts.pop();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_links_are_found() {
        let readme = "# The driver\n[a](core/README.md) [b](core/) [c](https://example.org/x)\n\
                      [d](core/README.md#use-it) [e](#the-driver)\n`[f](nowhere)`\n```\n[g](nowhere)\n```\n\
                      [h](nowhere.md)\n[i](core/README.md#absent)\n<img src=\"logo.svg\">\n[j](../outside)\n";
        let files = [
            File::new("README.md", readme),
            File::new("core/README.md", "## Use it!\n[up](../README.md)\n"),
        ];
        let paths: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
        let lines: Vec<_> = check(&files, &paths)
            .iter()
            .map(|finding| finding.line)
            .collect();
        assert_eq!(lines, [8, 9, 10, 11]);
    }
}
