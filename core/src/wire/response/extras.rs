//! What may stand before the message of a response: trace id, warnings, custom payload.
//!
//! Always in this order, each only if its frame flag is set.

use uuid::Uuid;

use crate::wire::{BytesMap, Flags, ParseError, Reader, StringList};

/// The prefix of a response body. Empty where a flag was not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras<'a> {
    /// The id of the trace, if the request asked for one.
    pub trace_id: Option<Uuid>,
    /// What the server wants to be noticed.
    pub warnings: StringList<'a>,
    /// What extensions add, such as tablet routing.
    pub custom_payload: BytesMap<'a>,
}

impl<'a> Extras<'a> {
    /// Reads what the flags announce; the reader then stands at the message.
    pub fn parse(flags: Flags, reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        let mut extras = Self::default();
        if flags.contains(Flags::TRACING) {
            extras.trace_id = Some(reader.uuid("trace id")?);
        }
        if flags.contains(Flags::WARNING) {
            extras.warnings = StringList::parse(reader, "warnings")?;
        }
        if flags.contains(Flags::CUSTOM_PAYLOAD) {
            extras.custom_payload = BytesMap::parse(reader, "custom payload")?;
        }
        Ok(extras)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Trace id, one warning "w1", payload {"k": 0102}, VOID.
    const PARTS: [&[u8]; 3] = [
        &[
            0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x33, 0x33, 0x44, 0x44, 0x55, 0x55, 0x55, 0x55,
            0x55, 0x55,
        ],
        &[0, 1, 0, 2, b'w', b'1'],
        &[0, 1, 0, 1, b'k', 0, 0, 0, 2, 1, 2],
    ];

    #[test]
    fn each_combination_of_flags_in_the_order_of_the_specification() {
        for combination in 0..8_u8 {
            let mut flags = Flags::NONE;
            let mut body = Vec::new();
            let announced = [Flags::TRACING, Flags::WARNING, Flags::CUSTOM_PAYLOAD];
            for (index, (flag, part)) in announced.into_iter().zip(PARTS).enumerate() {
                if combination & (1 << index) != 0 {
                    flags |= flag;
                    body.extend_from_slice(part);
                }
            }
            body.extend_from_slice(&[0, 0, 0, 1]);
            let mut reader = Reader::new(&body);
            let extras = Extras::parse(flags, &mut reader).unwrap();
            assert_eq!(reader.rest(), [0, 0, 0, 1], "{combination}");
            assert_eq!(extras.trace_id.is_some(), flags.contains(Flags::TRACING));
            assert_eq!(
                extras.warnings.first(),
                flags.contains(Flags::WARNING).then_some("w1")
            );
            let payload = flags
                .contains(Flags::CUSTOM_PAYLOAD)
                .then_some(&[1_u8, 2][..]);
            assert_eq!(extras.custom_payload.get("k"), payload);
            for cut in 0..body.len() - 4 {
                assert!(Extras::parse(flags, &mut Reader::new(&body[..cut])).is_err());
            }
        }
    }
}
