//! Heap calls and instructions of one warm request, held against the stored figures.
//!
//! A figure is the difference between two runs of `FEWER` and `MORE` requests, divided by the
//! requests that the second made more, so that whatever a run costs once falls out. Of heap calls
//! each of the two is the fewest of three runs: a machine that others keep busy makes answers come
//! in longer bursts, now and then longer than any buffer has seen, which adds calls and never takes
//! any away.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use comfy_table::Table;
use serde_json::{Value, json};

use crate::heap::Heap;
use crate::load::{Load, SHAPE};
use crate::server::Server;
use crate::workload::Work;

/// Requests of the two runs.
const FEWER: u32 = 1000;
const MORE: u32 = 4000;

/// Heap calls are compared to the hundredth.
const HEAP_TOLERANCE: f64 = 0.005;

/// Instructions may differ by three in a hundred: batches form as bytes happen to arrive.
const INSTRUCTIONS_TOLERANCE: f64 = 0.03;

/// Requests at a time.
const IN_FLIGHT: [u32; 2] = [1, 256];

/// What one request costs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    heap_calls: f64,
    heap_bytes: f64,
    instructions: f64,
}

impl Cost {
    fn of(load: Load, program: &Path, contacts: &str) -> Result<Self> {
        let per_request =
            |fewer: u64, more: u64| (more.saturating_sub(fewer)) as f64 / f64::from(MORE - FEWER);
        let heap = |requests| -> Result<Heap> {
            let runs = [(); 3].map(|()| load.heap(program, contacts, requests));
            let runs = runs.into_iter().collect::<Result<Vec<_>>>()?;
            let fewest = runs.into_iter().min_by_key(|run| run.calls);
            fewest.context("there were three")
        };
        let instructions = |requests| load.instructions(program, contacts, requests);
        let (fewer, more) = (heap(FEWER)?, heap(MORE)?);
        Ok(Self {
            heap_calls: per_request(fewer.calls, more.calls),
            heap_bytes: per_request(fewer.bytes, more.bytes),
            instructions: per_request(instructions(FEWER)?, instructions(MORE)?),
        })
    }

    fn to_json(self) -> Value {
        json!({
            "heap_calls": (self.heap_calls * 100.0).round() / 100.0,
            "instructions": self.instructions.round(),
        })
    }
}

/// What is stored of one request.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stored {
    heap_calls: f64,
    instructions: f64,
}

impl Stored {
    fn parse(value: &Value) -> Option<Self> {
        Some(Self {
            heap_calls: value["heap_calls"].as_f64()?,
            instructions: value["instructions"].as_f64()?,
        })
    }

    /// What is worse than stored, in words.
    fn complaints(self, cost: Cost) -> Vec<String> {
        let mut complaints = Vec::new();
        if cost.heap_calls > self.heap_calls + HEAP_TOLERANCE {
            complaints.push(format!(
                "{:.2} heap calls, stored {:.2}",
                cost.heap_calls, self.heap_calls
            ));
        }
        if cost.instructions > self.instructions * (1.0 + INSTRUCTIONS_TOLERANCE) {
            complaints.push(format!(
                "{:.0} instructions, stored {:.0}",
                cost.instructions, self.instructions
            ));
        }
        complaints
    }

    fn is_beaten_by(self, cost: Cost) -> bool {
        cost.heap_calls < self.heap_calls - HEAP_TOLERANCE
            || cost.instructions < self.instructions * (1.0 - INSTRUCTIONS_TOLERANCE)
    }

    /// The lower of both.
    fn lowered(self, cost: Cost) -> Cost {
        Cost {
            heap_calls: self.heap_calls.min(cost.heap_calls),
            instructions: self.instructions.min(cost.instructions),
            ..cost
        }
    }
}

