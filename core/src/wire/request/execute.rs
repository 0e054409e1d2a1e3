//! EXECUTE: runs a prepared statement.

use super::{QueryParameters, RequestBody};
use crate::wire::{EncodeError, EncodeErrorKind, Opcode, ProtocolVersion, Sink};

/// The EXECUTE request.
///
/// `result_metadata_id` and `tablet_version_block` shift the body, so they must be given exactly if
/// the connection agreed to them: the metadata id on version 5 or with `SCYLLA_USE_METADATA_ID` (an
/// empty one asks for fresh metadata), the block with tablet routing version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execute<'a> {
    /// The id from PREPARED.
    pub id: &'a [u8],
    /// The result metadata id held, empty if none is.
    pub result_metadata_id: Option<&'a [u8]>,
    /// How to run it.
    pub parameters: QueryParameters<'a>,
    /// Which nibble of the tablet version is compared, and its value; the last byte of the body.
    pub tablet_version_block: Option<u8>,
}

impl RequestBody for Execute<'_> {
    const OPCODE: Opcode = Opcode::Execute;

    fn put<S: Sink + ?Sized>(
        &self,
        version: ProtocolVersion,
        sink: &mut S,
    ) -> Result<(), EncodeError> {
        sink.put_short_bytes("prepared id", self.id)?;
        match self.result_metadata_id {
            Some(id) => sink.put_short_bytes("result metadata id", id)?,
            None if version.has_metadata_id() => {
                let kind = EncodeErrorKind::MissingInVersion(version);
                return Err(EncodeError::new("result metadata id", kind));
            }
            None => {}
        }
        self.parameters.put(version, sink)?;
        if let Some(block) = self.tablet_version_block {
            sink.put_byte(block);
        }
        Ok(())
    }
}
