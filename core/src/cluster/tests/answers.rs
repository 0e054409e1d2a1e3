//! Frame bodies as a server would send them, written by hand.

use std::string::String;
use std::vec::Vec;

use crate::conn::{Answer, Body};
use crate::wire::{Flags, Opcode};

/// A cell: null or bytes.
pub(crate) type Cell = Option<Vec<u8>>;

pub(crate) fn text(value: &str) -> Cell {
    Some(value.as_bytes().to_vec())
}

pub(crate) fn uuid(value: u128) -> Cell {
    Some(value.to_be_bytes().to_vec())
}

pub(crate) fn inet(value: &str) -> Cell {
    Some(match value.parse().unwrap() {
        core::net::IpAddr::V4(v4) => v4.octets().to_vec(),
        core::net::IpAddr::V6(v6) => v6.octets().to_vec(),
    })
}

pub(crate) fn int(value: i32) -> Cell {
    Some(value.to_be_bytes().to_vec())
}

/// A set or list of text: count, then length and bytes of each; also a map, flattened.
pub(crate) fn texts(count: usize, values: &[&str]) -> Cell {
    let mut bytes = (count as u32).to_be_bytes().to_vec();
    for value in values {
        bytes.extend((value.len() as u32).to_be_bytes());
        bytes.extend(value.as_bytes());
    }
    Some(bytes)
}

/// RESULT of kind ROWS: flags 1 (global table) or 3 (and more pages), every column a blob.
pub(crate) fn rows(columns: &[&str], rows: &[Vec<Cell>], paging_state: Option<&[u8]>) -> Answer {
    let flags = if paging_state.is_some() { 3_u32 } else { 1 };
    let mut body = 2_u32.to_be_bytes().to_vec();
    body.extend(flags.to_be_bytes());
    body.extend((columns.len() as u32).to_be_bytes());
    if let Some(state) = paging_state {
        body.extend((state.len() as u32).to_be_bytes());
        body.extend(state);
    }
    for name in ["system", "any"] {
        put_string(&mut body, name);
    }
    for column in columns {
        put_string(&mut body, column);
        body.extend([0x00, 0x03]);
    }
    body.extend((rows.len() as u32).to_be_bytes());
    for row in rows {
        assert_eq!(row.len(), columns.len());
        for cell in row {
            match cell {
                None => body.extend([0xff; 4]),
                Some(bytes) => {
                    body.extend((bytes.len() as u32).to_be_bytes());
                    body.extend(bytes);
                }
            }
        }
    }
    answer(Opcode::Result, &body)
}

pub(crate) fn error(code: u32, message: &str) -> Answer {
    let mut body = code.to_be_bytes().to_vec();
    put_string(&mut body, message);
    answer(Opcode::Error, &body)
}

/// RESULT of kind SET_KEYSPACE.
pub(crate) fn set_keyspace(name: &str) -> Answer {
    let mut body = 3_u32.to_be_bytes().to_vec();
    put_string(&mut body, name);
    answer(Opcode::Result, &body)
}

pub(crate) fn ready() -> Answer {
    answer(Opcode::Ready, &[])
}

pub(crate) fn event(hex: &str) -> Vec<u8> {
    bytes(hex).split_off(9)
}

pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    digits
        .chunks(2)
        .map(|pair| (pair[0] * 16 + pair[1]) as u8)
        .collect()
}

/// The statement of a QUERY body: a long string in front.
pub(crate) fn statement(body: &[u8]) -> String {
    let len = u32::from_be_bytes(body[..4].try_into().unwrap()) as usize;
    String::from_utf8(body[4..4 + len].to_vec()).unwrap()
}

fn answer(opcode: Opcode, body: &[u8]) -> Answer {
    Answer {
        opcode,
        flags: Flags::NONE,
        body: Body::from_slice(body),
    }
}

fn put_string(body: &mut Vec<u8>, value: &str) {
    body.extend((value.len() as u16).to_be_bytes());
    body.extend(value.as_bytes());
}
