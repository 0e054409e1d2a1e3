//! Rows out of pieces cut anywhere.

use super::*;
use crate::error::Applied;
use crate::wire::response::Rows;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Flags, one table for all columns, three columns int, bigint and double, rows with and without
/// nulls, an empty cell.
const PLAIN: &[u8] = b"\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x03\x00\x02ks\x00\x01t\
    \x00\x01a\x00\x09\x00\x01b\x00\x02\x00\x01c\x00\x07\x00\x00\x00\x03\
    \x00\x00\x00\x04\x00\x00\x00\x07\x00\x00\x00\x08\x01\x02\x03\x04\x05\x06\x07\x08\
    \x00\x00\x00\x08\x40\x45\x00\x00\x00\x00\x00\x00\
    \x00\x00\x00\x04\x00\x00\x00\x08\xff\xff\xff\xff\xff\xff\xff\xfe\
    \x00\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00";

/// Behind a trace id, a warning and a payload: a place to go on, a new id of the columns, a table
/// for each of them, and types in types.
const LADEN: &[u8] = b"0123456789abcdef\x00\x01\x00\x02w1\x00\x01\x00\x01k\x00\x00\x00\x02\x01\x02\
    \x00\x00\x00\x02\x00\x00\x00\x0a\x00\x00\x00\x03\x00\x00\x00\x02\xab\xcd\x00\x03new\
    \x00\x01k\x00\x01t\x00\x01a\x00\x20\x00\x21\x00\x0d\x00\x31\x00\x02\x00\x09\x00\x0d\
    \x00\x01k\x00\x01t\x00\x01b\x00\x30\x00\x01k\x00\x01u\x00\x02\x00\x01x\x00\x09\x00\x01y\x00\x22\x00\x0d\
    \x00\x01k\x00\x01u\x00\x01c\x00\x00\x00\x03cls\
    \x00\x00\x00\x01\xff\xff\xff\xff\x00\x00\x00\x01b\x00\x00\x00\x05class";

const BODIES: [(u8, &[u8]); 7] = [
    (0, PLAIN),
    (0x0e, LADEN),
    // Columns left out, one place to go on, two rows of two cells and bytes behind them.
    (
        0,
        b"\x00\x00\x00\x02\x00\x00\x00\x07\x00\x00\x00\x02\x00\x00\x00\x01p\x00\x00\x00\x02\
        \x00\x00\x00\x01a\x00\x00\x00\x01b\x00\x00\x00\x01c\x00\x00\x00\x01dxyz",
    ),
    // No rows.
    (0, b"\x00\x00\x00\x02\x00\x00\x00\x04\x00\x00\x00\x02\x00\x00\x00\x00"),
    // Rows without columns.
    (
        0,
        b"\x00\x00\x00\x02\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00",
    ),
    // Nothing to tell, and a warning with it.
    (0, b"\x00\x00\x00\x01"),
    (8, b"\x00\x01\x00\x01w\x00\x00\x00\x03\x00\x02ks"),
];

#[derive(Debug, Default, PartialEq)]
struct Told {
    front: Option<String>,
    rows: Vec<Vec<Option<Vec<u8>>>>,
    is_broken: bool,
}

impl Told {
    fn row(&mut self, row: RawRow<'_>) {
        let cells = row.cells().map(|cell| cell.map(Vec::from));
        self.rows.push(cells.collect());
    }
}

fn told_of_front(front: &Front<'_>) -> String {
    format!("{front:?}")
}

fn whole(flags: Flags, body: &[u8]) -> Told {
    let mut told = Told::default();
    let mut reader = Reader::new(body);
    let read = (|| {
        let extras = Extras::parse(flags, &mut reader)?;
        if reader.bits("kind")? != ROWS {
            return Ok((extras, None));
        }
        Ok::<_, crate::wire::ParseError>((extras, Some(Rows::parse(&mut reader)?)))
    })();
    let Ok((extras, rows)) = read else {
        told.is_broken = true;
        return told;
    };
    told.front = Some(told_of_front(&Front {
        extras,
        metadata: rows.map(|rows| rows.metadata),
        row_count: rows.map_or(0, |rows| rows.content.row_count()),
    }));
    for row in rows.iter().flat_map(|rows| rows.content) {
        match row {
            Ok(row) => told.row(row),
            Err(_) => told.is_broken = true,
        }
    }
    told
}

fn cut<'a>(
    window: usize,
    flags: Flags,
    body: &[u8],
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Told, Option<ErrorKind>) {
    let mut told = Told::default();
    let mut cursor = Cursor::new(vec![0xee; window].into());
    cursor.start(flags, body.len());
    // An empty piece is as good as any, and asks for the end of a body that has come as a whole.
    for piece in pieces.into_iter().chain([&[][..]]) {
        let mut input = piece;
        loop {
            match cursor.next(&mut input) {
                Ok(Step::More) => break assert!(input.is_empty()),
                Ok(Step::Front) => {
                    let front = told_of_front(&cursor.front().unwrap());
                    assert_eq!(told.front.replace(front), None);
                }
                Ok(Step::Row(row)) => told.row(row),
                Ok(Step::End) => {
                    assert!(input.is_empty());
                    assert_eq!(cursor.rows_left(), 0);
                    break;
                }
                Err(error) => {
                    assert_eq!(error.applied(), Applied::No);
                    assert_eq!(cursor.next(&mut input).ok(), Some(Step::End));
                    told.is_broken = true;
                    return (told, Some(error.kind()));
                }
            }
        }
    }
    (told, None)
}

