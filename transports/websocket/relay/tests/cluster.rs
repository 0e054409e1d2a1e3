//! The driver through the relay, against a simulated cluster: the owning shard through one
//! WebSocket, logins in the client's stead, and TLS.

mod support;

use core::time::Duration;

use futures_util::StreamExt;
use messina_relay::{Credentials, NodeTls, TlsIdentity};
use messina_sim::node::{Credentials as NodeCredentials, Options};
use messina_sim::tcp::{SimServer, TlsOptions as NodeTlsOptions};
use messina_tokio::{Config, Error, Session, TlsOptions};
use messina_websocket::tokio::{Protocol, Relay, connect};
use support::Running;

async fn cluster(nodes: usize, shards: u32, login: Option<(&str, &str)>) -> SimServer {
    let mut options = Options::uniform(nodes, shards);
    options.port = 0;
    options.shard_aware_port = Some(0);
    options.auth = login.map(|(user, password)| NodeCredentials::new(user, password));
    SimServer::start(options).await.unwrap()
}

async fn session(cluster: &SimServer, relay: Relay) -> Result<Session, Error> {
    let mut config = Config::server();
    config.add_contact_points(&cluster.contacts()[0].to_string())?;
    connect(config, relay).await
}

fn url(relay: &Running) -> Relay {
    Relay::new(&format!("ws://{}", relay.address)).unwrap()
}

async fn close(session: Session) {
    let closing = tokio::time::timeout(support::HANG, session.close());
    closing.await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_reach_the_owning_shard_through_one_websocket() {
    let cluster = cluster(3, 4, None).await;
    let relay = Running::start(&["127.0.0.0/8:1-65535"], |_| {}).await;
    let session = session(&cluster, url(&relay)).await.unwrap();
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (pk bigint PRIMARY KEY, v bigint)",
    ] {
        session.query(statement, ()).await.unwrap();
    }
    let insert = session
        .prepare("INSERT INTO ks.t (pk, v) VALUES (?, ?)")
        .await
        .unwrap();
    let select = session
        .prepare("SELECT v FROM ks.t WHERE pk = ?")
        .await
        .unwrap();
    let (driver, insert, select) = (&session, &insert, &select);
    let keys = || futures_util::stream::iter(0..1500_i64);
    // Warm-up: connections to all shards, and each tablet learned.
    for _ in 0..2 {
        keys()
            .for_each_concurrent(32, |key| async move {
                driver.execute(insert, (key, key * 7)).await.unwrap();
            })
            .await;
    }
    cluster.handle().reset_stats();
    keys()
        .for_each_concurrent(32, |key| async move {
            let row = driver.execute(select, (key,)).await.unwrap();
            assert_eq!(row.single_row::<(i64,)>().unwrap().0, key * 7);
        })
        .await;
    let seen = cluster.stats().table("ks.t");
    assert_eq!(seen.requests, 1500);
    let share = seen.at_owner_shard as f64 / seen.requests as f64;
    assert!(share >= 0.95, "{seen:?}");
    assert_eq!(relay.metric("connections_total").await, 1, "one WebSocket");
    assert!(relay.metric("steered_total").await >= 9);
    let shards = cluster
        .stats()
        .nodes
        .iter()
        .map(|node| node.shards.len())
        .sum::<usize>();
    assert_eq!(shards, 12);
    close(session).await;
    relay.stop().await;
    cluster.stop().await;
}

