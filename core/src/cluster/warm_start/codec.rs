//! The frame around a blob and the few forms that its parts share.
//!
//! `MSNW`, a format version, the length of the body, the body, a checksum of all before it; every
//! number is big-endian. The checksum is 64-bit FNV-1a: it is a bijection in each byte, so no
//! change of a single byte passes; it guards against accidents, not against forgery, and what it
//! lets through is checked like anything from outside. A list is a 1 before each item and a 0 behind
//! the last, so that no count can promise more than there is.

use alloc::vec::Vec;
use core::net::IpAddr;

use crate::wire::{ParseError, ParseErrorKind, Reader, Sink};

/// Puts a body into its frame. `None` if it is longer than a frame can say.
pub(super) fn seal(body: &[u8]) -> Option<Vec<u8>> {
    let len = u32::try_from(body.len()).ok()?;
    let mut blob = Vec::with_capacity(body.len().saturating_add(FRAME_LEN));
    blob.put(MAGIC);
    blob.put_short(FORMAT_VERSION);
    blob.put_bits(len);
    blob.put(body);
    let checksum = fnv1a(&blob);
    blob.put(&checksum.to_be_bytes());
    Some(blob)
}

/// The body, if the frame is whole, unchanged, and of the version that is written now.
pub(super) fn unseal(blob: &[u8]) -> Option<&[u8]> {
    let (sealed, checksum) = blob.split_last_chunk::<8>()?;
    let mut reader = Reader::new(sealed);
    let is_ours = reader.take("magic", MAGIC.len()) == Ok(MAGIC)
        && reader.short("format version") == Ok(FORMAT_VERSION);
    let len = reader.bits("length").ok()?;
    let body = reader.rest();
    let is_whole = usize::try_from(len) == Ok(body.len());
    (is_ours && is_whole && fnv1a(sealed) == u64::from_be_bytes(*checksum)).then_some(body)
}

/// 64-bit FNV-1a.
pub(super) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Reads the items of a list.
pub(in crate::cluster) fn items<'a, T>(
    reader: &mut Reader<'a>,
    mut item: impl FnMut(&mut Reader<'a>) -> Result<T, ParseError>,
) -> Result<Vec<T>, ParseError> {
    let mut items = Vec::new();
    each_item(reader, &mut |reader| {
        items.push(item(reader)?);
        Ok(())
    })?;
    Ok(items)
}

/// What all lists have in common, once for all types.
#[inline(never)]
fn each_item<'a>(
    reader: &mut Reader<'a>,
    item: &mut dyn FnMut(&mut Reader<'a>) -> Result<(), ParseError>,
) -> Result<(), ParseError> {
    while flag(reader, "item")? {
        item(reader)?;
    }
    Ok(())
}

pub(in crate::cluster) fn flag(
    reader: &mut Reader<'_>,
    what: &'static str,
) -> Result<bool, ParseError> {
    let start = reader.clone();
    match reader.byte(what)? {
        0 => Ok(false),
        1 => Ok(true),
        code => {
            let code = u32::from(code);
            Err(start.error(what, ParseErrorKind::UnknownCode { code }))
        }
    }
}

/// An address behind its length; a length of 0 is none.
pub(super) fn put_address(out: &mut Vec<u8>, address: Option<IpAddr>) {
    match address {
        None => out.put_byte(0),
        Some(IpAddr::V4(address)) => {
            out.put_byte(4);
            out.put(&address.octets());
        }
        Some(IpAddr::V6(address)) => {
            out.put_byte(16);
            out.put(&address.octets());
        }
    }
}

pub(super) fn parse_address(reader: &mut Reader<'_>) -> Result<Option<IpAddr>, ParseError> {
    if reader.rest().first() == Some(&0) {
        reader.byte("address")?;
        return Ok(None);
    }
    reader.inet_address("address").map(Some)
}

const MAGIC: &[u8] = b"MSNW";

/// To be raised by every change of the form or the meaning of a blob: others are not read.
const FORMAT_VERSION: u16 = 1;

/// What a frame adds to its body.
pub(super) const FRAME_LEN: usize = 18;
