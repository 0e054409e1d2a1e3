//! ROWS: metadata, then cells, read one row at a time.
//!
//! The cells stay the bytes that came: [`RowsContent`] borrows them from the body, [`RowsBuffer`]
//! shares them with it. A declared row count that the bytes cannot hold is an error at once, so no
//! loop runs on a count alone.

use bytes::Bytes;

use super::Columns;
use crate::wire::{ParseError, ParseErrorKind, Reader};

/// What stands before the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsMetadata<'a> {
    /// The flags as they came.
    pub flags: u32,
    /// Cells in each row; sent even without columns.
    pub column_count: u32,
    /// Where the next page begins; present if and only if there are more pages.
    pub paging_state: Option<&'a [u8]>,
    /// The id of the columns that follow, which replace those held.
    pub new_metadata_id: Option<&'a [u8]>,
    /// Columns, unless the request let them be skipped.
    pub columns: Option<Columns<'a>>,
}

impl<'a> RowsMetadata<'a> {
    pub(crate) const GLOBAL_TABLE: u32 = 0x01;
    pub(crate) const HAS_MORE_PAGES: u32 = 0x02;
    pub(crate) const NO_METADATA: u32 = 0x04;
    pub(crate) const METADATA_CHANGED: u32 = 0x08;

    /// Reads metadata of ROWS or of a PREPARED result.
    pub(crate) fn parse(reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        let flags = reader.bits("result flags")?;
        let column_count = reader.count("column count")?;
        let paging_state = if flags & Self::HAS_MORE_PAGES == 0 {
            None
        } else {
            let start = reader.clone();
            let state = reader.bytes("paging state")?;
            Some(state.ok_or_else(|| start.error("paging state", ParseErrorKind::Null))?)
        };
        let new_metadata_id = if flags & Self::METADATA_CHANGED == 0 {
            None
        } else {
            Some(reader.short_bytes("new metadata id")?)
        };
        // Without metadata the global bit may stay on, and no names follow.
        let columns = if flags & Self::NO_METADATA == 0 {
            Some(Columns::parse(
                reader,
                column_count,
                flags & Self::GLOBAL_TABLE != 0,
            )?)
        } else {
            None
        };
        Ok(Self {
            flags,
            column_count,
            paging_state,
            new_metadata_id,
            columns,
        })
    }
}

/// The ROWS result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows<'a> {
    /// What stands before the cells.
    pub metadata: RowsMetadata<'a>,
    /// The cells.
    pub content: RowsContent<'a>,
}

impl<'a> Rows<'a> {
    /// Reads the body after the kind.
    pub fn parse(reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        let metadata = RowsMetadata::parse(reader)?;
        let start = reader.clone();
        let row_count = reader.count("row count")?;
        let content = RowsContent::new(metadata.column_count, row_count, reader.rest())
            .map_err(|error| start.error(error.what, error.kind))?;
        Ok(Self { metadata, content })
    }
}

/// The cells of a page: numbers of rows and columns, and the bytes that hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsContent<'a> {
    column_count: u32,
    row_count: u32,
    bytes: &'a [u8],
}

impl<'a> RowsContent<'a> {
    /// Joins counts and bytes that were kept apart; fails if the bytes cannot hold that many cells.
    pub fn new(column_count: u32, row_count: u32, bytes: &'a [u8]) -> Result<Self, ParseError> {
        // Every cell is at least its length; a row without columns cannot be told from none.
        let smallest = u64::from(row_count)
            .saturating_mul(u64::from(column_count.max(1)))
            .saturating_mul(4);
        let held = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if smallest > held {
            let count = i32::try_from(row_count).unwrap_or(i32::MAX);
            return Err(Reader::new(bytes).error("row count", ParseErrorKind::BadCount { count }));
        }
        Ok(Self {
            column_count,
            row_count,
            bytes,
        })
    }

    /// Reads row by row.
    #[must_use]
    pub const fn iter(&self) -> RowsIter<'a> {
        RowsIter {
            column_count: self.column_count,
            rows_left: self.row_count,
            reader: Reader::new(self.bytes),
        }
    }

    /// Cells in each row.
    #[must_use]
    pub const fn column_count(&self) -> u32 {
        self.column_count
    }

    /// Number of rows.
    #[must_use]
    pub const fn row_count(&self) -> u32 {
        self.row_count
    }

    /// The bytes of all cells, and anything a later protocol appends.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> IntoIterator for RowsContent<'a> {
    type Item = Result<RawRow<'a>, ParseError>;
    type IntoIter = RowsIter<'a>;

    fn into_iter(self) -> RowsIter<'a> {
        self.iter()
    }
}

