//! Where requests go, from the session's settings down to the node that counted them.

use std::sync::Arc;

use messina_core::config::Config;
use messina_core::drive::{Prepared, Session, Statement, StatementTarget};
use messina_core::error::{ErrorKind, TargetProblem};
use messina_core::routing::{CustomPolicy, Leadership, Plan, PlanContext, Reason};
use messina_core::wire::Consistency;
use messina_sim::node::{NodeOptions, Options, TabletsMode};
use uuid::Uuid;

use crate::scene::{Scene, run_on};

const INSERT: &str = "INSERT INTO ks.t (pk, v) VALUES (?, ?)";

async fn prepare(scene: &Scene, replication: &str, more: &str) -> Prepared {
    scene.session.ready().await.unwrap();
    // Ready is a session with any connection: the nodes that a policy insists on may not be there.
    scene.pause(1_000_000).await;
    let keyspace = format!(
        "CREATE KEYSPACE ks WITH replication = {{'class': 'NetworkTopologyStrategy', \
         {replication}}} {more}"
    );
    let table = "CREATE TABLE ks.t (pk bigint PRIMARY KEY, v bigint)";
    scene.create(&[&keyspace, table]).await;
    let insert = scene.session.prepare(INSERT).await.unwrap();
    scene.pause(3_000_000).await;
    insert
}

fn host_id(scene: &Scene, node: usize) -> Uuid {
    let bytes = scene.world.with_cluster(|cluster| cluster.host_id(node));
    Uuid::from_bytes(bytes.unwrap())
}

/// The node of the cluster that answers a write of this key, and the shard of the connection.
async fn served_by(scene: &Scene, insert: &Prepared, key: i64) -> (Uuid, Option<u16>) {
    let info = scene
        .session
        .execute(insert, (key, 0_i64))
        .await
        .unwrap()
        .info();
    (
        id_of(&scene.session, info.node.value()),
        info.shard.map(|shard| shard.value()),
    )
}

fn id_of(session: &Session, node: u16) -> Uuid {
    let status = session.status();
    let mut nodes = status.nodes.iter();
    nodes.find(|one| one.node.value() == node).unwrap().host_id
}

fn two_dcs(each: usize) -> Options {
    let mut options = Options::uniform(2 * each, 2);
    for (at, node) in options.nodes.iter_mut().enumerate() {
        node.datacenter = if at < each { "dc1" } else { "dc2" }.to_owned();
    }
    options
}

/// Replicas only, where there are any, the last one first.
struct Last;

impl CustomPolicy for Last {
    fn revise(&self, context: &PlanContext<'_>, plan: &mut Plan) {
        assert!(context.view().topology().len() == 3);
        let mut targets = plan.targets().iter();
        if targets.any(|target| target.reason != Reason::Any) {
            plan.retain(|target| target.reason != Reason::Any);
            plan.targets_mut().reverse();
            plan.end();
        }
    }
}

/// One node, whatever the plan was; it is not even listed.
struct Only(Uuid);

impl CustomPolicy for Only {
    fn revise(&self, context: &PlanContext<'_>, plan: &mut Plan) {
        plan.retain(|_| false);
        if let Some(node) = context.view().topology().node_by_host_id(self.0)
            && context.load().is_connected(node)
        {
            plan.prefer(node, None);
        }
        plan.end();
    }
}

#[test]
fn a_custom_policy_reorders_filters_and_supplies_targets() {
    run_on(
        Options::uniform(3, 2),
        |config| {
            config.policy.shuffle = false;
            config.custom_policy = Some(Arc::new(Last));
        },
        |scene| async move {
            let insert = prepare(&scene, "'replication_factor': 3", "").await;
            for key in 0..20_i64 {
                let route = || scene.session.route(&insert, (key, 0_i64)).unwrap();
                while route().tablet().is_none() {
                    served_by(&scene, &insert, key).await;
                }
                let tablet = route().tablet().unwrap();
                let last = tablet.replicas().last().unwrap();
                let served = served_by(&scene, &insert, key).await;
                assert_eq!(served, (last.host_id, Some(last.shard)));
                assert_eq!(route().targets().count(), 3);
            }
        },
    );
    let wanted = 1;
    let mut options = Options::uniform(3, 2);
    options.seed = 7;
    // Host ids follow from the seed alone.
    let id = {
        let cluster =
            messina_sim::link::World::new(options.clone(), messina_sim::link::Faults::NONE);
        let bytes = cluster.with_cluster(|cluster| cluster.host_id(wanted));
        Uuid::from_bytes(bytes.unwrap())
    };
    run_on(
        options,
        |config| config.custom_policy = Some(Arc::new(Only(id))),
        |scene| async move {
            let insert = prepare(&scene, "'replication_factor': 1", "").await;
            for key in 0..20_i64 {
                assert_eq!(served_by(&scene, &insert, key).await.0, id);
                let route = scene.session.route(&insert, (key, 0_i64)).unwrap();
                let targets: Vec<_> = route.targets().map(|it| (it.host_id, it.reason)).collect();
                assert_eq!(targets, [(id, Reason::Custom)]);
            }
            // It dies: nothing else is tried.
            scene
                .world
                .with_cluster(|cluster| cluster.kill(wanted).unwrap());
            scene.pause(1_000_000).await;
            let error = scene
                .session
                .execute(&insert, (1_i64, 0_i64))
                .await
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unreachable);
        },
    );
}

