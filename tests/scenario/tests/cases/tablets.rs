//! Tablets as nodes tell them, whose replicas are on hosts that come, go and are replaced.

use core::num::NonZeroU16;
use std::collections::BTreeSet;

use messina_core::config::PoolSize;
use messina_core::drive::{Prepared, Session};
use messina_core::routing::{ShardIdx, Token};
use messina_scenario::frame::{EXECUTE, PREPARE, VOID, response, string};
use messina_scenario::{Frame, Peer, Scene, any_request, hex, play_everywhere, serving};

use super::support::millis;

const A: u128 = 0xaaaa_aaaa_0000_0000_0000_0000_0000_0001;
const B: u128 = 0xbbbb_bbbb_0000_0000_0000_0000_0000_0002;
const C: u128 = 0xcccc_cccc_0000_0000_0000_0000_0000_0003;
/// The node that takes the address of A.
const D: u128 = 0xdddd_dddd_0000_0000_0000_0000_0000_0004;

/// Flags, stream, opcode, length, and the key of the payload; the value and VOID follow.
const TOLD: &str = "84040001080000007e000100127461626c6574732d726f7574696e672d763100000060";
/// Of (min, 0]: A on shard 0, B on shard 1.
const A0_B1: &str = "0000000880000000000000000000000800000000000000000000004400000002\
                     0000001c00000010aaaaaaaa0000000000000000000000010000000400000000\
                     0000001c00000010bbbbbbbb0000000000000000000000020000000400000001";
/// Of (0, max]: B on shard 0, C on shard 3.
const B0_C3: &str = "000000080000000000000000000000087fffffffffffffff0000004400000002\
                     0000001c00000010bbbbbbbb0000000000000000000000020000000400000000\
                     0000001c00000010cccccccc0000000000000000000000030000000400000003";
/// Of (-100, 100]: C on shard 2, A on shard 1.
const C2_A1: &str = "00000008ffffffffffffff9c0000000800000000000000640000004400000002\
                     0000001c00000010cccccccc0000000000000000000000030000000400000002\
                     0000001c00000010aaaaaaaa0000000000000000000000010000000400000001";

/// Keys with their tokens.
const AT_5: (&str, i64) = ("80197d18de31dbc4a382306f94482086", 5);
const AT_MINUS_1000: (&str, i64) = ("5d8953792891cdd3d4df9becaf765ee3", -1000);
const AT_1000: (&str, i64) = ("dcc21768a8fa1758a8abaa28b582cd0c", 1000);

/// PREPARED for one marker pk blob, without columns of a result.
const PREPARED: &str = "00000004 0001aa 00000001 00000001 00000001 0000 00016b 000174 \
    0002706b 0003 00000004 00000000";

/// Of a node with four shards that knows of tablets; the connection is on this shard.
fn supported(shard: &str) -> Vec<u8> {
    let partitioner = "org.apache.cassandra.dht.Murmur3Partitioner";
    let pairs = [
        ("SCYLLA_SHARD", shard),
        ("SCYLLA_NR_SHARDS", "4"),
        ("SCYLLA_PARTITIONER", partitioner),
        ("SCYLLA_SHARDING_ALGORITHM", "biased-token-round-robin"),
        ("SCYLLA_SHARDING_IGNORE_MSB", "12"),
        ("TABLETS_ROUTING_V1", ""),
    ];
    let pairs = pairs.map(|(key, value)| [string(key), hex("0001"), string(value)].concat());
    [hex("0006"), pairs.concat()].concat()
}

/// TOPOLOGY_CHANGE about 10.0.0.`node`, port 9042.
fn topology_change(what: &str, node: u8) -> Vec<u8> {
    let mut body = [string("TOPOLOGY_CHANGE"), string(what)].concat();
    body.extend([4, 10, 0, 0, node, 0, 0, 0x23, 0x52]);
    response(-1, 0x0c, &body)
}

/// A session with one connection to each node, and a statement.
struct Cluster {
    scene: Scene,
    session: Session,
    peers: Vec<Peer>,
    statement: Prepared,
}

impl Cluster {
    /// A and B are there; C has no node yet.
    async fn new(scene: Scene) -> Self {
        let scene = scene.with_tokens(&[0, 1 << 60, 1 << 61]).with_tablets();
        let scene = scene.with_supported(supported("0"));
        scene.set_members(&[(1, A), (2, B)]);
        let mut config = scene.config();
        config.pool.size = PoolSize::PerHost(NonZeroU16::MIN);
        let (session, mut peers) = scene.connect_all(config).await;
        let preparing = session.clone();
        let text = "DELETE FROM k.t WHERE pk = ?";
        let call = scene.call(async move { preparing.prepare(text).await });
        for _ in 0..peers.len() {
            let (node, request) = any_request(&mut peers).await;
            prepare(&mut peers[node], &request);
        }
        let statement = call.await.expect("prepared");
        Self {
            scene,
            session,
            peers,
            statement,
        }
    }

