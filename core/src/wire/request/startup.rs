//! STARTUP: opens the conversation with a `[string map]` of options.

use super::RequestBody;
use crate::wire::writer::short_count;
use crate::wire::{EncodeError, Opcode, ProtocolVersion, Sink};

/// The STARTUP request. Anything that iterates over pairs of strings gives the options.
#[derive(Clone, Copy, Debug)]
pub struct Startup<I>(pub I);

impl<'a, I> RequestBody for Startup<I>
where
    I: IntoIterator<Item = (&'a str, &'a str)> + Clone,
{
    const OPCODE: Opcode = Opcode::Startup;

    fn put<S: Sink + ?Sized>(&self, _: ProtocolVersion, sink: &mut S) -> Result<(), EncodeError> {
        sink.put_short(short_count(
            "startup options",
            self.0.clone().into_iter().count(),
        )?);
        for (key, value) in self.0.clone() {
            sink.put_string("startup option", key)?;
            sink.put_string("startup option", value)?;
        }
        Ok(())
    }
}
