//! The control protocol: one JSON object a line, one JSON object back.
//!
//! [`handle`] is a pure function of the cluster and the line; the TCP shell carries the lines.
//! Answers are `{"ok":true,…}` or `{"ok":false,"error":…}`, never anything else.
//!
//! | `cmd` | further fields |
//! |---|---|
//! | `stats`, `reset_stats` | |
//! | `tablets` | `keyspace`, `table` |
//! | `move_tablet` | `keyspace`, `table`, `tablet` or `token`, `from` and `to`: `{"node","shard"}` |
//! | `set_leader` | `keyspace`, `table`, `tablet` or `token`, `node` or `leader` (a position, or null) |
//! | `flip_version` | `keyspace`, `table`, `tablet` or `token`, `bits` of the version to turn over |
//! | `split`, `merge` | `keyspace`, `table`, `tablet` or `token` |
//! | `kill`, `start` | `node` |
//! | `delay` | `node`, `ms` for each answer from now on |
//! | `gather` | `count` answers wait for each other from now on (0: none), `ms` at most |
//! | `drop` | `node`, `count` requests (1) get no answer |
//! | `fail_next` | `node`, `error` by name, `message`, `count` (1) |
//! | `warn_next` | `node`, `warning`, `count` (1) |
//! | `forget_prepared` | `node`, or all |
//! | `nat` | `node`, `on` (true) |
//! | `client_routes` | `set`: `[{"connection_id","node","address","port","tls_port"}]`, `remove`: `[{"connection_id","node"}]` |
//! | `announce` | `node`, `event`: `up`, `down`, `new` or `removed` |

use serde_json::{Map, Value, json};

use crate::node::{
    ClientRoute, ClientRouteChange, Cluster, ControlError, Counters, CqlError, NodeEvent,
    NodeStats, Replica,
};

type Result<T> = core::result::Result<T, ControlError>;

/// Carries out one command. The answer has no line end.
pub fn handle(cluster: &mut Cluster, line: &str) -> String {
    let answer = serde_json::from_str::<Value>(line)
        .map_err(|error| ControlError(format!("not JSON: {error}")))
        .and_then(|command| run(cluster, &Command(command)));
    let answer = match answer {
        Ok(mut fields) => {
            fields.insert("ok".to_owned(), Value::Bool(true));
            Value::Object(fields)
        }
        Err(error) => json!({ "ok": false, "error": error.0 }),
    };
    answer.to_string()
}

struct Command(Value);

impl Command {
    fn text(&self, key: &str) -> Result<&str> {
        self.0[key]
            .as_str()
            .ok_or_else(|| ControlError(format!("{key:?} must be a string")))
    }

    fn number(&self, key: &str) -> Result<u64> {
        self.0[key]
            .as_u64()
            .ok_or_else(|| ControlError(format!("{key:?} must be a number")))
    }

    fn index(&self, key: &str) -> Result<usize> {
        Ok(usize::try_from(self.number(key)?).unwrap_or(usize::MAX))
    }

    fn count(&self) -> Result<u64> {
        if self.0["count"].is_null() {
            Ok(1)
        } else {
            self.number("count")
        }
    }

    fn table(&self) -> Result<(&str, &str)> {
        Ok((self.text("keyspace")?, self.text("table")?))
    }

    /// `tablet` by index, or `token` of a key in it.
    fn tablet(&self, cluster: &Cluster) -> Result<usize> {
        if let Some(token) = self.0["token"].as_i64() {
            let (keyspace, table) = self.table()?;
            let found = cluster.tablet_of(keyspace, table, token);
            return found.ok_or_else(|| ControlError("that table has no tablets".to_owned()));
        }
        self.index("tablet")
    }

    fn replica(&self, key: &str) -> Result<Replica> {
        let inner = Self(self.0[key].clone());
        let shard = u32::try_from(inner.number("shard")?).unwrap_or(u32::MAX);
        Ok(Replica {
            node: inner.index("node")?,
            shard,
        })
    }

    /// `set` and `remove`: lists of routes by `connection_id` and `node`.
    fn routes(&self) -> Result<Vec<ClientRouteChange>> {
        let mut changes = Vec::new();
        for (key, is_set) in [("set", true), ("remove", false)] {
            let listed = match &self.0[key] {
                Value::Null => &[][..],
                Value::Array(listed) => listed,
                _ => return Err(ControlError(format!("{key:?} must be a list"))),
            };
            for entry in listed {
                let entry = Self(entry.clone());
                let route = if is_set { Some(entry.route()?) } else { None };
                let connection_id = entry.text("connection_id")?.to_owned();
                changes.push((connection_id, entry.index("node")?, route));
            }
        }
        if changes.is_empty() {
            return Err(ControlError("nothing in \"set\" or \"remove\"".to_owned()));
        }
        Ok(changes)
    }

