//! Prepared statements: everything an execution needs in one object, so that the hot path looks
//! nothing up by name.
//!
//! What may change while the statement lives, the result's metadata id and columns, stands in one
//! snapshot and changes as one unit: a request pins it once for encoding and decoding. An id is
//! only ever held with the columns that a node told under it, so that rows without columns, which
//! come only for the id that was sent, cannot be read by others. Facts: protocol extensions,
//! "Negotiate sending metadata id".

mod saved;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;
use hashbrown::HashMap;

use crate::cluster::kind::{StatementKind, is_batch};
use crate::conn::extensions::Agreed;
use crate::gather::Gather;
use crate::routing::{TableRef, Token, View};
use crate::seeded::SeededState;
use crate::sorted::sort_by;
use crate::sync::{Gauge, Shared, Snapshot};
use crate::types::{BindError, ColumnSpec, EncodeRow, MarkerOrders, ResultMetadata};
use crate::wire::response::{Prepared as PreparedBody, RowsMetadata};
use crate::wire::{ParseError, Sink, Values, ValuesBuilder};

/// A statement that a server has prepared.
pub struct PreparedStatement {
    text: Box<str>,
    /// Of names that have none, if it is not the session's.
    keyspace: Option<Box<str>>,
    id: Bytes,
    markers: ResultMetadata,
    /// Which value goes to which marker, for rows whose values go by name.
    orders: MarkerOrders,
    key_indexes: Box<[u16]>,
    kind: StatementKind,
    is_lwt: bool,
    has_no_condition: bool,
    result: Snapshot<ResultShape>,
    /// Not 0: its markers may be of columns that are gone.
    doubts: Gauge,
    /// The table it is for, as last found in a view.
    table: Snapshot<Option<TableRef>>,
}

/// The columns of a statement's rows and the id the server knows them by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultShape {
    /// The id; opaque. `None` if the server has not told one.
    pub metadata_id: Option<Bytes>,
    /// The columns; none for statements without rows, and for some whose rows are known only when
    /// they come.
    pub columns: ResultMetadata,
}

impl ResultShape {
    fn parse(id: Option<&[u8]>, metadata: &RowsMetadata<'_>) -> Result<Self, ParseError> {
        let columns = match metadata.columns {
            Some(columns) => ResultMetadata::parse(columns)?,
            None => ResultMetadata::default(),
        };
        Ok(Self {
            metadata_id: id.map(Bytes::copy_from_slice),
            columns,
        })
    }

    /// Whether the server may leave column metadata out: only if it would tell of a change, and
    /// we hold columns to decode with. Never where ids are the protocol's own: nodes that speak
    /// such a version have left out columns that they had changed.
    pub fn may_skip_metadata(&self, agreed: &Agreed) -> bool {
        agreed.metadata_id
            && !agreed.version.has_metadata_id()
            && self.metadata_id.is_some()
            && !self.columns.columns().is_empty()
    }

    /// What is known once rows came with columns of their own, and perhaps with a new id for
    /// them, in answer to a request that was written by this. `None`: nothing else.
    fn after_rows(&self, new_id: Option<&[u8]>, columns: &ResultMetadata) -> Option<Self> {
        let metadata_id = match new_id {
            Some(id) => Bytes::copy_from_slice(id),
            // The id that was sent is right, and there were no columns to leave out by it.
            None if self.columns.columns().is_empty() => self.metadata_id.clone()?,
            None => return None,
        };
        Some(Self {
            metadata_id: Some(metadata_id),
            columns: columns.clone(),
        })
    }
}

impl PreparedStatement {
    /// Takes the body of a PREPARED result that came on a connection.
    pub fn parse(text: &str, body: &PreparedBody<'_>, agreed: &Agreed) -> Result<Self, ParseError> {
        let shape = ResultShape::parse(body.result_metadata_id, &body.result)?;
        let (kind, is_lwt) = (StatementKind::of(text), agreed.is_lwt(body.bound.flags));
        let has_no_condition = match kind {
            StatementKind::Read => true,
            StatementKind::Write => agreed.offer.lwt_mask.is_some() && !is_lwt && !is_batch(text),
            StatementKind::Other => false,
        };
        Ok(Self {
            text: text.into(),
            keyspace: None,
            id: Bytes::copy_from_slice(body.id),
            markers: ResultMetadata::parse(body.bound.columns)?,
            orders: MarkerOrders::default(),
            key_indexes: body.bound.key_indexes.iter().collect(),
            kind,
            is_lwt,
            has_no_condition,
            result: Snapshot::new(Shared::new(shape)),
            doubts: Gauge::default(),
            table: Snapshot::new(Shared::new(None)),
        })
    }

