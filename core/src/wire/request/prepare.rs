//! PREPARE: has a statement parsed and remembered.

use super::RequestBody;
use crate::wire::{EncodeError, EncodeErrorKind, Opcode, ProtocolVersion, Sink};

/// The PREPARE request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepare<'a> {
    /// The statement.
    pub text: &'a str,
    /// The keyspace for unqualified names; version 5 only.
    pub keyspace: Option<&'a str>,
}

const FLAG_KEYSPACE: u32 = 0x01;

impl RequestBody for Prepare<'_> {
    const OPCODE: Opcode = Opcode::Prepare;

    fn put<S: Sink + ?Sized>(
        &self,
        version: ProtocolVersion,
        sink: &mut S,
    ) -> Result<(), EncodeError> {
        sink.put_long_string("statement", self.text)?;
        if !version.has_wide_flags() {
            return match self.keyspace {
                None => Ok(()),
                Some(_) => {
                    let kind = EncodeErrorKind::NotInVersion(version);
                    Err(EncodeError::new("keyspace of a statement", kind))
                }
            };
        }
        let Some(keyspace) = self.keyspace else {
            sink.put_bits(0);
            return Ok(());
        };
        sink.put_bits(FLAG_KEYSPACE);
        sink.put_string("keyspace", keyspace)
    }
}
