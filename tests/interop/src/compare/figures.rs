//! What the servers counted for each driver, side by side, and whether ours is worse anywhere.

use core::fmt;

use anyhow::{Context as _, Result, ensure};
use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use super::workload::{Phase, Workload};

/// What was counted between two looks, over all nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Requests for one partition.
    pub requests: u64,
    /// Of these, at a node that had to ask another one: it holds no replica, or does not lead.
    pub wrong_node: u64,
    /// Of these, at another node than the leader that they need.
    pub not_leader: u64,
    /// At the right node, but at another shard than the tablet's.
    pub wrong_shard: u64,
    /// Answers that brought routing.
    pub payloads: u64,
    /// Changes that no answer told of, as far as counting shows: one needs one answer at least.
    pub untold: u64,
    /// Bytes of CQL that the servers received.
    pub received: u64,
    /// Bytes of CQL that they sent, without those of routing.
    pub sent: u64,
    /// Frames that they received.
    pub frames: u64,
    /// Errors that they answered.
    pub errors: u64,
    /// Connections that they accepted.
    pub connections: u64,
}

impl Counts {
    fn between(before: Option<&Value>, after: &Value) -> Result<Self> {
        let count = |name: &str| {
            let earlier = before.map_or(Some(0), |before| sum(before, name));
            let count = sum(after, name).zip(earlier);
            count
                .and_then(|(after, before)| after.checked_sub(before))
                .with_context(|| format!("no {name} in the counters"))
        };
        let at_node = count("at_owner_node")?;
        Ok(Self {
            requests: count("requests")?,
            wrong_node: count("requests")? - at_node,
            not_leader: count("needing_leader")? - count("at_leader")?,
            wrong_shard: at_node - count("at_owner_shard")?,
            payloads: count("payloads")?,
            received: count("bytes_received")?,
            sent: count("bytes_sent")? - count("payload_bytes")?,
            frames: count("frames")?,
            errors: count("errors")?,
            connections: count("connections")?,
            untold: 0,
        })
    }
}

/// A counter over all nodes.
pub(super) fn sum(stats: &Value, name: &str) -> Option<u64> {
    let nodes = stats["nodes"].as_array()?;
    nodes.iter().map(|node| node[name].as_u64()).sum()
}

/// One driver's way through the workload.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Visit {
    /// The driver's package.
    pub driver: String,
    /// And its version.
    pub version: String,
    /// By phase.
    phases: Vec<(Phase, Counts)>,
    /// From the first connection on.
    pub whole: Counts,
}

impl Visit {
    /// From the counters before each step and at the end.
    pub(super) fn new(
        driver: &str,
        version: String,
        workload: &Workload,
        looks: &[Value],
    ) -> Result<Self> {
        let look = |at: usize| looks.get(at).context("a step was not reached");
        let mut phases = Vec::new();
        for phase in Phase::COUNTED {
            let steps = workload.steps_of(phase);
            let (requests, changes) = workload.size_of(phase);
            let (requests, changes) = (requests as u64, changes as u64);
            let mut counts = Counts::between(Some(look(steps.start)?), look(steps.end)?)?;
            counts.untold = changes.saturating_sub(counts.payloads);
            ensure!(
                counts.requests == requests && counts.errors == 0,
                "{}: {counts:?} for {requests} requests",
                phase.name()
            );
            phases.push((phase, counts));
        }
        Ok(Self {
            driver: driver.to_owned(),
            version,
            phases,
            whole: Counts::between(None, look(workload.steps.len())?)?,
        })
    }

    /// A line about it.
    pub(super) fn describe(&self) -> String {
        let Counts {
            requests,
            connections,
            ..
        } = self.whole;
        format!(
            "version {}, {requests} requests on {connections} connections",
            self.version
        )
    }

    fn counts(&self, phase: Option<Phase>) -> Counts {
        let found = self.phases.iter().find(|(known, _)| Some(*known) == phase);
        found.map_or(self.whole, |(_, counts)| *counts)
    }
}

/// A figure that is compared.
struct Figure {
    name: &'static str,
    of: fn(&Counts) -> u64,
    /// Shown as so much for each request.
    each: bool,
    /// What is missing, for fewer is not better where something was not done.
    missing: fn(&Counts) -> u64,
}

