//! OPTIONS: asks what a node supports. The body is empty.

use super::RequestBody;
use crate::wire::{EncodeError, Opcode, ProtocolVersion, Sink};

/// The OPTIONS request; also the cheapest question to ask a silent node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options;

impl RequestBody for Options {
    const OPCODE: Opcode = Opcode::Options;

    fn put<S: Sink + ?Sized>(&self, _: ProtocolVersion, _: &mut S) -> Result<(), EncodeError> {
        Ok(())
    }
}
