//! Crate `scylla` does the workload that all compared drivers do, and prints one JSON line.
//!
//! The workload is a file: what to create, what to prepare, and steps of requests. Before each step
//! it tells the conductor and waits for its answer. It uses nothing of messina.

#![forbid(unsafe_code)]

use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::timestamp_generator::MonotonicTimestampGenerator;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use serde_json::{Value, json};
use tokio::task::JoinSet;

fn main() -> ExitCode {
    let run = || -> Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let mut given = BTreeMap::new();
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().with_context(|| format!("{name} what?"))?;
            given.insert(name, value);
        }
        let argument = |name: &str| given.get(name).with_context(|| format!("no {name}"));
        let workload = std::fs::read_to_string(argument("--workload")?)?;
        let workload: Value = serde_json::from_str(&workload)?;
        let mut conductor = Conductor::meet(argument("--conductor")?)?;
        runtime.block_on(perform(argument("--contact")?, &workload, &mut conductor))?;
        let done = json!({ "driver": "scylla", "version": version() });
        writeln!(std::io::stdout().lock(), "{done}")?;
        Ok(())
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn perform(contact: &str, workload: &Value, conductor: &mut Conductor) -> Result<()> {
    // The others send the time of each write by default, this one when it is told to.
    let session = SessionBuilder::new()
        .known_node(contact)
        .timestamp_generator(Arc::new(MonotonicTimestampGenerator::new()))
        .connection_timeout(Duration::from_secs(10))
        .build()
        .await?;
    conductor.reach("connected")?;
    for text in list(&workload["create"])? {
        session.query_unpaged(word(text)?, ()).await?;
    }
    let mut statements = Vec::new();
    for statement in list(&workload["statements"])? {
        statements.push(Prepared::of(&session, statement).await?);
    }
    let work = Arc::new(Work {
        session,
        statements,
        value: word(&workload["value"])?.to_owned(),
    });
    for step in list(&workload["steps"])? {
        conductor.reach("step")?;
        work.step(step).await?;
    }
    conductor.reach("end")
}

struct Prepared {
    statement: PreparedStatement,
    writes: bool,
}

impl Prepared {
    async fn of(session: &Session, statement: &Value) -> Result<Self> {
        let mut prepared = session.prepare(word(&statement["cql"])?).await?;
        prepared.set_consistency(match word(&statement["level"])? {
            "LOCAL_QUORUM" => Consistency::LocalQuorum,
            "LOCAL_ONE" => Consistency::LocalOne,
            other => bail!("the level {other} is not known"),
        });
        Ok(Self {
            statement: prepared,
            writes: statement["writes"] == true,
        })
    }
}

struct Work {
    session: Session,
    statements: Vec<Prepared>,
    value: String,
}

impl Work {
    /// The requests of a step in order, so many at once as it says: the next ones when all of them
    /// are answered.
    async fn step(self: &Arc<Self>, step: &Value) -> Result<()> {
        let mut requests = Vec::new();
        for request in list(&step["requests"])? {
            let index = request[0].as_u64().context("no statement")?;
            requests.push((index as usize, request[1].as_i64().context("no key")?));
        }
        let in_flight = step["in_flight"].as_u64().context("no in_flight")?;
        for wave in requests.chunks(in_flight as usize) {
            let mut calls = JoinSet::new();
            for &(index, key) in wave {
                let work = Arc::clone(self);
                calls.spawn(async move { work.request(index, key).await });
            }
            while let Some(call) = calls.join_next().await {
                call??;
            }
        }
        Ok(())
    }

    async fn request(&self, index: usize, key: i64) -> Result<()> {
        let prepared = self.statements.get(index).context("no such statement")?;
        let statement = &prepared.statement;
        if prepared.writes {
            let values = (key, self.value.as_str());
            self.session.execute_unpaged(statement, values).await?;
            return Ok(());
        }
        let answer = self.session.execute_unpaged(statement, (key,)).await?;
        let answer = answer.into_rows_result()?;
        let (found,) = answer.single_row::<(&str,)>()?;
        ensure!(found == self.value, "row {key} holds {found}");
        Ok(())
    }
}

/// Who says when the workload may go on.
struct Conductor(BufReader<TcpStream>);

impl Conductor {
    fn meet(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).context("no conductor")?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Tells how far the workload is and waits. Blocks, with no request under way.
    fn reach(&mut self, point: &str) -> Result<()> {
        writeln!(self.0.get_mut(), "{point}")?;
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        ensure!(line == "go on\n", "the conductor says {line:?}");
        Ok(())
    }
}

fn list(value: &Value) -> Result<&Vec<Value>> {
    value.as_array().context("no list")
}

fn word(value: &Value) -> Result<&str> {
    value.as_str().context("no text")
}

/// Of the crate, as the lock file has it: it does not say itself.
fn version() -> &'static str {
    let lock = include_str!("../../../../Cargo.lock");
    let after_name = lock.split("name = \"scylla\"\nversion = \"").nth(1);
    after_name
        .and_then(|rest| rest.split('"').next())
        .unwrap_or("?")
}
