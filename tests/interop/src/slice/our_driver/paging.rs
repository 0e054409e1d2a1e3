//! Pages of every size, where each page is asked for by the session that did not get the one
//! before: a paging state must mean the same to any session.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use messina_core::exec::paging::PagingState;
use messina_tokio::Session;

use super::load::{ROWS, Row, row};

const SCAN: &str = "SELECT id, name, payload, ratio, tag FROM driver.rows";

const PAGE_SIZES: [usize; 4] = [1, 7, 100, 5000];

pub(super) async fn pages(first: &Session, second: &Session) -> Result<String> {
    let scans = [
        (first, first.prepare(SCAN).await?),
        (second, second.prepare(SCAN).await?),
    ];
    let mut saw = Vec::new();
    for page_size in PAGE_SIZES {
        let mut found = BTreeSet::new();
        let (mut pages, mut state) = (0_usize, None);
        loop {
            let (session, scan) = &scans[pages % 2];
            let scan = scan
                .clone()
                .with_page_size(i32::try_from(page_size)?)
                .with_paging_state(state);
            let page = session.execute(&scan, ()).await?;
            ensure!(
                page.row_count() <= page_size,
                "{} rows in a page of {page_size}",
                page.row_count()
            );
            for read in page.rows::<Row>()? {
                let read = read?;
                ensure!(read == row(read.0), "row {} holds {read:?}", read.0);
                ensure!(found.insert(read.0), "row {} came twice", read.0);
            }
            pages += 1;
            // Through bytes, as one that was kept for later would come.
            let kept = page.paging_state().map(|state| state.as_bytes().to_vec());
            match kept {
                Some(kept) => state = Some(PagingState::from_bytes(Bytes::from(kept))),
                None => break,
            }
            ensure!(pages <= 2 * ROWS, "pages without end");
        }
        ensure!(found.len() == ROWS, "{} rows in all", found.len());
        ensure!(
            pages >= ROWS.div_ceil(page_size),
            "{pages} pages of {page_size}"
        );
        saw.push(format!("{pages} of {page_size}"));
    }
    no_pages(first).await?;
    pager(first).await?;
    Ok(format!("{ROWS} rows each: {}", saw.join(", ")))
}

/// A page size of 0 means everything at once.
async fn no_pages(session: &Session) -> Result<()> {
    let scan = session.prepare(SCAN).await?.with_page_size(0);
    let all = session.execute(&scan, ()).await?;
    ensure!(
        all.row_count() == ROWS && all.paging_state().is_none(),
        "{} rows without pages",
        all.row_count()
    );
    Ok(())
}

/// The pager alone, and what a state of another statement brings.
async fn pager(session: &Session) -> Result<()> {
    let scan = session.prepare(SCAN).await?.with_page_size(999);
    let mut pager = session.pages(&scan, ())?;
    let (mut rows, mut state) = (0, None);
    while let Some(page) = pager.next_page().await? {
        rows += page.row_count();
        state = state.or_else(|| page.paging_state().cloned());
    }
    ensure!(rows == ROWS, "the pager gave {rows} rows");
    let state = state.context("no paging state")?;
    let mut bent = state.as_bytes().to_vec();
    bent.truncate(bent.len() / 2);
    let bent = PagingState::from_bytes(Bytes::from(bent));
    let scan = scan.with_paging_state(Some(bent));
    match session.execute(&scan, ()).await {
        Err(error) if error.server().is_some() && !error.may_have_been_applied() => Ok(()),
        other => bail!("a bent paging state brought {other:?}"),
    }
}
