//! Where statements would go, before and after the driver has learned.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

#[path = "support/cluster.rs"]
mod cluster;
mod support;

use cluster::Cluster;
use messina_sim::node::Options;
use serde_json::{Value, json};
use support::messina;

/// Two racks of two nodes. Rows have three replicas, those of `vnode` two.
fn cluster() -> Cluster {
    let mut options = Options::uniform(4, 2);
    for (at, node) in options.nodes.iter_mut().enumerate() {
        node.rack = format!("rack{}", at % 2);
    }
    let cluster = Cluster::start(options);
    let schema = |keyspace: &str, factor: u8, more: &str| {
        format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'NetworkTopologyStrategy', \
             'replication_factor': {factor}}} AND tablets = {more}; \
             CREATE TABLE {keyspace}.t (k int PRIMARY KEY, v text);"
        )
    };
    let strong = "{'enabled': true} AND consistency = 'global'";
    let schema = [
        schema("eventual", 3, "{'enabled': true}"),
        schema("strong", 3, strong),
        schema("vnode", 2, "{'enabled': false}"),
    ];
    cluster.run("query", &[&schema.concat()]);
    cluster
}

fn route(cluster: &Cluster, arguments: &[&str]) -> Value {
    cluster.run("route", arguments).remove(0)
}

fn reasons(route: &Value) -> Vec<&str> {
    let plan = route["plan"].as_array().unwrap().iter();
    plan.map(|target| target["reason"].as_str().unwrap())
        .collect()
}

/// Node and shard of each.
fn places(replicas: &Value) -> Vec<(&str, u64)> {
    let replicas = replicas.as_array().unwrap().iter();
    replicas
        .map(|at| {
            (
                at["host_id"].as_str().unwrap(),
                at["shard"].as_u64().unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_tablet_is_learned_and_then_followed() {
    let cluster = cluster();
    let read = ["SELECT v FROM eventual.t WHERE k = ?", "--bind", "[7]"];
    let before = route(&cluster, &read);
    assert_eq!(before["statement"], "read");
    assert_eq!(
        (&before["keyspace"], &before["table"]),
        (&json!("eventual"), &json!("t"))
    );
    assert_eq!(
        (&before["lwt"], &before["source"]),
        (&json!(false), &json!("none"))
    );
    assert_eq!(
        (&before["tablet"], &before["leader"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(reasons(&before), ["any"; 4]);
    // What Cassandra's own token(7) says.
    assert_eq!(before["token"], 1_634_052_884_888_577_606_i64);

    let after = route(&cluster, &[&read[..], &["--learn", "3"]].concat());
    assert_eq!(
        (&after["token"], &after["source"]),
        (&before["token"], &json!("tablet"))
    );
    // Four nodes, three of them replicas.
    let reasons = reasons(&after);
    assert_eq!(reasons, ["dc", "dc", "dc", "any"]);
    let tablet = &after["tablet"];
    let token = after["token"].as_i64().unwrap();
    assert!(
        tablet["first_token"].as_i64() < Some(token)
            && Some(token) <= tablet["last_token"].as_i64()
    );
    assert_eq!(tablet["version"].as_str().unwrap().len(), 16);
    let mut planned = after["plan"].clone();
    planned.as_array_mut().unwrap().pop();
    let (mut planned, mut replicas) = (places(&planned), places(&tablet["replicas"]));
    planned.sort_unstable();
    replicas.sort_unstable();
    assert_eq!(planned, replicas);
    assert_eq!(after["leader"], Value::Null);

    // Replicas in the preferred rack come first, whatever is drawn.
    let near = ["--dc", "dc1", "--rack", "rack0", "--learn", "3"];
    let near = route(&cluster, &[&read[..], &near].concat());
    for (target, reason) in near["plan"]
        .as_array()
        .unwrap()
        .iter()
        .zip(self::reasons(&near))
    {
        let is_near = target["rack"] == "rack0";
        assert_eq!(reason == "rack", is_near && reason != "any", "{near}");
    }
    assert_eq!(self::reasons(&near)[0], "rack");
    cluster.stop();
}

#[test]
fn strongly_consistent_tables_are_led() {
    let cluster = cluster();
    let write = [
        "INSERT INTO strong.t (k, v) VALUES (?, ?)",
        "--bind",
        r#"[7, "x"]"#,
    ];
    let before = route(&cluster, &write);
    assert_eq!(
        (&before["statement"], &before["leader"]),
        (&json!("write"), &Value::Null)
    );
    assert_eq!(before["leader_reason"], "unknown_tablet");
    let after = route(&cluster, &[&write[..], &["--learn", "2"]].concat());
    assert_eq!(reasons(&after), ["leader", "dc", "dc", "any"]);
    assert_eq!(after["leader_reason"], "first");
    // By the second extension the first replica leads.
    let first = &after["tablet"]["replicas"][0];
    assert_eq!(&after["leader"], first);
    assert_eq!(after["plan"][0]["host_id"], first["host_id"]);
    // It was executed.
    let found = cluster.run("query", &["SELECT v FROM strong.t WHERE k = 7"]);
    assert_eq!(found[0]["rows"], json!([["x"]]));

    let plain = [&write[..], &["--learn", "2", "--no-tablet-leader"]].concat();
    let plain = route(&cluster, &plain);
    assert_eq!(reasons(&plain), ["dc", "dc", "dc", "any"]);
    assert_eq!(plain["leader_reason"], "switched_off");
    let read = ["SELECT v FROM strong.t WHERE k = 7", "--consistency", "ONE"];
    assert_eq!(route(&cluster, &read)["leader_reason"], "level_one");
    let table = messina(
        &[
            &["route", "--format", "table", "--contact", &cluster.contact],
            &write[..],
        ]
        .concat(),
    );
    let told = table.stdout;
    assert!(
        told.contains("leader     unknown: no tablet learned yet"),
        "{told}"
    );
    cluster.stop();
}

#[test]
fn the_ring_is_known_at_once_and_some_have_no_token() {
    let cluster = cluster();
    let named = [
        "SELECT v FROM vnode.t WHERE k = :key",
        "--named",
        "--bind",
        r#"{"key":7}"#,
    ];
    let ring = route(&cluster, &named);
    assert_eq!(
        (&ring["source"], &ring["tablet"]),
        (&json!("ring"), &Value::Null)
    );
    assert_eq!(reasons(&ring), ["dc", "dc", "any", "any"]);
    assert_eq!(ring["leader_reason"], "eventual");

    let scan = route(&cluster, &["SELECT v FROM vnode.t"]);
    assert_eq!(
        (&scan["token"], &scan["source"]),
        (&Value::Null, &json!("none"))
    );
    assert_eq!(reasons(&scan), ["any"; 4]);
    let lwt = "INSERT INTO vnode.t (k, v) VALUES (1, 'x') IF NOT EXISTS";
    let lwt = route(&cluster, &[lwt]);
    assert_eq!(
        (&lwt["lwt"], &lwt["statement"]),
        (&json!(true), &json!("write"))
    );

    let contact = ["--contact", &cluster.contact];
    let table = messina(&[&["route", "--format", "table"], &contact[..], &named].concat());
    let lines: Vec<_> = table.stdout.lines().collect();
    for part in [
        "from the ring",
        "1634052884888577606",
        "dc: replica",
        "any: will pass it on",
    ] {
        assert!(
            lines.iter().any(|line| line.contains(part)),
            "{part}: {table:?}"
        );
    }
    assert!(
        lines.iter().all(|line| line.chars().count() <= 80),
        "{table:?}"
    );
    cluster.stop();
}
