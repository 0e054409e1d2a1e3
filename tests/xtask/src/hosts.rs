//! The JavaScript hosts: one suite in each of them, against simulated clusters, by TCP and through the relay, and in
//! three against one node of Apache Cassandra.
//!
//! Hosts come from npm, pinned by the lock file of `bindings-wasm/tests/hosts`; Chromium is Debian's. What runs them
//! prints a table of hosts by version, and fails if one ran no test.

use std::path::Path;

use crate::command::Outcome;
use crate::context::Context;
use crate::system;

const FOLDER: &str = "bindings-wasm/tests/hosts";

/// Downloads the hosts, unless those of the lock file are there. `false` after a skip that was noted.
pub(crate) fn fetch(context: &Context) -> Outcome<bool> {
    let what = "the suite in every JavaScript host";
    for program in [
        system::NODE,
        system::NPM,
        system::CHROMIUM,
        system::JAVA,
        system::MAVEN,
    ] {
        if !system::need(context, program, what)? {
            return Ok(false);
        }
    }
    install(context, FOLDER, what)
}

/// Installs what a folder's lock file names, unless it is there. `false` after a skip that was noted.
pub(crate) fn install(context: &Context, folder: &str, what: &str) -> Outcome<bool> {
    if is_fetched(&context.root.join(folder)) {
        return Ok(true);
    }
    if context.options.no_install {
        context.skip(
            what,
            format!("{folder}/node_modules is missing or old (`npm --prefix {folder} ci`)"),
        )?;
        return Ok(false);
    }
    context
        .run("npm")
        .args(["--prefix", folder])
        // Scripts only move or check files, and not every npm runs them.
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .run()?;
    Ok(true)
}

/// Runs the suite in every host. The package must have been built.
pub(crate) fn run(context: &Context) -> Outcome {
    if !fetch(context)? {
        return Ok(());
    }
    context
        .run("bindings-wasm/node_modules/.bin/tsc")
        .args(["-p", FOLDER])
        .run()?;
    context
        .cargo(["build", "--locked"])
        .args(["-p", "messina-cli", "-p", "messina-interop"])
        .run()?;
    context
        .run("node")
        .arg(format!("{FOLDER}/main.mjs"))
        .arg("--cassandra")
        .env("MESSINA", context.target_dir.join("debug/messina"))
        .env(
            "MESSINA_INTEROP",
            context.target_dir.join("debug/messina-interop"),
        )
        .run()
}

/// npm leaves a copy of the lock file in what it has installed, last of all.
fn is_fetched(folder: &Path) -> bool {
    let changed = |name: &str| folder.join(name).metadata()?.modified();
    match (
        changed("package-lock.json"),
        changed("node_modules/.package-lock.json"),
    ) {
        (Ok(wanted), Ok(there)) => there >= wanted,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_fetched_when_the_lock_file_is_newer() {
        let folder = std::env::temp_dir().join(format!("messina-hosts-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("node_modules")).expect("a temporary folder");
        let write = |name: &str| std::fs::write(folder.join(name), "{}").expect("a small file");
        write("package-lock.json");
        assert!(!is_fetched(&folder));
        write("node_modules/.package-lock.json");
        assert!(is_fetched(&folder));
        let later = std::time::SystemTime::now() + core::time::Duration::from_secs(60);
        let lock = std::fs::File::options()
            .write(true)
            .open(folder.join("package-lock.json"));
        lock.and_then(|file| file.set_modified(later))
            .expect("its time can be set");
        assert!(!is_fetched(&folder));
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }
}
