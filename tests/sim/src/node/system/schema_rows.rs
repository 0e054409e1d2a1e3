//! Rows of `system_schema`, made from the catalogue. Tables of objects this node does not have are
//! empty.

use bytes::Bytes;

use super::super::cluster::Cluster;
use super::super::cql::OptionValue;
use super::super::schema::{Column, Dropped, Index, IndexTarget, Keyspace, Role, Table, View};
use super::super::value::{
    Native, UserType, bigint, boolean, double, int, quoted, text, text_map, texts,
};
use super::{Fill, Row, uuid};

pub(super) fn rows(cluster: &Cluster, plain: bool, table: &Table) -> Vec<Row> {
    let keyspaces = cluster.catalogue.keyspaces.values();
    // What only ScyllaDB has, a plain node does not show.
    let is_shown = move |shown: &Table| !(plain && shown.is_virtual && shown.is_scylla_only());
    let all = || {
        keyspaces
            .clone()
            .flat_map(|keyspace| keyspace.tables.values())
            .map(|table| &**table)
            .filter(move |shown| is_shown(shown))
    };
    let tables = || all().filter(|shown| shown.view.is_none());
    match table.name.as_str() {
        "keyspaces" => keyspaces
            .map(|keyspace| keyspace_row(keyspace, table))
            .collect(),
        "scylla_keyspaces" => keyspaces
            .filter_map(|keyspace| scylla_keyspace_row(keyspace, table))
            .collect(),
        "tables" => tables().map(|shown| table_row(shown, table)).collect(),
        "views" => all()
            .filter_map(|shown| Some(view_row(shown, shown.view.as_ref()?, table)))
            .collect(),
        "scylla_tables" => all()
            .map(|shown| {
                named(shown, table)
                    .set("version", uuid(&shown.id))
                    .set("committed_by_group0", boolean(true))
                    .done()
            })
            .collect(),
        "columns" => all().flat_map(|shown| column_rows(shown, table)).collect(),
        "dropped_columns" => tables()
            .flat_map(|shown| dropped_rows(shown, table))
            .collect(),
        "indexes" => tables()
            .flat_map(|shown| index_rows(shown, table))
            .collect(),
        "types" => keyspaces
            .flat_map(|keyspace| keyspace.types.values())
            .map(|user| type_row(user, table))
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
    let flags = if shown.is_counter() {
        vec!["compound", "counter"]
    } else {
        vec!["compound"]
    };
    with_options(named(shown, table), shown)
        .set("flags", texts(flags.into_iter()))
        .done()
}

fn view_row(shown: &Table, view: &View, table: &Table) -> Row {
    let fill = Fill::new(table)
        .set("keyspace_name", text(&shown.keyspace))
        .set("view_name", text(&shown.name))
        .set("base_table_id", uuid(&view.base))
        .set("base_table_name", text(&view.base_name))
        .set("include_all_columns", boolean(view.includes_all))
        .set("where_clause", text(&view.where_clause));
    with_options(fill, shown).done()
}

/// What tables and views have in common: the defaults, and over them what statements set.
fn with_options<'a>(fill: Fill<'a>, shown: &Table) -> Fill<'a> {
    let caching = [("keys", "ALL"), ("rows_per_partition", "ALL")];
    let compaction = [("class", "SizeTieredCompactionStrategy")];
    let compression = [(
        "sstable_compression",
        "org.apache.cassandra.io.compress.LZ4Compressor",
    )];
    let mut fill = fill
        .set("bloom_filter_fp_chance", double(0.01))
        .set("caching", text_map(caching.into_iter()))
        .set("comment", text(&shown.comment))
        .set("compaction", text_map(compaction.into_iter()))
        .set("compression", text_map(compression.into_iter()))
        .set("crc_check_chance", double(1.0))
        .set("dclocal_read_repair_chance", double(0.0))
        .set("default_time_to_live", int(shown.default_ttl))
        .set("extensions", text_map([].into_iter()))
        .set("gc_grace_seconds", int(864_000))
        .set("id", uuid(&shown.id))
        .set("max_index_interval", int(2048))
        .set("memtable_flush_period_in_ms", int(0))
        .set("min_index_interval", int(128))
        .set("read_repair_chance", double(0.0))
        .set("speculative_retry", text("99.0PERCENTILE"));
    for (name, value) in &shown.options {
        if let Some(value) = option_value(fill.table, name, value) {
            fill = fill.set(name, value);
        }
    }
    fill
}

/// An option as its column has it, if there is such a column and the value fits.
fn option_value(table: &Table, name: &str, value: &OptionValue) -> Option<Bytes> {
    let column = &table.columns[table.position(name)?];
    match (value, column.ty.native()) {
        (OptionValue::Map(entries), None) => {
            let mut entries: Vec<(&str, &str)> = entries
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str()))
                .collect();
            entries.sort_unstable();
            Some(text_map(entries.into_iter()))
        }
        (OptionValue::Word(word), Some(Native::Double)) => word.parse().ok().map(double),
        (OptionValue::Word(word), Some(Native::Int)) => word.parse().ok().map(int),
        (OptionValue::Word(word), Some(Native::Text)) => Some(text(word)),
        _ => None,
    }
}

fn dropped_rows(shown: &Table, table: &Table) -> Vec<Row> {
    let mut dropped: Vec<&Dropped> = shown.dropped.iter().collect();
    dropped.sort_by_key(|dropped| dropped.name.as_str());
    dropped
        .into_iter()
        .map(|dropped| {
            named(shown, table)
                .set("column_name", text(&dropped.name))
                .set("dropped_time", bigint(dropped.at / 1000))
                .set("type", text(&dropped.ty))
                .done()
        })
        .collect()
}

fn index_rows(shown: &Table, table: &Table) -> Vec<Row> {
    let mut indexes: Vec<&Index> = shown.indexes.iter().collect();
    indexes.sort_by_key(|index| index.name.as_str());
    indexes
        .into_iter()
        .map(|index| {
            let column = quoted(&index.column);
            let target = match index.target {
                IndexTarget::Value => column,
                IndexTarget::Values => format!("values({column})"),
                IndexTarget::Keys => format!("keys({column})"),
                IndexTarget::Entries => format!("entries({column})"),
                IndexTarget::Full => format!("full({column})"),
            };
            named(shown, table)
                .set("index_name", text(&index.name))
                .set("kind", text("COMPOSITES"))
                .set(
                    "options",
                    text_map([("target", target.as_str())].into_iter()),
                )
                .done()
        })
        .collect()
}

fn type_row(user: &UserType, table: &Table) -> Row {
    let names = user.fields.iter().map(|(name, _)| name.as_str());
    let types: Vec<String> = user.fields.iter().map(|(_, ty)| ty.to_string()).collect();
    Fill::new(table)
        .set("keyspace_name", text(&user.keyspace))
        .set("type_name", text(&user.name))
        .set("field_names", texts(names))
        .set("field_types", texts(types.iter().map(String::as_str)))
        .done()
}

/// In order of name, as the clustering key has it.
fn column_rows(shown: &Table, table: &Table) -> Vec<Row> {
    let mut columns: Vec<(usize, &Column)> = shown.columns.iter().enumerate().collect();
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