/// The cells of a page, kept beyond the frame that brought them.
///
/// Shares the bytes of the body, and so keeps alive the read buffer that the body is a part of;
/// [`Self::compact`] ends that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowsBuffer {
    column_count: u32,
    row_count: u32,
    bytes: Bytes,
}

impl RowsBuffer {
    /// Keeps `content`, which was parsed from `body`, without a copy.
    #[must_use]
    pub fn new(body: &Bytes, content: RowsContent<'_>) -> Self {
        // The cells are the last part of a body.
        let start = body.len().saturating_sub(content.bytes.len());
        Self {
            column_count: content.column_count,
            row_count: content.row_count,
            bytes: body.slice(start..),
        }
    }

    /// The cells, borrowed.
    #[must_use]
    pub fn content(&self) -> RowsContent<'_> {
        RowsContent {
            column_count: self.column_count,
            row_count: self.row_count,
            bytes: &self.bytes,
        }
    }

    /// Copies the cells into memory of their own size.
    pub fn compact(&mut self) {
        self.bytes = Bytes::copy_from_slice(&self.bytes);
    }
}

/// Reads rows one by one. After an error there are no more.
#[derive(Clone, Debug)]
pub struct RowsIter<'a> {
    column_count: u32,
    rows_left: u32,
    reader: Reader<'a>,
}

impl RowsIter<'_> {
    /// Rows not read yet.
    #[must_use]
    pub const fn rows_left(&self) -> u32 {
        self.rows_left
    }

    /// Bytes read so far: a place to go on from with [`Self::resume`].
    #[must_use]
    pub const fn position(&self) -> usize {
        self.reader.position()
    }
}

impl<'a> RowsIter<'a> {
    /// Goes on in `content` where an earlier iterator over the same content stood.
    #[must_use]
    pub fn resume(content: RowsContent<'a>, position: usize, rows_left: u32) -> Self {
        let rest = content.bytes.get(position..).unwrap_or_default();
        Self {
            column_count: content.column_count,
            rows_left: rows_left.min(content.row_count),
            reader: Reader::new(rest),
        }
    }
}

impl<'a> Iterator for RowsIter<'a> {
    type Item = Result<RawRow<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rows_left = self.rows_left.checked_sub(1)?;
        let start = self.reader.clone();
        for _ in 0..self.column_count {
            if let Err(error) = self.reader.bytes("cell") {
                self.rows_left = 0;
                return Some(Err(error));
            }
        }
        Some(Ok(RawRow {
            column_count: self.column_count,
            bytes: self.reader.since(&start),
        }))
    }
}

/// One row: checked cells, not yet decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRow<'a> {
    column_count: u32,
    bytes: &'a [u8],
}

impl<'a> RawRow<'a> {
    /// A row whose cells were walked.
    pub(crate) const fn of_checked(column_count: u32, bytes: &'a [u8]) -> Self {
        Self {
            column_count,
            bytes,
        }
    }

    /// The cells in order; null is `None`.
    #[must_use]
    pub const fn cells(&self) -> CellsIter<'a> {
        CellsIter {
            left: self.column_count,
            reader: Reader::new(self.bytes),
        }
    }

    /// Number of cells.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.column_count
    }

    /// Whether there is no cell.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.column_count == 0
    }
}

/// Iterates over the cells of a [`RawRow`].
#[derive(Clone, Debug)]
pub struct CellsIter<'a> {
    left: u32,
    reader: Reader<'a>,
}

