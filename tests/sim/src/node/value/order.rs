//! Keys whose bytes compare as the values do, so that rows can stand in an ordinary map.

use super::decimal::Decimal;
use super::{CqlType, Native, bignum, elements, entries, fields, vector_elements};

impl CqlType {
    /// Appends bytes to `key` that compare as the values do, for one component of many: none of
    /// them is the beginning of another.
    pub(crate) fn put_sort_key(&self, value: &[u8], descending: bool, key: &mut Vec<u8>) {
        let start = key.len();
        if self.put_parts(value, key).is_none() {
            // Not a value of the type, which checks keep out: any order will do.
            key.truncate(start);
            put_escaped(value, key);
        }
        if descending {
            key[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    fn put_parts(&self, value: &[u8], key: &mut Vec<u8>) -> Option<()> {
        match self {
            Self::Native(native) => put_native(*native, value, key),
            Self::Frozen(inner) => inner.put_parts(value, key)?,
            Self::List(element) | Self::Set(element) => {
                for value in elements(value)? {
                    key.push(1);
                    element.put_sort_key(value, false, key);
                }
                key.push(0);
            }
            Self::Map(first, second) => {
                for [k, v] in entries(value)? {
                    key.push(1);
                    first.put_sort_key(k, false, key);
                    second.put_sort_key(v, false, key);
                }
                key.push(0);
            }
            Self::Tuple(types) => put_fields(types.iter(), value, key)?,
            Self::User(user) => put_fields(user.fields.iter().map(|(_, ty)| ty), value, key)?,
            Self::Vector(element, len) => {
                for value in vector_elements(element, *len, value)? {
                    element.put_sort_key(value, false, key);
                }
            }
        }
        Some(())
    }
}

/// Nulls and missing fields sort first and alike.
fn put_fields<'a>(
    types: impl Iterator<Item = &'a CqlType>,
    value: &[u8],
    key: &mut Vec<u8>,
) -> Option<()> {
    let mut fields = fields(value)?.into_iter();
    for ty in types {
        match fields.next().flatten() {
            Some(field) => {
                key.push(1);
                ty.put_sort_key(field, false, key);
            }
            None => key.push(0),
        }
    }
    Some(())
}

fn put_native(native: Native, value: &[u8], key: &mut Vec<u8>) {
    match native {
        Native::Int
        | Native::BigInt
        | Native::SmallInt
        | Native::TinyInt
        | Native::Timestamp
        | Native::Time
        | Native::Counter => put_signed(value, key),
        Native::Float | Native::Double => put_float(value, key),
        Native::Uuid | Native::TimeUuid => put_uuid(value, key),
        Native::Varint => put_varint(value, key),
        Native::Decimal => put_decimal(value, key),
        Native::Boolean | Native::Date => {
            key.push(u8::from(!value.is_empty()));
            key.extend_from_slice(value);
        }
        Native::Ascii | Native::Blob | Native::Text | Native::Inet | Native::Duration => {
            put_escaped(value, key);
        }
    }
}

/// Sign, then length (longer is farther from zero), then the bytes.
fn put_varint(value: &[u8], key: &mut Vec<u8>) {
    let value = bignum::shortest(value);
    let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
    match value.first() {
        None => key.push(0),
        Some(first) if first & 0x80 != 0 => {
            key.push(1);
            key.extend_from_slice(&(!len).to_be_bytes());
        }
        Some(_) => {
            key.push(2);
            key.extend_from_slice(&len.to_be_bytes());
        }
    }
    key.extend_from_slice(value);
}

/// Sign, then where the first digit stands, then the digits up to the last that is not zero: so
/// 1.0 and 1.00 are the same.
fn put_decimal(value: &[u8], key: &mut Vec<u8>) {
    if value.is_empty() {
        key.push(0);
        return;
    }
    let Some(decimal) = Decimal::parse(value) else {
        // Too long for its digits to be found: after all others, in the order of its bytes.
        key.push(4);
        put_escaped(value, key);
        return;
    };
    let significant = decimal.digits.trim_end_matches('0');
    if significant.is_empty() {
        key.push(2);
        return;
    }
    key.push(if decimal.negative { 1 } else { 3 });
    let start = key.len();
    let len = i64::try_from(decimal.digits.len()).unwrap_or(i64::MAX);
    put_signed(&len.saturating_sub(decimal.scale).to_be_bytes(), key);
    key.extend(significant.bytes());
    key.push(0);
    if decimal.negative {
        key[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Zero-length values sort first, then by sign-flipped big-endian bytes.
fn put_signed(value: &[u8], key: &mut Vec<u8>) {
    let Some((first, rest)) = value.split_first() else {
        key.push(0);
        return;
    };
    key.push(1);
    key.push(first ^ 0x80);
    key.extend_from_slice(rest);
}

fn put_float(value: &[u8], key: &mut Vec<u8>) {
    let Some((first, rest)) = value.split_first() else {
        key.push(0);
        return;
    };
    key.push(1);
    if is_nan(value) {
        key.extend(core::iter::repeat_n(0xff, value.len()));
    } else if first & 0x80 == 0 {
        key.push(first | 0x80);
        key.extend_from_slice(rest);
    } else {
        key.extend(value.iter().map(|byte| !byte));
    }
}

/// Whatever its sign, it sorts after all numbers.
fn is_nan(value: &[u8]) -> bool {
    match value {
        [a, b, c, d] => f32::from_be_bytes([*a, *b, *c, *d]).is_nan(),
        _ => <[u8; 8]>::try_from(value).is_ok_and(|bytes| f64::from_be_bytes(bytes).is_nan()),
    }
}

/// Version first, then (for version 1) the timestamp, then the bytes.
fn put_uuid(value: &[u8], key: &mut Vec<u8>) {
    let Ok(bytes) = <[u8; 16]>::try_from(value) else {
        key.push(0);
        return;
    };
    let version = bytes[6] >> 4;
    key.push(1 + version);
    if version == 1 {
        key.extend_from_slice(&[bytes[6] & 0x0f, bytes[7], bytes[4], bytes[5]]);
        key.extend_from_slice(&bytes[..4]);
        // The node and sequence half compares as signed bytes.
        key.extend(bytes[8..].iter().map(|byte| byte ^ 0x80));
    } else {
        key.extend_from_slice(&bytes);
    }
}

/// 00 becomes 00 ff and 00 00 ends the component, so that prefixes sort first.
fn put_escaped(value: &[u8], key: &mut Vec<u8>) {
    for &byte in value {
        key.push(byte);
        if byte == 0 {
            key.push(0xff);
        }
    }
    key.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
mod tests {
    use super::super::{int, unhex};
    use super::*;

    #[test]
    fn sort_keys_order_as_values_do() {
        fn key(native: Native, value: &[u8], descending: bool) -> Vec<u8> {
            let mut out = Vec::new();
            CqlType::Native(native).put_sort_key(value, descending, &mut out);
            out
        }
        let ints = [i32::MIN, -2, -1, 0, 1, i32::MAX].map(|value| int(value).to_vec());
        let doubles = [f64::NEG_INFINITY, -1.5, -0.25, 0.0, 0.25, 1e300]
            .map(|value| value.to_be_bytes().to_vec());
        let blobs = [&[][..], &[0], &[0, 0], &[0, 1], &[1], &[1, 0], &[255]].map(<[u8]>::to_vec);
        let varints = [
            "", "8000", "ff7f", "80", "ff", "00", "01", "7f", "0080", "0100",
        ]
        .map(unhex);
        // -10, -2.5, -0.01, 0, 0.01, 0.99, 1.0, 2.5, 10, 1e20
        let decimals = [
            "",
            "00000000f6",
            "00000001e7",
            "00000002ff",
            "0000000000",
            "0000000201",
            "0000000263",
            "000000010a",
            "0000000119",
            "000000000a",
            "ffffffec01",
        ]
        .map(unhex);
        for (native, ascending) in [
            (Native::Int, &ints[..]),
            (Native::Double, &doubles),
            (Native::Blob, &blobs),
            (Native::Varint, &varints),
            (Native::Decimal, &decimals),
        ] {
            for pair in ascending.windows(2) {
                assert!(
                    key(native, &pair[0], false) < key(native, &pair[1], false),
                    "{pair:?}"
                );
                assert!(
                    key(native, &pair[0], true) > key(native, &pair[1], true),
                    "{pair:?}"
                );
            }
        }
    }

    #[test]
    fn equal_values_have_equal_keys() {
        let key = |ty: &CqlType, text: &str| ty.sort_key(&unhex(text));
        let decimal = CqlType::Native(Native::Decimal);
        let varint = CqlType::Native(Native::Varint);
        let tuple = CqlType::Tuple(vec![CqlType::INT, CqlType::INT]);
        for (ty, one, other) in [
            (&decimal, "000000010a", "0000000001"),
            (&decimal, "0000000a00", "0000000000"),
            (&varint, "00007f", "7f"),
            (&tuple, "00000004 00000001", "00000004 00000001 ffffffff"),
        ] {
            assert_eq!(key(ty, one), key(ty, other), "{ty} {one} {other}");
        }
    }

    #[test]
    fn compound_values_order_by_their_parts() {
        let ints = CqlType::list(CqlType::INT);
        let ascending = [
            "00000000",
            "00000001 00000004 ffffffff",
            "00000001 00000004 00000001",
            "00000002 00000004 00000001 00000004 ffffffff",
            "00000001 00000004 00000002",
        ];
        for pair in ascending.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|text| ints.sort_key(&unhex(text)));
            assert!(a < b, "{pair:?}");
        }
        let pairs = CqlType::Tuple(vec![CqlType::INT, CqlType::Native(Native::Text)]);
        let ascending = [
            "",
            "ffffffff 00000001 61",
            "00000004 00000001",
            "00000004 00000001 00000000",
            "00000004 00000001 00000001 61",
            "00000004 00000002",
        ];
        for pair in ascending.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|text| pairs.sort_key(&unhex(text)));
            assert!(a < b, "{pair:?}");
        }
    }
}
