//! The jars of Apache Cassandra, brought by `mvn` from a pom that is written here.
//!
//! One artifact, `org.apache.cassandra:cassandra-all`, names all that a node needs (about 100 jars,
//! 67 MB); `dependency:copy-dependencies` puts them into one folder, which is the class path. The
//! version is pinned: what ran yesterday runs today.

use core::time::Duration;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use crate::{process, target, target::Target};

/// The Cassandra that is used unless another is asked for.
pub const CASSANDRA_VERSION: &str = "5.0.9";

const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";
const LIMIT: Duration = Duration::from_secs(240);

/// A folder with Cassandra and everything it needs.
#[derive(Debug, Clone)]
pub struct Jars {
    folder: PathBuf,
    jamm: PathBuf,
}

impl Jars {
    /// The jars of `version`, fetched when they are not there yet.
    ///
    /// # Errors
    /// Fails with Maven's own message when it cannot be run or finds nothing, twice.
    pub fn fetch(target: &Target, version: &str) -> Result<Self> {
        let folder = target.interop(&format!("cassandra-{version}"));
        let pom = pom(version);
        let recipe = format!("{COPY}\n{pom}");
        if !target::is_complete(&folder, &recipe) {
            target::start_over(&folder)?;
            fs::write(folder.join("pom.xml"), &pom)?;
            copy(&folder).or_else(|_| copy(&folder))?;
            target::mark_complete(&folder, &recipe)?;
        }
        Self::open(folder.join("jars"))
    }

    /// The class path entry that means every jar of the folder.
    #[must_use]
    pub fn class_path(&self) -> PathBuf {
        self.folder.join("*")
    }

    /// The jar that must be the JVM's agent: Cassandra measures its heap objects with it and
    /// refuses to start without.
    #[must_use]
    pub fn jamm(&self) -> &Path {
        &self.jamm
    }

    fn open(folder: PathBuf) -> Result<Self> {
        let mut jamm = None;
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if name.starts_with("jamm-") && name.ends_with(".jar") {
                jamm = Some(path);
            }
        }
        let jamm = jamm.with_context(|| format!("no jamm jar in {}", folder.display()))?;
        Ok(Self { folder, jamm })
    }
}

fn copy(folder: &Path) -> Result<()> {
    let mut mvn = Command::new("mvn");
    mvn.args([
        "--batch-mode",
        "--no-transfer-progress",
        "--quiet",
        "-Dstyle.color=never",
        // Else a failure is remembered for a day and the second try asks nobody.
        "--update-snapshots",
        "--file",
    ])
    .arg(folder.join("pom.xml"))
    .args([COPY, "-DincludeScope=runtime"])
    .arg(format!(
        "-DoutputDirectory={}",
        folder.join("jars").display()
    ));
    let finished = process::run(&mut mvn, folder, "mvn", LIMIT)?;
    if finished.status.success() {
        return Ok(());
    }
    let said = format!("{}{}", finished.stdout, finished.stderr);
    // Maven repeats itself over many lines; its first error is the one that says what is wrong.
    let first = said
        .find("[ERROR]")
        .and_then(|at| said[at..].lines().next());
    bail!("mvn: {}", first.unwrap_or("failed without a word").trim())
}

fn pom(version: &str) -> String {
    format!(
        r#"<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>messina</groupId>
  <artifactId>interop</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.cassandra</groupId>
      <artifactId>cassandra-all</artifactId>
      <version>{version}</version>
    </dependency>
  </dependencies>
</project>
"#
    )
}

/// Whether `absent.md` beside this crate's manifest lists `message`, so that what needs the jars
/// may be left out instead of failing.
#[must_use]
pub fn is_listed_absent(message: &str) -> bool {
    let list = fs::read_to_string(target::crate_folder().join("absent.md")).unwrap_or_default();
    lists(&list, message)
}

fn lists(list: &str, message: &str) -> bool {
    !message.trim().is_empty() && list.contains(message.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_message_is_listed() {
        let list = "# Absent\n\n    mvn: [ERROR] no route\n";
        let table = [
            ("mvn: [ERROR] no route", true),
            ("mvn: [ERROR] another", false),
            ("", false),
            (" \n", false),
        ];
        for (message, expected) in table {
            assert_eq!(lists(list, message), expected, "{message:?}");
        }
    }

    #[test]
    fn the_jamm_jar_is_found_by_name() {
        let folder = std::env::temp_dir().join(format!("messina-jars-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("other-1.jar"), "").unwrap();
        assert!(Jars::open(folder.clone()).is_err());
        fs::write(folder.join("jamm-0.4.0.jar"), "").unwrap();
        assert!(
            Jars::open(folder.clone())
                .unwrap()
                .jamm()
                .ends_with("jamm-0.4.0.jar")
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