    /// The statement's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same, prepared for a keyspace of its own.
    #[must_use]
    pub(crate) fn in_keyspace(mut self, keyspace: Option<&str>) -> Self {
        self.keyspace = keyspace.map(Box::from);
        self
    }

    /// The keyspace of names that have none in the text, if it is not the session's.
    pub fn keyspace(&self) -> Option<&str> {
        self.keyspace.as_deref()
    }

    /// The id to execute by.
    pub fn id(&self) -> &[u8] {
        &self.id
    }

    /// The bind markers.
    pub fn markers(&self) -> &[ColumnSpec] {
        self.markers.columns()
    }

    /// Appends one value for each marker. What goes by name finds its place once for each row type.
    pub fn bind<V: EncodeRow, S: Sink>(
        &self,
        row: &V,
        values: &mut ValuesBuilder<S>,
    ) -> Result<(), BindError> {
        let markers = self.markers();
        match V::NAMES {
            None => row.encode_row(markers, values),
            Some(names) => self.orders.with(names, markers, |order| {
                row.encode_ordered(order, markers, values)
            }),
        }
    }

    /// Positions of the markers that form the partition key, in the key's order; empty if the key
    /// is not wholly bound.
    pub fn key_indexes(&self) -> &[u16] {
        &self.key_indexes
    }

    /// Whether it reads or writes rows.
    pub const fn kind(&self) -> StatementKind {
        self.kind
    }

    /// Whether it is known to have no conditional part, so that a serial level would say nothing:
    /// reads have theirs as the consistency itself, and of writes only such servers tell that mark
    /// the conditional ones.
    pub const fn has_no_condition(&self) -> bool {
        self.has_no_condition
    }

    /// Whether it is known to bring no rows: a write without a condition. The id of their columns
    /// says nothing then either.
    pub fn brings_no_rows(&self) -> bool {
        self.kind == StatementKind::Write && self.has_no_condition
    }

    /// Whether the server marked it as conditional.
    pub const fn is_lwt(&self) -> bool {
        self.is_lwt
    }

    /// Values did not fit the markers: the table may be another one than when it was prepared, so
    /// the next who prepares the text asks a node.
    pub fn doubt(&self) {
        self.doubts.store(1);
    }

    /// Whether it has to be prepared anew before others use it.
    pub fn is_doubtful(&self) -> bool {
        self.doubts.load() != 0
    }

    /// The current result columns and their id.
    pub fn result(&self) -> Shared<ResultShape> {
        self.result.load()
    }

    /// The keyspace and table of its markers, else of its result.
    pub fn table_name(&self) -> Option<(Shared<str>, Shared<str>)> {
        let result = self.result.load();
        let key = self
            .key_indexes
            .first()
            .map_or(0, |&index| usize::from(index));
        let column = self
            .markers()
            .get(key)
            .or_else(|| result.columns.columns().first())?;
        Some((
            Shared::clone(&column.keyspace),
            Shared::clone(&column.table),
        ))
    }

    /// The table in `view`; looked up by name only when the handle held is of no use any more.
    pub fn table(&self, view: &View) -> Option<TableRef> {
        let held = self.table.with(|held| *held);
        if let Some(held) = held.filter(|&held| view.table(held).is_some()) {
            return Some(held);
        }
        let (keyspace, name) = self.table_name()?;
        let found = view
            .table_by_name(&keyspace, &name)
            .map(|table| table.handle());
        if found != held {
            self.table.store(Shared::new(found));
        }
        found
    }

    /// Whether its table was known and is not in `view`, be it that another has its name.
    pub(crate) fn has_lost_its_table(&self, view: &View) -> bool {
        let held = self.table.with(|held| *held);
        held.is_some_and(|held| view.table(held).is_none())
    }