const WRONG_NODE: Figure = figure("at the wrong node", |counts| counts.wrong_node);
const NOT_LEADER: Figure = figure("of them not at the leader", |counts| counts.not_leader);
const WRONG_SHARD: Figure = figure("at the wrong shard", |counts| counts.wrong_shard);
const WRONG: Figure = figure("at the wrong node or shard", |counts| {
    counts.wrong_node + counts.wrong_shard
});
const PAYLOADS: Figure = Figure {
    missing: |counts| counts.untold,
    ..figure("answers with routing", |counts| counts.payloads)
};
const UNTOLD: Figure = figure("changes never told", |counts| counts.untold);
const SENT: Figure = each("bytes sent, for each", |counts| counts.received);
const RECEIVED: Figure = each("bytes received, without routing", |counts| counts.sent);
const OTHER_FRAMES: Figure = figure("other frames", |counts| {
    counts.frames.saturating_sub(counts.requests)
});
const CONNECTIONS: Figure = figure("connections", |counts| counts.connections);
const ERRORS: Figure = figure("answers that are errors", |counts| counts.errors);

/// The figures of a phase in which nothing is left to chance.
const CERTAIN: &[Figure] = &[
    WRONG_NODE,
    NOT_LEADER,
    WRONG_SHARD,
    PAYLOADS,
    SENT,
    RECEIVED,
    OTHER_FRAMES,
];

/// Those of the phase in which the others draw the nibble that they ask for: only the sum over all
/// changes says anything. Of 64 it was larger than with nibbles in turn in each of 40,000 trials.
const DRAWN: &[Figure] = &[WRONG, PAYLOADS, UNTOLD, SENT, RECEIVED, OTHER_FRAMES];

/// The figures of the whole visit.
const WHOLE: &[Figure] = &[CONNECTIONS, ERRORS];

const fn figure(name: &'static str, of: fn(&Counts) -> u64) -> Figure {
    Figure {
        name,
        of,
        each: false,
        missing: |_| 0,
    }
}

const fn each(name: &'static str, of: fn(&Counts) -> u64) -> Figure {
    Figure {
        each: true,
        ..figure(name, of)
    }
}

impl Figure {
    /// What is compared.
    fn weight(&self, counts: &Counts) -> u64 {
        (self.of)(counts) + (self.missing)(counts)
    }

    fn shown(&self, counts: &Counts) -> String {
        let count = (self.of)(counts);
        if self.each {
            format!("{:.2}", count as f64 / counts.requests.max(1) as f64)
        } else {
            count.to_string()
        }
    }
}

/// All visits, the first is ours.
#[derive(Debug, Default)]
pub struct Comparison {
    visits: Vec<Visit>,
    sizes: Vec<(usize, usize)>,
}

impl Comparison {
    /// With the visit of one more driver, if it got through.
    pub(super) fn extend(&mut self, visit: Option<Visit>) {
        if self.sizes.is_empty() {
            let workload = Workload::new();
            self.sizes = Phase::COUNTED.map(|phase| workload.size_of(phase)).to_vec();
        }
        self.visits.extend(visit);
    }

    /// A verdict on each phase, and on the whole.
    pub(super) fn judge(&self, visits: usize) -> Vec<(String, Result<String>)> {
        let parts = Self::parts();
        parts
            .map(|(phase, name, figures)| {
                let result = self.judge_part(visits, phase, figures);
                (format!("ours is not worse: {name}"), result)
            })
            .collect()
    }

    fn judge_part(
        &self,
        visits: usize,
        phase: Option<Phase>,
        figures: &[Figure],
    ) -> Result<String> {
        ensure!(self.visits.len() == visits, "not every driver got through");
        let (ours, others) = self.visits.split_first().context("nobody came")?;
        let ours = ours.counts(phase);
        let mut better = 0;
        for figure in figures {
            let our = figure.weight(&ours);
            for other in others {
                let their = figure.weight(&other.counts(phase));
                ensure!(
                    our <= their,
                    "{}: {our}, {} has {their}",
                    figure.name,
                    other.driver
                );
                better += u32::from(our < their);
            }
        }
        let compared = figures.len() * others.len();
        Ok(format!(
            "better in {better} of {compared}, equal in the rest"
        ))
    }

    fn parts() -> impl Iterator<Item = (Option<Phase>, &'static str, &'static [Figure])> {
        let phases = Phase::COUNTED.into_iter();
        let phases = phases.map(|phase| {
            let figures = match phase {
                Phase::Hidden => DRAWN,
                _ => CERTAIN,
            };
            (Some(phase), phase.name(), figures)
        });
        phases.chain([(None, "the whole visit", WHOLE)])
    }

