//! The cluster as a picture: datacenters, racks, nodes, and a cell for each shard.

use std::collections::BTreeMap;

use comfy_table::{Cell, CellAlignment, Table, presets};
use console::{StyledObject, style};
use messina_core::drive::{NodeStatus, Status};

use super::{Picture, replication};
use crate::figures::counted;

/// Cells in one line.
const CELLS_PER_LINE: usize = 32;

pub(super) fn draw(picture: &Picture) -> String {
    let mut lines = vec![header(picture)];
    lines.extend(cluster(&picture.status));
    lines.push(legend());
    lines.push(String::new());
    lines.push(keyspaces(picture).to_string());
    lines.join("\n")
}

/// The nodes, under their datacenters and racks.
pub(crate) fn cluster(status: &Status) -> Vec<String> {
    let mut dcs: BTreeMap<&str, BTreeMap<&str, Vec<&NodeStatus>>> = BTreeMap::new();
    for node in &status.nodes {
        let racks = dcs.entry(named(&node.dc)).or_default();
        racks.entry(named(&node.rack)).or_default().push(node);
    }
    let width = status
        .nodes
        .iter()
        .map(|node| node.address.to_string().len())
        .max();
    let mut lines = Vec::new();
    for (dc, racks) in dcs {
        lines.push(String::new());
        lines.push(format!("{}", style(dc).bold()));
        let last_rack = racks.len().saturating_sub(1);
        for (at, (rack, nodes)) in racks.into_iter().enumerate() {
            let (branch, trunk) = branches(at == last_rack);
            lines.push(format!("{} {rack}", style(branch).dim()));
            let last_node = nodes.len().saturating_sub(1);
            for (at, node) in nodes.into_iter().enumerate() {
                let (branch, below) = branches(at == last_node);
                let (first, rest) = (format!("{trunk}{branch}"), format!("{trunk}{below}"));
                lines.extend(node_lines(node, width.unwrap_or(0), &first, &rest));
            }
        }
    }
    lines
}

fn header(picture: &Picture) -> String {
    let cluster = &picture.status.cluster;
    let partitioner = cluster.partitioner.rsplit('.').next().unwrap_or_default();
    let sharding = if picture.is_shard_aware() {
        "shard-aware"
    } else {
        "not sharded"
    };
    let connections = u64::try_from(picture.status.connections()).unwrap_or(u64::MAX);
    format!(
        "{}  {}",
        style(named(&cluster.cluster_name)).bold().cyan(),
        style(format!(
            "release {} · {partitioner} · {sharding} · {}",
            named(&cluster.release_version),
            counted(connections, "connection")
        ))
        .dim()
    )
}

fn named(name: &str) -> &str {
    if name.is_empty() { "(unnamed)" } else { name }
}

/// What stands before a branch of the tree, and before what hangs on it.
const fn branches(is_last: bool) -> (&'static str, &'static str) {
    if is_last {
        ("└─", "   ")
    } else {
        ("├─", "│  ")
    }
}

fn node_lines(node: &NodeStatus, width: usize, first: &str, rest: &str) -> Vec<String> {
    let address = format!("{:<width$}", node.address.to_string());
    let state = if node.is_up {
        style("up  ").green()
    } else {
        style("down").red()
    };
    let cells = cells(node);
    let mut lines = Vec::new();
    for (at, row) in cells.chunks(CELLS_PER_LINE).enumerate() {
        let row: String = row
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ");
        lines.push(if at == 0 {
            let facts = style(facts(node)).dim();
            format!("{} {address}  {state}  {row}  {facts}", style(first).dim())
        } else {
            format!("{} {:width$}        {row}", style(rest).dim(), "")
        });
    }
    lines
}

/// One for each shard; one for the whole node if it does not shard.
fn cells(node: &NodeStatus) -> Vec<StyledObject<&'static str>> {
    let count = |shard: Option<u16>| {
        let connections = node.connections.iter();
        connections
            .filter(|connection| connection.shard == shard)
            .count()
    };
    let cell = |count: usize| match count {
        0 => style("□").red(),
        1 => style("■").green(),
        _ => style("■").cyan(),
    };
    match node.shards {
        Some(shards) => (0..shards).map(|shard| cell(count(Some(shard)))).collect(),
        None => vec![cell(node.connections.len())],
    }
}

fn facts(node: &NodeStatus) -> String {
    let mut parts = Vec::new();
    match node.shards {
        Some(shards) => parts.push(format!("{}/{shards} shards", node.connected_shards())),
        None => parts.push("no shards".to_owned()),
    }
    if let Some(connection) = node.connections.first() {
        parts.push(format!("v{}", connection.protocol));
        let tablets = connection
            .extensions
            .iter()
            .find(|name| name.starts_with("TABLETS"));
        parts.extend(tablets.map(|name| tablets_name(name).to_owned()));
    }
    parts.join(" · ")
}

fn tablets_name(extension: &str) -> &str {
    if extension.contains("V2") {
        "tablets v2"
    } else {
        "tablets v1"
    }
}

fn legend() -> String {
    format!(
        "\n{} one connection  {} several  {} none",
        style("■").green(),
        style("■").cyan(),
        style("□").red()
    )
}

fn keyspaces(picture: &Picture) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table.set_header(["keyspace", "replication", "consistency", "tables"]);
    for keyspace in &picture.status.cluster.keyspaces {
        table.add_row([
            Cell::new(&keyspace.name),
            Cell::new(replication(keyspace.has_tablets)),
            Cell::new(picture.consistency_of(&keyspace.name).unwrap_or("")),
            Cell::new(keyspace.tables).set_alignment(CellAlignment::Right),
        ]);
    }
    table
}
