//! What 100,000 learned tablets of one table cost: memory, a lookup, learning one anew.
//!
//! No server and no session: the tablets are told to routing as the control plane tells them, so
//! the figures are those of the cache and the planner alone. Heap calls and memory gate, since
//! they do not depend on the machine; times inform.

use core::hint::black_box;
use core::time::Duration;
use std::io::Write;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use messina_core::routing::{
    KeyspaceConsistency, KeyspaceSpec, LearnedReplica, LearnedTablet, Load, NodeIdx, NodeSpec,
    Partitioner, Policy, ReplicationStrategy, RouteRequest, RoutingLimits, ShardIdx, TableRef,
    TableSpec, TabletVersion, Token, View, ViewWriter, plan, probe,
};
use messina_core::wire::Consistency;
use uuid::Uuid;

use crate::heap::Heap;

/// Tablets of the table.
const TABLETS: u64 = 100_000;

/// Nodes of the cluster.
const NODES: u64 = 12;

/// Replicas of each tablet.
const REPLICAS: u64 = 3;

/// Lookups and learned changes that are measured.
const STEPS: u64 = 100_000;

/// Bytes that a tablet may take with all around it. The tablet itself has 40.
const BYTES_MAX: f64 = 48.0;

/// Measures and prints; fails when memory or heap calls are above what they may be.
pub fn run(mut out: impl Write) -> Result<()> {
    let mut world = World::new()?;
    let bytes = Heap::now();
    let filling = Instant::now();
    (0..TABLETS).for_each(|at| world.learn(at, 0));
    let filling = filling.elapsed();
    let asked_for = Heap::now().bytes.saturating_sub(bytes.bytes);
    let stats = world.writer.tablet_stats();
    ensure!(
        stats.cached as u64 == TABLETS,
        "only {} tablets are held",
        stats.cached
    );
    let held = stats.bytes as f64 / TABLETS as f64;

    let before = Heap::now();
    let looking_up = world.look_up();
    let lookup_calls = Heap::now().calls.saturating_sub(before.calls);

    let before = Heap::now();
    let learning = Instant::now();
    (0..STEPS).for_each(|step| world.learn(scattered(step) % TABLETS, step.saturating_add(1)));
    let learning = learning.elapsed();
    // The replica list of the told tablet is made here and not by the cache: one call for each.
    let learn_calls = Heap::now().calls.saturating_sub(before.calls + STEPS);

    writeln!(
        out,
        "{TABLETS} tablets of one table, {REPLICAS} replicas, {NODES} nodes:"
    )?;
    writeln!(out, "  memory           {held:6.1} B a tablet")?;
    writeln!(
        out,
        "  first learning   {:6.0} ns, {:.0} B asked for a tablet",
        each(filling, TABLETS),
        asked_for as f64 / TABLETS as f64
    )?;
    writeln!(
        out,
        "  plan and probe   {:6.0} ns, {lookup_calls} heap calls in all",
        each(looking_up, STEPS)
    )?;
    writeln!(
        out,
        "  learning anew    {:6.0} ns, {:.2} heap calls",
        each(learning, STEPS),
        learn_calls as f64 / STEPS as f64
    )?;
    ensure!(held <= BYTES_MAX, "a tablet may take {BYTES_MAX} bytes");
    ensure!(lookup_calls == 0, "a lookup may not touch the heap");
    ensure!(
        learn_calls <= STEPS + 2,
        "learning a tablet may cost one heap call"
    );
    Ok(())
}

/// A cluster with one table, known to routing alone.
struct World {
    writer: ViewWriter,
    view: View,
    table: TableRef,
}

impl World {
    fn new() -> Result<Self> {
        let mut writer = ViewWriter::new(RoutingLimits::default());
        let nodes: Vec<_> = (0..NODES)
            .map(|at| NodeSpec {
                host_id: host_id(at),
                address: ([127, 0, 0, 1], 9042).into(),
                dc: "dc1".into(),
                rack: "rack1".into(),
                tokens: Box::default(),
                is_up: true,
                is_enabled: true,
            })
            .collect();
        writer.set_nodes(&nodes);
        let keyspace = KeyspaceSpec {
            name: "bench".into(),
            strategy: ReplicationStrategy::Simple { factor: 3 },
            has_tablets: true,
            consistency: KeyspaceConsistency::Eventual,
        };
        let table = TableSpec {
            name: "rows".into(),
            id: Uuid::from_u128(1),
            partitioner: Some(Partitioner::Murmur3),
        };
        writer.put_keyspace(keyspace, vec![table]);
        let view = writer.view();
        let table = view.table_by_name("bench", "rows");
        let table = table.context("the table got lost")?.handle();
        Ok(Self {
            writer,
            view,
            table,
        })
    }

    /// Tells the tablet at a place, with a version of its own for each `round`.
    fn learn(&mut self, at: u64, round: u64) {
        let replicas = (0..REPLICAS).map(|replica| LearnedReplica {
            host_id: host_id((at + replica) % NODES),
            shard: 0,
        });
        let version = TabletVersion::new(scattered(at ^ round << 32));
        let (first, last) = (border(at), border(at + 1));
        if let Some(tablet) = LearnedTablet::new(first, last, Some(version), replicas.collect()) {
            black_box(self.writer.learn(self.table, &tablet));
        }
    }

    /// Plans requests for scattered keys.
    fn look_up(&self) -> Duration {
        let policy = Policy::default();
        let start = Instant::now();
        for step in 0..STEPS {
            let entropy = scattered(step);
            let token = Token::new(entropy.cast_signed());
            let request = RouteRequest {
                table: Some(self.table),
                token: Some(token),
                consistency: Consistency::LocalQuorum,
                is_lwt: false,
                serial_consistency: None,
            };
            black_box(plan(&self.view, &request, &policy, &Idle, entropy, 0));
            black_box(probe(&self.view, Some(self.table), Some(token), entropy));
        }
        start.elapsed()
    }
}

/// Every node is connected and has nothing to do.
struct Idle;

impl Load for Idle {
    fn in_flight(&self, _node: NodeIdx, _shard: Option<ShardIdx>) -> u32 {
        0
    }

    fn is_connected(&self, _node: NodeIdx) -> bool {
        true
    }
}

fn host_id(at: u64) -> Uuid {
    Uuid::from_u64_pair(scattered(at), at)
}

/// Where a tablet begins: equal parts of the ring.
fn border(at: u64) -> i64 {
    let biased = u128::from(at) * u128::from(u64::MAX) / u128::from(TABLETS);
    i64::MIN.wrapping_add_unsigned(u64::try_from(biased).unwrap_or(u64::MAX))
}

/// A number far from those of its neighbours.
const fn scattered(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn each(all: Duration, count: u64) -> f64 {
    all.as_nanos() as f64 / count as f64
}
