//! The `messina` command, run from outside as a person would: arguments in, JSON and exit code out.
//!
//! It is built by cargo in the profile of the harness (or named with `--messina`). Its JSON is read
//! as a stream of values, so line breaks inside a value do not matter.

use core::time::Duration;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::{
    probe::Credentials,
    process::{self, Finished},
    target::{self, Target},
};

const BUILD_LIMIT: Duration = Duration::from_secs(600);
const RUN_LIMIT: Duration = Duration::from_secs(60);

/// The command, ready to run.
#[derive(Debug, Clone)]
pub struct Messina {
    binary: PathBuf,
}

impl Messina {
    /// Builds package `messina-cli` in the profile that the harness was built in.
    ///
    /// # Errors
    /// Fails with cargo's words when it does not build.
    pub fn build(target: &Target) -> Result<Self> {
        let profile = profile(target);
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build
            .args([
                "build",
                "--quiet",
                "--package",
                "messina-cli",
                "--bin",
                "messina",
            ])
            .args(["--profile", profile.argument])
            .env("CARGO_TARGET_DIR", target.folder())
            .current_dir(target::crate_folder());
        process::run(&mut build, &target.interop(""), "cargo-build", BUILD_LIMIT)?
            .success("cargo build --package messina-cli")?;
        Self::at(target.folder().join(profile.folder).join("messina"))
    }

    /// The command at a known path.
    ///
    /// # Errors
    /// Fails when there is none.
    pub fn at(binary: PathBuf) -> Result<Self> {
        ensure!(
            binary.is_file(),
            "there is no messina command at {}",
            binary.display()
        );
        Ok(Self { binary })
    }

    /// `messina query` against one contact point, with JSON output.
    #[must_use]
    pub fn query(&self, contact: &str, credentials: Option<&Credentials>) -> Command {
        self.connecting("query", contact, credentials)
    }

    /// Any subcommand that connects, with JSON output.
    #[must_use]
    pub fn connecting(
        &self,
        name: &str,
        contact: &str,
        credentials: Option<&Credentials>,
    ) -> Command {
        let mut command = self.subcommand(name);
        command.args(["--format", "json", "--contact", contact]);
        if let Some(credentials) = credentials {
            command
                .args(["--user", &credentials.user])
                .env("MESSINA_PASSWORD", &credentials.password);
        }
        command
    }

    /// Any subcommand, with no setting taken from the environment.
    #[must_use]
    pub fn subcommand(&self, name: &str) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .arg(name)
            .env_remove("MESSINA_CONTACT")
            .env_remove("MESSINA_PASSWORD");
        command
    }
}

/// What `messina query` printed when it ended with code 0.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answers {
    /// One for each execution.
    pub executions: Vec<Value>,
    /// The object under `summary`.
    pub summary: Value,
    /// Of the whole process.
    pub seconds: f64,
}

impl Answers {
    /// Runs a query command; anything but code 0 is an error.
    ///
    /// # Errors
    /// Fails when the command fails, takes too long or prints something else than the contract.
    pub fn of(command: &mut Command, folder: &Path, name: &str) -> Result<Self> {
        let finished = process::run(command, folder, name, RUN_LIMIT)?.success("messina query")?;
        Self::parse(&finished.stdout, finished.seconds)
    }

    /// All rows of all executions.
    ///
    /// # Errors
    /// Fails when an execution has no rows array.
    pub fn rows(&self) -> Result<Vec<Vec<Value>>> {
        let mut rows = Vec::new();
        for execution in &self.executions {
            let some = execution["rows"]
                .as_array()
                .context("an execution without rows")?;
            for row in some {
                rows.push(row.as_array().context("a row that is no array")?.clone());
            }
        }
        Ok(rows)
    }

    /// Checks that the summary counts `executed` executions, all well.
    ///
    /// # Errors
    /// Fails on any other count.
    pub fn expect_all_ok(&self, executed: u64) -> Result<()> {
        let is = |name: &str| self.summary[name].as_u64() == Some(executed);
        ensure!(
            is("executed") && is("ok"),
            "wanted {executed}, summary {}",
            self.summary
        );
        Ok(())
    }

    fn parse(stdout: &str, seconds: f64) -> Result<Self> {
        let mut executions = Vec::new();
        for value in serde_json::Deserializer::from_str(stdout).into_iter::<Value>() {
            executions.push(value.context("standard output is not JSON")?);
        }
        let Some(last) = executions.pop() else {
            bail!("nothing on standard output");
        };
        let summary = last
            .get("summary")
            .with_context(|| format!("no summary but {last}"))?
            .clone();
        Ok(Self {
            executions,
            summary,
            seconds,
        })
    }
}

/// Runs a command that must end with code 0 and print one JSON object.
///
/// # Errors
/// Fails when the command ends otherwise, prints something else or takes longer than its limit.
pub fn object(command: &mut Command, folder: &Path, name: &str) -> Result<Value> {
    let finished = process::run(command, folder, name, RUN_LIMIT)?.success("messina")?;
    serde_json::from_str(&finished.stdout).context("standard output is not one JSON object")
}

/// Runs a command that must be refused: code 1 and one JSON object on standard error. Gives the
/// object under `error`.
///
/// # Errors
/// Fails when the command ends otherwise or takes longer than its limit.
pub fn refusal(command: &mut Command, folder: &Path, name: &str) -> Result<Value> {
    let Finished { status, stderr, .. } = process::run(command, folder, name, RUN_LIMIT)?;
    ensure!(
        status.code() == Some(1),
        "wanted exit code 1, got {status}: {stderr}"
    );
    let object = stderr
        .lines()
        .rev()
        .find_map(|line| serde_json::from_str::<Value>(line).ok());
    let object = object.with_context(|| format!("no JSON on standard error: {stderr}"))?;
    object
        .get("error")
        .cloned()
        .with_context(|| format!("no error in {object}"))
}

struct Profile {
    argument: &'static str,
    folder: String,
}

/// The profile of the running harness, read off its own path: `TARGET/FOLDER/messina-interop`.
fn profile(target: &Target) -> Profile {
    let own = std::env::current_exe().unwrap_or_default();
    let folder = own
        .strip_prefix(target.folder())
        .ok()
        .and_then(|rest| rest.iter().next())
        .map_or_else(
            || "debug".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        );
    match folder.as_str() {
        "release" => Profile {
            argument: "release",
            folder,
        },
        "sim" => Profile {
            argument: "sim",
            folder,
        },
        _ => Profile {
            argument: "dev",
            folder: "debug".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_of_objects_ends_with_the_summary() {
        let stdout = "{\"rows\":[[1,\"a\"]]}\n{\n \"rows\": [[2, null]]\n}\n\
            {\"summary\":{\"executed\":2,\"ok\":2}}\n";
        let answers = Answers::parse(stdout, 0.0).unwrap();
        let rows = answers.rows().unwrap();
        assert_eq!(
            rows,
            [vec![1.into(), "a".into()], vec![2.into(), Value::Null]]
        );
        answers.expect_all_ok(2).unwrap();
        assert!(answers.expect_all_ok(3).is_err());
    }

    #[test]
    fn anything_else_is_no_answer() {
        for stdout in [
            "",
            "hello",
            "{\"rows\":[]}\n",
            "{\"summary\":{}}\n{\"rows\":[]}\n",
        ] {
            assert!(Answers::parse(stdout, 0.0).is_err(), "{stdout:?}");
        }
    }
}
