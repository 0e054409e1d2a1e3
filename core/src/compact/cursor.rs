//! Rows out of a RESULT body that comes in pieces of any size, through one window of fixed size.
//!
//! A row that lies within a piece is borrowed from it; one that is cut is put together in the window.
//! Nothing else is copied and nothing is allocated, so that a page may be larger than all memory.
//! What stands before the rows (warnings, payload, metadata, number of rows) goes through the window
//! too. What is told does not depend on where the body is cut, and is what
//! [`Rows`](crate::wire::response::Rows) tells of the same body in one piece; only that a front or a
//! row larger than the window is an error here. Section 4.2.5.2 of the native protocol.
//!
//! Cost: a row is walked once, thirteen instructions a cell on a Cortex-M4, before it is decoded.
//! [`RowStream`](super::RowStream) follows the same course over a window that is read into.

use alloc::boxed::Box;

use crate::error::{Error, ErrorKind, LimitField, PeerMisbehaved};
use crate::wire::response::{Extras, RawRow, RowsMetadata, TYPE_DEPTH_MAX};
use crate::wire::{Flags, ParseErrorKind, Reader};

/// Reads rows from pieces of a body.
#[derive(Debug)]
pub struct Cursor {
    window: Box<[u8]>,
    /// Bytes in the window that were not told yet, or were told last.
    held: usize,
    /// What the window holds was told, and has its room again.
    is_told: bool,
    course: Course,
}

/// One step through the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step<'a> {
    /// All bytes were taken and more are needed.
    More,
    /// What stands before the rows is there, until the next step: [`Cursor::front`]. It is told
    /// once, first of all.
    Front,
    /// The next row: its cells are all there.
    Row(RawRow<'a>),
    /// There are no more rows; bytes that are left mean nothing.
    End,
}

/// What stands before the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Front<'a> {
    /// Warnings, payload and the id of a trace.
    pub extras: Extras<'a>,
    /// `None` if the result is not rows.
    pub metadata: Option<RowsMetadata<'a>>,
    /// Number of rows in this page.
    pub row_count: u32,
}

/// Where a body is: what comes next in it, and how much is left.
#[derive(Debug)]
pub(super) struct Course {
    flags: Flags,
    is_in_front: bool,
    /// Bytes of the body that were not told yet.
    left: usize,
    column_count: u32,
    rows_left: u32,
}

/// What bytes begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing that is whole.
    More,
    /// So many bytes that stand before the rows.
    Front(usize),
    /// A row of so many bytes.
    Row(usize),
    /// There are no more rows.
    End,
}

impl Course {
    /// Between bodies.
    pub(super) const OVER: Self = Self::new(Flags::NONE, 0, false);

    const fn new(flags: Flags, left: usize, is_in_front: bool) -> Self {
        Self {
            flags,
            is_in_front,
            left,
            column_count: 0,
            rows_left: 0,
        }
    }

    /// A body of so many bytes begins, in a frame with these flags.
    pub(super) const fn start(flags: Flags, body_len: usize) -> Self {
        Self::new(flags, body_len, true)
    }

    /// What the next bytes of the body begin with; it counts as told then. After an error there are
    /// no more rows.
    #[inline(never)]
    pub(super) fn find(&mut self, bytes: &[u8], len_max: usize) -> Result<Found, Error> {
        if !self.is_in_front && self.rows_left == 0 {
            return Ok(Found::End);
        }
        let whole = match self.is_in_front {
            true => front_len(self.flags, bytes),
            false => row_len(bytes, self.column_count),
        };
        let found = self.judge(whole, bytes, len_max);
        if found.is_err() {
            self.stop();
        }
        found
    }

    fn judge(
        &mut self,
        whole: Result<usize, usize>,
        bytes: &[u8],
        len_max: usize,
    ) -> Result<Found, Error> {
        let len = match whole {
            Ok(len) | Err(len) => len,
        };
        if len > self.left {
            return Err(PeerMisbehaved::MalformedBody.into());
        }
        if len > len_max {
            return Err(Error::new(ErrorKind::Limit(LimitField::RowWindow)));
        }
        if whole.is_err() {
            return Ok(Found::More);
        }
        if !self.is_in_front {
            self.rows_left = self.rows_left.saturating_sub(1);
            self.tell(len);
            return Ok(Found::Row(len));
        }
        self.is_in_front = false;
        self.tell(len);
        let front = self.front(bytes.get(..len).unwrap_or_default())?;
        (self.column_count, self.rows_left) = self.counts(&front)?;
        Ok(Found::Front(len))
    }

    /// The next row was found without the course; whether there was to be one. Its bytes are to be
    /// [told](Self::tell), if later.
    #[inline]
    pub(super) const fn take_row(&mut self) -> bool {
        let (left, is_over) = self.rows_left.overflowing_sub(1);
        if !is_over {
            self.rows_left = left;
        }
        !is_over
    }

    /// So many bytes were found.
    pub(super) const fn tell(&mut self, len: usize) {
        self.left = self.left.saturating_sub(len);
    }

