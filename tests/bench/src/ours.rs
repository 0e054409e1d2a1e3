//! The driver of this repository, on tokio.

use core::time::Duration;
use std::time::Instant;

use anyhow::{Result, ensure};
use messina_tokio::{Prepared, Session};

use crate::workload::{Check, Driver, INSERT, KEYSPACE, Row, SELECT, Shape, TABLE, Work};

/// A session with the two statements prepared.
#[derive(Clone, Debug)]
pub struct Ours {
    session: Session,
    insert: Prepared,
    select: Prepared,
}

impl Ours {
    /// Connects and waits until every shard has its connection. The schema must be there.
    pub async fn connect(contacts: &str, write_deferral: Option<bool>) -> Result<Self> {
        let session = session(contacts, write_deferral).await?;
        let insert = session.prepare(INSERT).await?;
        let select = session.prepare(SELECT).await?;
        Ok(Self {
            session,
            insert,
            select,
        })
    }

    /// The session.
    pub const fn session(&self) -> &Session {
        &self.session
    }
}

impl Driver for Ours {
    async fn request(&self, work: Work, row: Row, rows: u32) -> Result<()> {
        let values = row.values();
        match work {
            Work::Insert => {
                self.session.execute(&self.insert, values).await?;
            }
            Work::Select => {
                let result = self.session.execute(&self.select, (values.0,)).await?;
                let mut check = Check::new(row.station, rows);
                for row in result.rows::<(i32, f64, &str)>()? {
                    let (at, depth, note) = row?;
                    check.row(at, depth, note)?;
                }
                check.end()?;
            }
        }
        Ok(())
    }
}

/// Makes the table and all its rows.
pub async fn fill(contacts: &str, shape: Shape) -> Result<()> {
    let session = session(contacts, None).await?;
    session.query(KEYSPACE, ()).await?;
    session.query(TABLE, ()).await?;
    drop(session);
    let ours = Ours::connect(contacts, None).await?;
    let in_flight = shape.len().min(256);
    crate::workload::run(&ours, Work::Insert, shape, shape.len(), in_flight).await?;
    Ok(())
}

async fn session(contacts: &str, write_deferral: Option<bool>) -> Result<Session> {
    let mut builder = messina_tokio::builder().contact(contacts);
    if let Some(write_deferral) = write_deferral {
        builder.config().write_deferral = write_deferral;
    }
    let session = builder.connect().await?;
    let give_up_at = Instant::now() + COMPLETE_WITHIN;
    while !session.status().is_complete() {
        ensure!(Instant::now() < give_up_at, "{:?}", session.status());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(session)
}

/// How long all connections may take to open; valgrind is slow.
const COMPLETE_WITHIN: Duration = Duration::from_secs(30);