impl<'a> Iterator for CellsIter<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.reader.bytes("cell").ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn without_metadata_the_global_bit_brings_no_names() {
        // flags 5, two columns, one row: 1, 'a'.
        let body = [
            0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1, b'a',
        ];
        let rows = Rows::parse(&mut Reader::new(&body)).unwrap();
        assert_eq!(rows.metadata.columns, None);
        let cells: Vec<_> = rows
            .content
            .iter()
            .map(|row| row.unwrap().cells().collect::<Vec<_>>())
            .collect();
        assert_eq!(cells, [Vec::from([Some(&[0, 0, 0, 1][..]), Some(b"a")])]);
    }

    #[test]
    fn more_pages_without_a_place_to_go_on_is_an_error() {
        let body = [0, 0, 0, 6, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        let error = Rows::parse(&mut Reader::new(&body)).unwrap_err();
        assert_eq!(
            (error.what, error.kind),
            ("paging state", ParseErrorKind::Null)
        );
    }

    #[test]
    fn counts_that_the_bytes_cannot_hold_are_refused() {
        for (columns, rows) in [(0_u32, 2_u32), (1, 2), (2, 1), (0x7fff_ffff, 0x7fff_ffff)] {
            let mut body = Vec::from([0, 0, 0, 4]);
            body.extend_from_slice(&columns.to_be_bytes());
            body.extend_from_slice(&rows.to_be_bytes());
            body.extend_from_slice(&[0, 0, 0, 0]);
            let error = Rows::parse(&mut Reader::new(&body)).unwrap_err();
            assert!(
                matches!(error.kind, ParseErrorKind::BadCount { .. }),
                "{error}"
            );
        }
    }

    #[test]
    fn a_cell_that_runs_out_ends_the_rows() {
        let bytes = [0, 0, 0, 1, 7, 0, 0, 0, 9, 1, 1, 1];
        let mut rows = RowsContent::new(1, 3, &bytes).unwrap().iter();
        assert_eq!(
            rows.next().unwrap().unwrap().cells().next(),
            Some(Some(&[7][..]))
        );
        assert_eq!((rows.position(), rows.rows_left()), (5, 2));
        assert!(rows.next().unwrap().is_err());
        assert!(rows.next().is_none());
    }

    #[test]
    fn reading_goes_on_where_it_stood() {
        let bytes = [0, 0, 0, 1, 7, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 9];
        let content = RowsContent::new(1, 3, &bytes).unwrap();
        let all: Vec<_> = content.iter().map(Result::unwrap).collect();
        for read in 0..=3 {
            let mut rows = content.iter();
            assert!(rows.by_ref().take(read).all(|row| row.is_ok()));
            let rest = RowsIter::resume(content, rows.position(), rows.rows_left());
            assert_eq!(rest.map(Result::unwrap).collect::<Vec<_>>(), all[read..]);
        }
    }

    #[test]
    fn kept_rows_share_the_body_until_they_are_compacted() {
        let frame = Bytes::from_static(&[
            9, 9, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 7, 0xff, 0xff, 0xff, 0xff,
        ]);
        let body = frame.slice(2..);
        let rows = Rows::parse(&mut Reader::new(&body)).unwrap();
        let mut kept = RowsBuffer::new(&body, rows.content);
        assert_eq!(kept.content(), rows.content);
        assert_eq!(
            kept.content().as_bytes().as_ptr(),
            rows.content.as_bytes().as_ptr()
        );
        kept.compact();
        assert_eq!(kept.content(), rows.content);
        assert_ne!(
            kept.content().as_bytes().as_ptr(),
            rows.content.as_bytes().as_ptr()
        );
        // A body that the content is no part of: nonsense, but no panic.
        let foreign = RowsBuffer::new(&Bytes::new(), rows.content);
        assert!(foreign.content().iter().next().unwrap().is_err());
    }

    #[test]
    fn the_global_bit_alone_says_where_the_table_stands() {
        let front = |flags: u8| [0, 0, 0, flags, 0, 0, 0, 1];
        let column = b"\x00\x02ks\x00\x01t\x00\x01a\x00\x09\x00\x00\x00\x00";
        // One column reads the same either way but for where its table is kept.
        for (flags, global) in [(0, None), (1, Some(("ks", "t")))] {
            let body = [&front(flags)[..], column].concat();
            let rows = Rows::parse(&mut Reader::new(&body)).unwrap();
            let columns = rows.metadata.columns.unwrap();
            assert_eq!(columns.global_table(), global);
            assert_eq!(columns.iter().next().unwrap().name, "a");
        }
    }

    #[test]
    fn rows_know_their_number_of_cells() {
        let bytes = [0, 0, 0, 1, 7, 0xff, 0xff, 0xff, 0xff];
        let row = RowsContent::new(2, 1, &bytes).unwrap().iter().next();
        let row = row.unwrap().unwrap();
        assert_eq!(
            (row.len(), row.is_empty(), row.cells().count()),
            (2, false, 2)
        );
        let empty = RowsContent::new(0, 1, &[0; 4]).unwrap().iter().next();
        let empty = empty.unwrap().unwrap();
        assert_eq!(
            (empty.len(), empty.is_empty(), empty.cells().count()),
            (0, true, 0)
        );
    }
}