#[test]
fn every_split_point_tells_what_the_whole_body_does() {
    for (flags, body) in BODIES {
        let flags = Flags(flags);
        let expected = whole(flags, body);
        assert!(expected.front.is_some() && !expected.is_broken);
        for first in 0..=body.len() {
            for second in first..=body.len() {
                let pieces = [&body[..first], &body[first..second], &body[second..]];
                let told = cut(4096, flags, body, pieces);
                assert_eq!(told, (expected_of(&expected), None), "{first}, {second}");
            }
        }
        let told = cut(4096, flags, body, body.chunks(1));
        assert_eq!(told.0, expected);
    }
}

fn expected_of(told: &Told) -> Told {
    Told {
        front: told.front.clone(),
        rows: told.rows.clone(),
        is_broken: told.is_broken,
    }
}

#[test]
fn broken_bodies_fail_at_the_same_row_wherever_they_are_cut() {
    let (mut broken, mut whole_ones) = (0, 0);
    for (flags, body) in BODIES {
        let flags = Flags(flags);
        let changed = (0..body.len()).flat_map(|at| {
            [0, 1, 0x10, 0x7f, 0xff].map(|byte| {
                let mut body = Vec::from(body);
                body[at] ^= byte;
                body
            })
        });
        let shorter = (0..body.len()).map(|len| Vec::from(&body[..len]));
        for body in changed.chain(shorter) {
            let expected = whole(flags, &body);
            *(if expected.is_broken {
                &mut broken
            } else {
                &mut whole_ones
            }) += 1;
            for len in [1, 2, 3, 7, 30, 1000] {
                let (told, error) = cut(4096, flags, &body, body.chunks(len));
                assert_eq!(told, expected, "{len}: {body:?}");
                assert!(!matches!(error, Some(ErrorKind::Limit(_))));
            }
        }
    }
    assert!(broken > 500 && whole_ones > 500, "{broken}, {whole_ones}");
}

#[test]
fn what_is_larger_than_the_window_is_a_limit_wherever_it_is_cut() {
    // The front of PLAIN has 38 bytes; its rows 32, 16 and 12.
    for (window, rows) in [(37, None), (38, Some(3)), (200, Some(3))] {
        check_window(Flags::NONE, PLAIN, window, rows);
    }
    // A front of 16 bytes and rows of 5, 8 and 6.
    let body = b"\x00\x00\x00\x02\x00\x00\x00\x04\x00\x00\x00\x01\x00\x00\x00\x03\
        \x00\x00\x00\x01a\x00\x00\x00\x0dabcdefghijklm\x00\x00\x00\x02cd";
    for (window, rows) in [(0, None), (15, None), (16, Some(1)), (17, Some(3))] {
        check_window(Flags::NONE, body, window, rows);
    }
}

fn check_window(flags: Flags, body: &[u8], window: usize, rows: Option<usize>) {
    let mut expected = whole(flags, body);
    let limit = ErrorKind::Limit(LimitField::RowWindow);
    let is_broken = rows.is_none_or(|rows| rows < expected.rows.len());
    if is_broken {
        expected.is_broken = true;
        expected.rows.truncate(rows.unwrap_or(0));
        expected.front.take_if(|_| rows.is_none());
    }
    for first in 0..=body.len() {
        let pieces = [&body[..first], &body[first..]];
        let told = cut(window, flags, body, pieces);
        let error = is_broken.then_some(limit);
        assert_eq!(told, (expected_of(&expected), error), "{window}, {first}");
    }
}

#[test]
fn a_type_without_end_is_an_error() {
    let mut body = Vec::from(&PLAIN[..12]);
    body.extend_from_slice(b"\x00\x02ks\x00\x01t\x00\x01a");
    body.extend_from_slice(&[0, 0x20].repeat(1000));
    let (told, error) = cut(4096, Flags::NONE, &body, body.chunks(100));
    let malformed = ErrorKind::PeerMisbehaved(PeerMisbehaved::MalformedBody);
    assert_eq!((told.front, error), (None, Some(malformed)));
}

#[test]
fn one_window_serves_body_after_body() {
    let mut cursor = Cursor::new(vec![0; 64].into());
    for round in 0..3 {
        cursor.start(Flags::NONE, PLAIN.len());
        let mut rows = 0;
        // The second one is left in the middle of a row.
        let body = if round == 1 { &PLAIN[..60] } else { PLAIN };
        for mut piece in body.chunks(9) {
            while !piece.is_empty() {
                rows += u32::from(matches!(cursor.next(&mut piece), Ok(Step::Row(_))));
            }
        }
        assert_eq!(rows, if round == 1 { 0 } else { 3 });
    }
    assert_eq!(cursor.into_window().len(), 64);
}
