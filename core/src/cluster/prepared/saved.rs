//! A prepared statement as it stands in a blob for a warm start.

use alloc::vec::Vec;

use bytes::Bytes;

use super::{PreparedStatement, ResultShape};
use crate::cluster::kind::StatementKind;
use crate::cluster::warm_start::{flag, items, parse_columns, put_columns};
use crate::sync::{Gauge, Shared, Snapshot};
use crate::types::{MarkerOrders, ResultMetadata};
use crate::wire::{EncodeError, ParseError, ParseErrorKind, Reader, Sink};

impl PreparedStatement {
    /// Writes all that the server told of it.
    pub(in crate::cluster) fn put(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        out.put_bytes("statement", self.text.as_bytes())?;
        out.put_short_bytes("prepared id", &self.id)?;
        let marks = [(self.is_lwt, LWT), (self.has_no_condition, NO_CONDITION)];
        let set = marks.iter().filter(|(is_set, _)| *is_set);
        out.put_byte(set.fold(0, |marks, (_, mark)| marks | mark));
        put_columns(out, self.markers.columns())?;
        for &index in &self.key_indexes {
            out.put_byte(1);
            out.put_short(index);
        }
        out.put_byte(0);
        let result = self.result();
        match &result.metadata_id {
            Some(id) => {
                out.put_byte(1);
                out.put_short_bytes("result metadata id", id)?;
            }
            None => out.put_byte(0),
        }
        put_columns(out, result.columns.columns())
    }

    /// Reads what [`put`](Self::put) wrote.
    pub(in crate::cluster) fn parse_saved(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let start = reader.clone();
        let text = reader.bytes("statement")?.unwrap_or_default();
        let text = core::str::from_utf8(text)
            .map_err(|_| start.error("statement", ParseErrorKind::NotUtf8))?;
        let id = Bytes::copy_from_slice(reader.short_bytes("prepared id")?);
        let marks = reader.byte("marks")?;
        let markers = ResultMetadata::from_columns(parse_columns(reader)?);
        let key_indexes = items(reader, |reader| {
            let start = reader.clone();
            let index = reader.short("key index")?;
            match usize::from(index) < markers.columns().len() {
                true => Ok(index),
                false => Err(start.error("key index", ParseErrorKind::OutOfRange)),
            }
        })?;
        let has_metadata_id = flag(reader, "result metadata id")?;
        let metadata_id = match has_metadata_id {
            true => Some(reader.short_bytes("result metadata id")?),
            false => None,
        };
        let shape = ResultShape {
            metadata_id: metadata_id.map(Bytes::copy_from_slice),
            columns: ResultMetadata::from_columns(parse_columns(reader)?),
        };
        Ok(Self {
            text: text.into(),
            keyspace: None,
            id,
            markers,
            orders: MarkerOrders::default(),
            key_indexes: key_indexes.into_boxed_slice(),
            kind: StatementKind::of(text),
            is_lwt: marks & LWT != 0,
            has_no_condition: marks & NO_CONDITION != 0,
            result: Snapshot::new(Shared::new(shape)),
            doubts: Gauge::default(),
            table: Snapshot::new(Shared::new(None)),
        })
    }
}

const LWT: u8 = 1;
const NO_CONDITION: u8 = 2;
