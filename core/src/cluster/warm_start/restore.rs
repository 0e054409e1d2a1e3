//! Taking over what a blob knows: afterwards the engine stands where one stands that has just read
//! the system tables, but for its connections.

use alloc::vec::Vec;

use super::known::{Known, KnownNode};
use super::{Recalled, point_hash};
use crate::cluster::duty::may_contact;
use crate::cluster::engine::{Engine, Phase};
use crate::cluster::found::{Found, ScyllaKeyspace, TableRow};
use crate::cluster::warming::Warm;
use crate::config::Config;
use crate::gather::Gather;
use crate::routing::{Host, TableRef};
use crate::sorted::SortedMap;
use crate::sync::Shared;
use crate::time::Instant;

pub(super) fn restore(engine: &mut Engine, blob: &[u8], now: Instant) {
    // Where client routes are followed nothing may be connected to before they were read.
    let known = Known::read(blob, &engine.config).filter(|_| !engine.routes.are_followed());
    let Some(mut known) = known else {
        return engine.warn(crate::cluster::warnings::warning!(
            "the warm start is of no use here: a cold start"
        ));
    };
    let features = known
        .nodes
        .iter()
        .filter_map(|node| Some((node.row.host_id, node.features?)));
    let mut warm = Warm::new(now, features.collect::<SortedMap<_, _>>());
    engine.catalog.facts = core::mem::take(&mut known.facts);
    restore_nodes(engine, known.port, core::mem::take(&mut known.nodes), now);
    let tables = restore_schema(engine, &known);
    let view = engine.publish_now();
    for ((keyspace, table), tablets) in &known.tablets {
        let handle = tables.get(*keyspace).and_then(|tables| tables.get(*table));
        if let Some(&Some(handle)) = handle {
            let learn = |tablet| engine.catalog.writer.learn(handle, tablet);
            tablets.iter().for_each(|tablet| {
                let _ = learn(tablet);
            });
        }
    }
    for statement in &known.statements {
        // So that a table made anew meanwhile is noticed.
        let _ = statement.table(&view);
    }
    warm.statements = known.statements.into_iter().map(Shared::new).gather();
    // Published once more, to be heard by whoever has not looked yet.
    engine.is_view_dirty = true;
    engine.phase = Phase::Known;
    engine.warm = Some(warm);
}

/// Features and statements alone.
pub(super) fn recall(blob: &[u8], config: &Config) -> Option<Recalled> {
    let known = Known::read(blob, config)?;
    let features = known
        .nodes
        .iter()
        .filter_map(|node| Some((point_hash(&node.endpoint), node.features?)));
    Some(Recalled {
        features: features.collect(),
        statements: known.statements.into_iter().map(Shared::new).gather(),
    })
}

fn restore_nodes(engine: &mut Engine, port: u16, nodes: Vec<KnownNode>, now: Instant) {
    let mut rows = Vec::with_capacity(nodes.len());
    let mut shards = Vec::with_capacity(nodes.len());
    for node in nodes {
        engine.catalog.note_earlier(port, &node.row, node.endpoint);
        shards.push((node.row.host_id, node.shard_map, node.ports));
        rows.push(node.row);
    }
    if rows.is_empty() {
        return;
    }
    let first = rows.remove(0);
    let config = &engine.config;
    let may_contact = |host: &Host<'_>| may_contact(config, host);
    let catalog = &mut engine.catalog;
    let (change, places) = catalog.set_nodes(first, rows, |_| true, may_contact);
    engine.nodes_changed(&change, places, now);
    for (host_id, map, ports) in shards {
        let node = engine.catalog.writer.topology().node_by_host_id(host_id);
        let Some((node, pool)) = node.and_then(|node| Some((node, engine.pools.get_mut(&node)?)))
        else {
            continue;
        };
        if let Some(map) = map {
            pool.expect(map, ports);
            let map = pool.shard_map();
            engine.catalog.writer.set_shard_map(node, map);
        }
    }
}

/// By way of the rows that discovery would have found. Gives the handles of all tables.
fn restore_schema(engine: &mut Engine, known: &Known) -> Vec<Vec<Option<TableRef>>> {
    let mut found = Found::default();
    for (spec, tables) in &known.keyspaces {
        let properties = ScyllaKeyspace {
            has_tablets: spec.has_tablets,
            consistency: spec.consistency,
        };
        found.scylla_keyspaces.insert(spec.name.clone(), properties);
        found
            .keyspaces
            .push((spec.name.clone(), spec.strategy.clone()));
        for table in tables {
            let key = (spec.name.clone(), table.name.clone());
            found.partitioners.insert(key, table.partitioner);
            found.tables.push(TableRow {
                keyspace: spec.name.clone(),
                name: table.name.clone(),
                id: table.id,
            });
        }
    }
    engine.catalog.set_schema(&mut found);
    let view = engine.publish_now();
    let handles =
        |(spec, tables): &(crate::routing::KeyspaceSpec, Vec<crate::routing::TableSpec>)| {
            let handle = |table: &crate::routing::TableSpec| {
                let table = view.table_by_name(&spec.name, &table.name)?;
                Some(table.handle())
            };
            tables.iter().map(handle).gather()
        };
    known.keyspaces.iter().map(handles).gather()
}
