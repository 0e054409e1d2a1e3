//! The start script that the jars do not bring: which `java`, and the command line.
//!
//! The JVM opens and exports what `jvm17-server.options` of the Cassandra 5.0 distribution lists;
//! without them the daemon dies on reflection into the JDK. The rest is for a short life on a small
//! machine: the serial collector and the first compiler tier alone start faster and hold less than
//! the server defaults.

use std::{path::Path, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, bail};

use super::Options;
use crate::maven::Jars;

/// `java` of `JAVA_HOME`, else of the path; it must be version 17.
pub(super) fn find() -> Result<PathBuf> {
    let java = std::env::var_os("JAVA_HOME").map_or_else(
        || PathBuf::from("java"),
        |home| Path::new(&home).join("bin/java"),
    );
    let output = Command::new(&java)
        .arg("-version")
        .output()
        .with_context(|| format!("cannot run {}: Cassandra 5.0 needs Java 17", java.display()))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match major_version(&said) {
        Some(17) => Ok(java),
        _ => bail!(
            "Cassandra 5.0 needs Java 17, set JAVA_HOME to one; {} says: {}",
            java.display(),
            said.lines().next().unwrap_or_default()
        ),
    }
}

/// The daemon with its configuration in `folder`.
pub(super) fn command(java: &Path, jars: &Jars, folder: &Path, options: &Options) -> Command {
    let property = |name: &str, value: &str| format!("-Dcassandra.{name}={value}");
    let conf = folder.join("conf");
    let show = |path: &Path| path.display().to_string();
    let mut command = Command::new(java);
    command
        .arg(format!("-Xms{}M", options.heap_max_mib.min(512)))
        .arg(format!("-Xmx{}M", options.heap_max_mib))
        .args(JVM)
        .args(
            EXPORTS
                .iter()
                .map(|what| format!("--add-exports={what}=ALL-UNNAMED")),
        )
        .args(
            OPENS
                .iter()
                .map(|what| format!("--add-opens={what}=ALL-UNNAMED")),
        )
        .arg(format!("-javaagent:{}", jars.jamm().display()))
        .arg(property(
            "config",
            &format!("file://{}", show(&conf.join("cassandra.yaml"))),
        ))
        .arg(format!(
            "-Dlogback.configurationFile={}",
            show(&conf.join("logback.xml"))
        ))
        .arg(property("storagedir", &show(folder)))
        .arg(property("logdir", &show(&folder.join("logs"))))
        .arg(property("triggers_dir", &show(&conf.join("triggers"))))
        .args(FAST_START.iter().map(|(name, value)| property(name, value)))
        .arg("-cp")
        .arg(format!("{}:{}", show(&conf), show(&jars.class_path())))
        .arg("org.apache.cassandra.service.CassandraDaemon")
        .current_dir(folder);
    command
}

/// The first number after the opening quote: `openjdk version "17.0.15" 2025-04-15`. Java 8 and
/// before said `"1.8.0"`, which gives 1.
fn major_version(said: &str) -> Option<u32> {
    let (_, rest) = said.split_once("version \"")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

const JVM: &[&str] = &[
    "-Xss512k",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.net.preferIPv4Stack=true",
    "-Djdk.attach.allowAttachSelf=true",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dcassandra-foreground=yes",
];

/// What a real cluster waits or syncs for and a test on one machine need not.
const FAST_START: &[(&str, &str)] = &[
    ("skip_wait_for_gossip_to_settle", "0"),
    ("ring_delay_ms", "0"),
    ("load_ring_state", "false"),
    ("superuser_setup_delay_ms", "0"),
    ("unsafesystem", "true"),
];

const EXPORTS: &[&str] = &[
    "java.base/jdk.internal.misc",
    "java.base/java.lang.ref",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.attach/sun.tools.attach",
    "jdk.compiler/com.sun.tools.javac.file",
    "jdk.unsupported/sun.misc",
];

const OPENS: &[&str] = &[
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.util",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.compiler/com.sun.tools.javac",
    "jdk.management/com.sun.management.internal",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read_from_what_java_says() {
        let table = [
            ("openjdk version \"17.0.15\" 2025-04-15\nmore", Some(17)),
            ("openjdk version \"25\" 2025-09-16", Some(25)),
            ("java version \"1.8.0_402\"", Some(1)),
            ("java: not found", None),
            ("version \"x\"", None),
        ];
        for (said, expected) in table {
            assert_eq!(major_version(said), expected, "{said}");
        }
    }
}
