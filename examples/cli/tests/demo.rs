//! The demonstration, and what it promises.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod support;

use serde_json::Value;
use support::{json_lines, messina};

fn demo(arguments: &[&str]) -> Value {
    let ended = messina(&[&["demo", "--format", "json"], arguments].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stderr, "", "{ended:?}");
    json_lines(&ended.stdout).remove(0)
}

#[test]
fn requests_arrive_where_they_belong_and_the_driver_agrees() {
    let shown = demo(&["--rows", "1000"]);
    assert_eq!(shown["seen_by"], "nodes");
    assert_eq!(shown["connections"], 12);
    assert_eq!(shown["failed"], 0);
    let tables = shown["tables"].as_array().unwrap();
    let kinds: Vec<_> = tables
        .iter()
        .map(|table| table["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["eventual", "strong", "vnode"]);
    for table in tables {
        let share = |value: &Value| value.as_f64().unwrap();
        // Every row written once and read once.
        assert_eq!(table["requests"], 2000, "{table}");
        assert!(share(&table["owner_node"]) >= 0.995, "{table}");
        assert!(share(&table["owner_shard"]) >= 0.995, "{table}");
        assert_eq!(
            table["owner_shard"], table["driver_says"]["owner_shard"],
            "{table}"
        );
        assert_eq!(table["leader"], table["driver_says"]["leader"], "{table}");
        let is_strong = table["kind"] == "strong";
        assert_eq!(
            table["leader"].as_f64(),
            is_strong.then_some(1.0),
            "{table}"
        );
        // Nothing tells a driver of a tablet before its first request; the ring is known at once.
        let before = share(&table["owner_shard_before_learning"]);
        assert_eq!(before > 0.9, table["kind"] == "vnode", "{table}");
    }
    let moves = shown["moves"].as_array().unwrap();
    let whats: Vec<_> = moves
        .iter()
        .map(|made| made["what"].as_str().unwrap())
        .collect();
    assert_eq!(whats, ["tablet", "leader"]);
    assert!(shown["latency_us"]["p50"].as_u64() <= shown["latency_us"]["p99"].as_u64());
}

/// Whoever did not notice a move would have a cost of nothing each time. Once it may be nothing: the
/// first answer, of a replica that has not moved, may teach the driver before another request goes wrong.
#[test]
fn moves_have_a_cost() {
    let is_noticed = |shown: Value| {
        let moves = shown["moves"].as_array().unwrap();
        let costs = moves
            .iter()
            .map(|made| made["forwarded_until_right"].as_u64());
        costs.map(Option::unwrap).all(|cost| cost > 0)
    };
    let seeds = ["1", "2", "3", "4"];
    assert!(
        seeds
            .iter()
            .any(|seed| is_noticed(demo(&["--rows", "1000", "--seed", seed])))
    );
}

#[test]
fn the_smallest_cluster_has_nothing_to_move() {
    let shown = demo(&["--rows", "100", "--nodes", "1", "--shards", "1"]);
    assert_eq!(shown["tables"].as_array().unwrap().len(), 3);
    assert_eq!(shown["moves"], serde_json::json!([]));
    assert_eq!(shown["skipped"].as_array().unwrap().len(), 2, "{shown}");
}

#[test]
fn people_get_a_picture() {
    let ended = messina(&["demo", "--rows", "200", "--format", "table", "--seed", "7"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in ["rack3", "strong", "p99", "✓"] {
        assert!(ended.stdout.contains(part), "{part}: {ended:?}");
    }
}