    /// An object for each driver and part, for machines.
    pub fn to_json(&self) -> impl Iterator<Item = Value> + '_ {
        self.visits.iter().flat_map(|visit| {
            Self::parts().map(move |(phase, name, figures)| {
                let counts = visit.counts(phase);
                let mut line = json!({
                    "comparison": name,
                    "driver": visit.driver,
                    "version": visit.version,
                    "requests": counts.requests,
                });
                for figure in figures {
                    let count = (figure.of)(&counts);
                    line[figure.name.replace(", ", "_").replace(' ', "_")] = if figure.each {
                        json!(count as f64 / counts.requests.max(1) as f64)
                    } else {
                        json!(count)
                    };
                }
                line
            })
        })
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        let heads = self.visits.iter().map(|visit| visit.driver.clone());
        table.set_header([String::new()].into_iter().chain(heads));
        for ((phase, name, figures), size) in
            Self::parts().zip(self.sizes.iter().map(Some).chain([None]))
        {
            let title = size.map_or_else(
                || name.to_owned(),
                |(requests, changes)| format!("{name}: {requests} requests, {changes} changes"),
            );
            table.add_row([title]);
            for figure in figures {
                let cells = self.visits.iter();
                let cells = cells.map(|visit| figure.shown(&visit.counts(phase)));
                table.add_row([format!("  {}", figure.name)].into_iter().chain(cells));
            }
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(driver: &str, change: impl Fn(&mut Counts)) -> Visit {
        let mut counts = Counts {
            requests: 100,
            wrong_node: 3,
            wrong_shard: 2,
            payloads: 5,
            received: 900,
            sent: 400,
            frames: 100,
            ..Counts::default()
        };
        change(&mut counts);
        Visit {
            driver: driver.to_owned(),
            version: "1".to_owned(),
            phases: Phase::COUNTED.map(|phase| (phase, counts)).to_vec(),
            whole: counts,
        }
    }

    fn verdicts(ours: impl Fn(&mut Counts), others: impl Fn(&mut Counts)) -> Vec<bool> {
        let mut comparison = Comparison::default();
        comparison.extend(Some(visit("ours", ours)));
        comparison.extend(Some(visit("other", others)));
        let verdicts = comparison.judge(2);
        verdicts
            .iter()
            .map(|(_, verdict)| verdict.is_ok())
            .collect()
    }

    #[test]
    fn ours_may_be_worse_in_nothing() {
        let same = |_: &mut Counts| ();
        assert_eq!(verdicts(same, same), [true; 4]);
        assert_eq!(
            verdicts(|ours| ours.sent += 1, same),
            [false, false, false, true]
        );
        assert_eq!(
            verdicts(|ours| ours.connections += 1, same),
            [true, true, true, false]
        );
        // Where nibbles are drawn, the sum counts.
        let swapped = |ours: &mut Counts| (ours.wrong_node, ours.wrong_shard) = (2, 3);
        assert_eq!(verdicts(swapped, same), [false, false, true, true]);
        // Less routing is not better where changes went untold.
        let fewer = |others: &mut Counts| (others.payloads, others.untold) = (4, 1);
        assert_eq!(verdicts(same, fewer), [true; 4]);
        assert_eq!(
            verdicts(same, |others| others.payloads -= 1),
            [false, false, false, true]
        );
    }

    #[test]
    fn a_driver_that_did_not_get_through_fails_the_comparison() {
        let mut comparison = Comparison::default();
        comparison.extend(Some(visit("ours", |_| ())));
        assert!(
            comparison
                .judge(2)
                .iter()
                .all(|(_, verdict)| verdict.is_err())
        );
    }

    #[test]
    fn counters_are_summed_over_nodes_and_subtracted() {
        let look = |base: u64| {
            let node = |base: u64| {
                json!({
                    "requests": 10 * base, "at_owner_node": 8 * base, "at_owner_shard": 5 * base,
                    "needing_leader": 4 * base, "at_leader": 3 * base, "payloads": base,
                    "payload_bytes": 100 * base, "bytes_received": 1000 * base,
                    "bytes_sent": 2000 * base, "frames": 11 * base, "errors": 0,
                    "connections": 6,
                })
            };
            json!({ "nodes": [node(base), node(2 * base)] })
        };
        let counts = Counts::between(Some(&look(1)), &look(2)).unwrap();
        assert_eq!(
            (
                counts.requests,
                counts.wrong_node,
                counts.not_leader,
                counts.wrong_shard
            ),
            (30, 6, 3, 9)
        );
        assert_eq!(
            (counts.payloads, counts.sent, counts.received),
            (3, 5700, 3000)
        );
        assert_eq!((counts.connections, counts.frames), (0, 33));
        assert!(Counts::between(Some(&look(2)), &look(1)).is_err());
        assert!(Counts::between(None, &json!({ "nodes": [{}] })).is_err());
    }
}
