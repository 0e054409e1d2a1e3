//! What the driver tells nodes about itself, read back from their own tables.

use core::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use messina_core::cluster::WarmStart;
use messina_core::config::Config;
use messina_core::conn::auth::PlainAuthenticator;
use messina_core::drive::{Statement, StatementTarget};
use messina_sim::node::{Credentials, Options};
use serde_json::Value;
use uuid::Uuid;

use crate::scene::{Scene, run_on};

/// One random id on every connection, so that those of a session are found; another for each.
#[test]
fn all_connections_of_a_session_say_its_id() {
    let ids = Rc::new(RefCell::new(BTreeSet::new()));
    for seed in 1..=3 {
        let mut options = Options::uniform(2, 3);
        options.seed = seed;
        let seen = Rc::clone(&ids);
        run_on(
            options,
            |config| config.application_name = Some("shop".into()),
            |scene| async move {
                let session = &scene.session;
                session.ready().await.unwrap();
                scene.pause(10_000_000).await;
                let text = "SELECT client_options FROM system.clients";
                let shown = session.query(text, ()).await.unwrap();
                let mut count = 0;
                for row in shown.rows::<(BTreeMap<String, String>,)>().unwrap() {
                    let (options,) = row.unwrap();
                    assert_eq!(options["DRIVER_NAME"], "messina");
                    assert_eq!(options["APPLICATION_NAME"], "shop");
                    assert!(!options.contains_key("SCYLLA_HOST_ID"));
                    seen.borrow_mut()
                        .insert((seed, options["SESSION_ID"].clone()));
                    count += 1;
                }
                assert!(count >= 3, "a connection for each shard: {count}");
            },
        );
    }
    let ids = ids.take();
    assert_eq!(ids.len(), 3, "one for each session: {ids:?}");
    let different: BTreeSet<&str> = ids.iter().map(|(_, id)| &**id).collect();
    assert_eq!(different.len(), 3);
    for id in different {
        // The text of a random UUID.
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
        assert_eq!(&id[14..15], "4", "{id}");
    }
}

/// What the connections to a node of four shards have told it.
fn told(seed: u64, adjust: impl FnOnce(&mut Config)) -> Vec<BTreeMap<String, String>> {
    let mut options = Options::uniform(1, 4);
    options.seed = seed;
    options.auth = Some(Credentials::new(USER, PASSWORD));
    let rows = Rc::new(RefCell::new(Vec::new()));
    let found = Rc::clone(&rows);
    let adjust = |config: &mut Config| {
        config.authenticator = Some(Arc::new(PlainAuthenticator::new(USER, PASSWORD)));
        config.server_name = Some(SERVER_NAME.into());
        // The one node is of another data centre than those of the tests.
        config.policy.dc_failover = true;
        adjust(config);
    };
    run_on(options, adjust, |scene| async move {
        let session = &scene.session;
        session.ready().await.unwrap();
        scene.pause(10_000_000).await;
        let text = "SELECT client_options FROM system.clients";
        let shown = session.query(text, ()).await.unwrap();
        for row in shown.rows::<(BTreeMap<String, String>,)>().unwrap() {
            found.borrow_mut().push(row.unwrap().0);
        }
    });
    let told = rows.take();
    assert_eq!(told.len(), 4, "a connection for each shard");
    told
}

const USER: &str = "user-of-the-test";
const PASSWORD: &str = "password-of-the-test";
const SERVER_NAME: &str = "server-name-of-the-test";

