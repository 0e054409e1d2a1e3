//! What core may depend on, read from `cargo metadata`.
//!
//! Licences, sources and banned crates of the whole graph are `cargo deny`'s (`deny.toml`).

use std::io;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::Finding;

/// What core may name, each without default features, and why.
const CORE_MAY_USE: [(&str, &str); 15] = [
    ("arc-swap", "snapshots with std"),
    ("bytes", "shared buffers"),
    ("crc32fast", "checksums of protocol 5, optional"),
    ("defmt", "logging on microcontrollers, optional"),
    ("hashbrown", "maps"),
    ("heapless", "fixed sizes"),
    ("lz4_flex", "compressed frames, optional"),
    ("loom", "models of the hand-overs, under its own cfg"),
    ("messina-derive", "derive macros, optional"),
    ("portable-atomic", "where there is no compare-and-swap"),
    ("portable-atomic-util", "where there is no compare-and-swap"),
    ("rand_core", "the seed source"),
    ("snap", "compressed frames, optional"),
    ("tracing", "logging, optional"),
    ("uuid", "values"),
];

/// Optional by nature: never in a default build.
const OPTIONAL: [&str; 6] = [
    "crc32fast",
    "defmt",
    "lz4_flex",
    "messina-derive",
    "snap",
    "tracing",
];

/// The workspace's metadata, without dependencies of dependencies.
///
/// # Errors
///
/// When cargo cannot be run or does not answer with JSON.
pub fn metadata(root: &Path) -> io::Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--format-version", "1", "--no-deps"];
    let output = Command::new(cargo)
        .current_dir(root)
        .args(arguments)
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ));
    }
    serde_json::from_slice(&output.stdout).map_err(io::Error::other)
}

/// Checks core's dependencies in the metadata.
#[must_use]
pub fn check_core(metadata: &Value) -> Vec<Finding> {
    let finding = |what: String| Finding::new("core/Cargo.toml", 0, what);
    let packages = metadata["packages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let Some(core) = packages
        .iter()
        .find(|package| package["name"] == "messina-core")
    else {
        return vec![finding(
            "cargo metadata does not list messina-core".to_owned(),
        )];
    };
    let mut findings = Vec::new();
    let dependencies = core["dependencies"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    for dependency in dependencies
        .iter()
        .filter(|dependency| dependency["kind"].is_null())
    {
        let name = dependency["name"].as_str().unwrap_or_default();
        let under_cfg = dependency["target"].is_string();
        if !CORE_MAY_USE.iter().any(|(known, _)| *known == name) {
            findings.push(finding(format!("core may not depend on `{name}`")));
        } else if dependency["uses_default_features"] == true
            && !under_cfg
            && dependency["optional"] == false
        {
            findings.push(finding(format!(
                "`{name}` must come with `default-features = false`"
            )));
        } else if OPTIONAL.contains(&name) && dependency["optional"] == false {
            findings.push(finding(format!("`{name}` must be optional")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(dependency: &str) -> usize {
        let metadata =
            format!(r#"{{"packages":[{{"name":"messina-core","dependencies":[{dependency}]}}]}}"#);
        check_core(&serde_json::from_str(&metadata).expect("JSON")).len()
    }

    #[test]
    fn only_known_dependencies_without_default_features() {
        let dependency = |name: &str, defaults: bool, optional: bool, kind: &str, target: &str| {
            format!(
                r#"{{"name":"{name}","uses_default_features":{defaults},"optional":{optional},"kind":{kind},"target":{target}}}"#
            )
        };
        assert_eq!(count(&dependency("bytes", false, false, "null", "null")), 0);
        assert_eq!(count(&dependency("bytes", true, false, "null", "null")), 1);
        assert_eq!(count(&dependency("serde", false, true, "null", "null")), 1);
        assert_eq!(
            count(&dependency("serde", true, false, "\"dev\"", "null")),
            0
        );
        assert_eq!(
            count(&dependency("tracing", false, false, "null", "null")),
            1
        );
        assert_eq!(
            count(&dependency(
                "loom",
                true,
                false,
                "null",
                "\"cfg(messina_loom)\""
            )),
            0
        );
        assert_eq!(check_core(&Value::Null).len(), 1);
    }
}
