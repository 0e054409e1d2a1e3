//! What every driver does: keys, statements, steps of requests, and the changes before each step.
//!
//! All of it follows from nothing but the constants here.

use std::collections::BTreeMap;

use messina_core::routing::{Partitioner, Token};
use serde_json::{Value, json};

use crate::slice::mix;

/// Tablets of each table.
const TABLETS: u64 = 64;
const KEYS: usize = 256;

/// Every driver sends this to be written and must read it again.
pub(super) const VALUE: &str = "what is written is what is read.";

/// The two tables: one whose tablets have one replica, one whose tablets have a leader.
pub(super) const TABLES: [Place; 2] = [
    Place {
        keyspace: "compared_eventual",
        options: "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}",
        more: "",
    },
    Place {
        keyspace: "compared_strong",
        options: "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}",
        more: " AND consistency = 'global'",
    },
];
const EVENTUAL: usize = 0;
const STRONG: usize = 1;

const LEVELS: [&str; 2] = ["LOCAL_QUORUM", "LOCAL_ONE"];

/// Where a table is.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) keyspace: &'static str,
    options: &'static str,
    more: &'static str,
}

/// A part of the workload that is counted by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Everything is learned; not counted.
    WarmUp,
    /// One request at a time; every nibble of a version tells that the tablet changed.
    One,
    /// The same with many requests at a time.
    Many,
    /// One request at a time; one nibble tells.
    Hidden,
}

impl Phase {
    /// Those that are counted.
    pub(super) const COUNTED: [Self; 3] = [Self::One, Self::Many, Self::Hidden];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::WarmUp => "warm-up",
            Self::One => "1 in flight",
            Self::Many => "32 in flight",
            Self::Hidden => "1 in flight, one nibble tells",
        }
    }

    const fn in_flight(self) -> usize {
        match self {
            Self::WarmUp | Self::Many => 32,
            Self::One | Self::Hidden => 1,
        }
    }

    /// How many answers wait for each other: with many in flight all of them, so that what is
    /// counted does not depend on how fast a client sends.
    pub(super) const fn gathered(self) -> usize {
        match self {
            Self::Many => self.in_flight(),
            _ => 0,
        }
    }
}

/// What happens to a tablet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Its first replica, or that of the leader, goes to another node.
    ToNode,
    /// The same, to another shard of its node.
    ToShard,
    /// Another replica leads.
    Lead,
}

/// A change of one tablet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    /// Index into [`TABLES`].
    pub(super) table: usize,
    /// Of a key in the tablet.
    pub(super) token: i64,
    pub(super) kind: Kind,
    /// The new version is the old one with these bits turned.
    pub(super) turned: u64,
}

/// Changes, then requests with nothing in between.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) phase: Phase,
    pub(super) changes: Vec<Change>,
    /// Statement by index, and key.
    pub(super) requests: Vec<(usize, i64)>,
}

/// A statement, made of a table, what it does and the level.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) cql: String,
    pub(super) level: &'static str,
    pub(super) writes: bool,
}

/// The whole of it.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) create: Vec<String>,
    pub(super) statements: Vec<Statement>,
    pub(super) steps: Vec<Step>,
}

impl Workload {
    pub(super) fn new() -> Self {
        let keys: Vec<i64> = (1..=KEYS).map(|at| mix(at as u64).cast_signed()).collect();
        // One key of each tablet that has any.
        let tablets: BTreeMap<u64, i64> = keys.iter().map(|&key| (tablet_of(key), key)).collect();
        let tablets: Vec<i64> = tablets.into_values().collect();
        let mut steps = vec![warm_up(&keys)];
        steps.extend(mixed(Phase::One, &keys, &tablets));
        steps.extend(mixed(Phase::Many, &keys, &tablets));
        steps.push(hidden(&tablets));
        Self {
            create: create(),
            statements: statements(),
            steps,
        }
    }

    /// Steps of a phase, by index.
    pub(super) fn steps_of(&self, phase: Phase) -> core::ops::Range<usize> {
        let is_it = |step: &Step| step.phase == phase;
        let first = self.steps.iter().position(is_it).unwrap_or_default();
        let count = self.steps.iter().filter(|step| is_it(step)).count();
        first..first + count
    }