/// Counts, prints a table and a line of JSON, and compares with what is stored.
pub fn run(program: &Path, lower: bool, mut out: impl Write) -> Result<()> {
    let server = Server::start(program)?;
    let contacts = server.contacts();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(crate::ours::fill(&contacts, SHAPE))?;
    let mut table = Table::new();
    table.set_header([
        "request",
        "in flight",
        "driver",
        "heap calls",
        "bytes",
        "instructions",
    ]);
    let (mut ours, mut all) = (BTreeMap::new(), BTreeMap::new());
    for work in [Work::Insert, Work::Select] {
        for in_flight in IN_FLIGHT {
            for is_ours in [true, false] {
                let load = Load::new(is_ours, work, in_flight);
                let cost = Cost::of(load, program, &contacts)?;
                table.add_row([
                    work.name().to_owned(),
                    in_flight.to_string(),
                    load.driver().to_owned(),
                    format!("{:.2}", cost.heap_calls),
                    format!("{:.0}", cost.heap_bytes),
                    format!("{:.0}", cost.instructions),
                ]);
                let name = format!("{} {in_flight}", work.name());
                all.insert(format!("{} {name}", load.driver()), cost.to_json());
                if is_ours {
                    ours.insert(name, cost);
                }
            }
        }
    }
    writeln!(out, "{table}\n{}", json!(all))?;
    judge(&ours, lower, &mut out)
}

fn judge(costs: &BTreeMap<String, Cost>, lower: bool, out: &mut impl Write) -> Result<()> {
    let stored = read_stored()?;
    let (mut complaints, mut lowered, mut beaten) = (Vec::new(), BTreeMap::new(), Vec::new());
    for (name, cost) in costs {
        let kept = match stored.get(name) {
            Some(stored) => {
                let worse = stored.complaints(*cost);
                complaints.extend(worse.into_iter().map(|worse| format!("{name}: {worse}")));
                if stored.is_beaten_by(*cost) {
                    beaten.push(name.as_str());
                }
                stored.lowered(*cost)
            }
            None if lower => *cost,
            None => {
                complaints.push(format!("{name}: nothing stored, run counts --lower"));
                continue;
            }
        };
        lowered.insert(name, kept.to_json());
    }
    if lower {
        let text = serde_json::to_string_pretty(&lowered)?;
        std::fs::write(stored_path(), text + "\n")?;
    } else if !beaten.is_empty() {
        writeln!(
            out,
            "better than stored: {}; run counts --lower and commit counts.json",
            beaten.join(", ")
        )?;
    }
    if complaints.is_empty() {
        return Ok(());
    }
    bail!("figures only go down:\n  {}", complaints.join("\n  "))
}

fn read_stored() -> Result<BTreeMap<String, Stored>> {
    let path = stored_path();
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let value: BTreeMap<String, Value> = serde_json::from_str::<Value>(&text)?
        .as_object()
        .context("counts.json is no object")?
        .clone()
        .into_iter()
        .collect();
    value
        .into_iter()
        .map(|(name, value)| {
            let stored = Stored::parse(&value).with_context(|| format!("{name} in counts.json"))?;
            Ok((name, stored))
        })
        .collect()
}

fn stored_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("counts.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORED: Stored = Stored {
        heap_calls: 0.25,
        instructions: 10_000.0,
    };

    #[test]
    fn figures_only_go_down() {
        let table = [
            // heap calls, instructions, complaints, beaten
            (0.25, 10_000.0, 0, false),
            (0.254, 10_299.0, 0, false),
            (0.26, 10_000.0, 1, false),
            (0.25, 10_301.0, 1, false),
            (0.26, 10_301.0, 2, false),
            (0.24, 10_000.0, 0, true),
            (0.25, 9_699.0, 0, true),
            (0.25, 9_701.0, 0, false),
        ];
        for (heap_calls, instructions, complaints, beaten) in table {
            let cost = Cost {
                heap_calls,
                heap_bytes: 0.0,
                instructions,
            };
            assert_eq!(STORED.complaints(cost).len(), complaints, "{cost:?}");
            assert_eq!(STORED.is_beaten_by(cost), beaten, "{cost:?}");
            let lowered = STORED.lowered(cost);
            assert!(lowered.heap_calls <= 0.25 && lowered.instructions <= 10_000.0);
        }
    }

    #[test]
    fn all_figures_are_stored() {
        let stored = read_stored().unwrap();
        for name in ["insert 1", "insert 256", "select 1", "select 256"] {
            assert!(stored.contains_key(name), "{name}");
        }
    }
}
