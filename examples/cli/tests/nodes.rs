//! The command against nodes of many kinds: what they leave out or add does not matter.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

#[path = "support/cluster.rs"]
mod cluster;
mod support;

use cluster::Cluster;
use messina_sim::node::{Options, TabletsMode};
use serde_json::{Value, json};
use support::messina;

impl Cluster {
    fn inspect(&self) -> Value {
        self.run("inspect", &[]).remove(0)
    }

    /// Creates a table, writes rows and reads them back.
    fn write_and_read(&self, keyspace_options: &str) {
        let schema = format!(
            "CREATE KEYSPACE ks WITH replication = {{'class': 'NetworkTopologyStrategy', \
             'replication_factor': 2}}{keyspace_options};
             CREATE TABLE ks.t (k bigint PRIMARY KEY, v text); -- done;"
        );
        let created = self.run_with("query", &[], &schema);
        assert!(
            created[..2]
                .iter()
                .all(|made| made["schema_changed"] == true),
            "{created:?}"
        );

        let rows: Vec<_> = (0..20)
            .map(|k| json!([k, format!("row {k}")]).to_string())
            .collect();
        let binds = |list: &[String]| -> Vec<String> {
            list.iter()
                .flat_map(|row| ["--bind".to_owned(), row.clone()])
                .collect()
        };
        let mut write = binds(&rows);
        write.push("INSERT INTO ks.t (k, v) VALUES (?, ?)".to_owned());
        let write: Vec<_> = write.iter().map(String::as_str).collect();
        let written = self.run("query", &[&write[..], &["--concurrency", "4"]].concat());
        assert_eq!(written.last().unwrap()["summary"]["ok"], 20, "{written:?}");

        let keys: Vec<_> = (0..20).map(|k| json!([k]).to_string()).collect();
        let mut read = binds(&keys);
        read.push("SELECT k, v FROM ks.t WHERE k = ?".to_owned());
        let read: Vec<_> = read.iter().map(String::as_str).collect();
        let found = self.run("query", &read);
        assert_eq!(found.len(), 21);
        for (row, answer) in rows.iter().zip(&found) {
            assert_eq!(
                json!([serde_json::from_str::<Value>(row).unwrap()]),
                answer["rows"]
            );
        }
    }

    /// Reads all of it in pages; what strongly consistent tables refuse.
    fn scan(&self) {
        let scan = self.run("query", &["--page-size", "7", "SELECT k, v FROM ks.t"]);
        assert_eq!(scan[0]["rows"].as_array().unwrap().len(), 20);
        assert!(scan[0]["pages"].as_u64().unwrap() >= 3, "{scan:?}");
    }
}

/// Fields of the contract, by their path.
fn assert_inspect_fields(inspect: &Value) {
    let top = [
        "cluster",
        "shard_aware",
        "nodes",
        "keyspaces",
        "tablets",
        "prepared",
        "limits",
    ];
    assert_fields(inspect, &top);
    assert_fields(
        &inspect["cluster"],
        &["name", "partitioner", "release_version"],
    );
    let node_fields = [
        "host_id",
        "address",
        "dc",
        "rack",
        "up",
        "nr_shards",
        "ignore_msb",
        "shard_aware_port",
        "connected_shards",
        "connections",
    ];
    let connection_fields = [
        "shard",
        "local_port",
        "protocol",
        "compression",
        "extensions",
        "in_flight",
    ];
    for node in inspect["nodes"].as_array().unwrap() {
        assert_fields(node, &node_fields);
        for connection in node["connections"].as_array().unwrap() {
            assert_fields(connection, &connection_fields);
        }
    }
    for keyspace in inspect["keyspaces"].as_array().unwrap() {
        assert_fields(keyspace, &["name", "replication", "consistency", "tables"]);
    }
}

fn assert_fields(object: &Value, names: &[&str]) {
    for name in names {
        assert!(object.get(name).is_some(), "{name} is not in {object}");
    }
}

fn of_each_node<'a>(inspect: &'a Value, field: &str) -> Vec<&'a Value> {
    let nodes = inspect["nodes"].as_array().unwrap();
    nodes.iter().map(|node| &node[field]).collect()
}

#[test]
fn ordinary_nodes() {
    let cluster = Cluster::start(Options::uniform(3, 4));
    let inspect = cluster.inspect();
    assert_inspect_fields(&inspect);
    assert_eq!(inspect["shard_aware"], true);
    assert_eq!(of_each_node(&inspect, "nr_shards"), [4, 4, 4]);
    assert_eq!(of_each_node(&inspect, "connected_shards"), [4, 4, 4]);
    let extensions = &inspect["nodes"][0]["connections"][0]["extensions"];
    let v2 = json!("TABLETS_ROUTING_V2_EXPERIMENTAL");
    assert!(extensions.as_array().unwrap().contains(&v2), "{inspect}");
    cluster.write_and_read(" AND tablets = {'enabled': true}");
    cluster.scan();
    // This session has learned nothing of the table yet.
    let nothing = json!({"keyspace": "ks", "table": "t", "cached": 0, "bytes": 0, "evicted": 0});
    assert_eq!(cluster.inspect()["tablets"], json!([nothing]));
    let keyspaces = cluster.inspect()["keyspaces"].take();
    let ours = keyspaces
        .as_array()
        .unwrap()
        .iter()
        .find(|ks| ks["name"] == "ks")
        .unwrap();
    assert_eq!(
        *ours,
        json!({"name": "ks", "replication": "tablets", "consistency": null, "tables": 1})
    );
    cluster.stop();
}

