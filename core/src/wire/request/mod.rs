//! Bodies of requests: one file for each, written in one go into the connection's output.
//!
//! What a connection agreed (metadata id, tablet version block) is passed at the moment of writing,
//! because the same statement goes out over connections that agreed on different things.
//!
//! ```
//! use messina_core::wire::request::{Prepare, put_request};
//! use messina_core::wire::{Flags, ProtocolVersion};
//!
//! let mut output = Vec::new();
//! let prepare = Prepare { text: "SELECT 1", keyspace: None };
//! put_request(&mut output, ProtocolVersion::V4, Flags::NONE, 5, &prepare)?;
//! assert_eq!(output, b"\x04\x00\x00\x05\x09\x00\x00\x00\x0c\x00\x00\x00\x08SELECT 1");
//! # Ok::<(), messina_core::wire::EncodeError>(())
//! ```

mod auth;
mod batch;
mod execute;
mod options;
mod prepare;
mod query;
mod register;
mod startup;

pub use auth::AuthResponse;
pub use batch::{Batch, BatchKind, BatchStatement, BatchStatementKind};
pub use execute::Execute;
pub use options::Options;
pub use prepare::Prepare;
pub use query::{Query, QueryParameters};
pub use register::Register;
pub use startup::Startup;

use super::{EncodeError, Flags, FrameHeader, Opcode, ProtocolVersion, Sink, put_frame};

/// A request that can write its body.
pub trait RequestBody {
    /// The opcode of its frame.
    const OPCODE: Opcode;

    /// Writes the body.
    ///
    /// On failure the sink may hold a part of it; [`put_request`] takes that back.
    fn put<S: Sink + ?Sized>(
        &self,
        version: ProtocolVersion,
        sink: &mut S,
    ) -> Result<(), EncodeError>;
}

/// Appends a whole request frame; on failure the sink is as it was before.
pub fn put_request<S: Sink + ?Sized, R: RequestBody>(
    sink: &mut S,
    version: ProtocolVersion,
    flags: Flags,
    stream: i16,
    request: &R,
) -> Result<(), EncodeError> {
    let header = FrameHeader {
        version,
        flags,
        stream,
        opcode: R::OPCODE,
        body_len: 0,
    };
    put_frame(sink, header, |sink| request.put(version, sink))
}
