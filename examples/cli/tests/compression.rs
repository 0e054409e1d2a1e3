//! Compressed frames, from outside: what goes in comes out, and nodes without it are told of.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod support;

use messina_sim::node::Options;
use messina_sim::tcp::SimServer;
use support::{json_lines, messina};

fn start(change: impl FnOnce(&mut Options)) -> (tokio::runtime::Runtime, SimServer) {
    let mut options = Options::uniform(2, 2);
    (options.port, options.shard_aware_port) = (0, Some(0));
    change(&mut options);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(SimServer::start(options)).unwrap();
    (runtime, server)
}

#[test]
fn frames_of_all_sizes_go_through_both_algorithms() {
    let (runtime, server) = start(|_| ());
    let contact = server.contacts()[0].to_string();
    let create = "CREATE KEYSPACE ks WITH replication = \
                  {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}; \
                  CREATE TABLE ks.t (pk int PRIMARY KEY, v text)";
    assert_eq!(
        messina(&["query", "--contact", &contact, create]).code,
        Some(0)
    );
    for (compression, len) in [
        ("lz4", 10),
        ("lz4", 1000),
        ("lz4", 400_000),
        ("snappy", 50_000),
    ] {
        let with = [
            "--contact",
            &contact,
            "--compression",
            compression,
            "--format",
            "json",
        ];
        let value = "wave ".repeat(len / 5);
        let bind = serde_json::json!([len, value]).to_string();
        // A long value is read from a file: arguments have their limits.
        let file = std::env::temp_dir().join(format!("messina-bind-{}-{len}", std::process::id()));
        std::fs::write(&file, bind).unwrap();
        let name = file.display().to_string();
        let insert = "INSERT INTO ks.t (pk, v) VALUES (?, ?)";
        let ended = messina(&[&["query"], &with[..], &["--bind-file", &name, insert]].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        std::fs::remove_file(file).unwrap();

        let select = format!("SELECT v FROM ks.t WHERE pk = {len}");
        let ended = messina(&[&["query"], &with[..], &[&select]].concat());
        assert_eq!(
            json_lines(&ended.stdout)[0]["rows"][0][0],
            value,
            "{compression} {len}"
        );

        let ended = messina(&[&["inspect"], &with[..]].concat());
        let shown = &json_lines(&ended.stdout)[0]["nodes"][0]["connections"][0];
        assert_eq!(shown["compression"], compression, "{ended:?}");
        let clients = "SELECT client_options FROM system.clients";
        let ended = messina(&[&["query"], &with[..], &[clients]].concat());
        let said = serde_json::json!(["COMPRESSION", compression]);
        // Connections to other shards may be in the middle of their handshake.
        let told = json_lines(&ended.stdout)[0]["rows"].to_string();
        assert!(told.contains(&said.to_string()), "{told}");
    }
    runtime.block_on(server.stop());
}

#[test]
fn a_node_that_does_not_offer_it_is_told_of() {
    let (runtime, server) = start(|options| {
        for node in &mut options.nodes {
            node.supported_missing.push("COMPRESSION".to_owned());
        }
    });
    let contact = server.contacts()[0].to_string();
    let start = [
        "query",
        "--contact",
        &contact,
        "SELECT key FROM system.local",
    ];
    let ended = messina(&[&start[..], &["--compression", "lz4", "--format", "json"]].concat());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let error = &json_lines(&ended.stderr)[0]["error"];
    assert_eq!(error["kind"], "protocol");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("lz4") && message.contains("option"),
        "{message}"
    );
    assert_eq!(messina(&start).code, Some(0));
    runtime.block_on(server.stop());
}
