//! `messina route`: where a statement would go, and why.

mod draw;

use core::time::Duration;
use std::io::Write;
use std::process::ExitCode;

use messina_core::cluster::kind::StatementKind;
use messina_core::drive::{Prepared, Route};
use messina_core::routing::{Leadership, LearnedTablet, Reason, ShardIdx, Source};
use messina_core::types::CqlValue;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use crate::arguments::{Common, Format};
use crate::bind;
use crate::connect::Connected;
use crate::failure::Failure;
use crate::interrupt::interrupted;
use crate::split::split;

/// Options of `messina route`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RouteArguments {
    /// The statement
    #[arg(value_name = "CQL")]
    statement: String,
    /// Values for its markers
    #[arg(long, value_name = "JSON_ARRAY", default_value = "[]")]
    bind: String,
    /// The values come as a JSON object keyed by marker name
    #[arg(long)]
    named: bool,
    /// Execute it N times first, so that the driver can learn; writes are made
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    learn: u32,
    #[command(flatten)]
    common: Common,
}

/// Shown below the options.
pub(crate) const EXAMPLES: &str = "\
Examples:
  messina route --contact 127.0.0.1 \"SELECT v FROM ks.t WHERE k = ?\" --bind '[1]'
  messina route --contact 127.0.0.1 \"SELECT v FROM ks.t WHERE k = ?\" --bind '[1]' --learn 3
  messina route --contact 127.0.0.1 --dc dc1 --rack rack2 \"DELETE FROM ks.t WHERE k = 1\"

Reasons:
  leader   it leads the tablet of a strongly consistent table
  rack     a replica in the preferred rack
  dc       a replica in the preferred datacenter, or anywhere if none is preferred
  remote   a replica in another datacenter
  any      no replica as far as the driver knows: it will pass the request on

Of strongly consistent tables it says why the leader is first in the plan, or why it is not
(leader_reason in the JSON object).

In the JSON object a tablet owns the tokens after first_token up to and with last_token.";

