//! Half way, a tablet moves to another node, or its leadership to another replica. What it costs
//! is the number of requests that still went to the old place.

use messina_sim::node::Replica;

use super::load::{Load, Work};
use super::tally::Tally;
use crate::failure::Failure;
use crate::table_kind::Kind;

/// Batches of requests to the moved tablet before giving up.
const BATCHES_MAX: usize = 100;

/// What became of a move.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was made.
    Moved(Box<Cost>),
    /// It could not be made: what, and why.
    Skipped(String, String),
    /// The table has nothing to move.
    NothingToMove,
}

/// What a move cost.
#[derive(Clone, Debug)]
pub(super) struct Cost {
    /// The name in the contract.
    pub(super) what: &'static str,
    pub(super) story: String,
    /// Requests that did not arrive at the right place, until a whole batch did.
    pub(super) missed: u64,
    /// Requests made until then, that batch not counted.
    pub(super) requests: u64,
    pub(super) tally: Tally,
}

/// Makes the move that fits the table. `keys` have rows.
pub(super) async fn make(load: &Load, keys: &[i64]) -> Result<Outcome, Failure> {
    let what = match load.table().kind {
        Kind::Eventual => "tablet",
        Kind::Strong => "leader",
        Kind::Vnode => return Ok(Outcome::NothingToMove),
    };
    let Some(nodes) = load.nodes() else {
        let why = "only a simulated cluster can be told to".to_owned();
        return Ok(Outcome::Skipped(format!("moving a {what}"), why));
    };
    let name = load.table().name();
    let tablet_of = |key: i64| {
        load.token(key)
            .and_then(|token| nodes.tablet_of(name, token))
    };
    let tablet = keys.first().and_then(|key| tablet_of(*key)).unwrap_or(0);
    let story = match load.table().kind {
        Kind::Strong => nodes
            .move_leader(name, tablet)?
            .map(|(from, to)| format!("leader of tablet {tablet}, node {} → {}", from + 1, to + 1)),
        _ => nodes
            .move_tablet(name, tablet)?
            .map(|(from, to)| tablet_story(tablet, from, to)),
    };
    let Some(story) = story else {
        let why = "there is no other place".to_owned();
        return Ok(Outcome::Skipped(format!("moving a {what}"), why));
    };
    let there = keys
        .iter()
        .copied()
        .filter(|key| tablet_of(*key) == Some(tablet));
    let there: Vec<i64> = there.take(usize::from(load.concurrency())).collect();
    let cost = follow(load, &there, what, story).await?;
    Ok(Outcome::Moved(Box::new(cost)))
}

fn tablet_story(tablet: usize, from: Replica, to: Replica) -> String {
    if from.node == to.node {
        let node = from.node + 1;
        return format!(
            "tablet {tablet} of node {node}, shard {} → {}",
            from.shard, to.shard
        );
    }
    format!("tablet {tablet}, node {} → {}", from.node + 1, to.node + 1)
}

/// Reads keys of the moved tablet, a batch at a time, until a whole batch arrives.
async fn follow(
    load: &Load,
    keys: &[i64],
    what: &'static str,
    story: String,
) -> Result<Cost, Failure> {
    let mut cost = Cost {
        what,
        story,
        missed: 0,
        requests: 0,
        tally: Tally::new(),
    };
    // Filled up, so that a batch is as many requests at once as the measured work has.
    let batch: Vec<i64> = keys
        .iter()
        .copied()
        .cycle()
        .take(usize::from(load.concurrency()))
        .collect();
    for _ in 0..BATCHES_MAX {
        let tally = load.run(Work::Read, &batch).await?;
        load.progress().set_position(
            load.progress()
                .position()
                .saturating_sub(u64::try_from(batch.len()).unwrap_or(0)),
        );
        let seen = tally.seen();
        let missed = if what == "leader" {
            seen.needing_leader - seen.leader
        } else {
            seen.requests - seen.owner_shard
        };
        cost.tally.add(tally);
        if missed == 0 {
            break;
        }
        cost.missed += missed;
        cost.requests += seen.requests;
    }
    Ok(cost)
}
