//! Reading a statement's pages one after the other.
//!
//! Each page is a request of its own; what joins them is the paging state alone, see
//! [`exec::paging`](crate::exec::paging).

use super::rows::QueryResult;
use super::session::{EncodedRow, Session};
use super::statement::Prepared;
use crate::error::Error;
use crate::exec::paging::Paging;

/// Reads the pages of a statement one after the other; each is a request of its own with a time
/// limit of its own.
#[derive(Debug)]
pub struct Pager<'a> {
    session: &'a Session,
    prepared: &'a Prepared,
    values: EncodedRow,
    paging: Paging,
}

impl<'a> Pager<'a> {
    pub(super) fn new(session: &'a Session, prepared: &'a Prepared, values: EncodedRow) -> Self {
        let paging = match &prepared.options().paging_state {
            Some(state) => Paging::More(state.clone()),
            None => Paging::Start,
        };
        Self {
            session,
            prepared,
            values,
            paging,
        }
    }

    /// The next page, or `None` after the last one. A page may be empty and more may follow. After
    /// an error the same page is asked for again. Dropping the future leaves the pager where it is.
    pub async fn next_page(&mut self) -> Result<Option<QueryResult>, Error> {
        let Some(state) = self.paging.next() else {
            return Ok(None);
        };
        let page = self
            .session
            .execute_encoded(self.prepared, &self.values, state)
            .await?;
        self.paging.advance(page.paging_state().cloned());
        Ok(Some(page))
    }

    /// How far it has come.
    pub const fn paging(&self) -> &Paging {
        &self.paging
    }
}
