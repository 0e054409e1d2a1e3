//! `messina inspect`: what the driver knows of a cluster, and how it is connected to it.

pub(crate) mod draw;

use core::time::Duration;
use std::io::Write;
use std::process::ExitCode;

use messina_core::config::Limits;
use messina_core::drive::{ConnectionStatus, NodeStatus, Status, TableTablets};
use messina_core::types::CqlValue;
use serde_json::{Value, json};

use messina_core::wire::Compression;

use crate::arguments::{Common, Format};
use crate::connect::Connected;
use crate::failure::Failure;

/// Options of `messina inspect`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct InspectArguments {
    /// How long to wait for the pools to fill
    #[arg(long, value_name = "MS", default_value_t = 2000,
        value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    wait: u64,
    #[command(flatten)]
    common: Common,
}

/// Shown below the options.
pub(crate) const EXAMPLES: &str = "\
Examples:
  messina inspect --contact 127.0.0.1
  messina inspect --contact 127.0.0.1 --wait 10000 --connections-per-shard 2
  messina inspect --contact 127.0.0.1 --format json | jq .nodes[].connected_shards";

/// Everything that is shown.
#[derive(Debug)]
struct Picture {
    status: Status,
    /// Keyspaces and their consistency, where the cluster tells.
    consistency: Vec<(String, String)>,
    limits: Limits,
}

/// Connects, waits, prints.
pub(crate) async fn run(arguments: &InspectArguments) -> Result<ExitCode, Failure> {
    let format = arguments.common.output();
    if format == Format::Csv {
        return Err(Failure::usage("inspect prints table or json"));
    }
    let connected = Connected::open(&arguments.common).await?;
    let mut status = connected
        .settled_status(Duration::from_millis(arguments.wait))
        .await;
    status
        .nodes
        .sort_by(|one, other| (&one.dc, one.address).cmp(&(&other.dc, other.address)));
    let picture = Picture {
        status,
        consistency: consistency(&connected).await,
        limits: connected.limits,
    };
    connected.session.close().await;
    let text = match format {
        Format::Json => picture.to_json().to_string(),
        _ => draw::draw(&picture),
    };
    writeln!(std::io::stdout().lock(), "{text}").map_err(|error| Failure::stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// The table is ScyllaDB's own; a cluster without it has no such keyspaces.
async fn consistency(connected: &Connected) -> Vec<(String, String)> {
    let asked = "SELECT keyspace_name, consistency FROM system_schema.scylla_keyspaces";
    let Ok(result) = connected.session.query_unprepared(asked).await else {
        return Vec::new();
    };
    let Ok(rows) = result.rows::<Vec<CqlValue>>() else {
        return Vec::new();
    };
    let pair = |row: Vec<CqlValue>| match <[CqlValue; 2]>::try_from(row) {
        Ok([CqlValue::Text(name), CqlValue::Text(level)]) => Some((name, level)),
        _ => None,
    };
    rows.flatten().filter_map(pair).collect()
}

impl Picture {
    fn consistency_of(&self, keyspace: &str) -> Option<&str> {
        let mut levels = self.consistency.iter();
        levels.find_map(|(name, level)| (name == keyspace).then_some(level.as_str()))
    }

    fn is_shard_aware(&self) -> bool {
        let mut connections = self.status.nodes.iter().flat_map(|node| &node.connections);
        connections.any(|connection| connection.shard.is_some())
    }

    fn to_json(&self) -> Value {
        let cluster = &self.status.cluster;
        let keyspaces = cluster.keyspaces.iter().map(|keyspace| {
            json!({
                "name": &*keyspace.name,
                "replication": replication(keyspace.has_tablets),
                "consistency": self.consistency_of(&keyspace.name),
                "tables": keyspace.tables,
            })
        });
        json!({
            "cluster": {
                "name": cluster.cluster_name,
                "partitioner": cluster.partitioner,
                "release_version": cluster.release_version,
            },
            "shard_aware": self.is_shard_aware(),
            "nodes": self.status.nodes.iter().map(node).collect::<Value>(),
            "keyspaces": keyspaces.collect::<Value>(),
            "tablets": self.status.tablets.iter().map(tablets).collect::<Value>(),
            "prepared": self.status.prepared,
            "limits": limits(&self.limits),
        })
    }
}

const fn replication(has_tablets: bool) -> &'static str {
    if has_tablets { "tablets" } else { "vnodes" }
}

fn tablets(table: &TableTablets) -> Value {
    json!({
        "keyspace": table.keyspace,
        "table": table.table,
        "cached": table.stats.cached,
        "bytes": table.stats.bytes,
        "evicted": table.stats.evicted,
    })
}

fn node(node: &NodeStatus) -> Value {
    json!({
        "host_id": node.host_id.to_string(),
        "address": node.address.to_string(),
        "dc": node.dc,
        "rack": node.rack,
        "up": node.is_up,
        "nr_shards": node.shards,
        "ignore_msb": node.ignore_msb,
        "shard_aware_port": node.shard_aware_port.map(core::num::NonZeroU16::get),
        "connected_shards": node.connected_shards(),
        "connections": node.connections.iter().map(connection).collect::<Value>(),
    })
}

fn connection(connection: &ConnectionStatus) -> Value {
    json!({
        "shard": connection.shard,
        "local_port": connection.local_port.map(core::num::NonZeroU16::get),
        "protocol": connection.protocol,
        "compression": connection.compression.map(Compression::name),
        "extensions": connection.extensions,
        "in_flight": connection.in_flight,
    })
}

fn limits(limits: &Limits) -> Value {
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    json!({
        "in_flight_per_connection": limits.connection.in_flight,
        "waiting_per_connection": limits.connection.waiting,
        "pending_bytes_per_connection": limits.connection.pending_bytes,
        "request_len_max": limits.connection.request_len_max,
        "orphans_per_connection": limits.connection.orphans,
        "orphan_age_ms": ms(limits.connection.orphan_age),
        "heartbeat_interval_ms": ms(limits.connection.heartbeat_interval),
        "heartbeat_timeout_ms": ms(limits.connection.heartbeat_timeout),
        "frame_len_max": limits.frame.frame_len_max,
        "skip_len_max": limits.frame.skip_len_max,
        "read_chunk": limits.read_chunk,
        "nodes": limits.nodes,
        "tablet_bytes": limits.tablet_bytes,
        "inbox": limits.inbox,
        "prepared_statements": limits.prepared_statements,
        "connecting": limits.connecting,
    })
}
