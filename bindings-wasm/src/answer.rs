//! Answers as the shell is told of them.

use alloc::boxed::Box;
use alloc::string::String;

use messina_core::compact::{Answered, Statement};
use messina_core::error::{Applied, Error, PeerMisbehaved};
use messina_core::wire::Reader;
use messina_core::wire::response::{
    Columns, Extras, ResultBody, Rows, RowsMetadata, TypeOptionKind,
};

use crate::host::Shell;
use crate::message::{Effect, ResultBits};
use crate::outbox::{NONE, Outbox, word};
use crate::types::put_type;

/// The columns that the shell was told for a statement: whether they have one table, how many, as
/// they came.
#[derive(Debug)]
pub(crate) struct Told {
    has_one_table: bool,
    count: u32,
    columns: Box<[u8]>,
}

impl Shell {
    pub(crate) fn put_prepared(&mut self, request: u32, number: u32, statement: &Statement) {
        self.forget_columns(number);
        self.outbox.put(Effect::Prepared, request);
        self.outbox.put_word(number);
        let is_token_aware = u32::from(statement.is_token_aware()) << 1;
        self.outbox
            .put_word(u32::from(statement.is_lwt()) | is_token_aware);
        match statement.prepared() {
            Ok(prepared) => self.outbox.put_raw_columns(prepared.bound.columns),
            Err(_) => self.outbox.put_word(0),
        }
    }

    /// Nothing has been told for a statement of this number.
    pub(crate) fn forget_columns(&mut self, number: u32) {
        if let Some(told) = self.told.get_mut(place(number)) {
            *told = None;
        }
    }

    /// A result with everything that the shell keeps of it.
    pub(crate) fn put_answered(
        &mut self,
        request: u32,
        answered: &Answered<'_>,
    ) -> Result<(), Error> {
        let len = self.outbox.len();
        let written = self.try_put_answered(request, answered);
        written.map_err(|error| {
            self.outbox.truncate(len);
            // What cannot be read belongs to a request that was answered well.
            let attempt = answered.attempts.saturating_sub(1);
            let shard = answered.agreed.shard().map(|shard| shard.value());
            let error = error.with_applied(Applied::Unknown);
            error.at(Some(answered.node), shard, attempt)
        })
    }

    fn try_put_answered(&mut self, request: u32, answered: &Answered<'_>) -> Result<(), Error> {
        let Answered {
            answer,
            agreed,
            executed,
            attempts,
            node,
        } = answered;
        let mut reader = Reader::new(answer.body.as_slice());
        let extras = Extras::parse(answer.flags, &mut reader)?;
        let rows = match ResultBody::parse(&agreed.dialect(), &mut reader)? {
            ResultBody::Rows(rows) => Some(rows),
            _ => None,
        };
        let number = executed.map_or(NONE, |(number, _)| number);
        let (mut bits, mut columns) = (u32::from(*attempts), None);
        let mut set = |is_set: bool, bit: u32| {
            if is_set {
                bits |= bit;
            }
        };
        if let Some(rows) = &rows {
            let found = rows.metadata.columns;
            let found = found.ok_or(PeerMisbehaved::MalformedBody)?;
            let is_new = self.is_news(number, &rows.metadata, found);
            columns = Some(found).filter(|_| is_new);
            let applied = applied(rows);
            set(true, ResultBits::ROWS);
            set(is_new, ResultBits::COLUMNS);
            set(rows.metadata.paging_state.is_some(), ResultBits::PAGING);
            set(applied.is_some(), ResultBits::CONDITIONAL);
            set(applied == Some(true), ResultBits::APPLIED);
        }
        let warnings = extras.warnings;
        let warning_count = word(warnings.iter().count());
        set(warning_count > 0, ResultBits::WARNINGS);
        set(extras.trace_id.is_some(), ResultBits::TRACED);
        let outbox = &mut self.outbox;
        outbox.put(Effect::Result, request);
        outbox.put_word(bits);
        outbox.put_word(u32::from(*node));
        outbox.put_maybe(agreed.shard().map(|shard| shard.value()));
        outbox.put_word(number);
        if let Some(columns) = columns {
            outbox.put_raw_columns(columns);
        }
        if let Some(state) = rows.as_ref().and_then(|rows| rows.metadata.paging_state) {
            outbox.put_bytes(state);
        }
        if warning_count > 0 {
            outbox.put_word(warning_count);
            for warning in warnings.iter() {
                outbox.put_text(warning);
            }
        }
        if let Some(id) = extras.trace_id {
            outbox.put_bytes(id.as_bytes());
        }
        if let Some(rows) = rows {
            outbox.put_word(rows.content.row_count());
            outbox.put_bytes(rows.content.as_bytes());
        }
        Ok(())
    }

    /// Whether the columns of rows are others than those told before; they count as told then.
    fn is_news(&mut self, number: u32, metadata: &RowsMetadata<'_>, columns: Columns<'_>) -> bool {
        if number == NONE {
            return true;
        }
        // Where all have one table each is described in fewer bytes.
        let has_one_table = metadata.flags & 1 != 0;
        let (count, raw) = (metadata.column_count, columns.as_bytes());
        let at = place(number);
        if self.told.len() <= at {
            self.told.resize_with(at.saturating_add(1), || None);
        }
        let Some(held) = self.told.get_mut(at) else {
            return true;
        };
        let is_same = held.as_ref().is_some_and(|told| {
            told.has_one_table == has_one_table && told.count == count && *told.columns == *raw
        });
        if !is_same {
            *held = Some(Told {
                has_one_table,
                count,
                columns: Box::from(raw),
            });
        }
        !is_same
    }
}

impl Outbox {
    fn put_raw_columns(&mut self, columns: Columns<'_>) {
        self.put_word(word(columns.iter().count()));
        for column in columns.iter() {
            self.put_text(column.name);
            let mut text = String::new();
            put_type(&mut text, column.ty);
            self.put_text(&text);
        }
    }
}

fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Whether a conditional statement was applied, by the first column of its rows.
fn applied(rows: &Rows<'_>) -> Option<bool> {
    let first = rows.metadata.columns?.iter().next()?;
    if first.name != "[applied]" || !matches!(first.ty.kind(), TypeOptionKind::Native(BOOLEAN)) {
        return None;
    }
    // The length of the first cell, and its byte.
    match rows.content.as_bytes() {
        [0, 0, 0, 1, applied, ..] => Some(*applied != 0),
        _ => None,
    }
}

/// The number of the type `boolean`.
const BOOLEAN: u16 = 4;
