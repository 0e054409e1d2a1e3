//! A virtual environment with what `python/requirements.txt` pins: a foreign driver and, as plain
//! files, a package of public data sets.
//!
//! It lies in the target folder and is made anew when the list changes. Wheels only, and only the
//! packages of the list, so nothing is compiled here and nothing unlisted comes along.

use core::time::Duration;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::{process, target, target::Target};

const LIMIT: Duration = Duration::from_secs(180);

/// A virtual environment that is ready for use.
#[derive(Debug, Clone)]
pub struct Python {
    folder: PathBuf,
}

impl Python {
    /// The environment, made when it is not there yet or its list changed.
    ///
    /// # Errors
    /// Fails with the words of `python3` or `pip`.
    pub fn prepare(target: &Target) -> Result<Self> {
        let folder = target.interop("python");
        let list = target::crate_folder().join("python/requirements.txt");
        let recipe = fs::read_to_string(&list).context("cannot read python/requirements.txt")?;
        let python = Self { folder };
        if !target::is_complete(&python.folder, &recipe) {
            target::start_over(&python.folder)?;
            python.install(&list)?;
            target::mark_complete(&python.folder, &recipe)?;
        }
        Ok(python)
    }

    /// A command that runs one of the scripts in `python/`.
    #[must_use]
    pub fn script(&self, name: &str) -> Command {
        let mut command = Command::new(self.interpreter());
        command
            .arg("-u")
            .arg(target::crate_folder().join("python").join(name));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// The folder that its packages are in.
    ///
    /// # Errors
    /// Fails when the environment has none.
    pub fn site_packages(&self) -> Result<PathBuf> {
        let lib = self.folder.join("lib");
        for entry in fs::read_dir(&lib).with_context(|| format!("no {}", lib.display()))? {
            let packages = entry?.path().join("site-packages");
            if packages.is_dir() {
                return Ok(packages);
            }
        }
        anyhow::bail!("no site-packages in {}", lib.display())
    }

    fn install(&self, list: &Path) -> Result<()> {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(&self.folder);
        process::run(&mut venv, &self.folder, "venv", LIMIT)?
            .success("python3 -m venv (Debian: package python3-venv)")?;
        let mut pip = Command::new(self.interpreter());
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
        ])
        .args(["--only-binary", ":all:", "--requirement"])
        .arg(list);
        process::run(&mut pip, &self.folder, "pip", LIMIT)?.success("pip install")?;
        Ok(())
    }

    fn interpreter(&self) -> PathBuf {
        self.folder.join("bin/python")
    }
}