#[test]
fn nodes_without_any_extension() {
    let mut options = Options::uniform(3, 4).with_plain();
    options.shard_aware_port = None;
    let cluster = Cluster::start(options);
    let inspect = cluster.inspect();
    assert_inspect_fields(&inspect);
    assert_eq!(inspect["shard_aware"], false);
    for node in inspect["nodes"].as_array().unwrap() {
        assert_eq!(node["nr_shards"], Value::Null);
        assert_eq!(node["connections"].as_array().unwrap().len(), 1);
        assert_eq!(node["connections"][0]["shard"], Value::Null);
        assert_eq!(node["connections"][0]["extensions"], json!([]));
    }
    cluster.write_and_read("");
    cluster.scan();
    cluster.stop();
}

#[test]
fn keys_that_are_unknown_missing_or_senseless() {
    let extra = |name: &str, values: &[&str]| {
        (
            name.to_owned(),
            values.iter().map(ToString::to_string).collect::<Vec<_>>(),
        )
    };
    let mut options = Options::uniform(3, 4);
    options.nodes[0].supported_extra = vec![
        extra("SCYLLA_OF_TOMORROW", &["a", "", "c"]),
        extra("EMPTY", &[]),
        extra("\u{fc}nic\u{f6}de", &["\u{2603}"]),
    ];
    let missing = [
        "CLIENT_OPTIONS",
        "COMPRESSION",
        "CQL_VERSION",
        "SCYLLA_HOST_ID",
        "SCYLLA_SHARD_AWARE_PORT",
        "SCYLLA_USE_METADATA_ID",
        "SCYLLA_LWT_ADD_METADATA_MARK",
        "SCYLLA_RATE_LIMIT_ERROR",
    ];
    options.nodes[1].supported_missing = missing.map(str::to_owned).into();
    // The whole block of sharding counts as absent.
    options.nodes[2].supported_extra = vec![extra("SCYLLA_SHARDING_IGNORE_MSB", &["64"])];
    let cluster =
        Cluster::start(options).with_warnings(&["sharding values of a node are not usable"]);
    let inspect = cluster.inspect();
    assert_inspect_fields(&inspect);
    assert_eq!(
        of_each_node(&inspect, "nr_shards"),
        [&json!(4), &json!(4), &Value::Null]
    );
    cluster.write_and_read(" AND tablets = {'enabled': true}");
    cluster.scan();
    cluster.stop();
}

#[test]
fn nodes_that_differ() {
    let mut options = Options::uniform(4, 1);
    for (node, shards) in options.nodes.iter_mut().zip([1, 3, 8, 5]) {
        node.shards = shards;
    }
    let modes = [
        TabletsMode::V2,
        TabletsMode::V1,
        TabletsMode::Both,
        TabletsMode::Off,
    ];
    for (node, mode) in options.nodes.iter_mut().zip(modes) {
        node.tablets = mode;
    }
    options.nodes[1].advertise_shard_aware_port = false;
    options.nodes[3].nat = true;
    let cluster = Cluster::start(options)
        .with_warnings(&["the shard-aware port leads to other shards than asked for"]);
    let inspect = cluster.inspect();
    assert_inspect_fields(&inspect);
    assert_eq!(of_each_node(&inspect, "nr_shards"), [1, 3, 8, 5]);
    assert!(
        of_each_node(&inspect, "connected_shards")
            .iter()
            .all(|count| count.as_u64() > Some(0))
    );
    cluster.write_and_read(" AND tablets = {'enabled': true}");
    cluster.scan();
    cluster.stop();
}

/// Each column that may be null, on its own; and a node that has only begun to join.
#[test]
fn peers_with_null_columns() {
    let columns = [
        "data_center",
        "preferred_ip",
        "rack",
        "release_version",
        "rpc_address",
        "schema_version",
        "supported_features",
        "tokens",
    ];
    for column in columns {
        let mut options = Options::uniform(3, 2);
        options.nodes[1].peer_nulls = vec![column.to_owned()];
        let cluster =
            Cluster::start(options).with_warnings(&["peer 127.0.0.2 is skipped: it has no "]);
        let inspect = cluster.inspect();
        assert_inspect_fields(&inspect);
        let up = of_each_node(&inspect, "connected_shards");
        // A node without tokens owns no data; it is known, and left alone while others live.
        let alone = usize::from(column == "tokens");
        let idle = up.iter().filter(|count| **count == 0).count();
        let serving = up.iter().filter(|count| **count == 2).count();
        assert!(
            serving >= 2 && idle == alone && serving + idle == up.len(),
            "{column}: {inspect}"
        );
        let found = cluster.run("query", &["SELECT key FROM system.local"]);
        assert_eq!(found[0]["rows"], json!([["local"]]), "{column}");
        cluster.stop();
    }
    let mut options = Options::uniform(4, 2);
    options.nodes[1].peer_nulls = ["rpc_address", "rack"].map(str::to_owned).into();
    options.nodes[3].joining = true;
    let cluster = Cluster::start(options).with_warnings(&[
        "peer 127.0.0.2 is skipped: it has no rack",
        "peer 127.0.0.4 is skipped: it has no ",
    ]);
    let inspect = cluster.inspect();
    assert_inspect_fields(&inspect);
    assert!(inspect["nodes"].as_array().unwrap().len() >= 2, "{inspect}");
    cluster.write_and_read(" AND tablets = {'enabled': true}");
    cluster.scan();
    cluster.stop();
}

