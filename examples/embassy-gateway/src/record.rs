//! What stands in flash: a head of 16 bytes, little endian, and the payload.
//!
//! ```text
//! 0        version << 4 | kind     1  certainty
//! 2..4     number of the boot      4..8  sequence number
//! 8..16    microseconds: since 1970 (dated reading, dating) or since the boot (undated reading)
//! 16..     payload of a reading
//! ```

use crate::clock::{Certainty, Dating, Stamp};

/// Longest payload of a reading.
pub const PAYLOAD_MAX: usize = 32;

/// What a reading holds: the stores only keep it.
pub type Payload = heapless::Vec<u8, PAYLOAD_MAX>;

pub(crate) const HEAD_LEN: usize = 16;
pub(crate) const RECORD_MAX: usize = HEAD_LEN + PAYLOAD_MAX;

/// Buffer for one record. Some flash controllers want words from aligned addresses.
#[derive(Debug)]
#[repr(C, align(8))]
pub(crate) struct RecordBuffer(pub(crate) [u8; RECORD_MAX]);

/// Number of a boot. Those that have something in flash are told apart by it, no others.
pub(crate) type Boot = u16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) boot: Boot,
    pub(crate) sequence: u32,
    pub(crate) content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Reading {
        stamp: Stamp,
        payload: Payload,
    },
    /// How the undated readings of that boot, all of them before this record, are dated.
    Dating(Dating),
}

impl Record {
    /// Returns the length.
    pub(crate) fn put(&self, into: &mut RecordBuffer) -> usize {
        let (kind, certainty, micros, payload) = match &self.content {
            Content::Reading { stamp, payload } => match *stamp {
                Stamp::Wall { micros, certainty } => {
                    (WALL, certainty.code(), micros.to_le_bytes(), &payload[..])
                }
                Stamp::Uptime { micros } => (UPTIME, 0, micros.to_le_bytes(), &payload[..]),
            },
            Content::Dating(dating) => {
                let start = dating.start.to_le_bytes();
                (DATING, dating.certainty.code(), start, &[][..])
            }
        };
        let len = HEAD_LEN + payload.len();
        let buffer = &mut into.0;
        buffer[0] = VERSION << 4 | kind;
        buffer[1] = certainty;
        buffer[2..4].copy_from_slice(&self.boot.to_le_bytes());
        buffer[4..8].copy_from_slice(&self.sequence.to_le_bytes());
        buffer[8..HEAD_LEN].copy_from_slice(&micros);
        buffer[HEAD_LEN..len].copy_from_slice(payload);
        len
    }

    /// `None` for what an other version, or somebody else, has written.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (head, payload) = bytes.split_first_chunk::<HEAD_LEN>()?;
        let &[tag, certainty, b0, b1, s0, s1, s2, s3, micros @ ..] = head;
        if tag >> 4 != VERSION {
            return None;
        }
        let payload = Payload::from_slice(payload).ok()?;
        let content = match tag & 0x0f {
            WALL => Content::Reading {
                stamp: Stamp::Wall {
                    micros: i64::from_le_bytes(micros),
                    certainty: Certainty::from_code(certainty)?,
                },
                payload,
            },
            UPTIME => Content::Reading {
                stamp: Stamp::Uptime {
                    micros: u64::from_le_bytes(micros),
                },
                payload,
            },
            DATING => Content::Dating(Dating {
                start: i64::from_le_bytes(micros),
                certainty: Certainty::from_code(certainty)?,
            }),
            _ => return None,
        };
        Some(Self {
            boot: u16::from_le_bytes([b0, b1]),
            sequence: u32::from_le_bytes([s0, s1, s2, s3]),
            content,
        })
    }
}

/// Whether one sequence number is at or before another. They wrap; no store holds half of them.
pub(crate) const fn is_through(sequence: u32, through: u32) -> bool {
    through.wrapping_sub(sequence) < 1 << 31
}

const VERSION: u8 = 1;
const WALL: u8 = 0;
const UPTIME: u8 = 1;
const DATING: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_put() {
        let payload = Payload::from_slice(&[7; 5]).unwrap();
        let reading = |stamp| Content::Reading {
            stamp,
            payload: payload.clone(),
        };
        let dating = Dating {
            start: -2,
            certainty: Certainty::Latest,
        };
        for content in [
            reading(Stamp::Wall {
                micros: 0x0102_0304_0506_0708,
                certainty: Certainty::Held,
            }),
            reading(Stamp::Uptime { micros: u64::MAX }),
            Content::Dating(dating),
        ] {
            let record = Record {
                boot: 0xabcd,
                sequence: 0xffff_fffe,
                content,
            };
            let mut buffer = RecordBuffer([0; RECORD_MAX]);
            let len = record.put(&mut buffer);
            assert_eq!(Record::parse(&buffer.0[..len]), Some(record));
            assert_eq!(Record::parse(&buffer.0[..HEAD_LEN - 1]), None);
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let record = Record {
            boot: 0x0203,
            sequence: 0x0405_0607,
            content: Content::Reading {
                stamp: Stamp::Wall {
                    micros: 1,
                    certainty: Certainty::Dated,
                },
                payload: Payload::from_slice(&[9]).unwrap(),
            },
        };
        let mut buffer = RecordBuffer([0; RECORD_MAX]);
        assert_eq!(record.put(&mut buffer), 17);
        let expected = [0x10, 1, 3, 2, 7, 6, 5, 4, 1, 0, 0, 0, 0, 0, 0, 0, 9];
        assert_eq!(buffer.0[..17], expected);
        buffer.0[0] = 0x20;
        assert_eq!(Record::parse(&buffer.0[..17]), None, "another version");
    }

    #[test]
    fn sequence_numbers_wrap() {
        assert!(is_through(5, 5));
        assert!(is_through(u32::MAX, 0));
        assert!(!is_through(0, u32::MAX));
    }
}
