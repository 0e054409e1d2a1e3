//! The simulated cluster behind the emulated board: `messina sim` on loopback addresses of its own, and what is
//! done to it by its control port.

use core::time::Duration;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::command::{Failure, Outcome, Server};
use crate::context::Context;

const ANSWER_MAX: Duration = Duration::from_secs(10);
const KEYSPACE: &str = "plant";
const TABLE: &str = "readings";
/// Strongly consistent, with a replica on each of three nodes.
const MAKE_KEYSPACE: &str = "CREATE KEYSPACE plant WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 3} \
    AND tablets = {'initial': 64} AND consistency = 'global';";
const MAKE_TABLE: &str = "CREATE TABLE plant.readings \
    (sensor int, at bigint, celsius double, PRIMARY KEY (sensor, at));";
/// The node that is killed.
const VICTIM: usize = 2;

/// A running cluster; ended when dropped.
#[derive(Debug)]
pub(super) struct Cluster {
    control: BufReader<TcpStream>,
    contact: String,
    pub(super) port: u16,
    /// A file with the certificate of the nodes' authority, where they encrypt.
    pub(super) authority: Option<PathBuf>,
    /// The counters at the moments that the firmware asked for.
    stats: HashMap<String, Value>,
    _server: Server,
}

impl Cluster {
    /// Builds the server.
    pub(super) fn build(context: &Context) -> Outcome {
        context
            .cargo(["build", "--locked", "-p", "messina-cli"])
            .run()
    }

    /// Starts a cluster on ports of its choice.
    pub(super) fn start(context: &Context, options: &[&str]) -> Outcome<Self> {
        let mut server = context
            .run(context.target_dir.join("debug/messina"))
            .args(["sim", "--port", "0", "--shard-aware-port", "0"])
            .args(options)
            .start()?;
        let ready = server.first_line(Duration::from_secs(20))?;
        let not_ready = || Failure::new(format!("the simulated cluster is not ready: {ready}"));
        let told: Value = serde_json::from_str(&ready).map_err(|_| not_ready())?;
        let contact = told["contact"][0].as_str().ok_or_else(not_ready)?;
        let control = told["control"].as_str().ok_or_else(not_ready)?;
        let control = TcpStream::connect(control)?;
        control.set_read_timeout(Some(ANSWER_MAX))?;
        Ok(Self {
            control: BufReader::new(control),
            port: port_of(contact).ok_or_else(not_ready)?,
            contact: contact.to_owned(),
            authority: told["ca"].as_str().map(PathBuf::from),
            stats: HashMap::new(),
            _server: server,
        })
    }

    /// Makes the table of readings, as an operator does before devices write to it.
    pub(super) fn make_table(&self, context: &Context) -> Outcome {
        let mut query = context.run(context.target_dir.join("debug/messina")).args([
            "query",
            "--contact",
            &self.contact,
        ]);
        if let Some(authority) = &self.authority {
            query = query.arg("--ca").arg(authority);
        }
        query.args([MAKE_KEYSPACE, MAKE_TABLE]).run()
    }

    /// Does what the firmware's console asks for.
    pub(super) fn happen(&mut self, event: &str) -> Outcome {
        match event.split_once(' ').unwrap_or((event, "")) {
            ("stats", label) => {
                let stats = self.command(&json!({ "cmd": "stats" }))?;
                self.stats.insert(label.to_owned(), stats);
            }
            ("move_tablet", _) => self.move_tablets()?,
            ("set_leader", _) => self.change_leaders()?,
            ("kill", _) => drop(self.command(&json!({ "cmd": "kill", "node": VICTIM }))?),
            ("start", _) => drop(self.command(&json!({ "cmd": "start", "node": VICTIM }))?),
            _ => return Err(Failure::new(format!("the firmware asks for `{event}`"))),
        }
        Ok(())
    }

    /// What a counter of all nodes grew by between two moments.
    pub(super) fn between(&self, from: &str, to: &str, counter: &str) -> Outcome<u64> {
        let at = |label: &str| {
            let stats = self.stats.get(label)?;
            let nodes = stats["nodes"].as_array()?;
            let counts = nodes.iter().map(|node| node[counter].as_u64());
            counts.sum::<Option<u64>>()
        };
        match (at(from), at(to)) {
            (Some(before), Some(after)) => Ok(after.saturating_sub(before)),
            _ => Err(Failure::new(format!(
                "no counter {counter} from {from} to {to}"
            ))),
        }
    }

    /// Moves a replica of every tablet to another shard of its node.
    fn move_tablets(&mut self) -> Outcome {
        for (at, tablet) in self.tablets()?.iter().enumerate() {
            let from = &tablet["replicas"][0];
            let shard = from["shard"].as_u64().unwrap_or_default();
            let to = json!({ "node": from["node"], "shard": u64::from(shard == 0) });
            let mut command = of_tablet("move_tablet", at);
            command["from"] = from.clone();
            command["to"] = to;
            self.command(&command)?;
        }
        Ok(())
    }

    /// Gives every tablet the leader behind its own.
    fn change_leaders(&mut self) -> Outcome {
        for (at, tablet) in self.tablets()?.iter().enumerate() {
            let replicas = tablet["replicas"].as_array().map_or(1, Vec::len) as u64;
            let leader = tablet["leader"].as_u64().unwrap_or_default();
            let mut command = of_tablet("set_leader", at);
            command["leader"] = ((leader + 1) % replicas).into();
            self.command(&command)?;
        }
        Ok(())
    }

    fn tablets(&mut self) -> Outcome<Vec<Value>> {
        let command = json!({ "cmd": "tablets", "keyspace": KEYSPACE, "table": TABLE });
        let answer = self.command(&command)?;
        match answer["tablets"].as_array() {
            Some(tablets) if !tablets.is_empty() => Ok(tablets.clone()),
            _ => Err(Failure::new("the table of readings has no tablets")),
        }
    }

    fn command(&mut self, command: &Value) -> Outcome<Value> {
        writeln!(self.control.get_mut(), "{command}")?;
        let mut line = String::new();
        self.control.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line)
            .map_err(|error| Failure::new(format!("control port: {error}")))?;
        if answer["ok"] == true {
            return Ok(answer);
        }
        Err(Failure::new(format!("{command}: {}", answer["error"])))
    }
}

fn of_tablet(command: &str, tablet: usize) -> Value {
    json!({ "cmd": command, "keyspace": KEYSPACE, "table": TABLE, "tablet": tablet })
}

fn port_of(contact: &str) -> Option<u16> {
    contact.rsplit_once(':')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_behind_the_last_colon() {
        assert_eq!(port_of("127.0.0.1:40123"), Some(40123));
        assert_eq!(port_of("[::1]:9042"), Some(9042));
        assert_eq!(port_of("nowhere"), None);
    }
}