    /// Columns and rows. Each cell is at least its length, so what the bytes cannot hold is an error
    /// before the first row.
    fn counts(&self, front: &Front<'_>) -> Result<(u32, u32), Error> {
        let columns = front.metadata.map_or(0, |metadata| metadata.column_count);
        let cells = front.row_count.checked_mul(columns.max(1));
        let smallest = cells.and_then(|cells| usize::try_from(cells).ok()?.checked_mul(4));
        if smallest.is_none_or(|smallest| smallest > self.left) {
            let count = i32::try_from(front.row_count).unwrap_or(i32::MAX);
            let kind = ParseErrorKind::BadCount { count };
            return Err(Reader::new(&[]).error("row count", kind).into());
        }
        Ok((columns, front.row_count))
    }

    /// What stands before the rows, in the bytes that were found to be it.
    pub(super) fn front<'a>(&self, bytes: &'a [u8]) -> Result<Front<'a>, Error> {
        parse_front(self.flags, bytes).map(|(front, _)| front)
    }

    /// There are no more rows.
    pub(super) const fn stop(&mut self) {
        self.is_in_front = false;
        self.rows_left = 0;
    }

    #[cfg(any(test, feature = "streams"))]
    /// Whether something is still to be found.
    pub(super) const fn goes_on(&self) -> bool {
        self.is_in_front || self.rows_left > 0
    }

    #[cfg(any(test, feature = "streams"))]
    #[inline]
    pub(super) const fn rows_left(&self) -> u32 {
        self.rows_left
    }

    #[cfg(any(test, feature = "streams"))]
    #[inline]
    pub(super) const fn column_count(&self) -> u32 {
        self.column_count
    }
}

impl Cursor {
    /// A cursor whose window is all of `window`. It has to be [started](Self::start).
    #[must_use]
    pub const fn new(window: Box<[u8]>) -> Self {
        Self {
            window,
            held: 0,
            is_told: false,
            course: Course::OVER,
        }
    }

    /// Begins with another body: of `body_len` bytes, in a frame with these flags.
    pub const fn start(&mut self, flags: Flags, body_len: usize) {
        self.held = 0;
        self.is_told = false;
        self.course = Course::start(flags, body_len);
    }

    /// The next step, taking bytes of the body from the front of `input`; `input` holds nothing else.
    ///
    /// With no bytes given when the body is over, [`Step::More`] cannot come.
    ///
    /// Fails with [`LimitField::RowWindow`] if the front or a row is larger than the window, and as
    /// malformed where the body is. After an error there are no more rows.
    pub fn next<'a, 'b: 'a>(&'a mut self, input: &mut &'b [u8]) -> Result<Step<'a>, Error> {
        let given = *input;
        if self.is_told {
            self.is_told = false;
            self.held = 0;
        }
        let columns = self.course.column_count;
        if self.held == 0
            && self.course.rows_left > 0
            && let Ok(len) = row_len(given, columns)
            && len <= self.window.len()
            && let Some((row, rest)) = given.split_at_checked(len)
        {
            self.course.take_row();
            self.course.tell(len);
            *input = rest;
            return Ok(Step::Row(RawRow::of_checked(columns, row)));
        }
        let (found, taken) = self.gather(given)?;
        *input = given.get(taken..).unwrap_or_default();
        Ok(match found {
            Found::More => Step::More,
            Found::End => Step::End,
            Found::Front(_) => Step::Front,
            Found::Row(_) => Step::Row(RawRow::of_checked(columns, self.held())),
        })
    }

    /// What stands before the rows, if the last step was [`Step::Front`].
    pub fn front(&self) -> Result<Front<'_>, Error> {
        self.course.front(self.held())
    }

    /// Rows that were not told yet; 0 before the front was.
    #[must_use]
    pub const fn rows_left(&self) -> u32 {
        self.course.rows_left
    }

    /// The window, for another use.
    #[must_use]
    pub fn into_window(self) -> Box<[u8]> {
        self.window
    }

    /// Puts the front or a row together that was not given as a whole; tells how many bytes it has
    /// taken.
    #[inline(never)]
    fn gather(&mut self, given: &[u8]) -> Result<(Found, usize), Error> {
        let before = self.held;
        let room = self.window.get_mut(before..).unwrap_or_default();
        let len = room.len().min(given.len());
        if let (Some(room), Some(given)) = (room.get_mut(..len), given.get(..len)) {
            room.copy_from_slice(given);
        }
        let held = before.saturating_add(len);
        let bytes = self.window.get(..held).unwrap_or_default();
        let found = self.course.find(bytes, self.window.len());
        self.is_told = !matches!(found, Ok(Found::More));
        let found = found?;
        self.held = match found {
            Found::More => held,
            Found::End => return Ok((found, given.len())),
            // What was copied beyond the end is not taken.
            Found::Front(len) | Found::Row(len) => len,
        };
        Ok((found, self.held.saturating_sub(before)))
    }

    /// The bytes that were told last, if they are in the window.
    fn held(&self) -> &[u8] {
        self.window.get(..self.held).unwrap_or_default()
    }
}

