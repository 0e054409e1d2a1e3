//! The files that the jars do not bring: `cassandra.yaml` and `logback.xml`.
//!
//! The yaml holds what has no default (addresses, folders, partitioner, commit log mode, seeds) and
//! what a test wants otherwise: few tokens, no snapshot on DROP or TRUNCATE, small memory. Names
//! and units are those of Cassandra 4.1 and later (`commitlog_sync_period: 10s`).

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

use super::Options;

/// Writes the configuration of a node into `folder/conf` and makes its data folders.
pub(super) fn write(
    folder: &Path,
    options: &Options,
    native_port: u16,
    storage_port: u16,
) -> Result<()> {
    for name in [
        "conf",
        "conf/triggers",
        "data",
        "commitlog",
        "saved_caches",
        "hints",
        "logs",
    ] {
        let path = folder.join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
    }
    let yaml = yaml(folder, options, native_port, storage_port);
    fs::write(folder.join("conf/cassandra.yaml"), yaml)?;
    fs::write(folder.join("conf/logback.xml"), LOGBACK)?;
    Ok(())
}

fn yaml(folder: &Path, options: &Options, native_port: u16, storage_port: u16) -> String {
    let folder = folder.display();
    let tokens = options.num_tokens;
    let authenticator = if options.auth {
        "PasswordAuthenticator"
    } else {
        "AllowAllAuthenticator"
    };
    format!(
        r#"cluster_name: messina interop
num_tokens: {tokens}
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
authenticator:
  class_name: org.apache.cassandra.auth.{authenticator}
data_file_directories: ["{folder}/data"]
commitlog_directory: "{folder}/commitlog"
saved_caches_directory: "{folder}/saved_caches"
hints_directory: "{folder}/hints"
commitlog_sync: periodic
commitlog_sync_period: 10s
commitlog_total_space: 512MiB
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
storage_port: {storage_port}
native_transport_port: {native_port}
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{ seeds: "127.0.0.1:{storage_port}" }}]
auto_snapshot: false
memtable_heap_space: 128MiB
memtable_offheap_space: 128MiB
key_cache_size: 16MiB
hinted_handoff_enabled: false
materialized_views_enabled: true
"#
    )
}

/// To standard output only: the harness keeps that in a file and shows its end on failure.
const LOGBACK: &str = r#"<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level [%thread] %date{HH:mm:ss.SSS} %logger{24} %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="OUT"/></root>
</configuration>
"#;
