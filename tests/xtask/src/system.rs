//! Programs that are not Rust's: found on `PATH`, else installed by apt, but only as root and unless
//! `--no-install`. A missing one is named together with what was therefore not run.

use core::time::Duration;
use std::env;
use std::path::PathBuf;

use crate::command::Outcome;
use crate::context::Context;
use crate::{hosts, targets, toolchain};

/// A program that a stage calls, and the Debian package that brings it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    package: &'static str,
}

pub(crate) const NODE: Program = Program {
    name: "node",
    package: "nodejs",
};
pub(crate) const NPM: Program = Program {
    name: "npm",
    package: "npm",
};
pub(crate) const CHROMIUM: Program = Program {
    name: "chromium",
    package: "chromium",
};
pub(crate) const JAVA: Program = Program {
    name: "java",
    package: "openjdk-17-jdk-headless",
};
pub(crate) const MAVEN: Program = Program {
    name: "mvn",
    package: "maven",
};
pub(crate) const PYTHON: Program = Program {
    name: "python3",
    package: "python3-venv",
};
pub(crate) const QEMU_ARM: Program = Program {
    name: "qemu-system-arm",
    package: "qemu-system-arm",
};
pub(crate) const QEMU_RISCV: Program = Program {
    name: "qemu-system-riscv32",
    package: "qemu-system-misc",
};
pub(crate) const VALGRIND: Program = Program {
    name: "valgrind",
    package: "valgrind",
};

const ALL: [Program; 9] = [
    NODE, NPM, CHROMIUM, JAVA, MAVEN, PYTHON, QEMU_ARM, QEMU_RISCV, VALGRIND,
];

/// Built from its package with its own lock file, so that a run means the same tomorrow.
const CARGO_DENY_VERSION: &str = "0.20.2";

/// Installs what the stages need. A stage that runs alone calls for its own programs again.
pub(crate) fn set_up(context: &Context) -> Outcome {
    context.cargo(["fetch", "--locked"]).run()?;
    let missing: Vec<_> = ALL
        .into_iter()
        .filter(|program| find(program.name).is_none())
        .collect();
    let packages: Vec<_> = missing.iter().map(|program| program.package).collect();
    install(context, &packages);
    for program in missing {
        need(
            context,
            program,
            &format!("the stages that call {}", program.name),
        )?;
    }
    toolchain::add_targets(context, &targets::TARGETS);
    hosts::fetch(context)?;
    cargo_deny(context).map(|_| ())
}

/// The path of `cargo-deny` in the tools folder, built there if it is not yet. `None` after a skip that was noted.
pub(crate) fn cargo_deny(context: &Context) -> Outcome<Option<PathBuf>> {
    let tools = context.target_dir.join("tools");
    let program = tools.join("bin/cargo-deny");
    let version = context.run(&program).arg("--version").ask();
    if version.is_some_and(|version| version.ends_with(CARGO_DENY_VERSION)) {
        return Ok(Some(program));
    }
    if context.options.no_install {
        context.skip(
            "licences, bans and sources",
            "cargo-deny is missing (`cargo xtask setup` builds it)",
        )?;
        return Ok(None);
    }
    context
        .cargo([
            "install",
            "cargo-deny",
            "--version",
            CARGO_DENY_VERSION,
            "--locked",
            "--debug",
        ])
        .arg("--root")
        .arg(&tools)
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        // Into a temporary folder, which cargo deletes: only the program is kept.
        .env_remove("CARGO_TARGET_DIR")
        .run()?;
    Ok(Some(program))
}

/// Whether the program is there, by now. If not, `what` was not run, which in CI is an error.
pub(crate) fn need(context: &Context, program: Program, what: &str) -> Outcome<bool> {
    if find(program.name).is_some() {
        return Ok(true);
    }
    if install(context, &[program.package]) && find(program.name).is_some() {
        return Ok(true);
    }
    context.skip(
        what,
        format!(
            "{} is missing (Debian package {})",
            program.name, program.package
        ),
    )?;
    Ok(false)
}

/// Installs Debian packages where that is possible and allowed; true if all are there afterwards.
pub(crate) fn install(context: &Context, packages: &[&str]) -> bool {
    let missing: Vec<_> = packages
        .iter()
        .copied()
        .filter(|package| !is_package_installed(context, package))
        .collect();
    if missing.is_empty() {
        return true;
    }
    let root = context
        .run("id")
        .arg("-u")
        .ask()
        .is_some_and(|id| id == "0");
    if context.options.no_install || !root || find("apt-get").is_none() {
        return false;
    }
    let apt = |arguments: &[&str]| {
        let run = context
            .run("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive");
        run.limit(Duration::from_secs(300)).run()
    };
    let install = ["install", "-y", "-qq", "--no-install-recommends"];
    let install = [&install[..], &missing].concat();
    // The package lists may be old or absent: only then are they worth their time.
    if apt(&install).is_ok() {
        return true;
    }
    match apt(&["update", "-qq"]).and_then(|()| apt(&install)) {
        Ok(()) => true,
        Err(failure) => {
            println!("{failure}");
            false
        }
    }
}

fn is_package_installed(context: &Context, package: &str) -> bool {
    let status = context
        .run("dpkg-query")
        .args(["-W", "-f", "${db:Status-Status}", package])
        .ask();
    status.is_some_and(|status| status == "installed")
}

fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Options;

    #[test]
    fn a_missing_program_is_a_skip_by_hand_and_an_error_in_ci() {
        let nothing = Program {
            name: "no-such-program-here",
            package: "no-such-package-here",
        };
        let options = || Options {
            no_install: true,
            ..Options::default()
        };
        let mut context = Context::new(options()).expect("the tree is here");
        context.ci = false;
        assert!(!need(&context, nothing, "a check").expect("only a skip"));
        let skips = context.take_skips();
        assert_eq!(skips.len(), 1);
        assert!(skips[0].why.contains("no-such-package-here"), "{skips:?}");
        context.ci = true;
        assert!(need(&context, nothing, "a check").is_err());
        assert!(find("sh").is_some());
    }
}
