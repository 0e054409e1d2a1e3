//! Hash maps and sets of the standard library as values. The core makes none itself: their order differs
//! from run to run.
#![expect(clippy::disallowed_types, reason = "users make them")]

use core::any::type_name;
use core::hash::{BuildHasher, Hash};
use std::collections::{HashMap, HashSet};

use super::cell::element_type;
use super::decode::{decode_map, decode_maps, decode_sequence, decode_sequences, mismatch};
use super::encode::{encode_collections, encode_map, encode_sequence};
use super::{
    ColumnType, DecodeValue, DecodeValueError, EncodeValue, EncodeValueError, TypeMismatch,
    ValueWriter, Written,
};

encode_collections! {
    [T: EncodeValue, S] HashSet<T, S> => encode_sequence;
    [K: EncodeValue, V: EncodeValue, S] HashMap<K, V, S> => encode_map;
}

decode_sequences! {
    [T: DecodeValue<'a> + Eq + Hash, S: BuildHasher + Default] HashSet<T, S>, Set => insert;
}

decode_maps! {
    [K: DecodeValue<'a> + Eq + Hash, V: DecodeValue<'a>, S: BuildHasher + Default] HashMap<K, V, S>;
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::super::testing::{bytes, encode};
    use super::*;

    fn check<T>(ty: &ColumnType, cell: &str, value: &T)
    where
        T: EncodeValue + for<'a> DecodeValue<'a> + PartialEq + core::fmt::Debug,
    {
        let cell = bytes(cell);
        assert_eq!(T::type_check(ty), Ok(()));
        assert_eq!(T::decode(ty, Some(&cell)).as_ref(), Ok(value));
        let bound = encode(ty, value).expect("it fits");
        assert_eq!(bound.split_at(4).1, cell);
    }

    #[test]
    fn sets_and_maps() {
        let ty = ColumnType::Set(ColumnType::Int.into());
        check(&ty, "000000010000000400000001", &HashSet::from([1]));
        let ty = ColumnType::Map((ColumnType::Text, ColumnType::Int).into());
        let cell = "0000000100000001610000000400000007";
        check(&ty, cell, &HashMap::from([(String::from("a"), 7)]));
    }
}
