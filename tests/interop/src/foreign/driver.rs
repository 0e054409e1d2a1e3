//! The foreign drivers' programs: how each is brought here, started and listened to.

use core::time::Duration;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::scenario::scenario_file;
use crate::{
    javascript::JavaScript,
    probe::Credentials,
    process,
    python::Python,
    target::{self, Target},
};

const BUILD_LIMIT: Duration = Duration::from_secs(600);
const RUN_LIMIT: Duration = Duration::from_secs(240);

/// A foreign driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Driver {
    /// scylla-driver, from PyPI.
    Python,
    /// Crate `scylla`.
    Rust,
    /// cassandra-driver, from npm.
    JavaScript,
}

impl Driver {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Python, Self::Rust, Self::JavaScript];

    /// Its package's name, as its program reports it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "scylla-driver",
            Self::Rust => "scylla",
            Self::JavaScript => "cassandra-driver",
        }
    }

    /// Whether it knows shards and tablets.
    #[must_use]
    pub fn is_shard_aware(self) -> bool {
        self != Self::JavaScript
    }
}

/// Where and as whom a program goes.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Call<'a> {
    /// Which of the scenario's clusters.
    pub cluster: &'a str,
    /// The one node that the driver is told of.
    pub contact: &'a str,
    /// The simulator's control port.
    pub control: Option<&'a str>,
    /// The authority to trust; TLS if given.
    pub ca: Option<&'a Path>,
    /// The login.
    pub credentials: Option<&'a Credentials>,
}

impl<'a> Call<'a> {
    /// To a node of a cluster, without login.
    #[must_use]
    pub fn new(cluster: &'a str, contact: &'a str) -> Self {
        Self {
            cluster,
            contact,
            control: None,
            ca: None,
            credentials: None,
        }
    }
}

/// The programs, ready to run.
#[derive(Debug, Clone)]
pub struct Programs {
    python: Python,
    javascript: JavaScript,
    rust: PathBuf,
}

impl Programs {
    /// Brings the packages and builds what must be built.
    ///
    /// # Errors
    /// Fails with the words of `pip`, `npm` or `cargo`.
    pub fn prepare(target: &Target, python: &Python) -> Result<Self> {
        Ok(Self {
            python: python.clone(),
            javascript: JavaScript::prepare(target)?,
            rust: build(target)?,
        })
    }

    /// The program that lets a driver do the workload of the comparison.
    ///
    /// # Errors
    /// Fails when there is none.
    pub fn comparing(&self, driver: Driver) -> Result<Command> {
        match driver {
            Driver::Python => Ok(self.python.script("compare.py")),
            Driver::Rust => Ok(Command::new(self.rust.with_file_name("compare-scylla"))),
            Driver::JavaScript => bail!("it knows no tablets"),
        }
    }

    /// Runs a driver's program through the scenario.
    ///
    /// # Errors
    /// Fails when the program fails, takes too long or prints something else than JSON lines; what
    /// goes wrong inside a check is in the account instead.
    pub fn run(&self, target: &Target, driver: Driver, call: &Call<'_>) -> Result<Account> {
        let mut command = match driver {
            Driver::Python => self.python.script("scenario.py"),
            Driver::Rust => Command::new(&self.rust),
            Driver::JavaScript => self.javascript.script("scenario.cjs"),
        };
        command
            .arg("--scenario")
            .arg(scenario_file())
            .args(["--cluster", call.cluster, "--contact", call.contact])
            .env_remove("MESSINA_PASSWORD");
        if let Some(control) = call.control {
            command.args(["--control", control]);
        }
        if let Some(ca) = call.ca {
            command.arg("--ca").arg(ca);
        }
        if let Some(credentials) = call.credentials {
            command
                .args(["--user", &credentials.user])
                .env("MESSINA_PASSWORD", &credentials.password);
        }
        let folder = target.run_folder(&format!("{}-{}", driver.name(), call.cluster))?;
        let finished = process::run(&mut command, &folder, "scenario", RUN_LIMIT)?
            .success(&format!("the program of {}", driver.name()))?;
        let account = Account::parse(&finished.stdout, finished.seconds)?;
        ensure!(
            account.driver == driver.name(),
            "{} answered",
            account.driver
        );
        fs::remove_dir_all(&folder)?;
        Ok(account)
    }
}