    /// Requests and changes of a phase.
    pub(super) fn size_of(&self, phase: Phase) -> (usize, usize) {
        let steps = &self.steps[self.steps_of(phase)];
        let requests = steps.iter().map(|step| step.requests.len()).sum();
        let changes = steps.iter().map(|step| step.changes.len()).sum();
        (requests, changes)
    }

    /// What the programs of other drivers read.
    pub(super) fn to_json(&self) -> Value {
        let statements = self.statements.iter().map(|statement| {
            json!({ "cql": statement.cql, "level": statement.level, "writes": statement.writes })
        });
        let steps = self
            .steps
            .iter()
            .map(|step| json!({ "in_flight": step.phase.in_flight(), "requests": step.requests }));
        json!({
            "create": self.create,
            "value": VALUE,
            "statements": statements.collect::<Vec<_>>(),
            "steps": steps.collect::<Vec<_>>(),
        })
    }
}

impl Step {
    pub(super) const fn in_flight(&self) -> usize {
        self.phase.in_flight()
    }
}

/// The token of a key.
fn token_of(key: i64) -> i64 {
    let bytes = key.to_be_bytes();
    let token = Partitioner::Murmur3.token([&bytes[..]]);
    token.map_or(0, Token::value)
}

/// The index of a key's tablet: all tablets have the same share of the ring.
fn tablet_of(key: i64) -> u64 {
    let place = token_of(key).cast_unsigned() ^ (1 << 63);
    place / (u64::MAX / TABLETS + 1)
}

fn create() -> Vec<String> {
    let mut all = Vec::new();
    for Place {
        keyspace,
        options,
        more,
    } in TABLES
    {
        all.push(format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {options} \
             AND tablets = {{'initial': {TABLETS}}}{more}"
        ));
        all.push(format!(
            "CREATE TABLE {keyspace}.rows (id bigint PRIMARY KEY, value text)"
        ));
    }
    all
}

/// Statement i is for table i mod 2, writes if the next bit is 0, and has the level of the third;
/// but a strongly consistent table takes writes at LOCAL_QUORUM alone.
fn statements() -> Vec<Statement> {
    let mut all = Vec::new();
    for level in LEVELS {
        for writes in [true, false] {
            for (table, Place { keyspace, .. }) in TABLES.iter().enumerate() {
                let cql = if writes {
                    format!("INSERT INTO {keyspace}.rows (id, value) VALUES (?, ?)")
                } else {
                    format!("SELECT value FROM {keyspace}.rows WHERE id = ?")
                };
                let level = if table == STRONG && writes {
                    LEVELS[0]
                } else {
                    level
                };
                all.push(Statement { cql, level, writes });
            }
        }
    }
    all
}

const fn statement(table: usize, writes: bool) -> usize {
    table + if writes { 0 } else { 2 }
}

/// Every key is written and read in both tables, twice.
fn warm_up(keys: &[i64]) -> Step {
    let mut requests = Vec::new();
    for _ in 0..2 {
        for writes in [true, false] {
            for table in [EVENTUAL, STRONG] {
                requests.extend(keys.iter().map(|&key| (statement(table, writes), key)));
            }
        }
    }
    Step {
        phase: Phase::WarmUp,
        changes: Vec::new(),
        requests,
    }
}

const MIXED_STEPS: usize = 5;
const MIXED_REQUESTS: usize = 2 * KEYS;
/// Before each step but the first, in each table.
const MIXED_CHANGES: usize = 8;

/// Each step asks for every key twice, by another statement each time.
fn mixed(phase: Phase, keys: &[i64], tablets: &[i64]) -> Vec<Step> {
    let statements = statements().len();
    let step = |number: usize| {
        let requests = (0..MIXED_REQUESTS).map(|at| {
            let at = number * MIXED_REQUESTS + at;
            ((at + at / KEYS) % statements, keys[at * 97 % KEYS])
        });
        let first = number.saturating_sub(1) * MIXED_CHANGES;
        let changed = (first..first + MIXED_CHANGES).map(|at| tablets[at % tablets.len()]);
        let changes = changed
            .enumerate()
            .flat_map(|(at, key)| [EVENTUAL, STRONG].map(|table| change(phase, table, key, at)));
        Step {
            phase,
            changes: if number == 0 {
                Vec::new()
            } else {
                changes.collect()
            },
            requests: requests.collect(),
        }
    };
    (0..MIXED_STEPS).map(step).collect()
}

