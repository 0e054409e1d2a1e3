//! Structs as values of user-defined types and tuples, enumerations as texts and numbers.

use std::collections::BTreeMap;

use messina_core::types::{
    ColumnType, CqlValue, DecodeValue, DecodeValueError, EncodeValue, MaybeUnset, UdtValue,
};

use crate::support::{columns, decode, encode, user_type};

#[derive(Clone, Debug, PartialEq, EncodeValue, DecodeValue)]
struct Address<'a> {
    street: &'a str,
    zip: i32,
    note: Option<String>,
}

fn address() -> Address<'static> {
    Address {
        street: "Via Garibaldi",
        zip: 98122,
        note: None,
    }
}

fn types() -> [(&'static str, ColumnType); 3] {
    [
        ("street", ColumnType::Text),
        ("zip", ColumnType::Int),
        ("note", ColumnType::Text),
    ]
}

/// What a value is sent as, its length in front.
fn sent(ty: &ColumnType, value: &impl EncodeValue) -> Result<Vec<u8>, String> {
    let columns = columns(&[("v", ty.clone())]);
    encode(&columns, &(value,)).map_err(|error| error.to_string())
}

/// What it is read as.
fn read<'a, T: DecodeValue<'a>>(ty: &ColumnType, cells: &'a [u8]) -> Result<T, String> {
    let columns = columns(&[("v", ty.clone())]);
    let row = decode::<(T,)>(&columns, cells);
    row.map(|(value,)| value).map_err(|error| error.to_string())
}

fn udt(fields: &[(&str, CqlValue)]) -> CqlValue {
    let fields = fields
        .iter()
        .map(|(name, value)| ((*name).into(), value.clone()));
    CqlValue::Udt(UdtValue {
        fields: fields.collect(),
    })
}

#[test]
fn the_order_of_fields_is_that_of_the_type() {
    // [bytes] street, [bytes] zip, [bytes] note: null.
    let ty = user_type("address", &types());
    let expected = b"\x00\x00\x00\x1d\x00\x00\x00\x0dVia Garibaldi\x00\x00\x00\x04\x00\x01\x7f\x4a\xff\xff\xff\xff";
    assert_eq!(sent(&ty, &address()), Ok(expected.to_vec()));
    assert_eq!(read(&ty, expected), Ok(address()));
    let [street, zip, note] = types();
    let ty = user_type("address", &[note, zip, street]);
    let bytes = sent(&ty, &address()).unwrap();
    assert_eq!(bytes[4..8], [0xff; 4]);
    assert_eq!(read(&ty, &bytes), Ok(address()));
    let dynamic: CqlValue = read(&ty, &bytes).unwrap();
    let CqlValue::Udt(dynamic) = dynamic else {
        panic!()
    };
    assert_eq!(dynamic.get("zip"), Some(&CqlValue::Int(98122)));
}

#[test]
fn a_type_may_have_gained_fields() {
    let [street, zip, note] = types();
    let (new, last) = (("new", ColumnType::Uuid), ("last", ColumnType::Boolean));
    let ty = user_type("address", &[street, new, zip, note, last]);
    let bytes = sent(&ty, &address()).unwrap();
    // What is between is null, what is last is not sent.
    let expected = udt(&[
        ("street", CqlValue::Text("Via Garibaldi".into())),
        ("new", CqlValue::Null),
        ("zip", CqlValue::Int(98122)),
        ("note", CqlValue::Null),
    ]);
    assert_eq!(sent(&ty, &expected).unwrap().len() - 4, bytes.len());
    assert_eq!(read(&ty, &bytes), Ok(address()));

    #[derive(Debug, EncodeValue, DecodeValue)]
    #[messina(deny_unknown)]
    struct Street {
        street: String,
    }
    let street = Street { street: "x".into() };
    let type_name = core::any::type_name::<Street>();
    let text = format!("value 0 (v): {type_name} has no field for new of ks.address");
    assert_eq!(sent(&ty, &street).unwrap_err(), text);
    let text = format!("column 0 (v): {type_name} has no field for new of ks.address");
    assert_eq!(read::<Street>(&ty, &bytes).unwrap_err(), text);
    assert_eq!(street.street, "x");
}

#[test]
fn a_value_may_end_before_its_type() {
    let ty = user_type("address", &types());
    let short = b"\x00\x00\x00\x0d\x00\x00\x00\x01x\x00\x00\x00\x04\x00\x00\x00\x07";
    let expected = Address {
        street: "x",
        zip: 7,
        note: None,
    };
    assert_eq!(read(&ty, short), Ok(expected));
    let shorter = b"\x00\x00\x00\x05\x00\x00\x00\x01x";
    let error = read::<Address<'_>>(&ty, shorter);
    assert_eq!(error, Err("column 0 (v): field Address.zip: null".into()));
    let cut = b"\x00\x00\x00\x06\x00\x00\x00\x09xy";
    assert!(read::<Address<'_>>(&ty, cut).is_err());
    assert_eq!(
        read::<Address<'_>>(&ty, &[0xff; 4]),
        Err("column 0 (v): null".into())
    );
    assert_eq!(read::<Option<Address<'_>>>(&ty, &[0xff; 4]), Ok(None));
}

#[test]
fn errors_name_the_innermost_field() {
    #[derive(Debug, EncodeValue, DecodeValue)]
    struct Person<'a> {
        home: Address<'a>,
    }
    let mut wrong = types();
    wrong[1].1 = ColumnType::BigInt;
    let ty = user_type("person", &[("home", user_type("address", &wrong))]);
    let person = Person { home: address() };
    assert_eq!(person.home.zip, 98122);
    assert_eq!(
        sent(&ty, &person).unwrap_err(),
        "value 0 (v): field Person.home: field Address.zip: i32 does not fit bigint"
    );
    assert_eq!(
        read::<Person<'_>>(&ty, &[0xff; 4]).unwrap_err(),
        "column 0 (v): field Address.zip: i32 does not fit bigint"
    );
    let ty = user_type("address", &types()[..2]);
    let missing = "field Address.note: ks.address has no field note";
    assert_eq!(
        sent(&ty, &address()).unwrap_err(),
        format!("value 0 (v): {missing}")
    );
    assert_eq!(
        read::<Address<'_>>(&ty, &[0xff; 4]).unwrap_err(),
        format!("column 0 (v): {missing}")
    );
    // A type that is none.
    assert!(sent(&ColumnType::Int, &address()).is_err());
    assert!(read::<Address<'_>>(&ColumnType::Int, &[0, 0, 0, 0]).is_err());
    // Not checked, still no panic.
    assert!(Address::decode(&ColumnType::Int, Some(&[0; 4])).is_err());
    assert_eq!(Address::decode(&ty, None), Err(DecodeValueError::Null));
}

#[derive(Debug, Default, PartialEq, EncodeValue, DecodeValue)]
#[messina(rename_all = "SCREAMING_SNAKE_CASE")]
struct Lenient {
    #[messina(default_when_null)]
    some_text: String,
    #[messina(default_when_missing)]
    number: i32,
    #[messina(skip)]
    left_out: u128,
    #[messina(rename = "x")]
    renamed: bool,
}

#[test]
fn defaults_skipped_fields_and_other_names() {
    let ty = user_type(
        "t",
        &[("SOME_TEXT", ColumnType::Text), ("x", ColumnType::Boolean)],
    );
    let value = udt(&[("x", CqlValue::Boolean(true))]);
    let bytes = sent(&ty, &value).unwrap();
    let expected = Lenient {
        renamed: true,
        ..Lenient::default()
    };
    assert_eq!(read(&ty, &bytes), Ok(expected));
    let full = user_type(
        "t",
        &[
            ("x", ColumnType::Boolean),
            ("NUMBER", ColumnType::Int),
            ("SOME_TEXT", ColumnType::Text),
        ],
    );
    let value = Lenient {
        some_text: "a".into(),
        number: 4,
        left_out: 9,
        renamed: false,
    };
    let bytes = sent(&full, &value).unwrap();
    assert_eq!(
        read(&full, &bytes),
        Ok(Lenient {
            left_out: 0,
            ..value
        })
    );
    // Nothing that is to be written may get lost.
    assert!(sent(&ty, &Lenient::default()).is_err());
}

#[test]
fn values_nest_in_collections() {
    let ty = user_type("address", &types());
    let list = ColumnType::List(ty.clone().into());
    let all = vec![
        address(),
        Address {
            street: "",
            zip: 0,
            note: Some("é".into()),
        },
    ];
    let bytes = sent(&list, &all).unwrap();
    assert_eq!(read(&list, &bytes), Ok(all.clone()));
    let map = ColumnType::Map((ColumnType::Text, list).into());
    let by_name = BTreeMap::from([("a".to_owned(), all), ("b".to_owned(), Vec::new())]);
    let bytes = sent(&map, &by_name).unwrap();
    assert_eq!(read(&map, &bytes), Ok(by_name));
}

#[test]
fn unset_is_for_markers_alone() {
    #[derive(EncodeValue)]
    struct Holder {
        value: MaybeUnset<i32>,
    }
    #[derive(EncodeValue)]
    struct Whole(MaybeUnset<i32>);
    let ty = user_type("t", &[("value", ColumnType::Int)]);
    assert!(
        sent(
            &ty,
            &Holder {
                value: MaybeUnset::Unset
            }
        )
        .is_err()
    );
    assert!(
        sent(
            &ty,
            &Holder {
                value: MaybeUnset::Set(1)
            }
        )
        .is_ok()
    );
    assert_eq!(
        sent(&ColumnType::Int, &Whole(MaybeUnset::Unset)),
        Ok(vec![0xff, 0xff, 0xff, 0xfe])
    );
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeValue, DecodeValue)]
struct Metres(i64);

#[derive(Debug, PartialEq, EncodeValue, DecodeValue)]
#[messina(transparent)]
struct Label<'a, T> {
    text: &'a str,
    #[messina(skip)]
    of: core::marker::PhantomData<T>,
}

#[test]
fn a_struct_can_stand_for_its_only_field() {
    let bytes = sent(&ColumnType::BigInt, &Metres(3)).unwrap();
    assert_eq!(Ok(bytes.clone()), sent(&ColumnType::BigInt, &3_i64));
    assert_eq!(read(&ColumnType::BigInt, &bytes), Ok(Metres(3)));
    assert!(read::<Metres>(&ColumnType::Int, &bytes).is_err());
    let label = Label::<Metres> {
        text: "x",
        of: core::marker::PhantomData,
    };
    let bytes = sent(&ColumnType::Text, &label).unwrap();
    assert_eq!(read(&ColumnType::Text, &bytes), Ok(label));
    let set = ColumnType::Set(ColumnType::BigInt.into());
    let all = std::collections::BTreeSet::from([Metres(2), Metres(1)]);
    let bytes = sent(&set, &all).unwrap();
    assert_eq!(read(&set, &bytes), Ok(all));
}

#[derive(Debug, PartialEq, EncodeValue, DecodeValue)]
struct Point(i32, Option<i32>);

#[derive(Debug, PartialEq, EncodeValue, DecodeValue)]
#[messina(by_position)]
struct One(i32);

#[test]
fn by_position_in_tuples_and_user_types() {
    let tuple = ColumnType::Tuple(vec![ColumnType::Int; 2].into());
    let ty = user_type("p", &[("a", ColumnType::Int), ("b", ColumnType::Int)]);
    for ty in [&tuple, &ty] {
        let bytes = sent(ty, &Point(1, None)).unwrap();
        assert_eq!(Ok(bytes.clone()), sent(&tuple, &(1, None::<i32>)));
        assert_eq!(read(ty, &bytes), Ok(Point(1, None)));
    }
    // A user-defined type may gain fields, a tuple not.
    let bytes = sent(&ty, &One(5)).unwrap();
    assert_eq!(bytes, [0, 0, 0, 8, 0, 0, 0, 4, 0, 0, 0, 5]);
    assert_eq!(read(&ty, &bytes), Ok(One(5)));
    assert!(read::<One>(&tuple, &bytes).is_err());
    let narrow = ColumnType::Tuple(vec![ColumnType::Int].into());
    assert!(read::<Point>(&narrow, &bytes).is_err());
    assert!(sent(&narrow, &Point(1, None)).is_err());
    assert_eq!(read(&narrow, &bytes), Ok(One(5)));
}

#[derive(Clone, Copy, Debug, PartialEq, EncodeValue, DecodeValue)]
#[messina(rename_all = "kebab-case")]
enum State {
    AtSea,
    #[messina(rename = "port")]
    InPort,
}

#[derive(Clone, Copy, Debug, PartialEq, EncodeValue, DecodeValue)]
#[messina(by_number)]
enum Level {
    Low = -1,
    High = 200,
}

#[test]
fn enumerations_are_texts_or_numbers() {
    for (state, name) in [(State::AtSea, "at-sea"), (State::InPort, "port")] {
        let bytes = sent(&ColumnType::Text, &state).unwrap();
        assert_eq!(Ok(bytes.clone()), sent(&ColumnType::Text, &name));
        assert_eq!(read(&ColumnType::Ascii, &bytes), Ok(state));
    }
    let bytes = sent(&ColumnType::Text, &"AtSea").unwrap();
    let text = format!(
        "column 0 (v): no variant of {}",
        core::any::type_name::<State>()
    );
    assert_eq!(read::<State>(&ColumnType::Text, &bytes), Err(text));
    assert!(sent(&ColumnType::Int, &State::AtSea).is_err());
    assert!(State::type_check(&ColumnType::Int).is_err());

    for ty in [ColumnType::SmallInt, ColumnType::Int, ColumnType::BigInt] {
        for level in [Level::Low, Level::High] {
            let bytes = sent(&ty, &level).unwrap();
            assert_eq!(read(&ty, &bytes), Ok(level));
        }
    }
    let bytes = sent(&ColumnType::TinyInt, &Level::Low).unwrap();
    assert_eq!(bytes, [0, 0, 0, 1, 0xff]);
    assert_eq!(read(&ColumnType::TinyInt, &bytes), Ok(Level::Low));
    let error = sent(&ColumnType::TinyInt, &Level::High).unwrap_err();
    assert_eq!(error, "value 0 (v): out of range");
    let bytes = sent(&ColumnType::Int, &5).unwrap();
    assert!(read::<Level>(&ColumnType::Int, &bytes).is_err());
    assert!(Level::type_check(&ColumnType::Varint).is_err());
}
