//! Rows read while their page still comes.
//!
//! Pieces of the body are handed from the link to the reader one at a time, and the link is read
//! again only when the piece before was used up: a slow reader holds the node back through TCP, and
//! a page larger than all memory passes. Answers behind it on the same link wait as long.
//!
//! Cost: a row that lies within a piece is read in place, without the lock; no heap for any row or
//! piece, nor for a stream while the session has its window to spare.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::future::poll_fn;
use core::task::{Context, Poll};

use bytes::Bytes;

use super::cursor::{Cursor, Found};
use super::hub::{Held, Hub, Next};
use super::reply::{not_rows, other_type, stopped};
use super::rows::{Cells, FromCells, type_numbers};
use crate::error::{Error, PeerMisbehaved};
use crate::exec::paging::PagingState;
use crate::routing::PayloadKind;
use crate::sync::Shared;
use crate::wire::response::{Extras, RawRow};

/// The rows of one page, as they come. Made by [`Session::stream`](super::Session::stream).
///
/// Dropping it gives the rest up: the link skips what is still to come of the page, which is no more
/// than `Limits::frame` allows, and other requests on it go on.
pub struct RowStream<'a> {
    hub: &'a Hub,
    /// `None` once there is nothing to wait for.
    ticket: Option<u32>,
    /// Why the request was not even begun.
    refused: Option<Error>,
    held: Option<Shared<Held>>,
    cursor: Cursor,
    piece: Bytes,
    /// Bytes of the piece that were read.
    at: usize,
    has_front: bool,
    types: Vec<u16>,
    /// The check that the types have passed.
    checked: usize,
    paging_state: Option<PagingState>,
}

impl<'a> RowStream<'a> {
    pub(super) fn new(
        hub: &'a Hub,
        begun: Result<u32, Error>,
        held: Option<Shared<Held>>,
        window_len: usize,
    ) -> Self {
        let spare = hub.with(|state| state.desk.window.take()).flatten();
        let (window, types) =
            spare.unwrap_or_else(|| (alloc::vec![0; window_len].into(), Vec::new()));
        let (ticket, refused) = match begun {
            Ok(ticket) => (Some(ticket), None),
            Err(error) => (None, Some(error)),
        };
        Self {
            hub,
            ticket,
            refused,
            held,
            cursor: Cursor::new(window),
            piece: Bytes::new(),
            at: 0,
            has_front: false,
            types,
            checked: 0,
            paging_state: None,
        }
    }

    /// The next row as `R`, a tuple of owned values; `None` after the last one. Types are checked
    /// with the first row.
    ///
    /// Fails with a row that is larger than `Limits::row_window` or of other types, and with
    /// whatever ends the request; there are no more rows then. Dropping the future loses nothing.
    pub async fn next<R: for<'r> FromCells<'r>>(&mut self) -> Option<Result<R, Error>> {
        if self.checked == check_of::<R>()
            && let Some(row) = self.read_in_place()
        {
            return Some(Ok(row));
        }
        match poll_fn(|cx| self.poll_row(cx)).await {
            Ok(None) => None,
            Ok(Some(place)) => Some(self.read_found(place)),
            Err(error) => Some(Err(error)),
        }
    }

