//! Numbers of types, as the protocol has them.

pub(super) const CUSTOM: u16 = 0x00;
pub(super) const ASCII: u16 = 0x01;
pub(super) const BIGINT: u16 = 0x02;
pub(super) const BLOB: u16 = 0x03;
pub(super) const BOOLEAN: u16 = 0x04;
pub(super) const COUNTER: u16 = 0x05;
pub(super) const DOUBLE: u16 = 0x07;
pub(super) const FLOAT: u16 = 0x08;
pub(super) const INT: u16 = 0x09;
pub(super) const TEXT: u16 = 0x0a;
pub(super) const TIMESTAMP: u16 = 0x0b;
pub(super) const UUID: u16 = 0x0c;
pub(super) const VARCHAR: u16 = 0x0d;
pub(super) const TIMEUUID: u16 = 0x0f;
pub(super) const INET: u16 = 0x10;
pub(super) const DATE: u16 = 0x11;
pub(super) const TIME: u16 = 0x12;
pub(super) const SMALLINT: u16 = 0x13;
pub(super) const TINYINT: u16 = 0x14;