#[tokio::test]
async fn the_relay_logs_in_for_the_client() {
    let cluster = cluster(1, 2, Some(("app", "secret"))).await;
    let rules = ["127.0.0.0/8:1-65535"];
    let right = Running::start(&rules, |config| {
        config.login = Some(Credentials::new("app", "secret"));
    })
    .await;
    for protocol in [Protocol::Mux, Protocol::Cql] {
        let relay = url(&right).protocol(protocol);
        let session = session(&cluster, relay).await.unwrap();
        let row = session
            .query("SELECT cluster_name FROM system.local", ())
            .await;
        assert!(row.is_ok(), "{row:?}");
        close(session).await;
    }
    assert!(right.metric("logins_total").await >= 2);
    right.stop().await;

    let wrong = Running::start(&rules, |config| {
        config.login = Some(Credentials::new("app", "wrong"));
    })
    .await;
    let error = session(&cluster, url(&wrong))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("the relay cannot log in"), "{error}");
    assert!(!error.contains("app"), "{error}");
    wrong.stop().await;

    let none = Running::start(&rules, |_| {}).await;
    assert!(session(&cluster, url(&none)).await.is_err());
    none.stop().await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_refusal_and_its_reason_reach_the_driver() {
    let cluster = cluster(1, 1, None).await;
    let relay = Running::start(&["10.0.0.0/8:9042"], |_| {}).await;
    let error = session(&cluster, url(&relay))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("not allowed"), "{error}");
    relay.stop().await;
    cluster.stop().await;
}

#[tokio::test]
async fn the_driver_goes_through_tls() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let cluster = cluster(1, 2, None).await;
    let relay = Running::start(&["127.0.0.0/8:1-65535"], |config| {
        let identity = TlsIdentity::from_pem(chain.as_bytes(), key.as_bytes());
        config.tls = Some(identity.unwrap());
    })
    .await;
    let address = format!("wss://localhost:{}", relay.address.port());
    let trusting = Relay::new(&address).unwrap();
    let trusting = trusting.tls(TlsOptions::with_ca_pem(&chain).unwrap());
    let through = session(&cluster, trusting).await.unwrap();
    let row = through
        .query("SELECT cluster_name FROM system.local", ())
        .await;
    assert!(row.is_ok(), "{row:?}");
    close(through).await;
    // Without TLS nobody is understood.
    let plain = url(&relay);
    let error = tokio::time::timeout(Duration::from_secs(15), session(&cluster, plain)).await;
    assert!(matches!(error, Ok(Err(_)) | Err(_)));
    relay.stop().await;
    cluster.stop().await;
}

#[tokio::test]
async fn the_relay_speaks_tls_with_nodes() {
    let mut options = Options::uniform(1, 2);
    options.port = 0;
    options.shard_aware_port = Some(0);
    options.auth = Some(NodeCredentials::new("app", "secret"));
    let cluster = SimServer::start_tls(options, NodeTlsOptions::made())
        .await
        .unwrap();
    let ca = cluster.ca_pem().unwrap().to_owned();
    let other = rcgen::generate_simple_self_signed(vec!["other".to_owned()]).unwrap();
    for (ca, is_trusted) in [(ca, true), (other.cert.pem(), false)] {
        let relay = Running::start(&["127.0.0.0/8:1-65535"], |config| {
            config.node_tls = Some(NodeTls::with_ca_pem(ca.as_bytes()).unwrap());
            config.login = Some(Credentials::new("app", "secret"));
        })
        .await;
        for protocol in [Protocol::Mux, Protocol::Cql] {
            let through = session(&cluster, url(&relay).protocol(protocol)).await;
            if !is_trusted {
                let error = through.unwrap_err().to_string();
                // The reason "other" as the driver shows it.
                assert!(error.contains("4255"), "{error}");
                continue;
            }
            let through = through.unwrap();
            let text = "x".repeat(100_000);
            let query = format!("SELECT cluster_name FROM system.local /* {text} */");
            let row = through.query(query.as_str(), ()).await;
            assert!(row.is_ok(), "{row:?}");
            close(through).await;
        }
        relay.stop().await;
    }
    assert!(NodeTls::with_ca_pem(b"").is_err());
    cluster.stop().await;
}

#[test]
fn certificates_that_cannot_be_used_are_told() {
    let made = || rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (one, other) = (made(), made());
    let chain = one.cert.pem();
    let key = other.signing_key.serialize_pem();
    assert!(TlsIdentity::from_pem(chain.as_bytes(), key.as_bytes()).is_err());
    assert!(TlsIdentity::from_pem(b"", key.as_bytes()).is_err());
    assert!(TlsIdentity::from_pem(chain.as_bytes(), b"").is_err());
}
