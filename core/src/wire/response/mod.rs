//! Bodies of responses: one file for each, borrowed from the frame's body.
//!
//! [`Response::parse`] reads the message; the prefix that the frame's flags announce is read before
//! by [`Extras::parse`]. What is borrowed lies inside the body; rows that are kept share it
//! ([`RowsBuffer`]).
//!
//! ```
//! use messina_core::wire::response::{Extras, Response, ResultBody};
//! use messina_core::wire::{Dialect, Flags, Opcode, ProtocolVersion, Reader};
//!
//! // RESULT with one warning: the keyspace is now ks.
//! let body = b"\x00\x01\x00\x02w1\x00\x00\x00\x03\x00\x02ks";
//! let dialect = Dialect::plain(ProtocolVersion::V4);
//! let mut reader = Reader::new(body);
//! let extras = Extras::parse(Flags::WARNING, &mut reader)?;
//! let response = Response::parse(&dialect, Opcode::Result, &mut reader)?;
//! assert_eq!(extras.warnings.first(), Some("w1"));
//! assert!(matches!(response, Response::Result(ResultBody::SetKeyspace("ks"))));
//! # Ok::<(), messina_core::wire::ParseError>(())
//! ```

mod auth;
mod columns;
mod error;
mod error_code;
mod event;
mod extras;
mod prepared;
mod result;
mod rows;
mod supported;

pub use auth::{AuthChallenge, AuthSuccess, Authenticate};
pub(crate) use columns::type_number;
pub use columns::{
    ColumnSpec, Columns, ColumnsIter, TYPE_DEPTH_MAX, TypeOption, TypeOptionKind, TypeOptions,
    TypeOptionsIter, UdtFields, UdtFieldsIter,
};
pub use error::{ErrorDetail, Failures, RateLimitedOperation, ServerError, WriteType};
pub use error_code::ErrorCode;
pub use event::{
    Event, EventKind, SchemaChange, SchemaChangeKind, SchemaTarget, StatusChangeKind,
    TopologyChangeKind,
};
pub use extras::Extras;
pub use prepared::{BoundMetadata, KeyIndexes, KeyIndexesIter, Prepared};
pub use result::ResultBody;
pub use rows::{CellsIter, RawRow, Rows, RowsBuffer, RowsContent, RowsIter, RowsMetadata};
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
