//! REGISTER: subscribes to events by name.

use super::RequestBody;
use crate::wire::writer::short_count;
use crate::wire::{EncodeError, Opcode, ProtocolVersion, Sink};

/// The REGISTER request. Several add up; there is no way back.
#[derive(Clone, Copy, Debug)]
pub struct Register<'a> {
    /// Names of events, as in [`EventKind::name`](crate::wire::response::EventKind::name).
    pub events: &'a [&'a str],
}

impl RequestBody for Register<'_> {
    const OPCODE: Opcode = Opcode::Register;

    fn put<S: Sink + ?Sized>(&self, _: ProtocolVersion, sink: &mut S) -> Result<(), EncodeError> {
        sink.put_short(short_count("event names", self.events.len())?);
        for event in self.events {
            sink.put_string("event name", event)?;
        }
        Ok(())
    }
}
