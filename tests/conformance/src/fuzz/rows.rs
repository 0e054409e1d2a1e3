//! Rows come out of pieces as they do out of the whole body, wherever it is cut.

use messina_core::compact::cursor::{Cursor, Step};
use messina_core::error::{ErrorKind, LimitField};
use messina_core::wire::response::{Extras, RawRow, ResultBody};
use messina_core::wire::{Dialect, Flags, Opcode, ProtocolVersion, Reader};

use super::{Input, Target};
use crate::golden::RESPONSES;

pub(super) const ROWS: Target = Target {
    name: "rows",
    body,
    corpus,
};

/// Cells of each row, and whether there are no more for a fault.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    rows: Vec<Vec<Option<Vec<u8>>>>,
    is_broken: bool,
}

impl Seen {
    fn row(&mut self, row: RawRow<'_>) {
        let cells: Vec<_> = row.cells().map(|cell| cell.map(Vec::from)).collect();
        assert_eq!(u32::try_from(cells.len()), Ok(row.len()));
        self.rows.push(cells);
    }
}

/// Flags, the window, a list of piece lengths, then the body.
fn body(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (flags, window) = (Flags(input.byte()), input.word());
    let sizes = input.short();
    let body = input.rest();
    let enough = body.len().saturating_add(16);
    let (whole, pieces) = (
        cut(flags, enough, &[], body),
        cut(flags, enough, sizes, body),
    );
    assert_eq!(pieces, whole, "in pieces");
    if let Some(expected) = by_hand(flags, body) {
        assert_eq!(whole.0, expected, "as one body");
    }
    let window = usize::from(window);
    let small = (
        cut(flags, window, &[], body),
        cut(flags, window, sizes, body),
    );
    assert_eq!(small.0, small.1, "through a small window");
    if small.0.1 == Some(ErrorKind::Limit(LimitField::RowWindow)) {
        assert!(whole.0.rows.starts_with(&small.0.0.rows));
    } else {
        assert_eq!(small.0, whole, "no more than the window is asked for");
    }
}

fn cut(flags: Flags, window: usize, sizes: &[u8], body: &[u8]) -> (Seen, Option<ErrorKind>) {
    let mut cursor = Cursor::new(vec![0; window].into());
    cursor.start(flags, body.len());
    let mut sizes = sizes.iter().map(|size| usize::from(*size)).cycle();
    let (mut seen, mut rest, mut has_front) = (Seen::default(), body, false);
    loop {
        let len = sizes.next().unwrap_or(rest.len()).min(rest.len());
        // Pieces of no bytes do no harm, but do not bring the end nearer.
        let len = if len == 0 { rest.len().min(1) } else { len };
        let (mut piece, behind) = rest.split_at(len);
        let is_last = rest.is_empty();
        rest = behind;
        loop {
            match cursor.next(&mut piece) {
                Ok(Step::More) => break assert!(piece.is_empty() && !is_last),
                Ok(Step::Front) => {
                    assert!(!has_front && cursor.front().is_ok());
                    has_front = true;
                }
                Ok(Step::Row(row)) => seen.row(row),
                Ok(Step::End) => return (seen, None),
                Ok(other) => panic!("unknown step {other:?}"),
                Err(error) => {
                    seen.is_broken = true;
                    return (seen, Some(error.kind()));
                }
            }
        }
    }
}

/// `None` for a result that is not rows: its own body is not read by the cursor.
fn by_hand(flags: Flags, body: &[u8]) -> Option<Seen> {
    let dialect = Dialect::plain(ProtocolVersion::V4);
    let mut reader = Reader::new(body);
    let broken = Seen {
        is_broken: true,
        ..Seen::default()
    };
    if Extras::parse(flags, &mut reader).is_err() {
        return Some(broken);
    }
    match ResultBody::parse(&dialect, &mut reader) {
        Ok(ResultBody::Rows(rows)) => {
            let mut seen = Seen::default();
            for row in rows.content {
                match row {
                    Ok(row) => seen.row(row),
                    Err(_) => seen.is_broken = true,
                }
            }
            Some(seen)
        }
        Ok(_) => None,
        Err(_) => reader_is_at_rows(flags, body).then_some(broken),
    }
}

fn reader_is_at_rows(flags: Flags, body: &[u8]) -> bool {
    let mut reader = Reader::new(body);
    let _ = Extras::parse(flags, &mut reader);
    reader.bits("kind") == Ok(2)
}

/// All golden results, in pieces of many sizes through windows of many.
fn corpus() -> Vec<Vec<u8>> {
    let results = RESPONSES
        .iter()
        .filter(|golden| golden.opcode == Opcode::Result);
    let inputs = results.flat_map(|golden| {
        [(0, 1), (40, 7), (0xff, 100)].map(|(window, size)| {
            let front = [golden.flags.0, 0, window, 1, size];
            [&front[..], &golden.bytes()].concat()
        })
    });
    inputs.collect()
}
