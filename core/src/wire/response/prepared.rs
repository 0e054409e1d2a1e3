//! PREPARED: a statement's id, its markers and the columns it will return.

use super::rows::RowsMetadata;
use super::{ColumnSpec, Columns};
use crate::wire::{Dialect, ParseError, ParseErrorKind, Reader};

/// The PREPARED result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared<'a> {
    /// What to execute by; opaque.
    pub id: &'a [u8],
    /// The id of the result columns; only where the connection agreed to it.
    pub result_metadata_id: Option<&'a [u8]>,
    /// The bind markers.
    pub bound: BoundMetadata<'a>,
    /// The result columns.
    pub result: RowsMetadata<'a>,
}

impl<'a> Prepared<'a> {
    /// Reads the body after the kind.
    pub fn parse(dialect: &Dialect, reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        let id = reader.short_bytes("prepared id")?;
        let with_metadata_id = dialect.result_metadata_id || dialect.version.has_metadata_id();
        let result_metadata_id = if with_metadata_id {
            Some(reader.short_bytes("result metadata id")?)
        } else {
            None
        };
        let bound = BoundMetadata::parse(dialect, reader)?;
        let result = RowsMetadata::parse(reader)?;
        Ok(Self {
            id,
            result_metadata_id,
            bound,
            result,
        })
    }
}

const GLOBAL_TABLE: u32 = 0x01;

/// The bind markers of a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundMetadata<'a> {
    /// The flags as they came. One bit of them may mark a conditional write; which one, the peer
    /// told in SUPPORTED.
    pub flags: u32,
    /// Positions of the markers that form the partition key, in the order of the key. Empty if the
    /// key is not wholly bound, and always on version 3.
    pub key_indexes: KeyIndexes<'a>,
    /// The markers.
    pub columns: Columns<'a>,
}

impl<'a> BoundMetadata<'a> {
    fn parse(dialect: &Dialect, reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        let flags = reader.bits("bind flags")?;
        let count = reader.count("number of bind markers")?;
        let key_indexes = if dialect.version.has_key_indexes() {
            KeyIndexes::parse(reader, count)?
        } else {
            KeyIndexes::default()
        };
        let columns = Columns::parse(reader, count, flags & GLOBAL_TABLE != 0)?;
        Ok(Self {
            flags,
            key_indexes,
            columns,
        })
    }

    /// The marker at a position, found by walking there.
    #[must_use]
    pub fn marker(&self, index: u16) -> Option<ColumnSpec<'a>> {
        self.columns.iter().nth(usize::from(index))
    }
}

/// Positions of bind markers, each below the number of markers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyIndexes<'a> {
    bytes: &'a [u8],
}

impl<'a> KeyIndexes<'a> {
    fn parse(reader: &mut Reader<'a>, marker_count: u32) -> Result<Self, ParseError> {
        let count = reader.count("number of key indexes")?;
        let start = reader.clone();
        for _ in 0..count {
            let place = reader.clone();
            if u32::from(reader.short("key index")?) >= marker_count {
                return Err(place.error("key index", ParseErrorKind::OutOfRange));
            }
        }
        Ok(Self {
            bytes: reader.since(&start),
        })
    }

    /// From what [`as_bytes`](Self::as_bytes) gave.
    pub(crate) const fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The positions as they came.
    pub(crate) const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The positions, in the order of the partition key.
    #[must_use]
    pub const fn iter(&self) -> KeyIndexesIter<'a> {
        KeyIndexesIter { bytes: self.bytes }
    }

    /// Number of key columns.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes.len() / 2
    }

    /// Whether the key is not known from the markers.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl<'a> IntoIterator for KeyIndexes<'a> {
    type Item = u16;
    type IntoIter = KeyIndexesIter<'a>;

    fn into_iter(self) -> KeyIndexesIter<'a> {
        self.iter()
    }
}

/// Iterates over [`KeyIndexes`].
#[derive(Clone, Debug)]
pub struct KeyIndexesIter<'a> {
    bytes: &'a [u8],
}

impl Iterator for KeyIndexesIter<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        // Without a reader, which would make an error at the end.
        let (place, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u16::from_be_bytes(*place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ProtocolVersion;
    use alloc::vec::Vec;

    #[test]
    fn key_indexes_stay_in_key_order_and_below_the_marker_count() {
        let bytes = [0, 0, 0, 3, 0, 2, 0, 3, 0, 1, 99];
        let mut reader = Reader::new(&bytes);
        let indexes = KeyIndexes::parse(&mut reader, 4).unwrap();
        assert_eq!(
            (indexes.iter().collect::<Vec<_>>(), indexes.len()),
            (Vec::from([2, 3, 1]), 3)
        );
        assert_eq!(reader.rest(), [99]);
        assert_eq!(
            (indexes.is_empty(), KeyIndexes::default().is_empty()),
            (false, true)
        );
        let error = KeyIndexes::parse(&mut Reader::new(&bytes), 3).unwrap_err();
        assert_eq!((error.kind, error.at), (ParseErrorKind::OutOfRange, 6));
        assert!(KeyIndexes::parse(&mut Reader::new(&[0x7f, 0xff, 0xff, 0xff]), 4).is_err());
    }

    #[test]
    fn version_3_has_no_key_indexes() {
        // id aa, no markers, no result columns: v4 has a key count of 0 that v3 does not have.
        let v4 = [
            0, 1, 0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0,
        ];
        let v3 = [&v4[..11], &v4[15..]].concat();
        for (version, body) in [(ProtocolVersion::V4, &v4[..]), (ProtocolVersion::V3, &v3)] {
            let mut reader = Reader::new(body);
            let prepared = Prepared::parse(&Dialect::plain(version), &mut reader).unwrap();
            assert!(reader.is_empty());
            assert_eq!((prepared.id, prepared.result.flags), (&[0xaa][..], 4));
            assert!(prepared.result.columns.is_none() && prepared.bound.columns.is_empty());
        }
    }
}