const HIDDEN_TABLETS: usize = 32;
const HIDDEN_ROUNDS: usize = 48;

/// All changes at once, each told by another nibble; then the changed tablets in turn.
fn hidden(tablets: &[i64]) -> Step {
    let step = (tablets.len() / HIDDEN_TABLETS).max(1);
    let changed: Vec<i64> = tablets.iter().copied().step_by(step).collect();
    let changed = &changed[..HIDDEN_TABLETS.min(changed.len())];
    let changes = changed.iter().enumerate().flat_map(|(at, &key)| {
        [EVENTUAL, STRONG].map(|table| change(Phase::Hidden, table, key, at))
    });
    let rounds = (0..HIDDEN_ROUNDS).flat_map(|round| {
        changed.iter().flat_map(move |&key| {
            [EVENTUAL, STRONG].map(|table| (statement(table, round % 2 == 0), key))
        })
    });
    Step {
        phase: Phase::Hidden,
        changes: changes.collect(),
        requests: rounds.collect(),
    }
}

/// The `at`th change of a table in a phase. A strongly consistent tablet moves only where all
/// requests are for its leader: a read of any replica would meet the move by chance.
fn change(phase: Phase, table: usize, key: i64, at: usize) -> Change {
    let hidden = phase == Phase::Hidden;
    let kind = match (table, at % 4) {
        (EVENTUAL, 0 | 2) => Kind::ToNode,
        (EVENTUAL, _) => Kind::ToShard,
        (_, 3) if hidden => Kind::ToShard,
        _ => Kind::Lead,
    };
    Change {
        table,
        token: token_of(key),
        kind,
        turned: if hidden {
            1 << (4 * (at % 16))
        } else {
            0x1111_1111_1111_1111
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_step_meets_every_key_and_the_phase_every_statement() {
        let workload = Workload::new();
        for phase in [Phase::One, Phase::Many] {
            let steps = &workload.steps[workload.steps_of(phase)];
            assert_eq!(steps.len(), MIXED_STEPS);
            for step in steps {
                let keys: BTreeSet<i64> = step.requests.iter().map(|(_, key)| *key).collect();
                assert_eq!(keys.len(), KEYS);
            }
            let all = steps.iter().flat_map(|step| &step.requests);
            let pairs: BTreeSet<_> = all.collect();
            assert_eq!(pairs.len(), KEYS * workload.statements.len());
        }
        assert_eq!(workload.size_of(Phase::One), (2560, 64));
        assert_eq!(workload.size_of(Phase::Hidden), (3072, 64));
    }

    #[test]
    fn no_tablet_changes_twice_in_a_phase_and_each_nibble_tells() {
        let workload = Workload::new();
        for phase in Phase::COUNTED {
            let steps = &workload.steps[workload.steps_of(phase)];
            let changes = steps.iter().flat_map(|step| &step.changes);
            let mut met = BTreeSet::new();
            for change in changes {
                let place = change.token.cast_unsigned() ^ (1 << 63);
                assert!(met.insert((change.table, place >> 58)), "{change:?}");
            }
        }
        let hidden = &workload.steps[workload.steps_of(Phase::Hidden)][0];
        let told: BTreeSet<u64> = hidden.changes.iter().map(|change| change.turned).collect();
        assert_eq!(told.len(), 16);
    }

    #[test]
    fn statements_stand_where_their_number_says() {
        let statements = statements();
        for (table, place) in TABLES.iter().enumerate() {
            for writes in [true, false] {
                let found = &statements[statement(table, writes)];
                assert_eq!((found.writes, found.level), (writes, "LOCAL_QUORUM"));
                assert!(found.cql.contains(place.keyspace), "{}", found.cql);
            }
        }
    }
}
