//! Answers as text: everything that was read of a body, cells as bytes.

use alloc::string::String;
use core::fmt::{self, Write as _};

use messina_core::conn::Answer;
use messina_core::conn::extensions::Agreed;
use messina_core::error::{Applied, Error};
use messina_core::exec::retry::{Decision, Failure, decide};
use messina_core::wire::response::{
    Columns, ErrorDetail, Extras, Prepared, Response, ResultBody, Rows, RowsMetadata, TypeOption,
    TypeOptionKind,
};
use messina_core::wire::{ParseError, Reader};

use crate::log::Hex;

/// What an answer says, or that it cannot be read.
#[must_use]
pub fn text(answer: &Answer, agreed: &Agreed) -> String {
    let mut out = String::new();
    if let Err(error) = read(answer, agreed, &mut out) {
        // What stands before it was read all the same.
        let _fits = write!(out, " unreadable: {:?}", error.kind);
    }
    out
}

/// An error without its words, which differ between builds: its kind, whether the request may have been
/// applied, and what would be done about it.
#[must_use]
pub fn error(error: &Error, is_idempotent: bool) -> String {
    let mut out = String::new();
    let applied = match error.applied() {
        Applied::No => "not applied",
        Applied::Unknown => "perhaps applied",
        _ => "applied?",
    };
    let _fits = write!(out, "{:?}, {applied}", error.kind());
    if let Some(server) = error.server() {
        let detail = server.detail().unwrap_or(ErrorDetail::None);
        let _fits = write!(out, ", {:?} {detail:?}", server.message);
    }
    for same_target_retries in [0, 1] {
        let decision = decide(&Failure {
            error,
            is_idempotent,
            same_target_retries,
        });
        out.push_str(match decision {
            Decision::SameTarget => ", same",
            Decision::NextTarget => ", next",
            Decision::Fail => ", fail",
            _ => ", unknown",
        });
    }
    out
}

fn read(answer: &Answer, agreed: &Agreed, out: &mut String) -> Result<(), ParseError> {
    let mut reader = Reader::new(answer.body.as_slice());
    let extras = Extras::parse(answer.flags, &mut reader)?;
    let mut put = |text: fmt::Arguments<'_>| {
        let _fits = out.write_fmt(text);
    };
    if let Some(id) = extras.trace_id {
        put(format_args!("traced {id} "));
    }
    for warning in extras.warnings.iter() {
        put(format_args!("warning {warning:?} "));
    }
    for (name, value) in extras.custom_payload.iter() {
        put(format_args!(
            "payload {name}={} ",
            Hex(value.unwrap_or_default())
        ));
    }
    match Response::parse(&agreed.dialect(), answer.opcode, &mut reader)? {
        Response::Error(error) => {
            let (code, message, detail) = (error.code, &error.message, error.detail()?);
            put(format_args!("error {code:?} {message:?} {detail:?}"));
        }
        Response::Ready => put(format_args!("ready")),
        Response::Supported(_) => put(format_args!("supported")),
        Response::Event(event) => put(format_args!("event {event:?}")),
        Response::Result(result) => put_result(&result, agreed, out)?,
        _ => put(format_args!("{:?}", answer.opcode)),
    }
    Ok(())
}

fn put_result(
    result: &ResultBody<'_>,
    agreed: &Agreed,
    out: &mut String,
) -> Result<(), ParseError> {
    let mut put = |text: fmt::Arguments<'_>| {
        let _fits = out.write_fmt(text);
    };
    match result {
        ResultBody::Void => put(format_args!("void")),
        ResultBody::SetKeyspace(name) => put(format_args!("keyspace {name:?}")),
        ResultBody::SchemaChange(change) => put(format_args!("schema {change:?}")),
        ResultBody::Rows(rows) => put_rows(rows, out)?,
        ResultBody::Prepared(prepared) => {
            if agreed.is_lwt(prepared.bound.flags) {
                put(format_args!("conditional "));
            }
            put_prepared(prepared, out);
        }
        _ => put(format_args!("another result")),
    }
    Ok(())
}

/// A prepared statement.
#[must_use]
pub fn prepared(prepared: &Prepared<'_>) -> String {
    let mut out = String::new();
    put_prepared(prepared, &mut out);
    out
}

fn put_prepared(prepared: &Prepared<'_>, out: &mut String) {
    let mut put = |text: fmt::Arguments<'_>| {
        let _fits = out.write_fmt(text);
    };
    put(format_args!("prepared {}", Hex(prepared.id)));
    if let Some(id) = prepared.result_metadata_id {
        put(format_args!(" result id {}", Hex(id)));
    }
    put(format_args!(" key"));
    for index in prepared.bound.key_indexes {
        put(format_args!(" {index}"));
    }
    put(format_args!(" markers"));
    put_columns(prepared.bound.columns, out);
    put_metadata(&prepared.result, out);
}

fn put_metadata(metadata: &RowsMetadata<'_>, out: &mut String) {
    let _fits = write!(out, " columns {}", metadata.column_count);
    if let Some(id) = metadata.new_metadata_id {
        let _fits = write!(out, " new id {}", Hex(id));
    }
    if let Some(state) = metadata.paging_state {
        let _fits = write!(out, " state {}", Hex(state));
    }
    if let Some(columns) = metadata.columns {
        put_columns(columns, out);
    }
}

fn put_columns(columns: Columns<'_>, out: &mut String) {
    for column in columns.iter() {
        let (keyspace, table, name) = (column.keyspace, column.table, column.name);
        let _fits = write!(out, " {keyspace}.{table}.{name}:");
        put_type(column.ty, out);
    }
}

fn put_type(ty: TypeOption<'_>, out: &mut String) {
    let mut put = |text: fmt::Arguments<'_>| {
        let _fits = out.write_fmt(text);
    };
    match ty.kind() {
        TypeOptionKind::Native(code) => put(format_args!("{code:x}")),
        kind => put(format_args!("{kind:?}")),
    }
}

fn put_rows(rows: &Rows<'_>, out: &mut String) -> Result<(), ParseError> {
    let _fits = write!(out, "rows {}", rows.content.row_count());
    put_metadata(&rows.metadata, out);
    for row in rows.content {
        out.push_str(" |");
        for cell in row?.cells() {
            let _fits = match cell {
                Some(bytes) => write!(out, " {}", Hex(bytes)),
                None => write!(out, " null"),
            };
        }
    }
    Ok(())
}