/// How the session is set stands on the control connection alone, and can be read.
#[test]
fn the_control_connection_tells_how_the_session_is_set() {
    let dc = "d\"c\\\n\u{1}é😀\u{2028}";
    for seed in 1..=3 {
        let told = told(seed, |config| {
            config.policy.preferred_dc = Some(dc.into());
            config.page_size = None;
            config.timeouts.request = core::time::Duration::from_millis(1234);
        });
        let ids: BTreeSet<&str> = told.iter().map(|map| &*map["SESSION_ID"]).collect();
        assert_eq!(ids.len(), 1);
        let configs: Vec<&String> = told
            .iter()
            .filter_map(|map| map.get("DRIVER_CONFIG"))
            .collect();
        let [text] = configs[..] else {
            panic!("{configs:?}")
        };
        let config: Value = serde_json::from_str(text).unwrap();
        for (pointer, expected) in [
            ("/version", Value::from(1)),
            ("/tls", false.into()),
            ("/authenticates", true.into()),
            ("/consistency", "ONE".into()),
            ("/serial_consistency", "LOCAL_SERIAL".into()),
            ("/page_size", Value::Null),
            ("/policy/preferred_dc", dc.into()),
            ("/policy/preferred_rack", Value::Null),
            ("/policy/dc_failover", true.into()),
            ("/pool/per_shard", 1.into()),
            ("/pool/per_host", Value::Null),
            ("/pool/source_port_first", 49_152.into()),
            ("/timeouts_ms/request", 1234.into()),
            ("/timeouts_ms/heartbeat_interval", 30_000.into()),
            ("/limits/in_flight", 2048.into()),
        ] {
            assert_eq!(config.pointer(pointer), Some(&expected), "{pointer}");
        }
        for secret in [USER, PASSWORD, SERVER_NAME] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

/// The bound is 32 KiB, in bytes.
#[test]
fn a_configuration_too_long_is_not_told() {
    let len_with = |dc: String| {
        let told = told(1, |config| config.policy.preferred_dc = Some(dc.into()));
        told.iter()
            .find_map(|map| map.get("DRIVER_CONFIG").map(String::len))
    };
    let rest = 32_768 - len_with("é".into()).unwrap();
    assert_eq!(
        len_with(["x".repeat(rest % 2), "é".repeat(rest / 2 + 1)].concat()),
        Some(32_768)
    );
    assert_eq!(
        len_with(["x".repeat(rest % 2 + 1), "é".repeat(rest / 2 + 1)].concat()),
        None
    );
}

impl Scene {
    /// For each node, how many of its connections tell how the session is set.
    async fn tellers(&self) -> [usize; 3] {
        let mut tellers = [0; 3];
        for (node, count) in tellers.iter_mut().enumerate() {
            let host_id = self.world.with_cluster(|cluster| cluster.host_id(node));
            let target = StatementTarget::node(Uuid::from_bytes(host_id.unwrap()));
            let text = Statement::new("SELECT client_options FROM system.clients");
            let shown = self.session.query(text.with_target(target), ()).await;
            let shown = shown.unwrap();
            let rows = shown.rows::<(BTreeMap<String, String>,)>().unwrap();
            let tells = |(options,): &(BTreeMap<_, _>,)| options.contains_key("DRIVER_CONFIG");
            *count = rows.map(Result::unwrap).filter(tells).count();
        }
        tellers
    }
}

/// When the connection is gone that told it, one that is opened later tells it; and so does a session
/// that begins with what an earlier one knew, and opens none through the contact points.
#[test]
fn how_the_session_is_set_is_told_again() {
    for seed in 1..=4 {
        let mut options = Options::uniform(3, 2);
        options.seed = seed;
        run_on(
            options,
            |_| {},
            |scene| async move {
                scene.session.ready().await.unwrap();
                scene.pause(5_000_000).await;
                let tellers = scene.tellers().await;
                assert_eq!(tellers.iter().sum::<usize>(), 1, "{tellers:?}");
                let teller = tellers.iter().position(|count| *count == 1).unwrap();
                scene.world.with_cluster(|cluster| {
                    cluster.kill(teller).unwrap();
                    cluster.start(teller).unwrap();
                });
                scene.pause(30_000_000).await;
                let tellers = scene.tellers().await;
                assert_eq!(tellers.iter().sum::<usize>(), 1, "{tellers:?}");

                let blob = scene.session.warm_start(1 << 20);
                scene.session.close().await;
                scene.pause(5_000_000).await;
                let warm = scene.another(|config| {
                    config.warm_start = Some(WarmStart::new(blob));
                });
                warm.session.ready().await.unwrap();
                warm.pause(5_000_000).await;
                let tellers = warm.tellers().await;
                assert_eq!(tellers.iter().sum::<usize>(), 1, "{tellers:?}");
            },
        );
    }
}