    fn route(&self) -> Result<ClientRoute> {
        let mut route = ClientRoute::new(self.text("address")?);
        (route.port, route.tls_port) = (self.port("port")?, self.port("tls_port")?);
        Ok(route)
    }

    fn port(&self, key: &str) -> Result<Option<u16>> {
        if self.0[key].is_null() {
            return Ok(None);
        }
        let port = u16::try_from(self.number(key)?)
            .ok()
            .filter(|port| *port > 0);
        port.map(Some)
            .ok_or_else(|| ControlError(format!("{key:?} must be a port")))
    }

    /// `leader` by position among the replicas or null, or the `node` that shall lead.
    fn leader(&self, cluster: &Cluster) -> Result<Option<usize>> {
        if self.0["node"].is_null() {
            return if self.0["leader"].is_null() {
                Ok(None)
            } else {
                self.index("leader").map(Some)
            };
        }
        let node = self.index("node")?;
        let (keyspace, table) = self.table()?;
        let tablets = cluster.tablets(keyspace, table);
        let found = tablets.get(self.tablet(cluster)?).and_then(|tablet| {
            tablet
                .replicas
                .iter()
                .position(|replica| replica.node == node)
        });
        found
            .map(Some)
            .ok_or_else(|| ControlError(format!("node {node} holds no replica")))
    }
}

fn run(cluster: &mut Cluster, command: &Command) -> Result<Map<String, Value>> {
    let mut fields = Map::new();
    match command.text("cmd")? {
        "stats" => fields = stats(cluster),
        "reset_stats" => cluster.reset_stats(),
        "tablets" => {
            fields.insert("tablets".to_owned(), tablets(cluster, command.table()?));
        }
        "move_tablet" => {
            let tablet = command.tablet(cluster)?;
            let (from, to) = (command.replica("from")?, command.replica("to")?);
            cluster.move_tablet(command.table()?, tablet, from, to)?;
        }
        "set_leader" => {
            let tablet = command.tablet(cluster)?;
            let leader = command.leader(cluster)?;
            cluster.set_leader(command.table()?, tablet, leader)?;
        }
        "flip_version" => {
            let tablet = command.tablet(cluster)?;
            cluster.flip_version(command.table()?, tablet, command.number("bits")?)?;
        }
        "split" => cluster.split(command.table()?, command.tablet(cluster)?)?,
        "merge" => cluster.merge(command.table()?, command.tablet(cluster)?)?,
        "kill" => cluster.kill(command.index("node")?)?,
        "start" => cluster.start(command.index("node")?)?,
        "delay" => {
            let micros = command.number("ms")?.saturating_mul(1000);
            cluster.set_delay(command.index("node")?, micros)?;
        }
        "gather" => {
            let micros = command.number("ms")?.saturating_mul(1000);
            cluster.gather(command.number("count")?, micros);
        }
        "drop" => cluster.drop_next(command.index("node")?, command.count()?)?,
        "fail_next" => {
            let name = command.text("error")?;
            let message = command.0["message"].as_str().unwrap_or("injected");
            let error = CqlError::named(name, message)
                .ok_or_else(|| ControlError(format!("unknown error {name:?}")))?;
            let count = usize::try_from(command.count()?).unwrap_or(usize::MAX);
            cluster.fail_next(command.index("node")?, &error, count)?;
        }
        "warn_next" => {
            let count = usize::try_from(command.count()?).unwrap_or(usize::MAX);
            cluster.warn_next(command.index("node")?, command.text("warning")?, count)?;
        }
        "client_routes" => cluster.change_client_routes(command.routes()?)?,
        "forget_prepared" => {
            if command.0["node"].is_null() {
                (0..cluster.node_count()).try_for_each(|node| cluster.forget_prepared(node))?;
            } else {
                cluster.forget_prepared(command.index("node")?)?;
            }
        }
        "nat" => {
            let on = command.0["on"].as_bool().unwrap_or(true);
            cluster.set_nat(command.index("node")?, on)?;
        }
        "announce" => {
            let event = match command.text("event")? {
                "up" => NodeEvent::Up,
                "down" => NodeEvent::Down,
                "new" => NodeEvent::New,
                "removed" => NodeEvent::Removed,
                other => return Err(ControlError(format!("unknown event {other:?}"))),
            };
            cluster.announce(command.index("node")?, event);
        }
        other => return Err(ControlError(format!("unknown command {other:?}"))),
    }
    Ok(fields)
}

fn counters(counters: Counters) -> Value {
    json!({
        "requests": counters.requests,
        "at_owner_node": counters.at_owner_node,
        "at_owner_shard": counters.at_owner_shard,
        "needing_leader": counters.needing_leader,
        "at_leader": counters.at_leader,
        "forwarded": counters.forwarded,
    })
}

