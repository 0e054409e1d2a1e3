//! Paging states: where a page ended, as bytes that mean the same to every node.
//!
//! A state holds all that the next page needs beside the statement, so a client may ask any node
//! and may change the page size. Bytes that are no state of this kind are refused.

use bytes::Bytes;

use super::super::codec::{Reader, Writer};
use super::super::error::CqlError;
use super::super::store::{PartitionKey, RowKey};
use super::Result;

/// Where a page ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// The last row looked at: its partition and encoded clustering key.
    pub(super) last: Option<(PartitionKey, RowKey)>,
    /// Rows of a virtual table already sent.
    pub(super) offset: u32,
    /// Rows the LIMIT still allows.
    pub(super) remaining: Option<u32>,
    /// Rows of this partition already sent.
    pub(super) in_partition: u32,
}

impl Position {
    const MAGIC: &'static [u8] = b"msp1";

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.raw(Self::MAGIC);
        out.uint(self.offset);
        out.uint(
            self.remaining
                .map_or(0, |remaining| remaining.saturating_add(1)),
        );
        out.uint(self.in_partition);
        if let Some(((token, key), row)) = &self.last {
            out.long(*token);
            out.bytes(key);
            out.bytes(row);
        }
        out.into_bytes()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let refuse = || CqlError::protocol("Invalid value for the paging state");
        let mut reader = Reader::new(bytes);
        let parse = |reader: &mut Reader<'_>| -> Result<Self> {
            if reader.take(Self::MAGIC.len())? != Self::MAGIC {
                return Err(refuse());
            }
            let uint = |reader: &mut Reader<'_>| Ok(reader.int()?.cast_unsigned());
            let mut position = Self {
                offset: uint(reader)?,
                ..Self::default()
            };
            position.remaining = uint(reader)?.checked_sub(1);
            position.in_partition = uint(reader)?;
            if !reader.rest().is_empty() {
                let token = reader.long()?;
                let key = reader.bytes()?.ok_or_else(refuse)?;
                let row = reader.bytes()?.ok_or_else(refuse)?;
                position.last = Some(((token, Bytes::copy_from_slice(key)), row.to_vec()));
            }
            Ok(position)
        };
        parse(&mut reader)
            .ok()
            .filter(|_| reader.rest().is_empty())
            .ok_or_else(refuse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_survive_the_trip_and_garbage_does_not() {
        let positions = [
            Position::default(),
            Position {
                offset: 7,
                remaining: Some(0),
                ..Position::default()
            },
            Position {
                last: Some(((-5, Bytes::from_static(b"key")), vec![1, 2])),
                remaining: Some(3),
                in_partition: 9,
                offset: 0,
            },
        ];
        for position in positions {
            let bytes = position.encode();
            assert_eq!(Position::decode(&bytes), Ok(position));
            for len in 0..bytes.len() {
                // A state without a row is a prefix of one with a row.
                if len != 16 {
                    assert!(Position::decode(&bytes[..len]).is_err(), "{len}");
                }
            }
        }
        assert!(Position::decode(b"garbage garbage garbage").is_err());
    }
}