    /// The token of the partition that these values address. `None` where the key is not wholly
    /// bound, holds null or unset, or the table's partitioner is unknown; such requests are sent
    /// without routing.
    pub fn token(
        &self,
        view: &View,
        values: Values<'_>,
    ) -> Result<Option<Token>, crate::routing::KeyError> {
        let (Some(table), false) = (self.table(view), self.key_indexes.is_empty()) else {
            return Ok(None);
        };
        let Some(partitioner) = view.table(table).and_then(|table| table.partitioner()) else {
            return Ok(None);
        };
        let component = |&index: &u16| values.get(index).and_then(|value| value.bytes());
        if self
            .key_indexes
            .iter()
            .any(|index| component(index).is_none())
        {
            return Ok(None);
        }
        let components = self.key_indexes.iter().filter_map(component);
        partitioner.token(components).map(Some)
    }

    /// The server prepared the statement anew. `false`: values for its markers are of other types
    /// now, as when its table was made anew, so this statement is of no use any more.
    pub fn handle_prepared(&self, body: &PreparedBody<'_>) -> Result<bool, ParseError> {
        let markers = ResultMetadata::parse(body.bound.columns)?;
        if !self.takes_values_for(&markers) {
            self.doubt();
            return Ok(false);
        }
        let shape = ResultShape::parse(body.result_metadata_id, &body.result)?;
        self.replace(shape);
        Ok(true)
    }

    /// Whether values encoded for the markers held are values for these. Types that users define
    /// are compared by name: they only grow, and a value may lack the fields behind.
    fn takes_values_for(&self, markers: &ResultMetadata) -> bool {
        let is_same = |(held, found): (&ColumnSpec, &ColumnSpec)| {
            held.ty == found.ty || held.ty.to_string() == found.ty.to_string()
        };
        let (held, found) = (self.markers(), markers.columns());
        held.len() == found.len() && held.iter().zip(found).all(is_same)
    }

    /// Rows came with columns of their own, and perhaps with a new id for them, in answer to a
    /// request that was written by `asked`. Nodes that agreed to no ids teach nothing: theirs may
    /// be other columns than those of the id that others know.
    pub fn handle_rows(
        &self,
        asked: &ResultShape,
        agreed: &Agreed,
        new_id: Option<&[u8]>,
        columns: &ResultMetadata,
    ) {
        if agreed.metadata_id
            && let Some(shape) = asked.after_rows(new_id, columns)
        {
            self.replace(shape);
        }
    }

    /// Columns replace none, none never replace columns; and a node that tells no ids does not
    /// take away the id of the columns that it tells.
    fn replace(&self, shape: ResultShape) {
        let held = self.result.load();
        let loses = shape.columns.columns().is_empty() && !held.columns.columns().is_empty();
        let tells_nothing = shape.metadata_id.is_none() && shape.columns == held.columns;
        if !loses && !tells_nothing && *held != shape {
            self.result.store(Shared::new(shape));
        }
    }
}

impl fmt::Debug for PreparedStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedStatement")
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}

/// What a statement is found by: its text, behind the keyspace if it has one of its own.
fn name_of<'a>(text: &'a str, keyspace: Option<&str>) -> Cow<'a, str> {
    match keyspace {
        Some(keyspace) => Cow::Owned(alloc::format!("{keyspace}\0{text}")),
        None => Cow::Borrowed(text),
    }
}

/// Statements by text, bounded; the one that was not used for longest makes room.
#[derive(Debug)]
pub struct PreparedCache {
    by_text: HashMap<Box<str>, Entry, SeededState>,
    max: usize,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    statement: Shared<PreparedStatement>,
    used: u64,
}

impl PreparedCache {
    /// Keeps at most `max` statements; `seed` protects against texts made to collide.
    pub fn new(max: usize, seed: u64) -> Self {
        Self {
            by_text: HashMap::with_hasher(SeededState::new(seed)),
            max: max.max(1),
            clock: 0,
        }
    }

