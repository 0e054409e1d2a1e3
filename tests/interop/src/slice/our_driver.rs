//! Our driver against one real Cassandra node that demands a login, on protocol version 5.
//!
//! Nothing is taken on the driver's word: rows are compared with what their key says, values with
//! the node's own JSON and bytes, tokens with the node's `token()`, and what an error said about a
//! write with what the node holds afterwards. The last step restarts the node under load, so
//! nothing may follow it.

mod alter;
mod batches;
mod conditional;
mod load;
mod paging;
mod restart;
mod round_trips;
mod tokens;
mod typed;
mod values;
mod versions;

use core::time::Duration;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use messina_core::error::ErrorKind;
use messina_core::wire::response::ErrorCode;
use messina_tokio::{Error, Session};
use tokio::runtime::Runtime;

use crate::cassandra::Cassandra;
use crate::probe::Credentials;
use crate::report::Report;

/// The keyspace of all these steps.
const KEYSPACE: &str = "driver";

/// Connects, takes the steps, and leaves the node running again.
pub(super) fn run(report: &mut Report, node: &mut Cassandra) {
    report.part("messina-tokio against Apache Cassandra");
    let runtime = report.step("start a runtime", || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        Ok((runtime, "two threads".to_owned()))
    });
    let Some(runtime) = runtime else { return };
    report.step("a wrong password", || {
        runtime.block_on(wrong_password(node)).map(|saw| ((), saw))
    });
    report.step("round trips to the first row", || {
        runtime
            .block_on(round_trips::run(node))
            .map(|saw| ((), saw))
    });
    let session = report.step("connect", || runtime.block_on(connect(node)));
    let Some(session) = session else { return };
    let trial = Trial { runtime, session };
    if trial
        .step(report, "create a keyspace", create_keyspace)
        .is_none()
    {
        return;
    }
    trial.steps(report, node);
    trial.runtime.block_on(trial.session.close());
}

/// A session, and what runs its futures.
struct Trial {
    runtime: Runtime,
    session: Session,
}

impl Trial {
    fn steps(&self, report: &mut Report, node: &mut Cassandra) {
        let written = self.step(report, "10,000 prepared writes, 64 at a time", load::write);
        if written.is_some() {
            self.step(report, "10,000 prepared reads, 64 at a time", load::read);
            let other = report.step("connect another session", || {
                self.runtime.block_on(connect(node))
            });
            if let Some(other) = other {
                report.step("pages, each read by the other session", || {
                    let pages = paging::pages(&self.session, &other);
                    let saw = self.runtime.block_on(pages)?;
                    self.runtime.block_on(other.close());
                    Ok(((), saw))
                });
            }
        }
        self.step(report, "conditional writes", conditional::run);
        self.step(report, "batches", batches::run);
        self.step(
            report,
            "values of every type, as the node sees them",
            values::run,
        );
        self.step(report, "values of Rust types", typed::run);
        self.step(
            report,
            "counters, null and unset",
            typed::counters_null_and_unset,
        );
        self.step(report, "tokens of every type of key", tokens::run);
        self.step(
            report,
            "columns that change under prepared statements",
            alter::run,
        );
        report.step("versions and compressions", || {
            self.runtime
                .block_on(versions::run(node))
                .map(|saw| ((), saw))
        });
        report.step("restart under load", || {
            restart::run(&self.runtime, &self.session, node).map(|saw| ((), saw))
        });
        self.step(report, "nothing is left under way", idle);
    }

    /// One step of this session.
    fn step<F: Future<Output = Result<String>>>(
        &self,
        report: &mut Report,
        name: &str,
        action: impl FnOnce(Session) -> F,
    ) -> Option<()> {
        report.step(name, || {
            let saw = self.runtime.block_on(action(self.session.clone()))?;
            Ok(((), saw))
        })
    }
}

async fn connect(node: &Cassandra) -> Result<(Session, String)> {
    let credentials = node.credentials().context("the node demands no login")?;
    let session = connect_as(node, &credentials).await?;
    let status = session.status();
    let node = match &status.nodes[..] {
        [node] => node,
        nodes => bail!("{} nodes: {nodes:?}", nodes.len()),
    };
    ensure!(node.is_up && node.shards.is_none(), "the node is {node:?}");
    let connection = node.connections.first().context("no connection")?;
    ensure!(connection.protocol == 5, "protocol {}", connection.protocol);
    ensure!(
        connection.extensions.is_empty(),
        "Cassandra agreed to {:?}",
        connection.extensions
    );
    let (dc, rack) = (&node.dc, &node.rack);
    let saw = format!(
        "protocol 5, {dc} {rack}, {} connections",
        node.connections.len()
    );
    Ok((session, saw))
}

async fn connect_as(node: &Cassandra, credentials: &Credentials) -> Result<Session, Error> {
    messina_tokio::builder()
        .contact(&node.address().to_string())
        .user(&credentials.user, &credentials.password)
        .connect()
        .await
}

async fn wrong_password(node: &Cassandra) -> Result<String> {
    let secret = "not-the-Password-4711";
    let wrong = Credentials::new("cassandra", secret);
    let Err(error) = connect_as(node, &wrong).await else {
        bail!("the node lets {secret} in");
    };
    let refused = |error: &Error| error.kind() == ErrorKind::Server(ErrorCode::BadCredentials);
    ensure!(
        refused(&error) || error.causes().iter().any(refused),
        "the error is {error:?}"
    );
    let said = format!("{error} {error:?}");
    ensure!(!said.contains(secret), "the password is in {said}");
    Ok(format!("refused: {error}"))
}

async fn create_keyspace(session: Session) -> Result<String> {
    let cql = format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = \
        {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    );
    let result = session.query(&*cql, ()).await?;
    ensure!(result.info().schema_changed, "no change of the schema came");
    let error = session.query(&*cql, ()).await.err();
    let error = error.context("a keyspace was made twice")?;
    ensure!(
        error.kind() == ErrorKind::Server(ErrorCode::AlreadyExists),
        "made twice: {error:?}"
    );
    Ok(format!("made twice: {error}"))
}

/// No request, no orphan, every node connected. The control connection may be asking something, as
/// after a restart, so a moment without requests is waited for; one that is lost never comes to it.
async fn idle(session: Session) -> Result<String> {
    let give_up_at = Instant::now() + IDLE_LIMIT;
    loop {
        let status = session.status();
        let connections = || status.nodes.iter().flat_map(|node| &node.connections);
        let in_flight: u32 = connections().map(|connection| connection.in_flight).sum();
        let orphans: u16 = connections().map(|connection| connection.orphans).sum();
        if status.is_complete() && in_flight == 0 && orphans == 0 {
            let connections = status.connections();
            return Ok(format!("0 requests on {connections} connections"));
        }
        ensure!(
            Instant::now() < give_up_at,
            "{in_flight} requests under way, {orphans} orphans: {status:?}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How long until nothing is under way.
const IDLE_LIMIT: Duration = Duration::from_secs(10);

/// The numbers of the SplitMix64 generator: different for each seed, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = super::doubles::mix(self.0);
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}
