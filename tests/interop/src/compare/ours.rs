//! Our driver does the workload, as the programs in `python/` and `rust/` let the others do it.

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use messina_core::drive::Prepared;
use messina_core::wire::Consistency;
use messina_tokio::Session;
use tokio::task::JoinSet;

use super::workload::{Statement, Step, VALUE, Workload};

/// The whole workload, with a runtime of two threads as the others have.
pub(super) fn perform(contact: &str, conductor: SocketAddr, workload: &Workload) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let stream = TcpStream::connect(conductor).context("no conductor")?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut conductor = BufReader::new(stream);
    let session = runtime.block_on(messina_tokio::builder().contact(contact).connect())?;
    reach(&mut conductor, "connected")?;
    let work = Arc::new(runtime.block_on(Work::prepare(session, workload))?);
    for step in &workload.steps {
        reach(&mut conductor, "step")?;
        runtime.block_on(work.step(step))?;
    }
    reach(&mut conductor, "end")?;
    runtime.block_on(work.session.close());
    Ok(())
}

/// Tells how far the workload is and waits.
fn reach(conductor: &mut BufReader<TcpStream>, point: &str) -> Result<()> {
    writeln!(conductor.get_mut(), "{point}")?;
    let mut line = String::new();
    conductor.read_line(&mut line)?;
    ensure!(line == "go on\n", "the conductor says {line:?}");
    Ok(())
}

struct Work {
    session: Session,
    statements: Vec<(Prepared, bool)>,
}

impl Work {
    async fn prepare(session: Session, workload: &Workload) -> Result<Self> {
        for text in &workload.create {
            session.query(text.as_str(), ()).await?;
        }
        let mut statements = Vec::new();
        for Statement { cql, level, writes } in &workload.statements {
            let level = match *level {
                "LOCAL_QUORUM" => Consistency::LocalQuorum,
                "LOCAL_ONE" => Consistency::LocalOne,
                other => bail!("the level {other} is not known"),
            };
            // One row: nobody asks for pages.
            let prepared = session.prepare(cql.as_str()).await?;
            statements.push((prepared.with_consistency(level).with_page_size(0), *writes));
        }
        Ok(Self {
            session,
            statements,
        })
    }

    /// The requests of a step in order, so many at once as it says: the next ones when all of them
    /// are answered.
    async fn step(self: &Arc<Self>, step: &Step) -> Result<()> {
        for wave in step.requests.chunks(step.in_flight()) {
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
        let (prepared, writes) = self.statements.get(index).context("no such statement")?;
        if *writes {
            self.session.execute(prepared, (key, VALUE)).await?;
            return Ok(());
        }
        let answer = self.session.execute(prepared, (key,)).await?;
        let (found,): (&str,) = answer.single_row()?;
        ensure!(found == VALUE, "row {key} holds {found}");
        Ok(())
    }
}