/// Prepares, learns if that is wanted, and explains.
pub(crate) async fn run(arguments: &RouteArguments) -> Result<ExitCode, Failure> {
    let format = arguments.common.output();
    if format == Format::Csv {
        return Err(Failure::usage("route prints table or json"));
    }
    let text = match <[String; 1]>::try_from(split(&arguments.statement)) {
        Ok([text]) => text,
        Err(several) => {
            let message = format!("give one statement, not {}", several.len());
            return Err(Failure::usage(message));
        }
    };
    bind::check(&arguments.bind, arguments.named)
        .map_err(|why| Failure::usage(format!("--bind: {why}")))?;
    let connected = Connected::open(&arguments.common).await?;
    let explained = tokio::select! {
        explained = explain(arguments, &text, &connected, format) => explained,
        () = interrupted() => Err(Failure::new("interrupted", "interrupted")),
    };
    connected.session.close().await;
    writeln!(std::io::stdout().lock(), "{}", explained?)
        .map_err(|error| Failure::stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}

async fn explain(
    arguments: &RouteArguments,
    text: &str,
    connected: &Connected,
    format: Format,
) -> Result<String, Failure> {
    // What is not connected is not in a plan.
    connected.settled_status(SETTLE_LIMIT).await;
    let prepared = connected.session.prepare(text).await;
    let prepared = prepared.map_err(|error| connected.failure(&error))?;
    let values = bind::values(prepared.markers(), &arguments.bind, arguments.named)?;
    for _ in 0..arguments.learn {
        learn(connected, &prepared, &values).await?;
    }
    let route = route(connected, &prepared, &values)?;
    Ok(match format {
        Format::Json => to_json(&route).to_string(),
        _ => draw::draw(&route, text, &connected.session.status()),
    })
}

/// Executes the statement once, and waits until what its answer told is stored.
async fn learn(
    connected: &Connected,
    prepared: &Prepared,
    values: &[CqlValue],
) -> Result<(), Failure> {
    let before = route(connected, prepared, values)?.tablet();
    let executed = connected.session.execute(prepared, values).await;
    let executed = executed.map_err(|error| connected.failure(&error))?;
    if !executed.info().tablet_learned {
        return Ok(());
    }
    let give_up_at = Instant::now() + STORE_LIMIT;
    while Instant::now() < give_up_at && route(connected, prepared, values)?.tablet() == before {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

fn route(
    connected: &Connected,
    prepared: &Prepared,
    values: &[CqlValue],
) -> Result<Route, Failure> {
    let route = connected.session.route(prepared, values);
    route.map_err(|error| connected.failure(&error))
}

/// How long the pools may take to fill.
const SETTLE_LIMIT: Duration = Duration::from_secs(2);

/// How long the driver may take to store what it was told; it drops some when it is told a lot.
const STORE_LIMIT: Duration = Duration::from_millis(500);

fn to_json(route: &Route) -> Value {
    let plan = route.targets().map(|target| {
        json!({
            "host_id": target.host_id.to_string(),
            "address": target.address.to_string(),
            "shard": target.shard.map(ShardIdx::value),
            "dc": target.dc,
            "rack": target.rack,
            "reason": reason(target.reason),
        })
    });
    json!({
        "statement": kind(route.kind()),
        "lwt": route.is_lwt(),
        "keyspace": route.keyspace(),
        "table": route.table(),
        "token": route.token.map(|token| token.value()),
        "source": source(route.source()),
        "tablet": route.tablet().map(|tablet| tablet_json(&tablet)),
        "leader": route.leader().map(|(host_id, shard)| replica(host_id, shard.map(ShardIdx::value))),
        "leader_reason": leader_reason(route.leadership).0,
        "plan": plan.collect::<Value>(),
        "more_nodes": route.plan.may_go_on(),
    })
}

fn tablet_json(tablet: &LearnedTablet) -> Value {
    let replicas = tablet.replicas().iter();
    json!({
        // As nodes tell it: the token before its own.
        "first_token": tablet.first_exclusive(),
        "last_token": tablet.last_inclusive(),
        "version": version(tablet),
        "replicas": replicas.map(|at| replica(at.host_id, Some(at.shard))).collect::<Value>(),
    })
}

fn replica(host_id: Uuid, shard: Option<u16>) -> Value {
    json!({ "host_id": host_id.to_string(), "shard": shard })
}

fn version(tablet: &LearnedTablet) -> Option<String> {
    Some(format!("{:016x}", tablet.version()?.bits()))
}

const fn kind(kind: StatementKind) -> Option<&'static str> {
    match kind {
        StatementKind::Read => Some("read"),
        StatementKind::Write => Some("write"),
        _ => None,
    }
}

const fn source(source: Source) -> &'static str {
    match source {
        Source::Tablet => "tablet",
        Source::Ring => "ring",
        _ => "none",
    }
}

/// Why the leader is first in the plan, or not: a word, and the sentence for people.
const fn leader_reason(leadership: Leadership) -> (&'static str, &'static str) {
    match leadership {
        Leadership::First => ("first", "first in the plan"),
        Leadership::UnknownTable => ("unknown_table", "none: the table is not known"),
        Leadership::Eventual => (
            "eventual",
            "none: the table is not strongly consistent, any replica coordinates",
        ),
        Leadership::LevelOne => (
            "level_one",
            "not needed: any replica serves reads at ONE and LOCAL_ONE",
        ),
        Leadership::SwitchedOff => (
            "switched_off",
            "not preferred: switched off (--no-tablet-leader)",
        ),
        Leadership::NoToken => ("no_token", "unknown: the values do not give the whole key"),
        Leadership::UnknownTablet => ("unknown_tablet", "unknown: no tablet learned yet"),
        Leadership::Unversioned => (
            "unversioned",
            "unknown: the tablet came without a version, by the first extension",
        ),
        Leadership::UnknownNode => (
            "unknown_node",
            "not preferred: the tablet names a node that is not known yet",
        ),
        Leadership::Down => ("down", "not preferred: its node is down"),
        Leadership::Filtered => ("filtered", "not preferred: its node is filtered out"),
        Leadership::ForbiddenDc => (
            "forbidden_dc",
            "not preferred: it is in another datacenter (--dc-failover would allow it)",
        ),
        Leadership::NotConnected => ("not_connected", "not preferred: its node is not connected"),
        Leadership::Overruled => ("overruled", "not preferred: another target was chosen"),
        Leadership::NotTold => (
            "not_told",
            "unknown: no node speaks the second tablets extension",
        ),
        _ => ("other", "not preferred"),
    }
}

const fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Leader => "leader",
        Reason::Rack => "rack",
        Reason::Dc => "dc",
        Reason::Remote => "remote",
        Reason::Custom => "custom",
        _ => "any",
    }
}