/// What stands before the rows, and the bytes behind it. Without rows the result's own body is not
/// read.
#[inline(never)]
pub(super) fn parse_front(flags: Flags, body: &[u8]) -> Result<(Front<'_>, &[u8]), Error> {
    let mut reader = Reader::new(body);
    let extras = Extras::parse(flags, &mut reader)?;
    let (mut metadata, mut row_count) = (None, 0);
    if reader.bits("result kind")? == ROWS {
        metadata = Some(RowsMetadata::parse(&mut reader)?);
        row_count = reader.count("row count")?;
    }
    let front = Front {
        extras,
        metadata,
        row_count,
    };
    Ok((front, reader.rest()))
}

/// The length of the first row in `bytes`, or the length that would bring the walk further.
#[inline]
fn row_len(bytes: &[u8], column_count: u32) -> Result<usize, usize> {
    let mut rest = bytes;
    for _ in 0..column_count {
        let Some((len, behind)) = rest.split_first_chunk::<4>() else {
            return Err(missing(bytes, rest, 4));
        };
        rest = behind;
        // All that is negative is null.
        if let Ok(len) = usize::try_from(i32::from_be_bytes(*len)) {
            match rest.get(len..) {
                Some(behind) => rest = behind,
                None => return Err(missing(bytes, rest, len)),
            }
        }
    }
    Ok(bytes.len().saturating_sub(rest.len()))
}

#[cold]
#[inline(never)]
const fn missing(bytes: &[u8], rest: &[u8], len: usize) -> usize {
    let at = bytes.len().saturating_sub(rest.len());
    at.saturating_add(len)
}

/// The same for what stands before the rows. It looks at nothing but lengths, so that a front which
/// is not whole yet costs no error; a type that is nested too deeply has no end.
#[inline(never)]
fn front_len(flags: Flags, bytes: &[u8]) -> Result<usize, usize> {
    let mut walk = Walk { bytes, at: 0 };
    if flags.contains(Flags::TRACING) {
        walk.skip(16);
    }
    if flags.contains(Flags::WARNING) {
        let count = walk.number(2);
        walk.strings(count);
    }
    if flags.contains(Flags::CUSTOM_PAYLOAD) {
        let mut left = walk.number(2);
        while walk.goes_on(&mut left) {
            walk.strings(1);
            walk.bytes();
        }
    }
    if walk.number(4) == ROWS {
        walk.metadata();
        walk.skip(4);
    }
    match walk.at {
        end if end > bytes.len() => Err(end),
        end => Ok(end),
    }
}

/// Goes over bytes by their lengths. Beyond their end it stands still, where the first thing ends
/// that is missing, and reads zeros.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Walk<'_> {
    const fn skip(&mut self, len: usize) {
        if self.at <= self.bytes.len() {
            self.at = self.at.saturating_add(len);
        }
    }

    #[inline(never)]
    fn number(&mut self, len: usize) -> u32 {
        let start = self.at;
        self.skip(len);
        let bytes = self.bytes.get(start..self.at).unwrap_or_default();
        let join = |number: u32, byte: &u8| number << 8 | u32::from(*byte);
        bytes.iter().fold(0, join)
    }

    /// Whether one of those left comes now.
    const fn goes_on(&self, left: &mut u32) -> bool {
        let comes = *left > 0 && self.at <= self.bytes.len();
        *left = left.saturating_sub(1);
        comes
    }

    #[inline(never)]
    fn strings(&mut self, mut left: u32) {
        while self.goes_on(&mut left) {
            let len = self.number(2);
            self.skip(usize::try_from(len).unwrap_or(usize::MAX));
        }
    }

    fn bytes(&mut self) {
        let len = self.number(4);
        // All that is negative is null.
        if i32::try_from(len).is_ok() {
            self.skip(usize::try_from(len).unwrap_or(usize::MAX));
        }
    }

    fn metadata(&mut self) {
        let (flags, mut left) = (self.number(4), self.number(4));
        if flags & RowsMetadata::HAS_MORE_PAGES != 0 {
            self.bytes();
        }
        if flags & RowsMetadata::METADATA_CHANGED != 0 {
            self.strings(1);
        }
        if flags & RowsMetadata::NO_METADATA != 0 {
            return;
        }
        let is_global = flags & RowsMetadata::GLOBAL_TABLE != 0;
        self.strings(if is_global { 2 } else { 0 });
        while self.goes_on(&mut left) {
            self.strings(if is_global { 1 } else { 3 });
            self.any_type(TYPE_DEPTH_MAX);
        }
    }

    fn any_type(&mut self, depth_left: usize) {
        let Some(depth_left) = depth_left.checked_sub(1) else {
            return self.skip(usize::MAX);
        };
        let (mut parts, mut names) = (0, 0);
        match self.number(2) {
            0x00 => self.strings(1),
            0x20 | 0x22 => parts = 1,
            0x21 => parts = 2,
            0x30 => {
                self.strings(2);
                parts = self.number(2);
                names = 1;
            }
            0x31 => parts = self.number(2),
            _ => {}
        }
        while self.goes_on(&mut parts) {
            self.strings(names);
            self.any_type(depth_left);
        }
    }
}

/// The kind of a result that is rows.
const ROWS: u32 = 2;

#[cfg(test)]
mod tests;
