//! Tells a driver when to go on with the workload, and does what has to be done in between: looks
//! at the servers' counters, moves tablets, changes leaders.
//!
//! The driver's side says a word a line, `connected`, `step` or `end`, and waits for `go on`. No
//! request is under way then.

use core::time::Duration;
use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::workload::{Change, Kind, TABLES, Workload};
use crate::foreign::Simulator;

const MEET_LIMIT: Duration = Duration::from_secs(30);
/// The longest that a step may take.
const STEP_LIMIT: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(20);
/// So long no connection may come before all are taken to be there.
const SETTLED: Duration = Duration::from_millis(500);

/// One conductor for one driver.
#[derive(Debug)]
pub(super) struct Conductor<'a> {
    simulator: &'a Simulator,
    workload: &'a Workload,
    looks: Vec<Value>,
}

impl<'a> Conductor<'a> {
    pub(super) const fn new(simulator: &'a Simulator, workload: &'a Workload) -> Self {
        Self {
            simulator,
            workload,
            looks: Vec::new(),
        }
    }

    /// The counters before each step and at the end.
    pub(super) fn into_looks(self) -> Vec<Value> {
        self.looks
    }

    /// From the driver's coming to its end; `is_coming` fails if it never will.
    pub(super) fn conduct(
        &mut self,
        listener: &TcpListener,
        mut is_coming: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        listener.set_nonblocking(true)?;
        let start = Instant::now();
        let stream = loop {
            if let Ok((stream, _)) = listener.accept() {
                break stream;
            }
            is_coming()?;
            ensure!(start.elapsed() < MEET_LIMIT, "nobody came to the conductor");
            thread::sleep(POLL_EVERY);
        };
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(STEP_LIMIT))?;
        let mut player = BufReader::new(stream);
        expect(&mut player, "connected")?;
        self.settle()?;
        go_on(&mut player)?;
        for step in 0..self.workload.steps.len() {
            expect(&mut player, "step")?;
            if step == 0 {
                self.settle()?;
            }
            self.begin(step)?;
            go_on(&mut player)?;
        }
        expect(&mut player, "end")?;
        self.looks.push(self.simulator.stats()?);
        go_on(&mut player)
    }

    /// Waits until no more connections come.
    fn settle(&self) -> Result<()> {
        let start = Instant::now();
        let (mut last, mut since) = (None, start);
        while since.elapsed() < SETTLED {
            ensure!(start.elapsed() < MEET_LIMIT, "connections come and come");
            let stats = self.simulator.stats()?;
            let now = super::figures::sum(&stats, "connections");
            if now != last {
                (last, since) = (now, Instant::now());
            }
            thread::sleep(POLL_EVERY);
        }
        Ok(())
    }

    fn begin(&mut self, step: usize) -> Result<()> {
        self.looks.push(self.simulator.stats()?);
        let step = &self.workload.steps[step];
        for change in &step.changes {
            self.make(*change)
                .with_context(|| format!("cannot make {change:?}"))?;
        }
        let gather = json!({ "cmd": "gather", "count": step.phase.gathered(), "ms": 1000 });
        self.simulator.control(&gather)?;
        Ok(())
    }

    fn make(&self, change: Change) -> Result<()> {
        let place = Tablet::of(change);
        let before = place.read(self.simulator)?;
        let mut command = place.command(match change.kind {
            Kind::Lead => "set_leader",
            Kind::ToNode | Kind::ToShard => "move_tablet",
        });
        let replicas = before["replicas"].as_array().context("no replicas")?;
        let leader = before["leader"].as_u64().unwrap_or_default() as usize;
        if change.kind == Kind::Lead {
            command["leader"] = json!((leader + 1) % replicas.len());
        } else {
            let from = replicas.get(leader).context("no leader")?;
            let number = |name: &str| from[name].as_u64().context("no place");
            let (node, shard) = (number("node")?, number("shard")?);
            let node = match change.kind {
                Kind::ToNode => (node + 1) % u64::from(Simulator::NODES),
                _ => node,
            };
            let shard = (shard + 1) % u64::from(Simulator::SHARDS);
            command["from"] = from.clone();
            command["to"] = json!({ "node": node, "shard": shard });
        }
        self.simulator.control(&command)?;
        let after = place.read(self.simulator)?;
        let mut turn = place.command("flip_version");
        turn["bits"] = json!(version(&before)? ^ version(&after)? ^ change.turned);
        self.simulator.control(&turn)?;
        let turned = version(&place.read(self.simulator)?)?;
        ensure!(
            turned == version(&before)? ^ change.turned,
            "the version is {turned:x}"
        );
        Ok(())
    }
}

/// A tablet as the control port names it.
struct Tablet {
    keyspace: &'static str,
    token: i64,
}

impl Tablet {
    fn of(change: Change) -> Self {
        Self {
            keyspace: TABLES[change.table].keyspace,
            token: change.token,
        }
    }

    fn command(&self, name: &str) -> Value {
        json!({ "cmd": name, "keyspace": self.keyspace, "table": "rows", "token": self.token })
    }

    fn read(&self, simulator: &Simulator) -> Result<Value> {
        let mut answer = simulator.control(&self.command("tablets"))?;
        let tablets = answer["tablets"].as_array_mut().context("no tablets")?;
        let holds = |tablet: &Value| {
            tablet["last"]
                .as_i64()
                .is_some_and(|last| self.token <= last)
        };
        let at = tablets.iter().position(holds).context("no such tablet")?;
        Ok(tablets.swap_remove(at))
    }
}

fn version(tablet: &Value) -> Result<u64> {
    let version = tablet["version"].as_str().context("no version")?;
    Ok(u64::from_str_radix(version, 16)?)
}

fn expect(player: &mut BufReader<TcpStream>, wanted: &str) -> Result<()> {
    let mut line = String::new();
    player.read_line(&mut line)?;
    ensure!(line.trim_end() == wanted, "wanted {wanted}, got {line:?}");
    Ok(())
}

fn go_on(player: &mut BufReader<TcpStream>) -> Result<()> {
    Ok(player.get_mut().write_all(b"go on\n")?)
}
