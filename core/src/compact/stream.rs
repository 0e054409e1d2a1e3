//! Rows read while their page still comes.
//!
//! The reader owns a window, finds rows in it, and lends it out when there are no more: the link is
//! read into it, and only then. A slow reader holds the node back through TCP, and a page larger than
//! all memory passes. Answers behind it on the same link wait as long.
//!
//! Cost: bytes are copied once, from the link into the window, and what is left of a row that was cut
//! is moved to its start. Neither the machine nor the heap is asked for anything between the first
//! bytes of the rows and their last, and the lock is taken for each filling, not for each row.

use alloc::vec::Vec;
use core::fmt;
use core::future::poll_fn;
use core::task::{Context, Poll};

use bytes::{Buf as _, Bytes, BytesMut};

use super::cursor::{Course, Found};
use super::desk::Held;
use super::flow::Next;
use super::hub::Hub;
use super::reply::{not_rows, other_type, stopped};
use super::rows::{Cells, FromCells, type_numbers};
use crate::error::{Error, PeerMisbehaved};
use crate::exec::paging::PagingState;
use crate::routing::PayloadKind;
use crate::sync::Local;
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
    held: Option<Local<Held>>,
    course: Course,
    /// Bytes that have come, never more than a row may have; those before `at` are read. Empty while
    /// it is lent out.
    window: BytesMut,
    at: usize,
    /// The course knows of what was read before.
    told: usize,
    row_max: usize,
    /// Bytes that came with the frame's header, to go into the window.
    piece: BytesMut,
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
        held: Option<Local<Held>>,
        window_len: usize,
    ) -> Self {
        let spare = hub.with(|state| state.desk.window.take()).flatten();
        let (window, types) =
            spare.unwrap_or_else(|| (BytesMut::with_capacity(window_len), Vec::new()));
        let (ticket, refused) = match begun {
            Ok(ticket) => (Some(ticket), None),
            Err(error) => (None, Some(error)),
        };
        Self {
            hub,
            ticket,
            refused,
            held,
            course: Course::OVER,
            window,
            at: 0,
            told: 0,
            row_max: window_len,
            piece: BytesMut::new(),
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
    // Not an `async fn`, which would keep in memory at each row how far it has come.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an iterator does not wait")]
    pub fn next<R: for<'r> FromCells<'r>>(
        &mut self,
    ) -> impl Future<Output = Option<Result<R, Error>>> {
        poll_fn(move |cx| self.poll_next(cx))
    }

    #[inline]
    fn poll_next<R: for<'r> FromCells<'r>>(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<R, Error>>> {
        loop {
            if self.checked == check_of::<R>()
                && let Some(row) = self.read_in_place()
            {
                return Poll::Ready(Some(Ok(row)));
            }
            match core::task::ready!(self.poll_step(cx)) {
                Ok(Step::Filled) => {}
                Ok(Step::Row(place)) => return Poll::Ready(Some(self.read_found(place))),
                Ok(Step::End) => return Poll::Ready(None),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    /// The next row as it came, borrowed until the next call: for texts that are not to be copied.
    pub async fn next_raw(&mut self) -> Option<Result<RawRow<'_>, Error>> {
        loop {
            match poll_fn(|cx| self.poll_step(cx)).await {
                Ok(Step::Filled) => {}
                Ok(Step::Row(place)) => {
                    let bytes = place.of(&self.window);
                    return Some(Ok(RawRow::of_checked(self.course.column_count(), bytes)));
                }
                Ok(Step::End) => return None,
                Err(error) => return Some(Err(error)),
            }
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
        self.course.rows_left()
    }

    /// A row that lies wholly in the window, without the lock and without a look at its length first.
    #[inline]
    fn read_in_place<R: for<'r> FromCells<'r>>(&mut self) -> Option<R> {
        let rest = self.window.get(self.at..)?;
        if rest.len() < R::LEN_MIN {
            // Told once for all cells.
            return None;
        }
        let mut cells = Cells::new(self.course.column_count(), rest);
        let row = R::from_cells(&mut cells).ok()?;
        if !self.course.take_row() {
            return None;
        }
        // What is left is a part of the window, so this does not wrap.
        let len = rest.len().wrapping_sub(cells.rest().len());
        self.at = self.at.wrapping_add(len);
        Some(row)
    }

    fn read_found<R: for<'r> FromCells<'r>>(&mut self, place: Place) -> Result<R, Error> {
        if self.checked != check_of::<R>() {
            if !R::is_of(&mut self.types.iter().copied()) {
                return Err(self.fail(other_type()));
            }
            self.checked = check_of::<R>();
        }
        let mut cells = Cells::new(self.course.column_count(), place.of(&self.window));
        let row = R::from_cells(&mut cells);
        row.map_err(|stop| self.fail(stopped(stop)))
    }

    fn fail(&mut self, error: Error) -> Error {
        self.give_up();
        self.course.stop();
        self.window.clear();
        self.piece = BytesMut::new();
        (self.at, self.told) = (0, 0);
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

    /// The next row, found but not read, or bytes to look for it in. One function for rows of all
    /// kinds.
    #[inline(never)]
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Result<Step, Error>> {
        loop {
            let is_over = self.ticket.is_none() && self.course.rows_left() == 0;
            if is_over && self.refused.is_none() {
                return Poll::Ready(Ok(Step::End));
            }
            if let Some(step) = core::task::ready!(self.poll_found(cx))? {
                return Poll::Ready(Ok(step));
            }
        }
    }

    /// One step: a row, or something else that is not told.
    fn poll_found(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Step>, Error>> {
        if let Some(error) = self.refused.take() {
            return Poll::Ready(Err(error));
        }
        let at = self.at;
        self.course.tell(at.saturating_sub(self.told));
        self.told = at;
        let rest = self.window.get(at..).unwrap_or_default();
        // Without bytes nothing is found.
        if !rest.is_empty() {
            let given = rest.len();
            let (len, found) = match self.course.find(rest, self.row_max) {
                Ok(Found::More) => (0, None),
                // They mean nothing.
                Ok(Found::End) => (given, None),
                Ok(found @ (Found::Front(len) | Found::Row(len))) => (len, Some(found)),
                Err(error) => return Poll::Ready(Err(self.fail(error))),
            };
            self.at = at.saturating_add(len);
            self.told = self.at;
            match found {
                None => {}
                Some(Found::Row(_)) => return Poll::Ready(Ok(Some(Step::Row(Place { at, len })))),
                Some(_) => {
                    let handled = self.handle_front(Place { at, len });
                    return Poll::Ready(handled.map(|()| None).map_err(|error| self.fail(error)));
                }
            }
        }
        self.move_to_start();
        if !self.piece.is_empty() {
            self.take_piece();
            return Poll::Ready(Ok(None));
        }
        let Some(ticket) = self.ticket else {
            // The end has come before the last row.
            return Poll::Ready(Err(self.fail(PeerMisbehaved::MalformedBody.into())));
        };
        match core::task::ready!(self.hub.poll_flow(ticket, &mut self.window, cx)) {
            Ok(Next::Header(flags, len)) => self.course = Course::start(flags, len),
            Ok(Next::Piece(piece)) => self.piece = piece,
            Ok(Next::Filled) if self.window.len() > self.row_max => {
                // The link has given a buffer of its own.
                self.piece = self.window.split_off(self.row_max);
            }
            Ok(Next::Filled) => return Poll::Ready(Ok(Some(Step::Filled))),
            Ok(Next::End) => {
                self.give_up();
                if self.course.goes_on() {
                    return Poll::Ready(Err(self.fail(PeerMisbehaved::MalformedBody.into())));
                }
            }
            Err(error) => return Poll::Ready(Err(self.fail(error))),
        }
        Poll::Ready(Ok(None))
    }

    /// Makes room behind what was not read yet.
    fn move_to_start(&mut self) {
        let at = core::mem::take(&mut self.at);
        self.told = 0;
        let left = self.window.len().saturating_sub(at);
        if at > 0 && left > 0 {
            self.window.copy_within(at.., 0);
        }
        self.window.truncate(left);
    }

    /// What has come apart from the window goes into it, as far as there is room.
    fn take_piece(&mut self) {
        // Else what is in the window was an error.
        let room = self.row_max.saturating_sub(self.window.len()).max(1);
        let len = room.min(self.piece.len());
        let taken = self.piece.get(..len).unwrap_or_default();
        self.window.extend_from_slice(taken);
        self.piece.advance(len);
        if self.piece.is_empty() {
            // Its buffer can be read into again.
            self.piece = BytesMut::new();
        }
    }

    fn handle_front(&mut self, place: Place) -> Result<(), Error> {
        self.has_front = true;
        let front = self.course.front(place.of(&self.window))?;
        self.learn(&front.extras);
        let metadata = front.metadata.ok_or_else(not_rows)?;
        let columns = metadata.columns.ok_or(PeerMisbehaved::MalformedBody)?;
        let state = metadata.paging_state.map(Bytes::copy_from_slice);
        self.paging_state = state.map(PagingState::from_bytes);
        self.types.clear();
        self.types.extend(type_numbers(columns));
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
        if let Some(ticket) = self.ticket.take()
            && let Some(window) = self.hub.cancel(ticket)
        {
            self.window = window;
        }
    }
}

impl Drop for RowStream<'_> {
    fn drop(&mut self) {
        self.give_up();
        self.window.clear();
        let window = core::mem::take(&mut self.window);
        let spare = (window, core::mem::take(&mut self.types));
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

/// What comes next.
enum Step {
    /// More bytes in the window.
    Filled,
    Row(Place),
    End,
}

/// Where something is in the window.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: usize,
    len: usize,
}

impl Place {
    fn of(self, window: &[u8]) -> &[u8] {
        let behind = window.get(self.at..).unwrap_or_default();
        behind.get(..self.len).unwrap_or_default()
    }
}

/// Tells rows of different types apart; those that are checked alike may be the same.
fn check_of<R: for<'r> FromCells<'r>>() -> usize {
    R::is_of as fn(&mut dyn Iterator<Item = u16>) -> bool as usize
}
