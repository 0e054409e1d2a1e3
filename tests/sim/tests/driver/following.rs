//! How soon the driver follows a tablet that changed: by the answers to its own requests, since
//! no event tells of it. Rules of ScyllaDB's second tablets extension, in which a request shows the
//! server four bits of the version that it knows.
#![expect(
    clippy::print_stdout,
    reason = "the figures are shown with --nocapture"
)]

use core::cell::RefCell;
use std::rc::Rc;

use messina_core::drive::Prepared;
use messina_core::wire::Consistency;
use messina_sim::node::{Options, Replica};

use crate::scene::{Scene, run_on};

/// Requests that pass the sixteen parts of a version once.
const ROUND: usize = 16;

/// What happens to the tablet of the key.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Its only replica goes to another node.
    Move,
    /// Another of its replicas leads.
    Leader,
}

impl Change {
    const fn keyspace(self) -> &'static str {
        match self {
            Self::Move => {
                "CREATE KEYSPACE ks WITH replication = \
                 {'class': 'NetworkTopologyStrategy', 'replication_factor': 1} \
                 AND tablets = {'initial': 8}"
            }
            Self::Leader => {
                "CREATE KEYSPACE ks WITH replication = \
                 {'class': 'NetworkTopologyStrategy', 'replication_factor': 3} \
                 AND tablets = {'initial': 8} AND consistency = 'global'"
            }
        }
    }

    /// Carries it out for the `round`th time.
    fn make(self, scene: &Scene, tablet: usize, round: usize) {
        scene.world.with_cluster(|cluster| {
            let table = ("ks", "t");
            let now = cluster.tablets("ks", "t").swap_remove(tablet);
            match self {
                Self::Move => {
                    let from = now.replicas[0];
                    let to = Replica {
                        node: (from.node + 1 + round % 2) % 3,
                        shard: u32::try_from(round % 4).unwrap(),
                    };
                    cluster.move_tablet(table, tablet, from, to).unwrap();
                }
                Self::Leader => {
                    let leader = (now.leader.unwrap() + 1 + round % 2) % 3;
                    cluster.set_leader(table, tablet, Some(leader)).unwrap();
                }
            }
        });
    }
}

/// One request in flight: how many went through a wrong node before the driver was right again,
/// for 300 changes of each kind.
#[test]
fn one_forwarded_request_tells_of_a_change() {
    for change in [Change::Move, Change::Leader] {
        let forwarded = Rc::new(RefCell::new(Vec::new()));
        let counts = Rc::clone(&forwarded);
        run_on(
            options(3),
            |config| config.consistency = Consistency::Quorum,
            |scene| async move {
                let insert = scene.prepare(change.keyspace()).await;
                let tablet = scene.tablet_of(&insert, 7);
                scene.until_right(&insert, 7).await;
                for round in 0..300 {
                    change.make(&scene, tablet, round);
                    let count = scene.until_right(&insert, 7).await;
                    counts.borrow_mut().push(count);
                    // So that the next change is met at another part of the version.
                    for _ in 0..round % ROUND {
                        scene
                            .session
                            .execute(&insert, (7_i64, 0_i64))
                            .await
                            .unwrap();
                    }
                }
            },
        );
        let mut forwarded = forwarded.take();
        forwarded.sort_unstable();
        let (median, worst) = (forwarded[forwarded.len() / 2], forwarded[299]);
        let beyond = forwarded.iter().filter(|count| **count > median).count();
        println!("{change:?}: median {median}, worst {worst}, {beyond} of 300 beyond the median");
        assert_eq!(median, 1, "{change:?}");
        assert!(worst <= ROUND, "{change:?}: {worst}");
    }
}

/// Any change of four bits is found within sixteen requests for its tablet, however requests for
/// other tablets come in between, whichever replica each goes to, and however many are in flight.
#[test]
fn any_four_bits_are_found_within_sixteen_requests() {
    for (between, in_flight) in [(1, 1), (7, 1), (15, 1), (1, 256), (7, 256), (15, 256)] {
        run_on(
            options(3),
            |_| {},
            |scene| async move {
                let insert = scene.prepare(SPREAD).await;
                let keys = scene.a_key_of_each_tablet(&insert);
                let (target, others) = (keys[3], [&keys[..3], &keys[4..]].concat());
                for &key in &keys {
                    scene.until_right(&insert, key).await;
                }
                for position in 0..16 {
                    let tablet = scene.tablet_of(&insert, target);
                    scene.world.with_cluster(|cluster| {
                        let bits = 0b0110 << (4 * position);
                        cluster.flip_version(("ks", "t"), tablet, bits).unwrap();
                    });
                    let mut keys = Vec::new();
                    for at in 0..ROUND {
                        keys.push(target);
                        keys.extend((0..between).map(|k| others[(at + k) % others.len()]));
                    }
                    let told = scene.learned_by(&insert, &keys, target, in_flight).await;
                    assert!(
                        told > 0,
                        "position {position}, {between} between, {in_flight} in flight"
                    );
                }
            },
        );
    }
}

