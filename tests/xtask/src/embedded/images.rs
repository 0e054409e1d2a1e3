//! Builds the images of `examples/embassy-qemu`.

use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::command::Outcome;
use crate::context::Context;
use crate::toolchain::Toolchain;

pub(super) const MANIFEST: &str = "examples/embassy-qemu/Cargo.toml";

/// The driver with prepared writes and reads, shards, tablets and leaders, which is what its size is counted of.
const SMALL_DRIVER: [&str; 3] = ["--no-default-features", "--features", "driver"];

const SMALL_LIBRARY: &str = "-Zbuild-std-features=optimize_for_size";

/// Images of one target.
#[derive(Debug)]
pub(super) struct Images {
    folder: PathBuf,
}

impl Images {
    /// Builds images by name, with all of the driver; `None` after a skip that was noted.
    pub(super) fn build(context: &Context, target: &str, names: &[&str]) -> Outcome<Option<Self>> {
        Self::build_with(context, target, names, &[])
    }

    /// The same with what the size card counts, and no more.
    pub(super) fn build_card(
        context: &Context,
        target: &str,
        names: &[&str],
    ) -> Outcome<Option<Self>> {
        Self::build_with(context, target, names, &SMALL_DRIVER)
    }

    /// The image that encrypts, otherwise like the card.
    pub(super) fn build_tls(context: &Context, target: &str) -> Outcome<Option<Self>> {
        let features = ["--no-default-features", "--features", "tls"];
        Self::build_with(context, target, &["tls"], &features)
    }

    fn build_with(
        context: &Context,
        target: &str,
        names: &[&str],
        options: &[&str],
    ) -> Outcome<Option<Self>> {
        let Some(toolchain) = Toolchain::for_target(context, target)? else {
            return Ok(None);
        };
        Self::build_by(context, &toolchain, target, names, options).map(Some)
    }

    /// The same as small as can be: all of it optimized for size before anything else, the library's own
    /// choices too, and a panic that is a trap. The linker refuses what needs more than 128 KiB of flash.
    pub(super) fn build_smallest(
        context: &Context,
        target: &str,
        names: &[&str],
    ) -> Outcome<Option<Self>> {
        let toolchain = Toolchain::building_library(context, target)?;
        match toolchain {
            Some(toolchain @ Toolchain::Debian { .. }) => {
                let [none, features, driver] = SMALL_DRIVER;
                let options = [none, features, driver, SMALL_LIBRARY];
                Self::build_by(context, &toolchain, target, names, &options).map(Some)
            }
            _ => {
                context.skip(
                    "the smallest image",
                    "needs a compiler that builds the library",
                )?;
                Ok(None)
            }
        }
    }

    fn build_by(
        context: &Context,
        toolchain: &Toolchain,
        target: &str,
        names: &[&str],
        options: &[&str],
    ) -> Outcome<Self> {
        let mut build = toolchain
            .cargo(context, ["build", "--locked", "--release"])
            .args(["--target", target, "--manifest-path", MANIFEST])
            .args(options);
        for name in names {
            build = build.args(["--bin", name]);
        }
        let variable = format!(
            "CARGO_TARGET_{}_RUSTFLAGS",
            target.replace('-', "_").to_uppercase()
        );
        let mut flags = paths_left_out(context);
        if options.contains(&SMALL_LIBRARY) {
            flags.push(String::from("-Zunstable-options -Cpanic=immediate-abort"));
            build = build
                .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "z")
                .env("FLASH_KIB", "128");
        }
        build
            .env(&variable, flags.join(" "))
            .env_remove("RUSTFLAGS")
            .run()?;
        let folder = toolchain.target_dir(context).join(target).join("release");
        Ok(Self { folder })
    }

    /// Where an image is.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Panics name files. With their folders an image would weigh more where these have longer names.
fn paths_left_out(context: &Context) -> Vec<String> {
    let cargo = env::var_os("CARGO_HOME").map_or_else(
        || env::home_dir().unwrap_or_default().join(".cargo"),
        PathBuf::from,
    );
    let sources = fs::read_dir(cargo.join("registry/src"));
    let sources = sources.into_iter().flatten().flatten();
    let folders = sources
        .map(|entry| entry.path())
        .chain([context.root.clone()]);
    folders
        .filter_map(|folder| folder.into_os_string().into_string().ok())
        // Flags are told apart by spaces.
        .filter(|folder| !folder.contains(' '))
        .map(|folder| format!("--remap-path-prefix={folder}=."))
        .collect()
}

/// Lints, where the compiler has them.
pub(super) fn lint(context: &Context, target: &str) -> Outcome {
    let Some(Toolchain::Active) = Toolchain::for_target(context, target)? else {
        // Debian's packages hold no clippy.
        return Ok(());
    };
    context
        .cargo(["clippy", "--locked", "--release", "--features", "tls"])
        .args(["--target", target])
        .args([Path::new("--manifest-path"), Path::new(MANIFEST)])
        .args(["--", "-D", "warnings"])
        .run()
}