    /// The next row as it came, borrowed until the next call: for texts that are not to be copied.
    pub async fn next_raw(&mut self) -> Option<Result<RawRow<'_>, Error>> {
        match poll_fn(|cx| self.poll_row(cx)).await {
            Ok(None) => None,
            Ok(Some(place)) => {
                let row = RawRow::of_checked(self.cursor.column_count(), self.bytes(place));
                Some(Ok(row))
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// Waits for what stands before the rows: afterwards [`paging_state`](Self::paging_state) and
    /// [`type_numbers`](Self::type_numbers) are known.
    pub async fn front(&mut self) -> Result<(), Error> {
        poll_fn(|cx| self.poll_front(cx)).await
    }

    /// Where the next page begins; `None` if this is the last one, and before the first row.
    pub const fn paging_state(&self) -> Option<&PagingState> {
        self.paging_state.as_ref()
    }

    /// The protocol's numbers of the columns' types; none before the first row.
    pub fn type_numbers(&self) -> &[u16] {
        &self.types
    }

    /// Rows that were not read yet; 0 before the first row.
    pub const fn rows_left(&self) -> u32 {
        self.cursor.rows_left()
    }

    /// A row that lies wholly in the piece, without the lock and without a look at its length first.
    #[inline]
    fn read_in_place<R: for<'r> FromCells<'r>>(&mut self) -> Option<R> {
        if !self.cursor.is_between() {
            return None;
        }
        let rest = self.piece.get(self.at..)?;
        let mut cells = Cells::new(self.cursor.column_count(), rest);
        let row = R::from_cells(&mut cells).ok()?;
        let len = rest.len().saturating_sub(cells.rest().len());
        if !self.cursor.skip(len) {
            return None;
        }
        self.at = self.at.saturating_add(len);
        Some(row)
    }

    fn read_found<R: for<'r> FromCells<'r>>(&mut self, place: Place) -> Result<R, Error> {
        if self.checked != check_of::<R>() {
            if !R::is_of(&mut self.types.iter().copied()) {
                return Err(self.fail(other_type()));
            }
            self.checked = check_of::<R>();
        }
        let mut cells = Cells::new(self.cursor.column_count(), self.bytes(place));
        let row = R::from_cells(&mut cells);
        row.map_err(|stop| self.fail(stopped(stop)))
    }

    fn bytes(&self, place: Place) -> &[u8] {
        match place {
            Place::Window => self.cursor.held(),
            Place::Piece { at, len } => {
                let behind = self.piece.get(at..).unwrap_or_default();
                behind.get(..len).unwrap_or_default()
            }
        }
    }

    fn fail(&mut self, error: Error) -> Error {
        self.give_up();
        self.cursor.stop();
        self.piece = Bytes::new();
        self.at = 0;
        error
    }

    fn poll_front(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        while !self.has_front {
            if self.ticket.is_none() && self.refused.is_none() {
                return Poll::Ready(Ok(()));
            }
            core::task::ready!(self.poll_found(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    /// The next row, found but not read. One function for rows of all kinds.
    #[inline(never)]
    fn poll_row(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Place>, Error>> {
        loop {
            let is_over = self.ticket.is_none() && self.cursor.rows_left() == 0;
            if is_over && self.refused.is_none() {
                return Poll::Ready(Ok(None));
            }
            if let Some(place) = core::task::ready!(self.poll_found(cx))? {
                return Poll::Ready(Ok(Some(place)));
            }
        }
    }

    /// One step: a row, or something else that is not told.
    fn poll_found(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Place>, Error>> {
        if let Some(error) = self.refused.take() {
            return Poll::Ready(Err(error));
        }
        let rest = self.piece.get(self.at..).unwrap_or_default();
        // Without a header nothing was begun, and without bytes nothing is found.
        if !rest.is_empty() {
            let (at, given) = (self.at, rest.len());
            let found = match self.cursor.find(rest) {
                Ok(found) => found,
                Err(error) => return Poll::Ready(Err(self.fail(error))),
            };
            let (taken, place) = match found {
                Found::More | Found::End => (given, None),
                Found::Front(taken) => (taken, None),
                Found::Held(taken) => (taken, Some(Place::Window)),
                Found::Given(len) => (len, Some(Place::Piece { at, len })),
            };
            self.at = at.saturating_add(taken);
            if let Found::Front(_) = found
                && let Err(error) = self.handle_front()
            {
                return Poll::Ready(Err(self.fail(error)));
            }
            return Poll::Ready(Ok(place));
        }
        let Some(ticket) = self.ticket else {
            // The end has come before the last row.
            return Poll::Ready(Err(self.fail(PeerMisbehaved::MalformedBody.into())));
        };
        // The piece goes before the next one comes, so that its buffer can be read into again.
        self.piece = Bytes::new();
        self.at = 0;
        match core::task::ready!(self.hub.poll_flow(ticket, cx)) {
            Ok(Next::Header(flags, len)) => self.cursor.start(flags, len),
            Ok(Next::Piece(piece)) => self.piece = piece,
            Ok(Next::End) => {
                self.give_up();
                // What the body lacks is an error.
                if let Err(error) = self.cursor.find(&[]) {
                    return Poll::Ready(Err(error));
                }
            }
            Err(error) => return Poll::Ready(Err(self.fail(error))),
        }
        Poll::Ready(Ok(None))
    }

    fn handle_front(&mut self) -> Result<(), Error> {
        self.has_front = true;
        let front = self.cursor.front()?;
        self.learn(&front.extras);
        let metadata = front.metadata.ok_or_else(not_rows)?;
        let columns = metadata.columns.ok_or(PeerMisbehaved::MalformedBody)?;
        self.types.clear();
        self.types.extend(type_numbers(columns));
        let state = metadata.paging_state.map(Bytes::copy_from_slice);
        self.paging_state = state.map(PagingState::from_bytes);
        Ok(())
    }

    /// Where the rows live, if the node has told.
    fn learn(&self, extras: &Extras<'_>) {
        let Some(table) = self.held.as_ref().and_then(|held| held.statement.table) else {
            return;
        };
        for kind in [PayloadKind::V2, PayloadKind::V1] {
            if let Some(payload) = extras.custom_payload.get(kind.key()) {
                self.hub
                    .with(|state| state.machine.plane.learn(table, kind, payload));
            }
        }
    }

    /// Nothing more is wanted of the request.
    fn give_up(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.hub.cancel(ticket);
        }
    }
}

impl Drop for RowStream<'_> {
    fn drop(&mut self) {
        self.give_up();
        let cursor = core::mem::replace(&mut self.cursor, Cursor::new(Box::new([])));
        let spare = (cursor.into_window(), core::mem::take(&mut self.types));
        let old = self.hub.with(|state| state.desk.window.replace(spare));
        drop(old);
    }
}

impl fmt::Debug for RowStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowStream")
            .field("rows_left", &self.rows_left())
            .finish_non_exhaustive()
    }
}

/// Where a row was found.
#[derive(Clone, Copy, Debug)]
enum Place {
    Window,
    Piece { at: usize, len: usize },
}

/// Tells rows of different types apart; those that are checked alike may be the same.
fn check_of<R: for<'r> FromCells<'r>>() -> usize {
    R::is_of as fn(&mut dyn Iterator<Item = u16>) -> bool as usize
}
