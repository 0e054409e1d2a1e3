//! Rows of `system_schema`, made from the catalogue. Tables of objects this node does not have are
//! empty.

use bytes::Bytes;

use super::super::cluster::Cluster;
use super::super::schema::{Keyspace, Role, Table};
use super::super::value::{boolean, double, int, text, text_map, texts};
use super::{Fill, Row, uuid};

pub(super) fn rows(cluster: &Cluster, table: &Table) -> Vec<Row> {
    let keyspaces = cluster.catalogue.keyspaces.values();
    let tables = || {
        keyspaces
            .clone()
            .flat_map(|keyspace| keyspace.tables.values())
    };
    match table.name.as_str() {
        "keyspaces" => keyspaces
            .map(|keyspace| keyspace_row(keyspace, table))
            .collect(),
        "scylla_keyspaces" => keyspaces
            .filter_map(|keyspace| scylla_keyspace_row(keyspace, table))
            .collect(),
        "tables" => tables().map(|shown| table_row(shown, table)).collect(),
        "scylla_tables" => tables()
            .map(|shown| {
                named(shown, table)
                    .set("version", uuid(&shown.id))
                    .set("committed_by_group0", boolean(true))
                    .done()
            })
            .collect(),
        "columns" => tables()
            .flat_map(|shown| column_rows(shown, table))
            .collect(),
        _ => Vec::new(),
    }
}

fn keyspace_row(keyspace: &Keyspace, table: &Table) -> Row {
    let mut entries = keyspace.replication.entries();
    entries.sort_unstable();
    let entries = entries
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    Fill::new(table)
        .set("keyspace_name", text(&keyspace.name))
        .set("durable_writes", boolean(keyspace.durable_writes))
        .set("replication", text_map(entries))
        .done()
}

/// Only keyspaces that have something to say.
fn scylla_keyspace_row(keyspace: &Keyspace, table: &Table) -> Option<Row> {
    if keyspace.tablets.is_none() && keyspace.consistency.is_none() {
        return None;
    }
    let initial = keyspace
        .tablets
        .map(|initial| int(i32::try_from(initial).unwrap_or(i32::MAX)));
    let row = Fill::new(table)
        .set("keyspace_name", text(&keyspace.name))
        .set("initial_tablets", initial)
        .set("consistency", keyspace.consistency.as_deref().map(text))
        .done();
    Some(row)
}

fn named<'a>(shown: &Table, table: &'a Table) -> Fill<'a> {
    Fill::new(table)
        .set("keyspace_name", text(&shown.keyspace))
        .set("table_name", text(&shown.name))
}

fn table_row(shown: &Table, table: &Table) -> Row {
    let caching = [("keys", "ALL"), ("rows_per_partition", "ALL")];
    let compaction = [("class", "SizeTieredCompactionStrategy")];
    let compression = [(
        "sstable_compression",
        "org.apache.cassandra.io.compress.LZ4Compressor",
    )];
    named(shown, table)
        .set("bloom_filter_fp_chance", double(0.01))
        .set("caching", text_map(caching.into_iter()))
        .set("comment", text(&shown.comment))
        .set("compaction", text_map(compaction.into_iter()))
        .set("compression", text_map(compression.into_iter()))
        .set("crc_check_chance", double(1.0))
        .set("dclocal_read_repair_chance", double(0.0))
        .set("default_time_to_live", int(shown.default_ttl))
        .set("extensions", text_map([].into_iter()))
        .set("flags", texts(["compound"].into_iter()))
        .set("gc_grace_seconds", int(864_000))
        .set("id", uuid(&shown.id))
        .set("max_index_interval", int(2048))
        .set("memtable_flush_period_in_ms", int(0))
        .set("min_index_interval", int(128))
        .set("read_repair_chance", double(0.0))
        .set("speculative_retry", text("99.0PERCENTILE"))
        .done()
}

/// In order of name, as the clustering key has it.
fn column_rows(shown: &Table, table: &Table) -> Vec<Row> {
    let mut columns: Vec<(usize, &super::super::schema::Column)> =
        shown.columns.iter().enumerate().collect();
    columns.sort_by_key(|(_, column)| column.name.as_str());
    columns
        .into_iter()
        .map(|(at, column)| {
            let (kind, order, position) = match column.role {
                Role::PartitionKey => ("partition_key", "none", at),
                Role::Clustering { descending } => {
                    let order = if descending { "desc" } else { "asc" };
                    ("clustering", order, at - shown.partition_len)
                }
                Role::Static => ("static", "none", usize::MAX),
                Role::Regular => ("regular", "none", usize::MAX),
            };
            named(shown, table)
                .set("column_name", text(&column.name))
                .set("clustering_order", text(order))
                .set(
                    "column_name_bytes",
                    Bytes::copy_from_slice(column.name.as_bytes()),
                )
                .set("kind", text(kind))
                .set("position", int(i32::try_from(position).unwrap_or(-1)))
                .set("type", text(&column.ty.to_string()))
                .done()
        })
        .collect()
}
