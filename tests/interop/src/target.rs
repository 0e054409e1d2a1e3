//! Where the harness keeps its pieces: the folder `interop` inside cargo's target folder.
//!
//! Cargo is asked (`cargo metadata`) instead of guessing, so `CARGO_TARGET_DIR` and configuration
//! files are honoured. A piece that is complete carries a stamp file with what it was made from;
//! without the stamp, or with another one, it is made anew.

use core::sync::atomic::{AtomicU32, Ordering};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

/// Cargo's target folder and the harness's own folder inside it.
#[derive(Debug, Clone)]
pub struct Target {
    folder: PathBuf,
    interop: PathBuf,
}

impl Target {
    /// Asks cargo for the target folder of this workspace and makes the folder `interop` in it.
    ///
    /// # Errors
    /// Fails when cargo does not answer or the folder cannot be made.
    pub fn find() -> Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args([
                "metadata",
                "--no-deps",
                "--offline",
                "--format-version",
                "1",
            ])
            .current_dir(crate_folder())
            .output()
            .context("cannot run cargo metadata")?;
        if !output.status.success() {
            bail!(
                "cargo metadata: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let folder = metadata["target_directory"]
            .as_str()
            .context("cargo metadata names no target_directory")?;
        Self::at(Path::new(folder))
    }

    /// The same with a target folder that is known already.
    ///
    /// # Errors
    /// Fails when the folder cannot be made.
    pub fn at(folder: &Path) -> Result<Self> {
        let interop = folder.join("interop");
        fs::create_dir_all(&interop)
            .with_context(|| format!("cannot make {}", interop.display()))?;
        Ok(Self {
            folder: folder.to_owned(),
            interop,
        })
    }

    /// Cargo's target folder itself.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A path inside the harness's folder.
    #[must_use]
    pub fn interop(&self, name: &str) -> PathBuf {
        self.interop.join(name)
    }

    /// A fresh, empty folder for one run of something, its name ending in this process's id. What
    /// processes that are no more left (an interrupt removes nothing) goes away.
    ///
    /// # Errors
    /// Fails when the folder cannot be made.
    pub fn run_folder(&self, name: &str) -> Result<PathBuf> {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let run = self.interop.join("run");
        sweep(&run, |id| {
            !Path::new("/proc/self").exists() || Path::new("/proc").join(id).exists()
        });
        let count = RUNS.fetch_add(1, Ordering::Relaxed);
        let folder = run.join(format!("{name}-{count}-{}", std::process::id()));
        if folder.exists() {
            // Of an earlier process with the same id.
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot empty {}", folder.display()))?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }
}

/// The folder of this crate's sources, where the Python scripts and `absent.md` lie.
#[must_use]
pub fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Whether `folder` is a finished piece made from `recipe`.
#[must_use]
pub fn is_complete(folder: &Path, recipe: &str) -> bool {
    fs::read_to_string(stamp(folder)).is_ok_and(|made_from| made_from == recipe)
}

/// Marks `folder` as finished, made from `recipe`.
///
/// # Errors
/// Fails when the stamp cannot be written.
pub fn mark_complete(folder: &Path, recipe: &str) -> Result<()> {
    fs::write(stamp(folder), recipe).context("cannot write the stamp")
}

/// Empties `folder` for making it anew; the stamp goes first, so an interrupted set-up is never
/// taken for a finished one.
///
/// # Errors
/// Fails when something in it cannot be removed.
pub fn start_over(folder: &Path) -> Result<()> {
    if folder.exists() {
        let _ = fs::remove_file(stamp(folder));
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// Removes the folders `NAME-ID` whose process is no more; that one cannot be removed is no reason
/// to fail.
fn sweep(run: &Path, is_alive: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(run).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.rsplit_once('-').is_some_and(|(_, id)| !is_alive(id)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn stamp(folder: &Path) -> PathBuf {
    folder.join(".complete")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_processes_that_are_no_more_are_swept() {
        let run = std::env::temp_dir().join(format!("messina-sweep-{}", std::process::id()));
        for name in ["cassandra-11", "sim-v1-12", "cassandra-12", "plain"] {
            fs::create_dir_all(run.join(name)).unwrap();
        }
        sweep(&run, |id| id == "11");
        let mut left: Vec<String> = fs::read_dir(&run)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        left.sort();
        assert_eq!(left, ["cassandra-11", "plain"]);
        fs::remove_dir_all(&run).unwrap();
    }

    #[test]
    fn two_runs_of_one_process_have_two_folders() {
        let target = Target::at(&std::env::temp_dir().join("messina-runs")).unwrap();
        let (first, second) = (
            target.run_folder("x").unwrap(),
            target.run_folder("x").unwrap(),
        );
        assert_ne!(first, second);
        assert!(first.is_dir() && second.is_dir());
        fs::remove_dir_all(first).unwrap();
        fs::remove_dir_all(second).unwrap();
    }

    #[test]
    fn a_piece_is_complete_only_with_its_own_recipe() {
        let folder = std::env::temp_dir().join(format!("messina-stamp-{}", std::process::id()));
        start_over(&folder).unwrap();
        assert!(!is_complete(&folder, "a"));
        mark_complete(&folder, "a").unwrap();
        assert!(is_complete(&folder, "a"));
        assert!(!is_complete(&folder, "b"));
        start_over(&folder).unwrap();
        assert!(!is_complete(&folder, "a"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
