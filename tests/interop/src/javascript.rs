//! A folder of npm packages with a foreign driver for Node, as `javascript/package-lock.json` pins
//! them.
//!
//! It lies in the target folder and is made anew when the lock file changes. No package's own
//! script is run while installing.

use core::time::Duration;
use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result};

use crate::{process, target, target::Target};

const LIMIT: Duration = Duration::from_secs(180);

/// Packages that are ready for use.
#[derive(Debug, Clone)]
pub struct JavaScript {
    folder: PathBuf,
}

impl JavaScript {
    /// The packages, fetched when they are not there yet or their list changed.
    ///
    /// # Errors
    /// Fails with the words of `npm`.
    pub fn prepare(target: &Target) -> Result<Self> {
        let folder = target.interop("javascript");
        let lists = target::crate_folder().join("javascript");
        let recipe = fs::read_to_string(lists.join("package-lock.json"))
            .context("cannot read javascript/package-lock.json")?;
        if !target::is_complete(&folder, &recipe) {
            target::start_over(&folder)?;
            for name in ["package.json", "package-lock.json"] {
                fs::copy(lists.join(name), folder.join(name))
                    .with_context(|| format!("cannot copy javascript/{name}"))?;
            }
            let mut npm = Command::new("npm");
            npm.args([
                "ci",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                "--prefix",
            ])
            .arg(&folder);
            process::run(&mut npm, &folder, "npm", LIMIT)?
                .success("npm ci (Debian: package npm)")?;
            target::mark_complete(&folder, &recipe)?;
        }
        Ok(Self { folder })
    }

    /// A command that runs one of the scripts in `javascript/`.
    #[must_use]
    pub fn script(&self, name: &str) -> Command {
        let mut command = Command::new("node");
        command
            .arg(target::crate_folder().join("javascript").join(name))
            .env("NODE_PATH", self.folder.join("node_modules"));
        command
    }
}