/// What a program printed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Account {
    /// The driver's name.
    pub driver: String,
    /// The driver's version.
    pub version: String,
    /// Of the whole program.
    pub seconds: f64,
    lines: Vec<Value>,
}

impl Account {
    /// From the lines that a program printed: first who it is, then one for each check.
    ///
    /// # Errors
    /// Fails on anything else, and on two lines for one check.
    pub fn parse(printed: &str, seconds: f64) -> Result<Self> {
        let mut lines = printed.lines();
        let first = lines.next().context("it printed nothing")?;
        let first: Value = serde_json::from_str(first).context("its first line is no JSON")?;
        let word = |name: &str| {
            let word = first[name].as_str().map(str::to_owned);
            word.with_context(|| format!("its first line names no {name}"))
        };
        let mut account = Self {
            driver: word("driver")?,
            version: word("version")?,
            seconds,
            lines: Vec::new(),
        };
        for line in lines {
            let value: Value =
                serde_json::from_str(line).with_context(|| format!("no JSON: {line}"))?;
            let check = value["check"]
                .as_str()
                .with_context(|| format!("no check: {line}"))?;
            let table = value["table"].as_str().unwrap_or_default();
            ensure!(
                account.line(check, table).is_none(),
                "{check} {table} came twice"
            );
            account.lines.push(value);
        }
        Ok(account)
    }

    /// The line of a check; `table` is empty where it is about none.
    #[must_use]
    pub fn line(&self, check: &str, table: &str) -> Option<&Value> {
        let is_it = |line: &&Value| {
            line["check"] == check && line["table"].as_str().unwrap_or_default() == table
        };
        self.lines.iter().find(is_it)
    }

    /// What a check saw.
    ///
    /// # Errors
    /// Fails with what went wrong, also when the check was not reported.
    pub fn saw(&self, check: &str, table: &str) -> Result<&Value> {
        let line = self.line(check, table).context("not reported")?;
        if let Some(error) = line["error"].as_str() {
            anyhow::bail!("{error}");
        }
        line.get("saw")
            .context("it reports neither what it saw nor an error")
    }
}

/// Builds the crate's program as the benchmarks are built, so that the crate is compiled once.
fn build(target: &Target) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build
        .args(["build", "--quiet", "--locked", "--profile", "bench"])
        .args(["--package", "messina-foreign-scylla"])
        .env("CARGO_TARGET_DIR", target.folder())
        .current_dir(target::crate_folder());
    process::run(
        &mut build,
        &target.interop(""),
        "cargo-build-scylla",
        BUILD_LIMIT,
    )?
    .success("cargo build --package messina-foreign-scylla")?;
    let binary = target.folder().join("release/foreign-scylla");
    ensure!(
        binary.is_file(),
        "there is no program at {}",
        binary.display()
    );
    Ok(binary)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = r#"{"driver":"d","version":"1"}"#;

    fn parse(more: &str) -> Result<Account> {
        Account::parse(&format!("{FIRST}\n{more}"), 0.0)
    }

    #[test]
    fn a_check_is_found_with_its_table() {
        let account = parse(
            "{\"check\":\"read\",\"table\":\"a\",\"saw\":1}\n\
             {\"check\":\"read\",\"table\":\"b\",\"error\":\"no\"}\n{\"check\":\"udt\",\"saw\":{}}",
        )
        .unwrap();
        assert_eq!(account.saw("read", "a").unwrap(), 1);
        assert_eq!(account.saw("read", "b").unwrap_err().to_string(), "no");
        assert!(account.saw("udt", "").is_ok());
        assert_eq!(
            account.saw("udt", "a").unwrap_err().to_string(),
            "not reported"
        );
        assert_eq!(
            account.saw("lwt", "").unwrap_err().to_string(),
            "not reported"
        );
    }

    #[test]
    fn what_is_no_account_is_refused() {
        assert!(Account::parse("", 0.0).is_err());
        assert!(Account::parse("{\"driver\":\"d\"}", 0.0).is_err());
        let lines = [
            "Traceback",
            "{\"saw\":1}",
            "{\"check\":\"a\",\"saw\":1}\n{\"check\":\"a\",\"saw\":1}",
        ];
        for lines in lines {
            assert!(parse(lines).is_err(), "{lines}");
        }
        let neither = parse("{\"check\":\"a\"}").unwrap();
        assert!(neither.saw("a", "").is_err());
    }
}
