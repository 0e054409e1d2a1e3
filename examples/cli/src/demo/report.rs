//! What the demonstration has shown: for people, and for programs.

use core::time::Duration;

use comfy_table::{Attribute, Cell, CellAlignment, Color, Table as Grid, presets};
use console::style;
use hdrhistogram::Histogram;
use messina_core::drive::Status;
use serde_json::{Value, json};

use super::moves::Cost;
use super::table::Table;
use super::tally::{Arrivals, Tally};
use super::world::World;
use crate::connect::Connected;
use crate::failure::Failure;
use crate::figures::{grouped, micros, percent};
use crate::inspect::draw;
use crate::latency;
use crate::table_kind::Kind;

/// The share of requests that is to reach the owning node and shard after learning.
const OWNER_SHARE: f64 = 0.995;

/// Everything that is told.
#[derive(Debug)]
pub(super) struct Report {
    title: String,
    seen_by_nodes: bool,
    status: Status,
    connections: usize,
    connections_by_nodes: Option<usize>,
    rows: Vec<Row>,
    latency_us: Histogram<u64>,
    failed: u64,
    first_failure: Option<Failure>,
    pub(super) moves: Vec<Cost>,
    pub(super) skipped: Vec<Skipped>,
}

/// A table's figures.
#[derive(Debug)]
struct Row {
    kind: Kind,
    name: String,
    before: Arrivals,
    seen: Arrivals,
    driver: Arrivals,
}

/// What this cluster cannot do.
#[derive(Debug)]
pub(super) struct Skipped {
    what: String,
    why: String,
}

impl Skipped {
    pub(super) fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            why: why.into(),
        }
    }
}

impl Report {
    pub(super) fn new(world: &World, status: Status) -> Self {
        Self {
            title: world.title(),
            seen_by_nodes: world.is_embedded(),
            connections: status.connections(),
            status,
            connections_by_nodes: None,
            rows: Vec::new(),
            latency_us: latency::histogram(),
            failed: 0,
            first_failure: None,
            moves: Vec::new(),
            skipped: Vec::new(),
        }
    }

    pub(super) fn add_table(&mut self, table: &Table, before: Tally, measured: Tally) {
        self.rows.push(Row {
            kind: table.kind,
            name: table.full_name(),
            before: before.seen(),
            seen: measured.seen(),
            driver: measured.driver,
        });
        // Both have the same bounds, so that adding cannot fail.
        let _ = self.latency_us.add(&measured.latency_us);
        for tally in [before, measured] {
            self.failed += tally.failed;
            self.first_failure = self.first_failure.take().or(tally.first_failure);
        }
    }

    /// The last look at the connections.
    pub(super) fn complete(&mut self, connected: &Connected, world: &World) {
        self.status = connected.session.status();
        self.status.nodes.sort_by_key(|node| node.address);
        self.connections = self.status.connections();
        self.connections_by_nodes = world.nodes().map(|nodes| nodes.connections());
        for cost in &self.moves {
            self.failed += cost.tally.failed;
        }
    }

    /// What went wrong first, if anything did.
    pub(super) fn first_failure(&self) -> Option<Failure> {
        let of_moves = self
            .moves
            .iter()
            .find_map(|cost| cost.tally.first_failure.clone());
        self.first_failure.clone().or(of_moves)
    }

    pub(super) fn to_json(&self) -> Value {
        let tables = self.rows.iter().map(|row| {
            json!({
                "name": row.name,
                "kind": row.kind.name(),
                "requests": row.seen.requests,
                "owner_node": row.seen.owner_node_share(),
                "owner_shard": row.seen.owner_shard_share(),
                "owner_shard_before_learning": row.before.owner_shard_share(),
                "leader": row.seen.leader_share(),
                "forwarded": row.seen.forwarded,
                "driver_says": {
                    "owner_shard": row.driver.owner_shard_share(),
                    "leader": row.driver.leader_share(),
                },
            })
        });
        let moves = self
            .moves
            .iter()
            .map(|cost| json!({ "what": cost.what, "forwarded_until_right": cost.missed }));
        let skipped = self
            .skipped
            .iter()
            .map(|skipped| json!({ "what": skipped.what, "why": skipped.why }));
        json!({
            "seen_by": if self.seen_by_nodes { "nodes" } else { "driver" },
            "tables": tables.collect::<Value>(),
            "connections": self.connections,
            "latency_us": {
                "p50": self.latency_us.value_at_quantile(0.5),
                "p99": self.latency_us.value_at_quantile(0.99),
            },
            "moves": moves.collect::<Value>(),
            "failed": self.failed,
            "skipped": skipped.collect::<Value>(),
        })
    }

