//! A result that is larger than one should hold at once: page by page, and from where it was left.

use messina_core::exec::paging::PagingState;
use messina_tokio::{Error, Session, Statement};

/// Runs the job.
pub async fn run(session: &Session) -> Result<(), Error> {
    session.query(TABLE, ()).await?;
    let insert = session.prepare(INSERT).await?;
    for at in 0..1_000_i64 {
        session.execute(&insert, ("log", at, at * at)).await?;
    }

    // A page is a number of rows at most: one may be shorter, or empty, and others still follow.
    let select = session
        .prepare(Statement::new(SELECT).with_page_size(100))
        .await?;
    let mut pages = session.pages(&select, ("log",))?;
    let (mut rows, mut requests) = (0, 0);
    while let Some(page) = pages.next_page().await? {
        requests += 1;
        for row in page.rows::<(i64, i64)>()? {
            let (at, value) = row?;
            assert_eq!(value, at * at);
            rows += 1;
        }
    }
    println!("{rows} rows in {requests} pages");

    // What continues a result is bytes that may leave the process, in a link to the next page say.
    let first = session.execute(&select, ("log",)).await?;
    let saved = first.paging_state().map(|state| state.as_bytes().to_vec());
    let from_there = saved.map(|bytes| PagingState::from_bytes(bytes.into()));
    let select = select.with_paging_state(from_there);
    let second = session.execute(&select, ("log",)).await?;
    if let Some(row) = second.rows::<(i64, i64)>()?.next() {
        println!("the second page begins at {}", row?.0);
    }
    Ok(())
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS jobs.log
    (name text, at bigint, value bigint, PRIMARY KEY (name, at))";
const INSERT: &str = "INSERT INTO jobs.log (name, at, value) VALUES (?, ?, ?)";
const SELECT: &str = "SELECT at, value FROM jobs.log WHERE name = ?";