#[test]
fn a_statement_may_name_its_only_node_or_shard() {
    run_on(
        Options::uniform(3, 2),
        |_| {},
        |scene| async move {
            let insert = prepare(&scene, "'replication_factor': 1", "").await;
            for node in 0..3 {
                let id = host_id(&scene, node);
                let to_node = insert.clone().with_target(StatementTarget::node(id));
                for key in 0..10_i64 {
                    assert_eq!(served_by(&scene, &to_node, key).await.0, id);
                }
                for shard in 0..2 {
                    let to_shard = insert
                        .clone()
                        .with_target(StatementTarget::shard(id, shard));
                    for key in 0..10_i64 {
                        assert_eq!(served_by(&scene, &to_shard, key).await, (id, Some(shard)));
                    }
                }
            }
            let id = host_id(&scene, 2);
            let problem = |target| {
                let statement = insert.clone().with_target(target);
                let session = scene.session.clone();
                async move {
                    let ran = session.execute(&statement, (1_i64, 0_i64)).await;
                    let error = ran.unwrap_err();
                    assert!(!error.may_have_been_applied());
                    error.kind()
                }
            };
            let stranger = StatementTarget::node(Uuid::from_u128(5));
            assert_eq!(
                problem(stranger).await,
                ErrorKind::Target(TargetProblem::UnknownNode)
            );
            let shard = StatementTarget::shard(id, 2);
            assert_eq!(
                problem(shard).await,
                ErrorKind::Target(TargetProblem::UnknownShard)
            );
            scene.world.with_cluster(|cluster| cluster.kill(2).unwrap());
            scene.pause(1_000_000).await;
            for target in [StatementTarget::node(id), StatementTarget::shard(id, 1)] {
                let kind = problem(target).await;
                assert_eq!(kind, ErrorKind::Target(TargetProblem::NotConnected));
            }
        },
    );
}

/// One request in flight for each connection, and two at once for one key of one replica: the
/// second waits for its shard, or goes over the other one.
#[test]
fn a_full_shard_is_waited_for_or_passed_by() {
    for passes_by in [false, true] {
        run_on(
            Options::uniform(1, 2),
            |config| {
                config.limits.connection.in_flight = 1;
                config.policy.other_shards_when_full = passes_by;
            },
            |scene| async move {
                let insert = prepare(&scene, "'replication_factor': 1", "").await;
                let route = || scene.session.route(&insert, (1_i64, 0_i64)).unwrap();
                while route().tablet().is_none() {
                    served_by(&scene, &insert, 1).await;
                }
                let own = Some(route().tablet().unwrap().replicas()[0].shard);
                let shards = std::rc::Rc::new(core::cell::RefCell::new(Vec::new()));
                for _ in 0..2 {
                    let (other, insert) = (scene.clone(), insert.clone());
                    let shards = std::rc::Rc::clone(&shards);
                    scene.spawner.spawn(async move {
                        let (_, shard) = served_by(&other, &insert, 1).await;
                        shards.borrow_mut().push(shard);
                    });
                }
                scene.pause(1_000_000).await;
                let mut shards = shards.take();
                shards.sort_unstable();
                match passes_by {
                    false => assert_eq!(shards, [own, own]),
                    true => assert_eq!(shards, [Some(0), Some(1)]),
                }
            },
        );
    }
}

/// The own data centre dies: LOCAL levels have nowhere to go, others fail over, unless the switch
/// says that LOCAL levels may too, or failover is off.
#[test]
fn local_levels_do_not_fail_over_unless_told_to() {
    for (failover, at_local_levels) in [(false, true), (true, false), (true, true)] {
        run_on(
            two_dcs(1),
            |config| {
                config.policy.preferred_dc = Some("dc1".into());
                config.policy.dc_failover = failover;
                config.policy.dc_failover_at_local_levels = at_local_levels;
            },
            |scene| async move {
                let insert = prepare(&scene, "'dc1': 1, 'dc2': 1", "").await;
                scene.world.with_cluster(|cluster| cluster.kill(0).unwrap());
                scene.pause(1_000_000).await;
                for (level, is_local) in [
                    (Consistency::LocalOne, true),
                    (Consistency::LocalQuorum, true),
                    (Consistency::One, false),
                ] {
                    let insert = insert.clone().with_consistency(level);
                    let ran = scene.session.execute(&insert, (1_i64, 0_i64)).await;
                    let may = failover && (at_local_levels || !is_local);
                    match ran {
                        Ok(ran) => {
                            let id = id_of(&scene.session, ran.info().node.value());
                            assert!(may && id == host_id(&scene, 1), "{level}");
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Unreachable);
                            assert!(!may, "{level}: {failover} {at_local_levels}");
                        }
                    }
                }
            },
        );
    }
}

