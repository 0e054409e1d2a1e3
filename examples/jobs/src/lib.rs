//! Ten common jobs. Each is a module of its own, short enough to be read whole and made to be copied.
//!
//! | module | job |
//! |---|---|
//! | [`connect`] | log in, over TLS, to the near data centre |
//! | [`rows`] | write and read rows as structs |
//! | [`pages`] | read a large result, and go on later where it was left |
//! | [`many`] | thousands of writes, a bounded number under way |
//! | [`batches`] | several writes that happen together |
//! | [`conditional`] | write only if nobody else has |
//! | [`collections`] | lists, maps, and user-defined types; null and unset |
//! | [`errors`] | time limits, and whether a failed write may have been applied |
//! | [`observe`] | which node and shard answered, a trace, the state of the session |
//! | [`restart`] | begin where the last process ended |
//!
//! `tests/jobs.rs` shows how a program is tested with the simulated cluster instead of a live one.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "printing is the point")]

pub mod batches;
pub mod collections;
pub mod conditional;
pub mod connect;
pub mod errors;
pub mod many;
pub mod observe;
pub mod pages;
mod place;
pub mod restart;
pub mod rows;

pub use place::{Place, Secure};

/// What the jobs fail with.
pub type Failure = Box<dyn core::error::Error + Send + Sync>;

/// A job.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Job {
    /// Its name on the command line, and that of its module.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
}

const fn job(name: &'static str, what: &'static str) -> Job {
    Job { name, what }
}

/// All of them.
pub const JOBS: [Job; 10] = [
    job("connect", "log in, over TLS, to the near data centre"),
    job("rows", "write and read rows"),
    job("pages", "read a large result, and go on later"),
    job("many", "thousands of writes, a bounded number under way"),
    job("batches", "several writes that happen together"),
    job("conditional", "write only if nobody else has"),
    job("collections", "lists, maps, user-defined types"),
    job("errors", "time limits, and what a failed write has done"),
    job("observe", "who answered, a trace, the session's state"),
    job("restart", "begin where the last process ended"),
];

/// Runs one job.
///
/// Fails where the job does, and for a name that is none.
pub async fn run(name: &str, place: &Place) -> Result<(), Failure> {
    let session = place.builder().connect().await?;
    session.query(KEYSPACE, ()).await?;
    match name {
        "connect" => connect::run(place).await?,
        "rows" => rows::run(&session).await?,
        "pages" => pages::run(&session).await?,
        "many" => many::run(&session).await?,
        "batches" => batches::run(&session).await?,
        "conditional" => conditional::run(&session).await?,
        "collections" => collections::run(&session).await?,
        "errors" => errors::run(&session).await?,
        "observe" => observe::run(&session).await?,
        "restart" => restart::run(&session, place).await?,
        _ => return Err(format!("there is no job `{name}`").into()),
    }
    session.close().await;
    Ok(())
}

const KEYSPACE: &str = "CREATE KEYSPACE IF NOT EXISTS jobs WITH replication =
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}";