fn node(node: &NodeStats) -> Value {
    let mut fields = counters(node.total());
    fields["alive"] = node.alive.into();
    fields["connections"] = node.connections.into();
    fields["bytes_received"] = node.bytes_received.into();
    fields["bytes_sent"] = node.bytes_sent.into();
    fields["frames"] = node.frames.into();
    fields["prepares"] = node.prepares.into();
    fields["executes"] = node.executes.into();
    fields["queries"] = node.queries.into();
    fields["batches"] = node.batches.into();
    fields["errors"] = node.errors.into();
    fields["unprepared"] = node.unprepared.into();
    fields["payloads"] = node.payloads.into();
    fields["payload_bytes"] = node.payload_bytes.into();
    let tables = node
        .tables
        .iter()
        .map(|(name, table)| (name.clone(), counters(*table)));
    fields["tables"] = Value::Object(tables.collect());
    let shards = node.shards.iter().map(|shard| {
        let mut fields = counters(shard.counters);
        fields["connections"] = shard.connections.into();
        fields
    });
    fields["shards"] = shards.collect();
    fields
}

fn stats(cluster: &Cluster) -> Map<String, Value> {
    let stats = cluster.stats();
    let mut fields = Map::new();
    fields.insert("total".to_owned(), counters(stats.total()));
    fields.insert("nodes".to_owned(), stats.nodes.iter().map(node).collect());
    fields
}

fn tablets(cluster: &Cluster, (keyspace, table): (&str, &str)) -> Value {
    let tablets = cluster.tablets(keyspace, table);
    tablets
        .iter()
        .enumerate()
        .map(|(at, tablet)| {
            let version = cluster.tablet_version(keyspace, table, at);
            let version = version.map(|version| format!("{version:016x}"));
            let replicas: Vec<Value> = tablet
                .replicas
                .iter()
                .map(|replica| json!({ "node": replica.node, "shard": replica.shard }))
                .collect();
            json!({
                "last": tablet.last,
                "replicas": replicas,
                "leader": tablet.leader,
                "version": version,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Options;

    #[test]
    fn good_commands_and_bad_ones() {
        let mut cluster = Cluster::new(Options::uniform(3, 2));
        let cases = [
            (r#"{"cmd":"stats"}"#, true),
            (r#"{"cmd":"kill","node":1}"#, true),
            (r#"{"cmd":"start","node":1}"#, true),
            (r#"{"cmd":"kill","node":3}"#, false),
            (r#"{"cmd":"delay","node":0,"ms":5}"#, true),
            (r#"{"cmd":"gather","count":2,"ms":5}"#, true),
            (r#"{"cmd":"gather","count":0}"#, false),
            (r#"{"cmd":"drop","node":0}"#, true),
            (
                r#"{"cmd":"fail_next","node":0,"error":"overloaded","count":2}"#,
                true,
            ),
            (r#"{"cmd":"fail_next","node":0,"error":"no such"}"#, false),
            (r#"{"cmd":"warn_next","node":2,"warning":"w"}"#, true),
            (r#"{"cmd":"warn_next","node":3,"warning":"w"}"#, false),
            (r#"{"cmd":"warn_next","node":0}"#, false),
            (
                r#"{"cmd":"client_routes","set":[{"connection_id":"a","node":0,"address":"h","port":1}]}"#,
                true,
            ),
            (
                r#"{"cmd":"client_routes","remove":[{"connection_id":"a","node":0}]}"#,
                true,
            ),
            (
                r#"{"cmd":"client_routes","set":[{"connection_id":"a","node":0,"address":"h"}]}"#,
                false,
            ),
            (
                r#"{"cmd":"client_routes","set":[{"connection_id":"a","node":0,"address":"h","port":0}]}"#,
                false,
            ),
            (
                r#"{"cmd":"client_routes","set":[{"connection_id":"a","node":3,"address":"h","port":1}]}"#,
                false,
            ),
            (r#"{"cmd":"client_routes"}"#, false),
            (r#"{"cmd":"reset_stats"}"#, true),
            (r#"{"cmd":"announce","node":0,"event":"new"}"#, true),
            (r#"{"cmd":"announce","node":0,"event":"no such"}"#, false),
            (r#"{"cmd":"forget_prepared"}"#, true),
            (r#"{"cmd":"nat","node":0,"on":true}"#, true),
            (
                r#"{"cmd":"flip_version","keyspace":"ks","table":"t","tablet":0,"bits":1}"#,
                false,
            ),
            (
                r#"{"cmd":"split","keyspace":"ks","table":"t","tablet":0}"#,
                false,
            ),
            (r#"{"cmd":"no such"}"#, false),
            ("[]", false),
            ("not json", false),
            ("", false),
        ];
        for (line, ok) in cases {
            let answer: Value = serde_json::from_str(&handle(&mut cluster, line)).unwrap();
            assert_eq!(answer["ok"], ok, "{line}: {answer}");
            assert_eq!(answer["error"].is_string(), !ok, "{line}: {answer}");
        }
    }
}
