//! Nodes behind a proxy: the driver goes by the cluster's routes, and follows their changes.

use core::cell::Cell;
use std::rc::Rc;

use messina_core::cluster::NodeRoute;
use messina_core::config::{ClientRoutes, Config};
use messina_core::drive::Statement;
use messina_sim::node::{ClientRoute, Options};

use crate::scene::{Scene, run_on};

const NAME: &str = "nlb.example";
const NODES: usize = 3;
const SHARDS: usize = 2;

fn port(node: usize, turn: usize) -> u16 {
    u16::try_from(9000 + 100 * turn + node).unwrap()
}

/// Only the way to the first node is known without routes.
fn following(config: &mut Config) {
    config.contact_points.truncate(1);
    config.client_routes = Some(ClientRoutes::new(["own"]));
}

impl Scene {
    /// Leads to a node by the port of this turn, no longer by that of the turn before.
    fn lead(&self, node: usize, turn: usize) {
        if let Some(before) = turn.checked_sub(1) {
            self.world.forward(NAME, port(node, before), None);
        }
        self.world.forward(NAME, port(node, turn), Some(node));
        let mut route = ClientRoute::new(NAME);
        route.port = Some(port(node, turn));
        self.world.with_cluster(|cluster| {
            let mut foreign = ClientRoute::new("10.9.9.9");
            foreign.port = Some(1);
            let changes = vec![
                ("own".to_owned(), node, Some(route)),
                ("foreign".to_owned(), node, Some(foreign)),
            ];
            cluster.change_client_routes(changes).unwrap();
        });
    }

    fn connections(&self, node: usize) -> usize {
        self.world
            .with_cluster(|cluster| cluster.connection_count(node))
    }

    /// Links that did not go through the proxy.
    fn direct(&self) -> u64 {
        let counts = self.world.counts();
        counts.links - counts.proxied
    }
}

/// Ways change while requests run. Every change is followed, nothing but the contact point is ever
/// reached by its own address, and no request fails.
#[test]
fn routes_that_change_under_load_are_followed() {
    for seed in 1..=2 {
        let mut options = Options::uniform(NODES, u32::try_from(SHARDS).unwrap());
        options.seed = seed;
        run_on(options, following, |scene| async move {
            for node in 0..NODES {
                scene.lead(node, 0);
            }
            let session = &scene.session;
            let keyspace = "CREATE KEYSPACE ks WITH replication = \
                 {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}";
            let table = "CREATE TABLE ks.t (pk bigint PRIMARY KEY, v bigint)";
            scene.create(&[keyspace, table]).await;
            let insert = "INSERT INTO ks.t (pk, v) VALUES (?, ?)";
            let insert = Statement::new(insert).idempotent();
            let insert = session.prepare(insert).await.unwrap();
            scene.pause(3_000_000).await;
            for node in 0..NODES {
                assert_eq!(scene.connections(node), SHARDS, "node {node}");
            }
            let (done, stop) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
            for worker in 0..8_i64 {
                let (scene, insert) = (scene.clone(), insert.clone());
                let (done, stop) = (Rc::clone(&done), Rc::clone(&stop));
                scene.spawner.clone().spawn(async move {
                    while !stop.get() {
                        let values = (worker * 1000 + done.get() % 100, 0_i64);
                        scene.session.execute(&insert, values).await.unwrap();
                        done.set(done.get() + 1);
                        scene.pause(50_000).await;
                    }
                });
            }
            for turn in 1..=6 {
                let node = turn % NODES;
                let turns = 1 + (turn - 1) / NODES;
                let links = scene.world.counts().links;
                scene.lead(node, turns);
                scene.pause(2_000_000).await;
                assert_eq!(scene.world.counts().links, links, "what works is kept");
                let expected = format!("{NAME}:{}", port(node, turns));
                let status = session.status();
                let routes = status.nodes.iter().map(|node| &node.route);
                let is_new = |route: &&NodeRoute| matches!(route, NodeRoute::Routed(to) if to.to_string() == expected);
                assert_eq!(routes.filter(is_new).count(), 1, "{expected}");
                scene.world.with_cluster(|cluster| {
                    cluster.kill(node).unwrap();
                    cluster.start(node).unwrap();
                });
                scene.pause(3_000_000).await;
                assert_eq!(scene.connections(node), SHARDS, "by the new way alone");
            }
            stop.set(true);
            assert!(done.get() > 100, "{}", done.get());
            assert_eq!(scene.direct(), 1);
        });
    }
}
