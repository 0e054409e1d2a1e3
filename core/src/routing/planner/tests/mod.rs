//! Plans over a fixed cluster, written as text: six nodes in two data centres, whose connections
//! are a fake.

mod conditional;
#[cfg(feature = "targeting")]
mod custom;
mod distance;
mod leaders;
mod levels;
mod load;
mod strategies;

use super::super::topology::tests::spec;
use super::super::*;
use crate::wire::Consistency;
use std::boxed::Box;
use std::collections::{BTreeMap, BTreeSet};
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};
use uuid::Uuid;

/// What connections there are, by node number.
#[derive(Default)]
struct Fake {
    in_flight: BTreeMap<u8, u32>,
    unconnected: BTreeSet<u8>,
}

/// Nodes stand under their number less one.
fn number(idx: NodeIdx) -> u8 {
    idx.value() as u8 + 1
}

impl Load for Fake {
    fn in_flight(&self, node: NodeIdx, _: Option<ShardIdx>) -> u32 {
        self.in_flight.get(&number(node)).copied().unwrap_or(0)
    }

    fn is_connected(&self, node: NodeIdx) -> bool {
        !self.unconnected.contains(&number(node))
    }
}

/// Racks r1 and r2 of data centre a, and data centre b.
const NODES: [(u8, &str, &str); 6] = [
    (1, "a", "r1"),
    (2, "a", "r1"),
    (3, "a", "r2"),
    (4, "a", "r2"),
    (5, "b", "r1"),
    (6, "b", "r1"),
];

fn writer(nodes: &[(u8, &str, &str)]) -> ViewWriter {
    let mut writer = ViewWriter::new(RoutingLimits::default());
    let specs: Vec<_> = nodes
        .iter()
        .map(|&(n, dc, rack)| spec(n, dc, rack, &[i64::from(n) * 100]))
        .collect();
    for idx in writer.set_nodes(&specs).added {
        writer.set_shard_map(idx, ShardMap::new(8, 12).ok());
    }
    let factors = Box::new([("a".into(), 2), ("b".into(), 1)]);
    let keyspace = |name: &str, has_tablets, consistency| KeyspaceSpec {
        name: name.into(),
        strategy: ReplicationStrategy::NetworkTopology {
            factors: factors.clone(),
        },
        has_tablets,
        consistency,
    };
    let table = || {
        let partitioner = Some(Partitioner::Murmur3);
        vec![TableSpec {
            name: "t".into(),
            id: Uuid::from_u128(1),
            partitioner,
        }]
    };
    let (eventual, strong) = (KeyspaceConsistency::Eventual, KeyspaceConsistency::Strong);
    writer.put_keyspace(keyspace("eventual", true, eventual), table());
    writer.put_keyspace(keyspace("strong", true, strong), table());
    writer.put_keyspace(keyspace("vnode", false, eventual), table());
    writer
}

fn learn(writer: &mut ViewWriter, keyspace: &str, version: Option<u64>, replicas: &[(u8, u16)]) {
    let replica = |&(n, shard): &(u8, u16)| LearnedReplica {
        host_id: Uuid::from_u128(u128::from(n)),
        shard,
    };
    let replicas = replicas.iter().map(replica).collect();
    let version = version.map(TabletVersion::new);
    let tablet = LearnedTablet::new(0, 1000, version, replicas).unwrap();
    let handle = writer.view().table_by_name(keyspace, "t").unwrap().handle();
    writer.learn(handle, &tablet);
}

fn request(view: &View, keyspace: &str, token: i64, consistency: Consistency) -> RouteRequest {
    RouteRequest {
        table: view.table_by_name(keyspace, "t").map(Table::handle),
        token: Some(Token::new(token)),
        consistency,
        is_lwt: false,
        serial_consistency: None,
    }
}

fn policy(dc: &str, rack: &str, dc_failover: bool) -> Policy {
    let named = |name: &str| (!name.is_empty()).then(|| name.into());
    Policy {
        preferred_dc: named(dc),
        preferred_rack: named(rack),
        dc_failover,
        dc_failover_at_local_levels: true,
        shuffle: false,
        ..Policy::default()
    }
}

fn letter(reason: Reason) -> char {
    match reason {
        Reason::Leader => 'L',
        Reason::Rack => 'R',
        Reason::Dc => 'D',
        Reason::Remote => 'F',
        Reason::Any => 'a',
        Reason::Custom => 'C',
    }
}

/// The replicas of a plan in order, other nodes as a set behind: "3D/7 1D/0 | 2 4".
fn show(plan: &Plan) -> String {
    let (mut replicas, mut others) = (Vec::new(), BTreeSet::new());
    for target in plan.targets() {
        let (n, shard) = (number(target.node), target.shard);
        if target.reason == Reason::Any {
            assert_eq!(shard, None);
            others.insert(n.to_string());
        } else {
            let shard = shard.map_or(String::new(), |shard| format!("/{shard}"));
            replicas.push(format!("{n}{}{shard}", letter(target.reason)));
        }
    }
    let others = others.into_iter().collect::<Vec<_>>().join(" ");
    format!("{} | {others}", replicas.join(" ")).trim().into()
}

fn order(plan: &Plan) -> Vec<u8> {
    plan.targets()
        .iter()
        .map(|target| number(target.node))
        .collect()
}