/// Strongly consistent tables must be prepared, and the command knows.
#[test]
fn unprepared_statements_are_refused_where_they_would_fail_after_applying() {
    let cluster = Cluster::start(Options::uniform(3, 2));
    cluster.write_and_read(" AND tablets = {'enabled': true} AND consistency = 'global'");
    let contact = &cluster.contact;
    let write = "INSERT INTO ks.t (k, v) VALUES (100, 'x')";
    let ended = messina(&["query", "--contact", contact, "--unprepared", write]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--force"), "{ended:?}");
    let forced = messina(&[
        "query",
        "--contact",
        contact,
        "--unprepared",
        "--force",
        write,
    ]);
    assert_eq!(forced.code, Some(1), "{forced:?}");
    let ddl = "CREATE TABLE ks.u (k int PRIMARY KEY)";
    cluster.run("query", &["--unprepared", ddl]);
    cluster.stop();
}

#[test]
fn output_in_every_form() {
    let cluster = Cluster::start(Options::uniform(1, 1));
    let created = cluster.run(
        "query",
        &["CREATE KEYSPACE ks WITH replication = \
        {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}; \
        CREATE TABLE ks.t (k int, c int, b boolean, d double, u uuid, x blob, s text, \
        PRIMARY KEY (k, c))"],
    );
    assert_eq!(created.len(), 3);
    let uuid = "01020304-0506-0708-090a-0b0c0d0e0f10";
    let row = json!([1, 2, true, 0.5, uuid, "0x00ff", "a \"b\"\n,c"]);
    let insert = "INSERT INTO ks.t (k, c, b, d, u, x, s) VALUES (?, ?, ?, ?, ?, ?, ?)";
    cluster.run("query", &["--bind", &row.to_string(), insert]);
    cluster.run(
        "query",
        &["--bind", "[1, 3, null, null, null, null, null]", insert],
    );
    let named = r#"{"c":4,"k":1,"b":{"unset":true},"d":"NaN","u":null,"x":"0x","s":""}"#;
    cluster.run("query", &["--named", "--bind", named, insert]);

    let select = "SELECT k, c, b, d, u, x, s FROM ks.t WHERE k = 1";
    let found = cluster.run("query", &[select]);
    let nulls = json!([1, 3, null, null, null, null, null]);
    assert_eq!(
        found[0]["rows"],
        json!([row, nulls, [1, 4, null, "NaN", null, "0x", ""]])
    );
    assert_fields(
        &found[0],
        &[
            "columns",
            "rows",
            "pages",
            "lwt_applied",
            "warnings",
            "node",
            "attempts",
            "speculative",
            "tablet_learned",
            "schema_changed",
            "latency_us",
        ],
    );
    assert_fields(&found[0]["node"], &["host_id", "address", "shard"]);
    assert_eq!(found[0]["columns"][5], json!({"name": "x", "type": "blob"}));

    let contact = &cluster.contact;
    let csv = messina(&["query", "--contact", contact, "--format", "csv", select]);
    let expected = format!(
        "k,c,b,d,u,x,s\n1,2,true,0.5,{uuid},0x00ff,\"a \"\"b\"\"\n,c\"\n1,3,,,,,\n1,4,,NaN,,0x,\n"
    );
    assert_eq!(csv.stdout, expected);
    let table = messina(&["query", "--contact", contact, "--format", "table", select]);
    assert!(
        table.stdout.contains("3 rows") && table.stdout.contains("0x00ff"),
        "{table:?}"
    );
    let table = messina(&["inspect", "--contact", contact, "--format", "table"]);
    assert!(
        table.stdout.contains("dc1") && table.stdout.contains('■'),
        "{table:?}"
    );

    // Beyond the print limit only the summary; never more rows than asked for.
    let many = cluster.run("query", &["--repeat", "101", "--concurrency", "16", select]);
    assert_eq!(many.len(), 1);
    let summary = &many[0]["summary"];
    assert_eq!(
        (&summary["ok"], &summary["rows"]),
        (&json!(101), &json!(303))
    );
    let two = cluster.run("query", &["--max-rows", "2", "--page-size", "1", select]);
    assert_eq!(
        (two[0]["rows"].as_array().unwrap().len(), &two[0]["pages"]),
        (2, &json!(2))
    );
    cluster.stop();
}
