//! Bodies of responses: one file for each, borrowed from the frame's body.
//!
//! [`Response::parse`] reads the message; the prefix that the frame's flags announce is read before
//! by [`Extras::parse`]. What is borrowed lies inside the body, so an owner that holds the body as
//! `Bytes` keeps any part of it without a copy through `Bytes::slice_ref`.

mod auth;
mod columns;
mod error;
mod event;
mod extras;
mod prepared;
mod result;
mod rows;
mod supported;

pub use auth::{AuthChallenge, AuthSuccess, Authenticate};
pub use columns::{
    ColumnSpec, Columns, ColumnsIter, TYPE_DEPTH_MAX, TypeOption, TypeOptionKind, TypeOptions,
    TypeOptionsIter, UdtFields, UdtFieldsIter,
};
pub use error::{ErrorCode, ErrorDetail, Failures, RateLimitedOperation, ServerError, WriteType};
pub use event::{
    Event, EventKind, SchemaChange, SchemaChangeKind, SchemaTarget, StatusChangeKind,
    TopologyChangeKind,
};
pub use extras::Extras;
pub use prepared::{BoundMetadata, KeyIndexes, KeyIndexesIter, Prepared};
pub use result::ResultBody;
pub use rows::{CellsIter, RawRow, Rows, RowsContent, RowsIter, RowsMetadata};
pub use supported::Supported;

use super::{Dialect, Opcode, ParseError, Reader};

/// A response message.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Response<'a> {
    /// The request failed.
    Error(ServerError),
    /// The connection is usable, or a registration was taken.
    Ready,
    /// The server wants a token.
    Authenticate(Authenticate<'a>),
    /// What the node supports.
    Supported(Supported<'a>),
    /// The outcome of a statement.
    Result(ResultBody<'a>),
    /// Something changed.
    Event(Event<'a>),
    /// The server wants another token.
    AuthChallenge(AuthChallenge<'a>),
    /// The token was good.
    AuthSuccess(AuthSuccess<'a>),
}

impl<'a> Response<'a> {
    /// Reads a message after its prefix.
    ///
    /// Bytes after the message are left alone, for what later versions may append. An opcode of a
    /// request is an error.
    pub fn parse(
        dialect: &Dialect,
        opcode: Opcode,
        reader: &mut Reader<'a>,
    ) -> Result<Self, ParseError> {
        Ok(match opcode {
            Opcode::Error => Self::Error(ServerError::parse(dialect, reader)?),
            Opcode::Ready => Self::Ready,
            Opcode::Authenticate => Self::Authenticate(Authenticate::parse(reader)?),
            Opcode::Supported => Self::Supported(Supported::parse(reader)?),
            Opcode::Result => Self::Result(ResultBody::parse(dialect, reader)?),
            Opcode::Event => Self::Event(Event::parse(reader)?),
            Opcode::AuthChallenge => Self::AuthChallenge(AuthChallenge::parse(reader)?),
            Opcode::AuthSuccess => Self::AuthSuccess(AuthSuccess::parse(reader)?),
            request => {
                return Err(reader.unknown_code("response opcode", u32::from(request.code())));
            }
        })
    }
}
