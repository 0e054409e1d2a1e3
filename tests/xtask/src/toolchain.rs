//! Finds a compiler that has `core` and `alloc` for a target.
//!
//! In this order: the active toolchain, if the target's library is installed; the same after `rustup target
//! add`, for at most two minutes; Debian's compiler with its library sources, building the library itself
//! (`rustc-web`, `cargo-web`, `rust-web-src`; `-Zbuild-std`, which a stable compiler accepts with
//! `RUSTC_BOOTSTRAP=1`), linked by the active toolchain's `rust-lld`. Where none of these is there, the
//! packages are named and the build counts as not run. `MESSINA_TOOLCHAIN=debian` goes straight to the third,
//! and so does what wants the library itself made small.
//!
//! The two compilers differ in version, so the second builds into a target folder of its own.

use core::time::Duration;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::command::{Failure, Outcome, Run};
use crate::context::Context;
use crate::system;

const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

/// A compiler that can build for one target.
#[derive(Debug)]
pub(crate) enum Toolchain {
    /// The one that runs this program.
    Active,
    /// Debian's, which builds the library from its sources.
    Debian {
        cargo: PathBuf,
        rustc: PathBuf,
        search_path: OsString,
        target: String,
    },
}

impl Toolchain {
    /// `None` after a skip that was noted.
    pub(crate) fn for_target(context: &Context, target: &str) -> Outcome<Option<Self>> {
        let forced = env::var("MESSINA_TOOLCHAIN").is_ok_and(|choice| choice == "debian");
        if !forced && (is_installed(context, target) || add_by_rustup(context, target)) {
            return Ok(Some(Self::Active));
        }
        if let Some(toolchain) = debian(context, target)? {
            return Ok(Some(toolchain));
        }
        context.skip(
            format!("build for {target}"),
            format!(
                "needs `rustup target add {target}` or Debian's {}",
                DEBIAN_PACKAGES.join(", ")
            ),
        )?;
        Ok(None)
    }

    /// The one that builds the library too, which is how the smallest module is made; else any.
    pub(crate) fn building_library(context: &Context, target: &str) -> Outcome<Option<Self>> {
        match debian(context, target)? {
            Some(toolchain) => Ok(Some(toolchain)),
            None => Self::for_target(context, target),
        }
    }

    /// A cargo command that uses this compiler and its target folder.
    pub(crate) fn cargo<'a, const N: usize>(
        &self,
        context: &'a Context,
        arguments: [&str; N],
    ) -> Run<'a> {
        self.cargo_for(context, "core,alloc", arguments)
    }

    /// The same for a program that needs these libraries, where they are built too.
    pub(crate) fn cargo_for<'a, const N: usize>(
        &self,
        context: &'a Context,
        libraries: &str,
        arguments: [&str; N],
    ) -> Run<'a> {
        match self {
            Self::Active => context.cargo(arguments),
            Self::Debian {
                cargo,
                rustc,
                search_path,
                target,
            } => {
                let linker = format!(
                    "CARGO_TARGET_{}_LINKER",
                    target.replace('-', "_").to_uppercase()
                );
                context
                    .run(cargo)
                    .args(arguments)
                    .arg(format!("-Zbuild-std={libraries}"))
                    .env("RUSTC", rustc)
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env(&linker, "rust-lld")
                    .env_unshown("PATH", search_path)
                    .env_unshown("CARGO_TARGET_DIR", self.target_dir(context))
                    // Set by rustup for the program that it started; they would mislead another compiler.
                    .env_remove("RUSTUP_TOOLCHAIN")
                    .env_remove("LD_LIBRARY_PATH")
            }
        }
    }

    pub(crate) fn target_dir(&self, context: &Context) -> PathBuf {
        match self {
            Self::Active => context.target_dir.clone(),
            Self::Debian { .. } => context.target_dir.join("debian"),
        }
    }
}

/// Tries to have every target that the stages need, and the compiler that builds the library, so that set-up's
/// minutes are seen apart from theirs.
pub(crate) fn add_targets(context: &Context, targets: &[&str]) {
    system::install(context, &DEBIAN_PACKAGES);
    for target in targets {
        if !is_installed(context, target) {
            add_by_rustup(context, target);
        }
    }
}

fn is_installed(context: &Context, target: &str) -> bool {
    let library = context
        .run("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .ask();
    library.is_some_and(|folder| Path::new(&folder).is_dir())
}

fn add_by_rustup(context: &Context, target: &str) -> bool {
    if context.options.no_install || context.rustup_failed.get() {
        return false;
    }
    let limit = Duration::from_secs(120);
    match context
        .run("rustup")
        .args(["target", "add", target])
        .limit(limit)
        .run()
    {
        Ok(()) => is_installed(context, target),
        Err(failure) => {
            println!("{failure}");
            context.rustup_failed.set(true);
            false
        }
    }
}

fn debian(context: &Context, target: &str) -> Outcome<Option<Toolchain>> {
    if !system::install(context, &DEBIAN_PACKAGES) {
        return Ok(None);
    }
    let find = |package: &str, end: &str| {
        let files = context.run("dpkg").args(["-L", package]).ask()?;
        files
            .lines()
            .find(|file| file.ends_with(end))
            .map(PathBuf::from)
    };
    let (Some(rustc), Some(cargo)) = (
        find("rustc-web", "/bin/rustc"),
        find("cargo-web", "/bin/cargo"),
    ) else {
        return Err(Failure::new("rustc-web or cargo-web holds no compiler"));
    };
    let linker_folder = linker_folder(context).ok_or_else(|| {
        Failure::new("no rust-lld in the active toolchain, which links these builds")
    })?;
    let path = env::var_os("PATH").unwrap_or_default();
    let search_path = env::join_paths([linker_folder].into_iter().chain(env::split_paths(&path)))
        .map_err(|error| Failure::new(error.to_string()))?;
    Ok(Some(Toolchain::Debian {
        cargo,
        rustc,
        search_path,
        target: target.to_owned(),
    }))
}

/// The folder of the active toolchain's `rust-lld`.
fn linker_folder(context: &Context) -> Option<PathBuf> {
    let library = context
        .run("rustc")
        .args(["--print", "target-libdir"])
        .ask()?;
    let folder = Path::new(&library).parent()?.join("bin");
    folder.join("rust-lld").exists().then_some(folder)
}
