//! TLS from outside: who is trusted, who is not, and what a person is told then.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod support;

use core::time::Duration;
use std::path::PathBuf;

use messina_sim::node::Options;
use messina_sim::tcp::{SimServer, TlsOptions, TlsPorts};
use support::{Ended, json_lines, messina};
use tokio::runtime::Runtime;

/// The limit that the calls are given, and what a loaded machine may add to it.
const CONNECT_MS: &str = "5000";
const LIMIT: Duration = Duration::from_secs(15);

/// A simulated cluster, and a file with something in it.
struct World {
    runtime: Runtime,
    server: SimServer,
    files: Vec<PathBuf>,
}

impl World {
    fn start(tls: TlsOptions) -> Self {
        let mut options = Options::uniform(2, 2);
        (options.port, options.shard_aware_port) = (0, Some(0));
        let runtime = Runtime::new().unwrap();
        let server = runtime
            .block_on(SimServer::start_tls(options, tls))
            .unwrap();
        Self {
            runtime,
            server,
            files: Vec::new(),
        }
    }

    /// A file with this text.
    fn file(&mut self, text: &str) -> String {
        let (port, count) = (self.server.control().port(), self.files.len());
        let name = format!("messina-test-{}-{port}-{count}.pem", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        let name = path.display().to_string();
        self.files.push(path);
        name
    }

    fn ca(&mut self) -> String {
        let pem = self.server.ca_pem().unwrap().to_owned();
        self.file(&pem)
    }

    fn contact(&self) -> String {
        self.server.contacts()[0].to_string()
    }

    fn tls_contact(&self) -> String {
        self.server.tls_contacts()[0].to_string()
    }

    fn stop(self) {
        self.runtime.block_on(self.server.stop());
        for file in self.files {
            std::fs::remove_file(file).unwrap();
        }
    }
}

/// TLS on ports of its own.
fn beside() -> TlsOptions {
    let mut tls = TlsOptions::made();
    tls.ports = TlsPorts::Beside {
        port: 0,
        shard_aware_port: Some(0),
    };
    tls
}

fn query(contact: &str, more: &[&str]) -> Ended {
    let start = [
        "query",
        "--contact",
        contact,
        "--connect-timeout",
        CONNECT_MS,
    ];
    let statement = ["SELECT key FROM system.local", "--format", "json"];
    messina(&[&start[..], more, &statement[..]].concat())
}

/// One line, which says what and what to do, within the limit.
fn assert_refused(ended: &Ended, kind: &str, hints: [&str; 2]) {
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let errors = json_lines(&ended.stderr);
    assert_eq!(errors.len(), 1, "{ended:?}");
    assert_eq!(errors[0]["error"]["kind"], kind, "{ended:?}");
    let message = errors[0]["error"]["message"].as_str().unwrap();
    for hint in hints {
        assert!(message.contains(hint), "{hint:?} is not in {message:?}");
    }
    assert!(ended.took < LIMIT, "{ended:?}");
}

#[test]
fn a_trusted_cluster_is_used_shard_by_shard() {
    // Two shard-aware ports: only one of them speaks TLS.
    let mut world = World::start(beside());
    let (ca, contact) = (world.ca(), world.tls_contact());
    let ended = query(&contact, &["--ca", &ca]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stderr, "", "{ended:?}");
    assert_eq!(json_lines(&ended.stdout)[0]["rows"][0][0], "local");

    let columns = "ssl_enabled, ssl_protocol, ssl_cipher_suite, connection_stage, driver_name";
    let clients = format!("SELECT {columns} FROM system.clients");
    let ended = messina(&[
        "query",
        "--contact",
        &contact,
        "--ca",
        &ca,
        "--format",
        "json",
        &clients,
    ]);
    let rows = json_lines(&ended.stdout)[0]["rows"].clone();
    let suite = ["TLS1.3", "TLS_AES_256_GCM_SHA384"];
    let ready = serde_json::json!([true, suite[0], suite[1], "READY", "messina"]);
    let rows = rows.as_array().unwrap();
    assert!(rows.contains(&ready), "{ended:?}");
    // Others may be on their way still: such a one has not said yet who it is.
    for row in rows.iter().filter(|row| **row != ready) {
        assert_ne!(row[3], "READY", "{ended:?}");
        for column in 0..3 {
            assert_eq!(row[column], ready[column], "{ended:?}");
        }
    }

    let inspect = ["inspect", "--contact", &contact, "--tls", "--ca", &ca];
    let ended = messina(&[&inspect[..], &["--format", "json"]].concat());
    let shown = &json_lines(&ended.stdout)[0];
    for node in shown["nodes"].as_array().unwrap() {
        assert_eq!(node["connected_shards"], 2, "{shown}");
    }
    // No connection to this node is a first contact: all went to the port that takes the shard.
    let second = shown["nodes"].as_array().unwrap().iter();
    let second = second.filter(|node| node["address"] != contact.as_str());
    for connection in second.flat_map(|node| node["connections"].as_array().unwrap()) {
        let port = connection["local_port"].as_u64().unwrap();
        assert_eq!(connection["shard"], port % 2, "{shown}");
    }

    let named = ["--ca", &ca, "--tls-server-name", "localhost"];
    assert_eq!(query(&contact, &named).code, Some(0));
    let ended = query(&contact, &["--tls-insecure"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stderr.starts_with("warning: --tls-insecure"),
        "{ended:?}"
    );
    world.stop();
}

#[test]
fn others_are_refused() {
    let mut world = World::start(TlsOptions::made());
    let mut other = World::start(TlsOptions::made());
    let (ca, wrong) = (world.ca(), other.ca());
    let contact = world.contact();
    let untrusted = ["the certificate's issuer is not trusted", "--ca"];
    assert_refused(
        &query(&contact, &["--tls", "--ca", &wrong]),
        "tls",
        untrusted,
    );
    // Public authorities have not signed it.
    assert_refused(&query(&contact, &["--tls"]), "tls", untrusted);
    assert_refused(
        &query(&contact, &["--ca", &ca, "--tls-server-name", "other.test"]),
        "tls",
        ["the certificate is for another name", "--tls-server-name"],
    );
    assert_refused(
        &query(&contact, &["--ca", "/no/such/file"]),
        "tls",
        ["/no/such/file", "No such file"],
    );
    let no_pem = world.file("nothing");
    let hints = ["no certificate", "TLS cannot be set up"];
    assert_refused(&query(&contact, &["--ca", &no_pem]), "tls", hints);
    world.stop();
    other.stop();

    let mut expired = TlsOptions::made();
    expired.expired = true;
    let mut world = World::start(expired);
    let ca = world.ca();
    let hints = ["the certificate has expired", "renew"];
    assert_refused(&query(&world.contact(), &["--ca", &ca]), "tls", hints);
    world.stop();
}

#[test]
fn nodes_may_want_to_know_clients() {
    let mut tls = TlsOptions::made();
    tls.client_certificates = true;
    let mut world = World::start(tls);
    let (ca, contact) = (world.ca(), world.contact());
    let (certificate, key) = world.server.client_pem().unwrap();
    let (certificate, key) = (world.file(&certificate), world.file(&key));
    let known = ["--ca", &ca, "--tls-cert", &certificate, "--tls-key", &key];
    let ended = query(&contact, &known);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let hints = ["the peer refused", "--tls-cert"];
    assert_refused(&query(&contact, &["--ca", &ca]), "tls", hints);
    world.stop();
}

#[test]
fn plain_and_tls_that_meet_say_so() {
    let mut world = World::start(beside());
    let (ca, plain, secure) = (world.ca(), world.contact(), world.tls_contact());
    assert_eq!(query(&plain, &[]).code, Some(0));
    assert_eq!(query(&secure, &["--ca", &ca]).code, Some(0));
    let hints = ["does not speak TLS", "leave --tls out"];
    assert_refused(&query(&plain, &["--ca", &ca]), "tls", hints);
    let hints = ["by peer", "does it want TLS"];
    assert_refused(&query(&secure, &[]), "connect", hints);
    world.stop();
}

#[test]
fn the_demonstration_runs_under_tls() {
    let ended = messina(&[
        "demo", "--tls", "--rows", "100", "--nodes", "2", "--format", "json",
    ]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(json_lines(&ended.stdout)[0]["connections"], 8, "{ended:?}");
}
