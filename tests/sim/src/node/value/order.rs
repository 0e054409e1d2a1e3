//! Keys whose bytes compare as the values do, so that rows can stand in an ordinary map.

use super::{CqlType, Native};

impl CqlType {
    /// Appends bytes to `key` that compare as the values do, for one component of many.
    pub(crate) fn put_sort_key(&self, value: &[u8], descending: bool, key: &mut Vec<u8>) {
        let start = key.len();
        let native = match self.thawed() {
            Self::Native(native) => *native,
            _ => Native::Blob,
        };
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
            Native::Boolean | Native::Date => {
                key.push(u8::from(!value.is_empty()));
                key.extend_from_slice(value);
            }
            _ => put_escaped(value, key),
        }
        if descending {
            key[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
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
    if first & 0x80 == 0 {
        key.push(first | 0x80);
        key.extend_from_slice(rest);
    } else {
        key.extend(value.iter().map(|byte| !byte));
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
    use super::super::int;
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
        for (native, ascending) in [
            (Native::Int, &ints[..]),
            (Native::Double, &doubles),
            (Native::Blob, &blobs),
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
}