    /// Executes with this key; says who was asked. A payload comes with the answer, or none.
    async fn execute(&mut self, (key, token): (&str, i64), payload: Option<&str>) -> u8 {
        self.check_token(key, token);
        let call = self
            .scene
            .execute(&self.session, &self.statement, (hex(key),));
        loop {
            let (node, request) = any_request(&mut self.peers).await;
            if request.opcode == PREPARE {
                prepare(&mut self.peers[node], &request);
                continue;
            }
            assert_eq!(request.opcode, EXECUTE);
            let told = payload.map(|payload| format!("{TOLD}{payload}00000001"));
            self.peers[node].answer(&request, told.as_deref().unwrap_or(VOID));
            let result = call.await.expect("VOID");
            assert_eq!(result.info().tablet_learned, payload.is_some());
            return u8::try_from(node).expect("few") + 1;
        }
    }

    fn check_token(&self, key: &str, token: i64) {
        let route = self.session.route(&self.statement, (hex(key),));
        assert_eq!(route.expect("a route").token, Some(Token::new(token)));
    }

    /// Everybody who is asked with this key.
    async fn asked(&mut self, key: (&str, i64)) -> Vec<u8> {
        let mut asked = BTreeSet::new();
        for _ in 0..32 {
            asked.insert(self.execute(key, None).await);
        }
        asked.into_iter().collect()
    }

    /// The replicas that requests with this key would be sent to, sorted; `None` where no tablet
    /// is known.
    fn replicas(&self, (key, _): (&str, i64)) -> Option<Vec<(u128, u16)>> {
        let route = self.session.route(&self.statement, (hex(key),));
        let route = route.expect("a route");
        let replicas = route.tablet()?.replicas().len();
        let mut targets: Vec<_> = route
            .targets()
            .take(replicas)
            .filter_map(|target| {
                let shard = target.shard.map(ShardIdx::value);
                shard.map(|shard| (target.host_id.as_u128(), shard))
            })
            .collect();
        targets.sort_unstable();
        Some(targets)
    }

    async fn pass(&mut self, time: u64) {
        let pause = self.scene.pause(millis(time));
        serving(&mut self.peers, pause).await;
    }
}

fn prepare(peer: &mut Peer, request: &Frame) {
    assert_eq!(request.opcode, PREPARE);
    peer.send(&response(request.stream, 8, &hex(PREPARED)));
}

/// Case T5, steps 1 to 4: a host that is met after the tablet that names it.
#[test]
fn a_replica_on_an_unknown_host_is_used_when_the_host_is_known() {
    play_everywhere(|scene| async move {
        let mut cluster = Cluster::new(scene).await;
        cluster.execute(AT_5, Some(C2_A1)).await;
        cluster.pass(3000).await;
        assert_eq!(cluster.asked(AT_5).await, [1]);

        cluster.scene.set_members(&[(1, A), (2, B), (3, C)]);
        cluster.peers[0].send(&topology_change("NEW_NODE", 3));
        let third = serving(&mut cluster.peers, cluster.scene.ready(3)).await;
        cluster.peers.push(third);
        cluster.pass(3000).await;
        assert_eq!(cluster.replicas(AT_5), Some(vec![(A, 1), (C, 2)]));
        assert_eq!(cluster.asked(AT_5).await, [1, 3]);
    });
}

/// Case T5, steps 5 to 7: a host that was removed, and one whose address another host has taken.
#[test]
fn tablets_of_removed_and_replaced_hosts_concern_no_other_host() {
    play_everywhere(|scene| async move {
        let mut cluster = Cluster::new(scene).await;
        cluster.scene.set_members(&[(1, A), (2, B), (3, C)]);
        cluster.peers[0].send(&topology_change("NEW_NODE", 3));
        let third = serving(&mut cluster.peers, cluster.scene.ready(3)).await;
        cluster.peers.push(third);
        cluster.execute(AT_MINUS_1000, Some(A0_B1)).await;
        cluster.execute(AT_1000, Some(B0_C3)).await;
        assert_eq!(cluster.asked(AT_MINUS_1000).await, [1, 2]);
        assert_eq!(cluster.asked(AT_1000).await, [2, 3]);

        cluster.scene.set_members(&[(1, A), (3, C)]);
        cluster.peers[0].send(&topology_change("REMOVED_NODE", 2));
        cluster.pass(3000).await;
        cluster.peers[1].expect_close().await;
        for key in [AT_MINUS_1000, AT_1000] {
            assert!(!cluster.asked(key).await.contains(&2));
            let replicas = cluster.replicas(key).unwrap_or_default();
            assert!(replicas.iter().all(|(host, _)| *host != B));
        }

        cluster.execute(AT_MINUS_1000, Some(A0_B1)).await;
        assert_eq!(cluster.asked(AT_MINUS_1000).await, [1]);
        assert_eq!(cluster.replicas(AT_MINUS_1000), Some(vec![(A, 0)]));
        cluster.scene.set_members(&[(1, D), (3, C)]);
        cluster.peers[0].reset();
        cluster.peers[0] = serving(&mut cluster.peers[1..], cluster.scene.ready(1)).await;
        cluster.pass(120_000).await;
        let hosts = cluster.session.status().nodes;
        let mut hosts: Vec<_> = hosts.iter().map(|node| node.host_id.as_u128()).collect();
        hosts.sort_unstable();
        assert_eq!(hosts, [C, D]);
        assert_eq!(cluster.replicas(AT_MINUS_1000), None);
        assert_eq!(cluster.asked(AT_MINUS_1000).await, [1, 3]);
        assert!(!cluster.scene.is_dialled(2));
    });
}