    pub(super) fn draw(&self, took: Duration) -> String {
        let mut lines = vec![format!(
            "{}  {}",
            style("messina demo").bold().cyan(),
            style(&self.title).dim()
        )];
        lines.extend(draw::cluster(&self.status));
        lines.push(self.connections_line());
        lines.push(heading(
            "Where requests arrived, once the driver had learned",
        ));
        lines.push(self.grid().to_string());
        lines.push(self.source_line());
        if !self.moves.is_empty() {
            lines.push(heading("What moving cost, until the driver had noticed"));
            lines.extend(self.moves.iter().map(move_line));
        }
        if !self.skipped.is_empty() {
            lines.push(heading("Skipped"));
            let line =
                |skipped: &Skipped| format!("  {}: {}", skipped.what, style(&skipped.why).dim());
            lines.extend(self.skipped.iter().map(line));
        }
        lines.push(heading("Latency"));
        lines.push(self.latency_line(took));
        lines.push(String::new());
        lines.push(self.verdict());
        lines.join("\n")
    }

    fn connections_line(&self) -> String {
        let counted = match self.connections_by_nodes {
            Some(count) => format!(" (the nodes count {count})"),
            None => String::new(),
        };
        format!("\n{} connections{counted}", self.connections)
    }

    /// At most 80 columns.
    fn grid(&self) -> Grid {
        let mut grid = Grid::new();
        grid.load_preset(presets::UTF8_FULL_CONDENSED);
        let header = [
            "table",
            "requests",
            "owning\nnode",
            "owning\nshard",
            "before\nlearning",
            "leader",
            "driver\nshard",
            "driver\nleader",
        ];
        let header = header.into_iter().enumerate().map(|(at, name)| match at {
            0 => Cell::new(name),
            _ => right(name.to_owned()),
        });
        grid.set_header(header);
        for row in &self.rows {
            let leader = |share: Option<f64>| {
                share.map_or_else(|| right("–".to_owned()), |share| graded(share, 1.0))
            };
            grid.add_row([
                Cell::new(row.kind.name()).add_attribute(Attribute::Bold),
                number(row.seen.requests),
                graded(row.seen.owner_node_share(), OWNER_SHARE),
                graded(row.seen.owner_shard_share(), OWNER_SHARE),
                right(percent(row.before.owner_shard_share())),
                leader(row.seen.leader_share()),
                graded(row.driver.owner_shard_share(), OWNER_SHARE),
                leader(row.driver.leader_share()),
            ]);
        }
        grid
    }

    fn source_line(&self) -> String {
        let text = if self.seen_by_nodes {
            "Counted by the nodes, which share no code with the driver; the last two columns\n\
             are the driver's own. Before learning: requests that met a tablet first."
        } else {
            "Counted by the driver: a real cluster does not tell."
        };
        style(text).dim().to_string()
    }

    fn latency_line(&self, took: Duration) -> String {
        let at = |quantile| micros(self.latency_us.value_at_quantile(quantile));
        format!(
            "  p50 {}   p99 {}   max {}   {}",
            style(at(0.5)).bold(),
            style(at(0.99)).bold(),
            at(1.0),
            style(format!(
                "{} requests, all done in {:.1} s",
                grouped(self.latency_us.len()),
                took.as_secs_f64()
            ))
            .dim()
        )
    }

    fn verdict(&self) -> String {
        let good = |row: &Row| {
            row.seen.owner_node_share() >= OWNER_SHARE
                && row.seen.owner_shard_share() >= OWNER_SHARE
                && row.seen.leader_share().is_none_or(|share| share >= 1.0)
        };
        if self.failed > 0 {
            style(format!("✗ {} requests failed", grouped(self.failed)))
                .red()
                .bold()
                .to_string()
        } else if self.rows.iter().all(good) && !self.rows.is_empty() {
            let text = "✓ Requests reach the node and shard that own their row, and the leader.";
            style(text).green().bold().to_string()
        } else {
            style("✗ Too many requests went elsewhere.")
                .red()
                .bold()
                .to_string()
        }
    }
}

fn heading(text: &str) -> String {
    format!("\n{}", style(text).bold())
}

fn move_line(cost: &Cost) -> String {
    let went = format!(
        "{} of {} requests went to the old place",
        cost.missed, cost.requests
    );
    format!("  {}: {}", cost.story, style(went).dim())
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn number(number: u64) -> Cell {
    right(grouped(number))
}

/// Green if it is at least `good`.
fn graded(share: f64, good: f64) -> Cell {
    let color = if share >= good {
        Color::Green
    } else {
        Color::Red
    };
    right(percent(share)).fg(color)
}
