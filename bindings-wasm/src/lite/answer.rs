//! What answers mean, and how the shell is told of them.

use alloc::boxed::Box;
use alloc::string::String;

use messina_core::conn::Answer;
use messina_core::conn::extensions::Agreed;
use messina_core::error::{ApiMisuse, Applied, Error, ErrorKind, PeerMisbehaved};
use messina_core::wire::response::{
    Columns, Extras, Prepared, ResultBody, Rows, RowsMetadata, ServerError, TypeOptionKind,
};
use messina_core::wire::{Opcode, Reader};

use super::request::{Held, Request, Statement};
use super::types::put_type;
use crate::message::{Effect, ResultBits};
use crate::outbox::{NONE, Outbox, word};

/// The error that a node has answered with.
pub(super) fn server_error(answer: &Answer, agreed: &Agreed) -> Error {
    let mut reader = Reader::new(answer.body.as_slice());
    let parsed = Extras::parse(answer.flags, &mut reader)
        .and_then(|_extras| ServerError::parse(&agreed.dialect(), &mut reader));
    match parsed {
        Ok(error) => Error::from_server(error),
        Err(error) => Error::from(error).with_applied(Applied::Unknown),
    }
}

/// Whether a node has set the keyspace.
pub(super) fn check_keyspace(answer: &Answer, agreed: &Agreed) -> Result<(), Error> {
    match result(answer, agreed)? {
        (_, ResultBody::SetKeyspace(_)) => Ok(()),
        _ => Err(PeerMisbehaved::UnexpectedFrame.into()),
    }
}

fn result<'a>(answer: &'a Answer, agreed: &Agreed) -> Result<(Extras<'a>, ResultBody<'a>), Error> {
    match answer.opcode {
        Opcode::Result => {}
        Opcode::Error => return Err(server_error(answer, agreed)),
        _ => return Err(PeerMisbehaved::UnexpectedFrame.into()),
    }
    let mut reader = Reader::new(answer.body.as_slice());
    let extras = Extras::parse(answer.flags, &mut reader)?;
    Ok((extras, ResultBody::parse(&agreed.dialect(), &mut reader)?))
}

fn prepared<'a>(answer: &'a Answer, agreed: &Agreed) -> Result<Prepared<'a>, Error> {
    match result(answer, agreed)? {
        (_, ResultBody::Prepared(prepared)) => Ok(prepared),
        _ => Err(PeerMisbehaved::UnexpectedFrame.into()),
    }
}

/// A node that had lost a statement has it again: whether it is still the same.
pub(super) fn check_prepared_again(
    statement: &Statement,
    answer: &Answer,
    agreed: &Agreed,
) -> Result<(), Error> {
    let prepared = prepared(answer, agreed)?;
    if *prepared.id != *statement.id {
        let kind = ErrorKind::PeerMisbehaved(PeerMisbehaved::MalformedBody);
        return Err(Error::with_text(kind, "the statement got another id"));
    }
    if *markers(&prepared) != *statement.markers {
        return Err(Error::new(ErrorKind::ApiMisuse(ApiMisuse::StaleStatement)));
    }
    Ok(())
}

/// The names and types of the markers, as the shell is told of them.
fn markers(prepared: &Prepared<'_>) -> Box<[u8]> {
    let mut outbox = Outbox::new();
    outbox.put_raw_columns(prepared.bound.columns);
    Box::from(outbox.as_bytes())
}

/// What PREPARE brought, and whether it is conditional and its key is bound.
pub(super) fn statement(
    text: String,
    answer: &Answer,
    agreed: &Agreed,
) -> Result<(Statement, u32), Error> {
    let prepared = prepared(answer, agreed)?;
    let is_lwt = agreed.is_lwt(prepared.bound.flags);
    let is_token_aware = prepared.bound.key_indexes.iter().next().is_some();
    let statement = Statement {
        text,
        id: Box::from(prepared.id),
        markers: markers(&prepared),
        marker_count: word(prepared.bound.columns.iter().count()),
        is_read: prepared.result.column_count > 0 && !is_lwt,
    };
    let bits = u32::from(is_lwt) | (u32::from(is_token_aware) << 1);
    Ok((statement, bits))
}

impl Outbox {
    /// A result with everything that the shell keeps of it. `held` is what was executed, if the
    /// shell still holds it, under its number.
    pub(super) fn put_answer(
        &mut self,
        number: u32,
        request: &Request,
        answer: &Answer,
        agreed: &Agreed,
        held: Option<(u32, &mut Held)>,
    ) -> Result<(), Error> {
        let len = self.len();
        let written = self.try_put_answer(number, request, answer, agreed, held);
        if written.is_err() {
            self.truncate(len);
        }
        written
    }

    fn try_put_answer(
        &mut self,
        number: u32,
        request: &Request,
        answer: &Answer,
        agreed: &Agreed,
        held: Option<(u32, &mut Held)>,
    ) -> Result<(), Error> {
        let (extras, body) = result(answer, agreed)?;
        let rows = match body {
            ResultBody::Rows(rows) => Some(rows),
            _ => None,
        };
        let statement = held.as_ref().map_or(NONE, |(number, _)| *number);
        let (mut bits, mut columns) = (u32::from(request.attempts), None);
        let mut set = |is_set: bool, bit: u32| {
            if is_set {
                bits |= bit;
            }
        };
        if let Some(rows) = &rows {
            let found = rows.metadata.columns;
            let found = found.ok_or(PeerMisbehaved::MalformedBody)?;
            let is_new = held.is_none_or(|(_, held)| held.is_news(&rows.metadata, found));
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
        self.put(Effect::Result, number);
        self.put_word(bits);
        self.put_word(0);
        self.put_maybe(agreed.shard().map(|shard| shard.value()));
        self.put_word(statement);
        if let Some(columns) = columns {
            self.put_raw_columns(columns);
        }
        if let Some(state) = rows.as_ref().and_then(|rows| rows.metadata.paging_state) {
            self.put_bytes(state);
        }
        if warning_count > 0 {
            self.put_word(warning_count);
            for warning in warnings.iter() {
                self.put_text(warning);
            }
        }
        if let Some(id) = extras.trace_id {
            self.put_bytes(id.as_bytes());
        }
        if let Some(rows) = rows {
            self.put_word(rows.content.row_count());
            self.put_bytes(rows.content.as_bytes());
        }
        Ok(())
    }

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

impl Held {
    /// Whether the columns of rows are others than those told before; they count as told then.
    fn is_news(&mut self, metadata: &RowsMetadata<'_>, columns: Columns<'_>) -> bool {
        // Where all have one table each is described in fewer bytes.
        let has_one_table = metadata.flags & 1 != 0;
        let (count, raw) = (metadata.column_count, columns.as_bytes());
        let is_same = self.told.as_ref().is_some_and(|(one, told_count, told)| {
            *one == has_one_table && *told_count == count && **told == *raw
        });
        if !is_same {
            self.told = Some((has_one_table, count, Box::from(raw)));
        }
        !is_same
    }
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
