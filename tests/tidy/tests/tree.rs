//! Applies every rule to the tree. A failure lists all breaches with file and line.

use std::io;

use messina_tidy::tree::{self, File};
use messina_tidy::{Finding, layers, layout, links, manifests, packages, sources, words};

fn files() -> Vec<File> {
    let files = tree::files(&tree::root()).expect("the checkout can be read");
    assert!(
        files.iter().any(|file| file.path == "core/src/lib.rs"),
        "this is not the tree"
    );
    files
}

fn none(findings: impl IntoIterator<Item = Finding>) {
    let lines: Vec<String> = findings
        .into_iter()
        .map(|finding| finding.to_string())
        .collect();
    assert!(
        lines.is_empty(),
        "{} findings:\n{}",
        lines.len(),
        lines.join("\n")
    );
}

#[test]
fn layers_point_one_way() {
    none(files().iter().flat_map(layers::check_core));
}

#[test]
fn the_simulated_node_does_not_know_core() {
    none(files().iter().flat_map(layers::check_simulated_node));
}

#[test]
fn the_tunnel_stands_alone() {
    none(files().iter().flat_map(layers::check_tunnel));
}

#[test]
fn sources_follow_the_rules() {
    none(files().iter().flat_map(sources::check));
}

#[test]
fn no_file_holds_a_forbidden_word() {
    none(files().iter().flat_map(words::check));
}

#[test]
fn manifests_and_lock_files_follow_the_rules() {
    none(files().iter().flat_map(manifests::check));
}

#[test]
fn the_top_of_the_tree_is_as_decided() -> io::Result<()> {
    none(layout::check(&tree::paths(&tree::root())?));
    Ok(())
}

#[test]
fn links_in_documents_resolve() -> io::Result<()> {
    none(links::check(&files(), &tree::paths(&tree::root())?));
    Ok(())
}

#[test]
fn core_depends_on_what_is_allowed() -> io::Result<()> {
    none(packages::check_core(&packages::metadata(&tree::root())?));
    Ok(())
}

#[test]
fn the_readme_shows_the_quickstart_as_it_is() {
    let files = files();
    let text = |path: &str| {
        let file = files.iter().find(|file| file.path == path);
        file.map(|file| file.text.clone())
            .expect("it is part of the tree")
    };
    let (readme, program) = (text("README.md"), text("examples/quickstart/src/main.rs"));
    let shown = readme
        .split("```rust\n")
        .nth(1)
        .and_then(|rest| rest.split("\n```").next())
        .expect("the README shows a program");
    assert!(program.contains(shown), "the README shows something else");
}
