//! The bytes of the CQL native protocol, versions 3 to 5: structures in, bytes out, and back.
//!
//! This is the lowest layer. It keeps no state, knows no connection, and allocates nothing when
//! borrowing from a body is enough; only [`response::ServerError`], which outlives its frame, owns
//! its text, and a body that was compressed. It is not a codec with buffers: finding frame borders, in
//! the segments of protocol 5 too, belongs to the layers above.
//!
//! Invariants: nothing that arrives can panic, overflow, recurse or loop without bound, or allocate
//! by a declared length, and every failure is a [`ParseError`] that says what was being read and
//! where; nothing that is sent carries a length that lies, because every length is checked
//! ([`EncodeError`]) and a frame whose body fails is taken back whole ([`put_frame`]). Every encoder
//! and decoder is told the [`ProtocolVersion`].
//!
//! Layouts follow the native protocol specifications v3, v4 and v5 of Apache Cassandra, and for
//! ScyllaDB's additions (metadata id, tablet version block, rate limit error, client routes) its
//! protocol extensions document.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod codes;
mod compress;
mod consistency;
mod header;
mod primitives;
mod reader;
pub mod request;
pub mod response;
#[cfg(any(test, feature = "protocol-v5"))]
pub mod segment;
mod small_buffer;
mod values;
mod writer;

pub use codes::{Flags, Opcode, ProtocolVersion, UnknownOpcode, UnknownVersion};
pub use compress::Compression;
pub(crate) use compress::{Inflate, compress_frame};
pub use consistency::{Consistency, ConsistencyCode, SerialConsistency};
#[cfg(any(test, feature = "protocol-v5"))]
pub(crate) use header::frame_len;
pub use header::{FrameHeader, HEADER_LEN, HeaderError, HeaderErrorKind, patch_stream, put_frame};
pub(crate) use header::{check_request_len, finish_frame};
pub use primitives::{
    BytesMap, BytesMapIter, StringList, StringListIter, StringMultimap, StringMultimapIter,
};
pub use reader::{ParseError, ParseErrorKind, ParseFacts, Reader};
pub use small_buffer::SmallBuffer;
pub(crate) use values::IsUnset;
pub use values::{EncodedValues, RawValue, Values, ValuesBuilder, ValuesIter};
pub use writer::{
    EncodeError, EncodeErrorKind, EncodeFacts, Sink, int_length, length_prefixed, short_length,
};

/// What a connection agreed with its peer that changes how bytes are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The protocol version of every frame on the connection.
    pub version: ProtocolVersion,
    /// Whether result metadata ids travel in PREPARED and EXECUTE: always on version 5, on older
    /// versions if the extension `SCYLLA_USE_METADATA_ID` was agreed.
    pub result_metadata_id: bool,
    /// The error code that means "rate limit reached", where the peer named one.
    pub rate_limit_error: Option<i32>,
}

impl Dialect {
    /// The plain protocol of a version, without extensions.
    #[must_use]
    pub const fn plain(version: ProtocolVersion) -> Self {
        Self {
            version,
            result_metadata_id: version.has_metadata_id(),
            rate_limit_error: None,
        }
    }
}