    /// A statement that was prepared before, for this keyspace or for the session's.
    pub fn find(
        &mut self,
        text: &str,
        keyspace: Option<&str>,
    ) -> Option<Shared<PreparedStatement>> {
        self.clock = self.clock.saturating_add(1);
        let entry = self.by_text.get_mut(&*name_of(text, keyspace))?;
        entry.used = self.clock;
        Some(Shared::clone(&entry.statement))
    }

    /// Keeps a statement. Gives back what had to leave, to be dropped outside any lock.
    pub fn insert(
        &mut self,
        statement: Shared<PreparedStatement>,
    ) -> Option<Shared<PreparedStatement>> {
        self.clock = self.clock.saturating_add(1);
        let mut evicted = None;
        let name = name_of(statement.text(), statement.keyspace());
        if self.by_text.len() >= self.max && !self.by_text.contains_key(&*name) {
            // The order of the map does not show: uses are all different.
            let oldest = self.by_text.iter().min_by_key(|(_, entry)| entry.used);
            if let Some(text) = oldest.map(|(text, _)| text.clone()) {
                evicted = self.by_text.remove(&text).map(|entry| entry.statement);
            }
        }
        let entry = Entry {
            statement: Shared::clone(&statement),
            used: self.clock,
        };
        let replaced = self.by_text.insert(name.into(), entry);
        evicted.or_else(|| replaced.map(|entry| entry.statement))
    }

    /// Statements kept.
    pub fn len(&self) -> usize {
        self.by_text.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.by_text.is_empty()
    }

    /// Forgets some statements and gives them back, to be dropped outside any lock.
    pub fn retain(
        &mut self,
        is_kept: impl Fn(&PreparedStatement) -> bool,
    ) -> Vec<Shared<PreparedStatement>> {
        let mut gone = Vec::new();
        self.by_text.retain(|_, entry| {
            let is_kept = is_kept(&entry.statement);
            if !is_kept {
                gone.push(Shared::clone(&entry.statement));
            }
            is_kept
        });
        gone
    }

    /// All statements, the one used last first.
    pub fn statements_by_use(&self) -> Vec<Shared<PreparedStatement>> {
        let mut all: Vec<&Entry> = self.by_text.values().gather();
        sort_by(&mut all, |a, b| b.used.cmp(&a.used));
        let statements = all.into_iter().map(|entry| Shared::clone(&entry.statement));
        statements.gather()
    }

    /// All statements, by text.
    pub fn statements(&self) -> Vec<Shared<PreparedStatement>> {
        let mut all: Vec<_> = self
            .by_text
            .values()
            .map(|entry| Shared::clone(&entry.statement))
            .gather();
        sort_by(&mut all, |a, b| a.text().cmp(b.text()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conn::extensions::{Offer, TabletsRouting};
    use crate::types::ColumnType;
    use crate::wire::ProtocolVersion;

    /// Columns may be left out only where an id and columns are held and the connection would tell
    /// of a change by an extension; never where ids are the protocol's own.
    #[test]
    fn columns_are_skipped_only_where_a_change_is_told() {
        let column = ColumnSpec {
            keyspace: Shared::from("k"),
            table: Shared::from("t"),
            name: "a".into(),
            ty: ColumnType::Int,
        };
        for (has_id, has_columns) in [(false, false), (false, true), (true, false), (true, true)] {
            let shape = ResultShape {
                metadata_id: has_id.then(|| Bytes::from_static(&[1])),
                columns: has_columns
                    .then(|| column.clone())
                    .into_iter()
                    .gather()
                    .into(),
            };
            for version in [
                ProtocolVersion::V3,
                ProtocolVersion::V4,
                ProtocolVersion::V5,
            ] {
                for metadata_id in [false, true] {
                    let agreed = Agreed {
                        version,
                        tablets: TabletsRouting::Off,
                        metadata_id,
                        compression: None,
                        is_authenticated: false,
                        offer: Offer::default(),
                    };
                    let is_safe = has_id && has_columns && metadata_id;
                    let expected = is_safe && version != ProtocolVersion::V5;
                    let what = (has_id, has_columns, version, metadata_id);
                    assert_eq!(shape.may_skip_metadata(&agreed), expected, "{what:?}");
                }
            }
        }
    }
}
