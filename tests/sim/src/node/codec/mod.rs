//! The node's own reading and writing of frames and bodies.
//!
//! Deliberately not the driver's codec: two hands, so that a mistake on one side shows as a
//! disagreement. Reads requests and writes responses of native protocol versions 3 and 4 only.
//! Invariant: no input makes it panic or allocate beyond the input's own size.

mod compress;
mod reader;
mod request;
mod writer;

pub(crate) use compress::Compression;
pub(crate) use reader::{Bound, Reader};
pub(crate) use request::{BatchEntry, BatchRequest, Parameters};
pub(crate) use writer::Writer;

use core::fmt;

/// Length of a frame header in every version this node speaks.
pub(crate) const HEADER_LEN: usize = 9;

/// Frame flags.
pub(crate) mod flags {
    pub(crate) const COMPRESSED: u8 = 0x01;
    pub(crate) const TRACING: u8 = 0x02;
    pub(crate) const CUSTOM_PAYLOAD: u8 = 0x04;
    pub(crate) const WARNING: u8 = 0x08;
}

/// Opcodes, both directions.
pub(crate) mod opcode {
    pub(crate) const ERROR: u8 = 0x00;
    pub(crate) const STARTUP: u8 = 0x01;
    pub(crate) const READY: u8 = 0x02;
    pub(crate) const AUTHENTICATE: u8 = 0x03;
    pub(crate) const CREDENTIALS: u8 = 0x04;
    pub(crate) const OPTIONS: u8 = 0x05;
    pub(crate) const SUPPORTED: u8 = 0x06;
    pub(crate) const QUERY: u8 = 0x07;
    pub(crate) const RESULT: u8 = 0x08;
    pub(crate) const PREPARE: u8 = 0x09;
    pub(crate) const EXECUTE: u8 = 0x0A;
    pub(crate) const REGISTER: u8 = 0x0B;
    pub(crate) const EVENT: u8 = 0x0C;
    pub(crate) const BATCH: u8 = 0x0D;
    pub(crate) const AUTH_RESPONSE: u8 = 0x0F;
    pub(crate) const AUTH_SUCCESS: u8 = 0x10;
}

/// The header of a request frame. The version is the connection's; it is checked before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) flags: u8,
    pub(crate) stream: i16,
    pub(crate) opcode: u8,
    pub(crate) length: u32,
}

impl Header {
    pub(crate) fn parse(bytes: &[u8; HEADER_LEN]) -> Self {
        let [_version, flags, s0, s1, opcode, l0, l1, l2, l3] = *bytes;
        Self {
            flags,
            stream: i16::from_be_bytes([s0, s1]),
            opcode,
            length: u32::from_be_bytes([l0, l1, l2, l3]),
        }
    }
}

/// A consistency level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Consistency {
    /// 0
    Any,
    /// 1
    One,
    /// 2
    Two,
    /// 3
    Three,
    /// 4
    Quorum,
    /// 5
    All,
    /// 6
    LocalQuorum,
    /// 7
    EachQuorum,
    /// 8
    Serial,
    /// 9
    LocalSerial,
    /// 10
    LocalOne,
}

const LEVELS: [(Consistency, &str); 11] = [
    (Consistency::Any, "ANY"),
    (Consistency::One, "ONE"),
    (Consistency::Two, "TWO"),
    (Consistency::Three, "THREE"),
    (Consistency::Quorum, "QUORUM"),
    (Consistency::All, "ALL"),
    (Consistency::LocalQuorum, "LOCAL_QUORUM"),
    (Consistency::EachQuorum, "EACH_QUORUM"),
    (Consistency::Serial, "SERIAL"),
    (Consistency::LocalSerial, "LOCAL_SERIAL"),
    (Consistency::LocalOne, "LOCAL_ONE"),
];

impl Consistency {
    pub(crate) fn from_code(code: u16) -> Option<Self> {
        LEVELS.get(usize::from(code)).map(|(level, _)| *level)
    }

    pub(crate) fn code(self) -> u16 {
        self as u16
    }

    pub(crate) fn is_serial(self) -> bool {
        matches!(self, Self::Serial | Self::LocalSerial)
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(LEVELS.get(*self as usize).map_or("", |(_, name)| name))
    }
}
