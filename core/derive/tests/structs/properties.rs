//! Rows and values of any content, through bytes and back: with columns and fields in any order, and
//! with bytes that were damaged on the way.

use messina_core::types::{ColumnSpec, ColumnType, DecodeRow, DecodeValue, EncodeRow, EncodeValue};

use crate::support::{columns, decode, encode, user_type};

#[derive(Clone, Debug, PartialEq, EncodeRow, DecodeRow)]
struct Row {
    id: i64,
    name: Option<String>,
    tags: Vec<Tag>,
    data: Vec<u8>,
    last: Option<Tag>,
}

#[derive(Clone, Debug, PartialEq, EncodeValue, DecodeValue)]
struct Tag {
    text: String,
    weight: Option<f64>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, EncodeValue, DecodeValue)]
#[messina(by_number)]
enum Kind {
    Plain,
    Loud,
}

/// Numbers that look random and are the same in each run: splitmix64.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn text(&mut self) -> String {
        let count = self.below(6);
        (0..count)
            .map(|_| ['a', 'Z', 'é', '水', '\0', ' '][self.below(6)])
            .collect()
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(3) > 0).then(|| make(self))
    }

    fn tag(&mut self) -> Tag {
        Tag {
            text: self.text(),
            weight: self.maybe(|numbers| numbers.next() as f64),
            kind: [Kind::Plain, Kind::Loud][self.below(2)],
        }
    }

    fn row(&mut self) -> Row {
        let count = self.below(4);
        Row {
            id: self.next().cast_signed(),
            name: self.maybe(Self::text),
            tags: (0..count).map(|_| self.tag()).collect(),
            data: self.text().into_bytes(),
            last: self.maybe(Self::tag),
        }
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// The columns of the row, and fields of the type, in any order; the type may have more.
    fn columns(&mut self) -> Vec<ColumnSpec> {
        let mut fields = vec![
            ("text", ColumnType::Text),
            ("weight", ColumnType::Double),
            ("kind", ColumnType::SmallInt),
        ];
        fields.extend(self.maybe(|_| ("added", ColumnType::Inet)));
        self.shuffle(&mut fields);
        let tag = user_type("tag", &fields);
        let mut types = [
            ("id", ColumnType::BigInt),
            ("name", ColumnType::Text),
            ("tags", ColumnType::List(tag.clone().into())),
            ("data", ColumnType::Blob),
            ("last", tag),
        ];
        self.shuffle(&mut types);
        columns(&types)
    }
}

#[test]
fn what_is_bound_is_read_back() {
    let mut numbers = Numbers(7);
    for _ in 0..2000 {
        let (row, columns) = (numbers.row(), numbers.columns());
        let bytes = encode(&columns, &row).unwrap();
        assert_eq!(decode(&columns, &bytes), Ok(row), "{columns:?}");
    }
}

#[test]
fn damaged_bytes_are_an_error_or_another_row() {
    let mut numbers = Numbers(11);
    let (mut errors, mut rows) = (0, 0);
    for _ in 0..2000 {
        let (row, columns) = (numbers.row(), numbers.columns());
        let mut bytes = encode(&columns, &row).unwrap();
        let at = numbers.below(bytes.len());
        bytes[at] ^= 1 << numbers.below(8);
        let Ok(content) = messina_core::wire::response::RowsContent::new(5, 1, &bytes) else {
            continue;
        };
        let layout = Row::check_columns(&columns).unwrap();
        match content.iter().next().unwrap() {
            Ok(cells) => match Row::decode_row(&layout, &columns, cells) {
                Ok(_) => rows += 1,
                Err(_) => errors += 1,
            },
            Err(_) => errors += 1,
        }
    }
    assert!(errors > 100 && rows > 100, "{errors} errors, {rows} rows");
}