/// Two data centres, a leader at home, abroad or dead, under each policy: who answers, what the
/// route says, and whether the node had to pass the request on.
#[test]
fn the_leader_answers_where_the_policy_would_contact_it() {
    const FAR: usize = 2;
    for (dc, rack, failover) in [
        (None, None, false),
        (Some("dc1"), None, false),
        (Some("dc1"), Some("rack2"), false),
        (Some("dc1"), Some("rack2"), true),
    ] {
        run_on(
            two_dcs(2),
            |config| {
                config.consistency = Consistency::LocalQuorum;
                config.policy.preferred_dc = dc.map(Into::into);
                config.policy.preferred_rack = rack.map(Into::into);
                config.policy.dc_failover = failover;
            },
            |scene| async move {
                let more = "AND tablets = {'initial': 1} AND consistency = 'global'";
                let insert = prepare(&scene, "'dc1': 2, 'dc2': 1", more).await;
                let replicas = scene
                    .world
                    .with_cluster(|cluster| cluster.tablets("ks", "t")[0].replicas.clone());
                let reaches_far = dc.is_none() || failover;
                for (nth, replica) in replicas.iter().enumerate() {
                    scene.world.with_cluster(|cluster| {
                        cluster.set_leader(("ks", "t"), 0, Some(nth)).unwrap();
                    });
                    // The change is found within sixteen requests.
                    for _ in 0..17 {
                        served_by(&scene, &insert, 1).await;
                    }
                    let (id, is_far) = (host_id(&scene, replica.node), replica.node >= FAR);
                    let route = scene.session.route(&insert, (1_i64, 0_i64)).unwrap();
                    let served = served_by(&scene, &insert, 1).await;
                    if is_far && !reaches_far {
                        assert_eq!(route.leadership, Leadership::ForbiddenDc);
                        assert_ne!(served.0, id);
                        let near = (0..FAR).any(|node| host_id(&scene, node) == served.0);
                        assert!(near, "no traffic that the policy forbids");
                    } else {
                        assert_eq!(route.leadership, Leadership::First);
                        let shard = u16::try_from(replica.shard).unwrap();
                        assert_eq!(served, (id, Some(shard)), "{dc:?} {rack:?} {failover}");
                    }
                    // By the level that is sent: the statement's own, not the session's.
                    let read = "SELECT v FROM ks.t WHERE pk = ?";
                    let read = scene.session.prepare(read).await.unwrap();
                    let read = read.with_consistency(Consistency::LocalOne);
                    let route = scene.session.route(&read, (1_i64,)).unwrap();
                    assert_eq!(route.leadership, Leadership::LevelOne);
                }
                // The leader dies and nobody has told a new one yet.
                let near = replicas
                    .iter()
                    .position(|replica| replica.node < FAR)
                    .unwrap();
                scene.world.with_cluster(|cluster| {
                    cluster.set_leader(("ks", "t"), 0, Some(near)).unwrap();
                });
                for _ in 0..17 {
                    served_by(&scene, &insert, 1).await;
                }
                let dead = replicas[near].node;
                scene
                    .world
                    .with_cluster(|cluster| cluster.kill(dead).unwrap());
                scene.pause(2_000_000).await;
                let route = scene.session.route(&insert, (1_i64, 0_i64)).unwrap();
                let why = route.leadership;
                assert!(
                    matches!(why, Leadership::Down | Leadership::NotConnected),
                    "{why:?}"
                );
                assert!(
                    route
                        .targets()
                        .all(|target| target.host_id != host_id(&scene, dead)
                            || target.reason != Reason::Leader)
                );
            },
        );
    }
}

