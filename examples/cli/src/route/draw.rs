//! A route for people.

use comfy_table::{Attribute, Cell, CellAlignment, Color, Table, presets};
use console::style;
use messina_core::drive::{Route, Status};
use messina_core::routing::{Leadership, LearnedTablet, Reason, ShardIdx, Source};
use uuid::Uuid;

use super::{kind, leader_reason, reason, version};

pub(super) fn draw(route: &Route, text: &str, status: &Status) -> String {
    let mut lines = vec![style(text).bold().to_string(), String::new()];
    let mut fact = |name: &str, told: String| {
        lines.push(format!("  {}  {told}", style(format!("{name:<9}")).dim()));
    };
    fact("statement", statement(route));
    match route.token {
        Some(token) => fact("token", token.value().to_string()),
        None => fact(
            "token",
            "none: the values do not give the whole key".to_owned(),
        ),
    }
    fact("replicas", source(route).to_owned());
    if let Some(tablet) = route.tablet() {
        fact("tablet", range(&tablet));
        if let Some(version) = version(&tablet) {
            fact("version", version);
        }
        for (at, replica) in tablet.replicas().iter().enumerate() {
            let name = if at == 0 { "on" } else { "" };
            fact(name, place(status, replica.host_id, Some(replica.shard)));
        }
    }
    if let Some((host_id, shard)) = route.leader() {
        let place = place(status, host_id, shard.map(ShardIdx::value));
        fact("leader", place);
    }
    if !matches!(
        route.leadership,
        Leadership::Eventual | Leadership::UnknownTable
    ) {
        let name = if route.leader().is_some() {
            ""
        } else {
            "leader"
        };
        fact(name, leader_reason(route.leadership).1.to_owned());
    }
    lines.push(String::new());
    lines.push(plan(route).to_string());
    if route.plan.may_go_on() {
        lines.push(
            style("  and further nodes, if all of these fail")
                .dim()
                .to_string(),
        );
    }
    lines.join("\n")
}

fn statement(route: &Route) -> String {
    let mut told = kind(route.kind())
        .unwrap_or("neither read nor write")
        .to_owned();
    if route.is_lwt() {
        told.push_str(", conditional");
    }
    if let (Some(keyspace), Some(table)) = (route.keyspace(), route.table()) {
        told.push_str(&format!(", on {keyspace}.{table}"));
    }
    told
}

const fn source(route: &Route) -> &'static str {
    match route.source() {
        Source::Tablet => "from a learned tablet",
        Source::Ring => "from the ring of vnodes",
        _ if route.token.is_none() => "unknown without a token",
        _ => "unknown: no tablet learned yet (--learn 1 would)",
    }
}

fn range(tablet: &LearnedTablet) -> String {
    format!(
        "{} < token ≤ {}",
        tablet.first_exclusive(),
        tablet.last_inclusive()
    )
}

/// By its address, where that is known.
fn place(status: &Status, host_id: Uuid, shard: Option<u16>) -> String {
    let mut nodes = status.nodes.iter();
    let node = match nodes.find(|node| node.host_id == host_id) {
        Some(node) => node.address.to_string(),
        None => format!("unknown node {host_id}"),
    };
    match shard {
        Some(shard) => format!("{node} shard {shard}"),
        None => node,
    }
}

fn plan(route: &Route) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let header = ["", "node", "shard", "datacenter", "rack", "because"];
    table.set_header(header.map(|name| match name {
        "shard" => right(name.to_owned()),
        name => Cell::new(name),
    }));
    for (at, target) in route.targets().enumerate() {
        let shard = target
            .shard
            .map_or_else(|| "any".to_owned(), |shard| shard.value().to_string());
        let mut address = Cell::new(target.address);
        if at == 0 {
            address = address.add_attribute(Attribute::Bold);
        }
        table.add_row([
            right((at + 1).to_string()),
            address,
            right(shard),
            Cell::new(target.dc),
            Cell::new(target.rack),
            Cell::new(because(target.reason)).fg(color(target.reason)),
        ]);
    }
    table
}

fn because(why: Reason) -> String {
    let told = match why {
        Reason::Leader => "leads the tablet",
        Reason::Rack => "replica, rack",
        Reason::Dc => "replica",
        Reason::Remote => "replica, far",
        _ => "will pass it on",
    };
    format!("{}: {told}", reason(why))
}

const fn color(why: Reason) -> Color {
    match why {
        Reason::Leader | Reason::Rack | Reason::Dc => Color::Green,
        Reason::Remote => Color::Yellow,
        _ => Color::Red,
    }
}
