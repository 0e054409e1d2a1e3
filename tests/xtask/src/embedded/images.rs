//! Builds the images of `examples/embassy-qemu`.

use std::path::{Path, PathBuf};

use crate::command::Outcome;
use crate::context::Context;
use crate::toolchain::Toolchain;

pub(super) const MANIFEST: &str = "examples/embassy-qemu/Cargo.toml";

const SMALL_LIBRARY: &str = "-Zbuild-std-features=optimize_for_size";

/// Images of one target.
#[derive(Debug)]
pub(super) struct Images {
    folder: PathBuf,
}

impl Images {
    /// Builds images by name; `None` after a skip that was noted.
    pub(super) fn build(context: &Context, target: &str, names: &[&str]) -> Outcome<Option<Self>> {
        let Some(toolchain) = Toolchain::for_target(context, target)? else {
            return Ok(None);
        };
        Self::build_by(context, &toolchain, target, names, &[]).map(Some)
    }

    /// The image that encrypts.
    pub(super) fn build_tls(context: &Context, target: &str) -> Outcome<Option<Self>> {
        let Some(toolchain) = Toolchain::for_target(context, target)? else {
            return Ok(None);
        };
        let features = ["--features", "tls"];
        Self::build_by(context, &toolchain, target, &["tls"], &features).map(Some)
    }

    /// The same with the library built for size, and a panic that is a trap.
    pub(super) fn build_smallest(
        context: &Context,
        target: &str,
        names: &[&str],
    ) -> Outcome<Option<Self>> {
        let toolchain = Toolchain::building_library(context, target)?;
        match toolchain {
            Some(toolchain @ Toolchain::Debian { .. }) => {
                Self::build_by(context, &toolchain, target, names, &[SMALL_LIBRARY]).map(Some)
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
        if options.contains(&SMALL_LIBRARY) {
            let flags = format!(
                "CARGO_TARGET_{}_RUSTFLAGS",
                target.replace('-', "_").to_uppercase()
            );
            build = build
                .env(&flags, "-Zunstable-options -Cpanic=immediate-abort")
                .env_remove("RUSTFLAGS");
        }
        build.run()?;
        let folder = toolchain.target_dir(context).join(target).join("release");
        Ok(Self { folder })
    }

    /// Where an image is.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
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