/// Nodes without tokens take no request while another lives.
#[test]
fn nodes_without_tokens_serve_only_alone() {
    let mut options = Options::uniform(3, 2);
    options.nodes[2] = NodeOptions::default();
    options.nodes[2].zero_token = true;
    run_on(
        options,
        |_| {},
        |scene| async move {
            let insert = prepare(&scene, "'replication_factor': 2", "").await;
            let arbiter = host_id(&scene, 2);
            for key in 0..100_i64 {
                assert_ne!(served_by(&scene, &insert, key).await.0, arbiter);
            }
            let system = "SELECT host_id FROM system.local WHERE key = 'local'";
            for _ in 0..20 {
                let found = scene.session.query(system, ()).await.unwrap();
                assert_ne!(found.single_row::<(Uuid,)>().unwrap().0, arbiter);
            }
            scene.world.with_cluster(|cluster| {
                cluster.kill(0).unwrap();
                cluster.kill(1).unwrap();
            });
            scene.pause(20_000_000).await;
            let found = scene.session.query(system, ()).await.unwrap();
            assert_eq!(found.single_row::<(Uuid,)>().unwrap().0, arbiter);
        },
    );
}

/// Nodes are upgraded one by one: connections agree the second extension when they come back, and
/// tablets that the first one taught stay in use until the second tells their versions.
#[test]
fn an_upgraded_node_agrees_anew_and_learned_tablets_stay() {
    run_on(
        Options::uniform(3, 2).with_tablets(TabletsMode::V1),
        |config| config.consistency = Consistency::One,
        |scene| async move {
            let insert = prepare(&scene, "'replication_factor': 1", "").await;
            let forwarded = || {
                scene
                    .world
                    .with_cluster(|cluster| cluster.stats().table("ks.t").forwarded)
            };
            let route = |key: i64| scene.session.route(&insert, (key, 0_i64)).unwrap();
            for _ in 0..2 {
                for key in 0..200_i64 {
                    served_by(&scene, &insert, key).await;
                }
            }
            assert!((0..200).all(|key| route(key).tablet().unwrap().version().is_none()));
            for node in 0..3 {
                scene.world.with_cluster(|cluster| {
                    cluster.kill(node).unwrap();
                    cluster.set_tablets(node, TabletsMode::V2).unwrap();
                    cluster.start(node).unwrap();
                });
                scene.pause(15_000_000).await;
                let before = forwarded();
                for key in 0..200_i64 {
                    served_by(&scene, &insert, key).await;
                }
                assert_eq!(forwarded(), before, "nothing was lost");
            }
            let versions =
                || (0..200).filter(|&key| route(key).tablet().unwrap().version().is_some());
            for key in 0..200_i64 {
                served_by(&scene, &insert, key).await;
            }
            assert_eq!(versions().count(), 200, "every tablet has a version now");
        },
    );
}

/// The contact point stands where the policy sends no requests, or none at LOCAL levels: the session
/// is ready only when it can be used. Where nobody near lives it does not wait for them.
#[test]
fn a_session_is_ready_when_its_own_data_centre_answers() {
    for (seed, failover, lives) in (1..=8).flat_map(|seed| {
        [(false, true), (true, true), (true, false)]
            .map(|(failover, lives)| (seed, failover, lives))
    }) {
        let mut options = two_dcs(2);
        options.seed = seed;
        run_on(
            options,
            |config| {
                config.contact_points.truncate(1);
                config.consistency = Consistency::LocalQuorum;
                config.policy.preferred_dc = Some("dc2".into());
                config.policy.dc_failover = failover;
            },
            |scene| async move {
                if !lives {
                    for node in [2, 3] {
                        scene
                            .world
                            .with_cluster(|cluster| cluster.kill(node).unwrap());
                    }
                }
                scene.session.ready().await.unwrap();
                let text = "SELECT key FROM system.local";
                let read = |level| {
                    let read = Statement::new(text).with_consistency(level);
                    scene.session.query(read, ())
                };
                assert_eq!(read(Consistency::LocalOne).await.is_ok(), lives);
                assert!(read(Consistency::One).await.is_ok());
                if lives {
                    let keyspace = "CREATE KEYSPACE at_once WITH replication = \
                        {'class': 'NetworkTopologyStrategy', 'dc1': 1, 'dc2': 1}";
                    scene.session.query(keyspace, ()).await.unwrap();
                }
            },
        );
    }
}

/// A data centre that no node is in is a slip of the pen, and what fails by it says so.
#[test]
fn a_data_centre_without_nodes_is_named() {
    let mut options = Options::uniform(2, 1);
    options.seed = 1;
    for node in &mut options.nodes {
        node.datacenter = "east".to_owned();
    }
    let is_near = |config: &mut Config| config.policy.preferred_dc = Some("wset".into());
    run_on(options, is_near, |scene| async move {
        scene.session.ready().await.unwrap();
        let asked = scene.session.query("SELECT key FROM system.local", ());
        let error = asked.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        let text = error.to_string();
        for expected in ["\"wset\"", "\"east\"", "dc_failover"] {
            assert!(text.contains(expected), "{text}");
        }
    });
}
