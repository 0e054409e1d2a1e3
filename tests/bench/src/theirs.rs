//! Crate `scylla`, with its default settings, to compare with.

use core::fmt;
use std::sync::Arc;

use anyhow::Result;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::prepared::PreparedStatement;

use crate::workload::{Check, Driver, INSERT, Row, SELECT, Work};

/// A session with the two statements prepared.
#[derive(Clone)]
pub struct Theirs {
    session: Arc<Session>,
    insert: PreparedStatement,
    select: PreparedStatement,
}

impl fmt::Debug for Theirs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Theirs")
    }
}

impl Theirs {
    /// Connects. The schema must be there.
    pub async fn connect(contacts: &str) -> Result<Self> {
        let builder = SessionBuilder::new().known_nodes(contacts.split(','));
        let session = builder.build().await?;
        let insert = session.prepare(INSERT).await?;
        let select = session.prepare(SELECT).await?;
        Ok(Self {
            session: Arc::new(session),
            insert,
            select,
        })
    }
}

impl Driver for Theirs {
    async fn request(&self, work: Work, row: Row, rows: u32) -> Result<()> {
        let values = row.values();
        match work {
            Work::Insert => {
                self.session.execute_unpaged(&self.insert, values).await?;
            }
            Work::Select => {
                let result = self
                    .session
                    .execute_unpaged(&self.select, (values.0,))
                    .await?;
                let result = result.into_rows_result()?;
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
