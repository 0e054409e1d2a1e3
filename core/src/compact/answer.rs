//! What answers mean.

use crate::conn::Answer;
use crate::error::{ApiMisuse, Error, ErrorKind, PeerMisbehaved};
use crate::wire::response::{Extras, Prepared, ResultBody};
use crate::wire::{Opcode, Reader};

/// What stands behind the extras of a result.
pub(super) fn message(answer: &Answer) -> Result<&[u8], Error> {
    if answer.opcode != Opcode::Result {
        return Err(PeerMisbehaved::UnexpectedFrame.into());
    }
    let body = answer.body.as_slice();
    let mut reader = Reader::new(body);
    Extras::parse(answer.flags, &mut reader)?;
    Ok(reader.rest())
}

/// What stands behind the kind of a result, if it is this one. Others are not taken apart, which would
/// bring the code of all.
pub(super) fn of_kind(message: &[u8], kind: u32) -> Result<Reader<'_>, Error> {
    let mut reader = Reader::new(message);
    match reader.bits("result kind")? == kind {
        true => Ok(reader),
        false => Err(PeerMisbehaved::UnexpectedFrame.into()),
    }
}

/// Whether a node has set the keyspace.
pub(super) fn check_keyspace(answer: &Answer) -> Result<(), Error> {
    of_kind(message(answer)?, ResultBody::SET_KEYSPACE)?.string("keyspace")?;
    Ok(())
}

/// A node that did not know a statement has it now: whether it is the same.
pub(super) fn check_same(statement: &Prepared<'_>, other: &Prepared<'_>) -> Result<(), Error> {
    if other.id != statement.id {
        let kind = ErrorKind::PeerMisbehaved(PeerMisbehaved::MalformedBody);
        return Err(Error::with_text(kind, "the statement got another id"));
    }
    // Names and types as they came.
    match statement.bound.columns.as_bytes() == other.bound.columns.as_bytes() {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::ApiMisuse(ApiMisuse::StaleStatement))),
    }
}