/// With nothing learned the second request is routed right in 255 of 256 cases; with a tablet
/// learned by the first extension, which has no version, it is for certain.
#[test]
fn a_cold_tablet_is_learned_by_the_second_request() {
    let learned = Rc::new(RefCell::new([0; 2]));
    for seed in 1..=8 {
        let learned = Rc::clone(&learned);
        let mut options = options(3);
        options.seed = seed;
        run_on(
            options,
            |_| {},
            |scene| async move {
                let insert = scene.prepare(COLD).await;
                for key in scene.a_key_of_each_tablet(&insert) {
                    for nth in 0..2 {
                        if scene.learned_by(&insert, &[key], key, 1).await > 0 {
                            learned.borrow_mut()[nth] += 1;
                            break;
                        }
                    }
                }
            },
        );
    }
    let [first, second] = learned.take();
    println!("of 512 cold tablets: {first} by the first request, {second} by the second");
    // 480 and 30 on average; the bounds are four standard deviations away.
    assert!((458..512).contains(&first), "{first}");
    assert!(first + second >= 506, "{first} + {second}");
}

const SPREAD: &str = "CREATE KEYSPACE ks WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 3} AND tablets = {'initial': 16}";

const COLD: &str = "CREATE KEYSPACE ks WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 2} AND tablets = {'initial': 64}";

fn options(nodes: usize) -> Options {
    Options::uniform(nodes, 4)
}

impl Scene {
    /// Makes the table in this keyspace, and an insert of it, when all connections are open.
    async fn prepare(&self, keyspace: &str) -> Prepared {
        self.session.ready().await.unwrap();
        self.session.query(keyspace, ()).await.unwrap();
        let table = "CREATE TABLE ks.t (pk bigint PRIMARY KEY, v bigint)";
        self.session.query(table, ()).await.unwrap();
        let insert = "INSERT INTO ks.t (pk, v) VALUES (?, ?)";
        let insert = self.session.prepare(insert).await.unwrap();
        self.pause(2_000_000).await;
        insert
    }

    fn tablet_of(&self, insert: &Prepared, key: i64) -> usize {
        let token = self.session.route(insert, (key, 0_i64)).unwrap().token;
        let token = token.unwrap().value();
        self.world
            .with_cluster(|cluster| cluster.tablet_of("ks", "t", token))
            .unwrap()
    }

    fn a_key_of_each_tablet(&self, insert: &Prepared) -> Vec<i64> {
        let count = self
            .world
            .with_cluster(|cluster| cluster.tablets("ks", "t").len());
        let mut keys = vec![None; count];
        for key in 0..10_000 {
            keys[self.tablet_of(insert, key)].get_or_insert(key);
        }
        keys.into_iter()
            .collect::<Option<_>>()
            .expect("10,000 keys")
    }

    /// Writes the key until a whole round of requests reached their node without a detour; says
    /// how many did not.
    async fn until_right(&self, insert: &Prepared, key: i64) -> usize {
        let forwarded = || {
            self.world
                .with_cluster(|cluster| cluster.stats().table("ks.t").forwarded)
        };
        let start = forwarded();
        let mut right = 0;
        for _ in 0..20 * ROUND {
            let before = forwarded();
            self.session.execute(insert, (key, 0_i64)).await.unwrap();
            right = if forwarded() == before { right + 1 } else { 0 };
            if right == ROUND {
                return usize::try_from(forwarded() - start).unwrap();
            }
        }
        panic!("the driver does not find the node of key {key}");
    }

    /// Writes the keys in this order, so many at a time; says how many answers of the target
    /// told its tablet.
    async fn learned_by(
        &self,
        insert: &Prepared,
        keys: &[i64],
        target: i64,
        in_flight: usize,
    ) -> usize {
        let told = Rc::new(RefCell::new((0, 0)));
        for keys in keys.chunks(in_flight) {
            told.borrow_mut().1 = keys.len();
            for &key in keys {
                let (session, insert) = (self.session.clone(), insert.clone());
                let told = Rc::clone(&told);
                self.spawner.spawn(async move {
                    let result = session.execute(&insert, (key, 0_i64)).await.unwrap();
                    let mut told = told.borrow_mut();
                    told.0 += usize::from(key == target && result.info().tablet_learned);
                    told.1 -= 1;
                });
            }
            while told.borrow().1 > 0 {
                self.pause(100).await;
            }
        }
        told.take().0
    }
}
