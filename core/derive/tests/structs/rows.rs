//! Structs as rows: names and positions, what may be missing, and what errors say.

use crate::support::{columns, decode, encode};
use messina_core::types::{
    ColumnType, CqlValue, DecodeRow, DecodeValue, EncodeRow, EncodeValue, MaybeUnset, RowError,
};
use messina_core::wire::ValuesBuilder;

#[derive(Clone, Debug, PartialEq, EncodeRow, DecodeRow)]
struct Harbour<'a> {
    name: &'a str,
    depth: Option<f64>,
    berths: i32,
    chart: &'a [u8],
}

const HARBOUR: [(&str, ColumnType); 4] = [
    ("name", ColumnType::Text),
    ("depth", ColumnType::Double),
    ("berths", ColumnType::Int),
    ("chart", ColumnType::Blob),
];

fn messina() -> Harbour<'static> {
    Harbour {
        name: "Messina",
        depth: Some(65.0),
        berths: 12,
        chart: &[1, 2],
    }
}

#[test]
fn a_struct_binds_what_a_tuple_does_in_any_order_of_columns() {
    let harbour = messina();
    let tuple = (harbour.name, harbour.depth, harbour.berths, harbour.chart);
    assert_eq!(
        encode(&columns(&HARBOUR), &harbour),
        encode(&columns(&HARBOUR), &tuple)
    );
    for order in permutations(4) {
        let columns = columns(&order.map(|index| HARBOUR[index].clone()));
        let bytes = encode(&columns, &harbour).unwrap();
        assert_eq!(decode(&columns, &bytes), Ok(harbour.clone()), "{order:?}");
        let values: [&dyn EncodeValue; 4] = [
            &harbour.name,
            &harbour.depth,
            &harbour.berths,
            &harbour.chart,
        ];
        assert_eq!(
            encode(&columns, &order.map(|index| values[index])),
            Ok(bytes)
        );
    }
}

/// All orders of four.
fn permutations(count: usize) -> Vec<[usize; 4]> {
    let mut all = Vec::new();
    for number in 0..count.pow(4) {
        let order = [0, 1, 2, 3].map(|place| number / count.pow(place) % count);
        if (0..count).all(|index| order.contains(&index)) {
            all.push(order);
        }
    }
    assert_eq!(all.len(), 24);
    all
}

#[test]
fn text_and_bytes_borrow_from_the_row() {
    let columns = columns(&HARBOUR);
    let bytes = encode(&columns, &messina()).unwrap();
    let read: Harbour<'_> = decode(&columns, &bytes).unwrap();
    let range = bytes.as_ptr_range();
    assert!(range.contains(&read.name.as_ptr()) && range.contains(&read.chart.as_ptr()));
}

#[test]
fn a_value_can_be_unset() {
    #[derive(EncodeRow)]
    struct Update {
        value: MaybeUnset<i32>,
        id: i32,
    }
    let columns = columns(&[("id", ColumnType::Int), ("value", ColumnType::Int)]);
    for (value, has_unset) in [(MaybeUnset::Unset, true), (MaybeUnset::Set(7), false)] {
        let mut values = ValuesBuilder::new(Vec::new());
        Update { value, id: 1 }
            .encode_row(&columns, &mut values)
            .unwrap();
        assert_eq!(values.finish().values().has_unset(), has_unset);
    }
}

#[test]
fn several_markers_of_one_name_take_the_same_value() {
    #[derive(EncodeRow)]
    struct Between {
        at: i32,
        id: i64,
    }
    let markers = columns(&[
        ("at", ColumnType::Int),
        ("id", ColumnType::BigInt),
        ("at", ColumnType::Int),
    ]);
    assert_eq!(
        encode(&markers, &Between { at: 3, id: 9 }),
        encode(&markers, &(3, 9_i64, 3))
    );
}

#[derive(Debug, PartialEq, EncodeRow, DecodeRow)]
#[messina(rename_all = "camelCase")]
struct Renamed {
    first_name: String,
    #[messina(rename = "Ünsinn mit \"x\"")]
    other: i32,
    r#type: i32,
    #[messina(skip)]
    note: Option<String>,
}

#[test]
fn names_can_be_others_and_fields_left_out() {
    let columns = columns(&[
        ("type", ColumnType::Int),
        ("firstName", ColumnType::Text),
        ("Ünsinn mit \"x\"", ColumnType::Int),
    ]);
    let row = Renamed {
        first_name: "Ada".into(),
        other: 1,
        r#type: 2,
        note: Some("not kept".into()),
    };
    let bytes = encode(&columns, &row).unwrap();
    let read: Renamed = decode(&columns, &bytes).unwrap();
    assert_eq!(read, Renamed { note: None, ..row });
}

#[derive(Debug, PartialEq, EncodeRow, DecodeRow)]
struct Pair(i32, String);

#[derive(Debug, PartialEq, EncodeRow, DecodeRow)]
#[messina(by_position)]
struct Placed {
    a: i32,
    b: String,
}

#[test]
fn by_position_names_do_not_matter() {
    let columns = columns(&[("x", ColumnType::Int), ("y", ColumnType::Text)]);
    let bytes = encode(&columns, &(7, "seven")).unwrap();
    assert_eq!(
        encode(&columns, &Pair(7, "seven".into())),
        Ok(bytes.clone())
    );
    assert_eq!(decode(&columns, &bytes), Ok(Pair(7, "seven".into())));
    let placed = Placed {
        a: 7,
        b: "seven".into(),
    };
    assert_eq!(encode(&columns, &placed), Ok(bytes.clone()));
    assert_eq!(decode(&columns, &bytes), Ok(placed));
    let count = RowError::Count {
        expected: 2,
        got: 1,
    };
    let missing = Pair::check_columns(&columns[..1]).unwrap_err();
    assert_eq!(missing.to_string(), "field Pair.1: no column is named 1");
    let wide = [&columns[..], &columns[..]].concat();
    let Err(RowError::Count {
        expected: 2,
        got: 4,
    }) = Placed::check_columns(&wide)
    else {
        panic!("{count}")
    };
    let error = encode(&columns[..1], &Pair(7, String::new())).unwrap_err();
    assert_eq!(error.to_string(), "2 values for 1 markers");
}

#[test]
fn errors_name_the_column_and_the_field() {
    let mut types = HARBOUR;
    types[2].1 = ColumnType::BigInt;
    let wrong = columns(&types);
    let error = Harbour::check_columns(&wrong).unwrap_err();
    let text = "column 2 (berths), field Harbour.berths: i32 does not fit bigint";
    assert_eq!(error.to_string(), text);
    let error = encode(&wrong, &messina()).unwrap_err();
    let text = "value 2 (berths), field Harbour.berths: i32 does not fit bigint";
    assert_eq!(error.to_string(), text);

    let right = columns(&HARBOUR);
    let nameless = (None::<&str>, 1.0, 2, &[0_u8][..]);
    let cells = encode(&right, &nameless).unwrap();
    let error = decode::<Harbour<'_>>(&right, &cells).unwrap_err();
    assert_eq!(
        error.to_string(),
        "column 0 (name), field Harbour.name: null"
    );

    let error = Harbour::check_columns(&right[..3]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "field Harbour.chart: no column is named chart"
    );
    let error = encode(&right[..3], &messina()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "field Harbour.chart: no marker is named chart"
    );
    let more = [right.clone(), columns(&[("flag", ColumnType::Text)])].concat();
    let error = Harbour::check_columns(&more).unwrap_err();
    assert_eq!(error.to_string(), "no field is left for column 4 (flag)");
    let error = encode(&more, &messina()).unwrap_err();
    assert_eq!(error.to_string(), "no field is named as marker 4 (flag)");
    let twice = [&right[..], &right[1..2]].concat();
    let error = Harbour::check_columns(&twice).unwrap_err();
    assert_eq!(error.to_string(), "no field is left for column 4 (depth)");
}

#[test]
fn a_layout_of_other_columns_is_an_error_and_no_panic() {
    let narrow = columns(&HARBOUR[..2]);
    let bytes = encode(&narrow, &("x", 1.0)).unwrap();
    let content = messina_core::wire::response::RowsContent::new(2, 1, &bytes).unwrap();
    let row = content.iter().next().unwrap().unwrap();
    for order in permutations(4) {
        let wide = columns(&order.map(|index| HARBOUR[index].clone()));
        let layout = Harbour::check_columns(&wide).unwrap();
        for columns in [&wide[..], &narrow] {
            assert!(
                Harbour::decode_row(&layout, columns, row).is_err(),
                "{order:?}"
            );
        }
    }
}

#[derive(Debug, Default, PartialEq, DecodeRow, EncodeRow)]
#[messina(allow_unknown, allow_unused)]
struct Lenient {
    id: i32,
    #[messina(default_when_null)]
    tags: Vec<String>,
    #[messina(default_when_missing)]
    note: String,
    #[messina(default_when_null, default_when_missing)]
    count: i64,
}

#[test]
fn defaults_stand_for_null_and_for_what_is_missing() {
    let all = columns(&[
        ("extra", ColumnType::Uuid),
        ("count", ColumnType::BigInt),
        ("tags", ColumnType::Set(ColumnType::Text.into())),
        ("id", ColumnType::Int),
        ("note", ColumnType::Text),
    ]);
    let null = CqlValue::Null;
    let text = |text: &str| CqlValue::Text(text.into());
    let cells = [
        null.clone(),
        null.clone(),
        null.clone(),
        CqlValue::Int(5),
        text("n"),
    ];
    let cells = encode(&all, &cells).unwrap();
    let expected = Lenient {
        id: 5,
        note: "n".into(),
        ..Lenient::default()
    };
    assert_eq!(decode(&all, &cells), Ok(expected));
    let some = &all[2..4];
    let cells = encode(some, &(vec!["a"], 5)).unwrap();
    let expected = Lenient {
        id: 5,
        tags: vec!["a".into()],
        ..Lenient::default()
    };
    assert_eq!(decode(some, &cells), Ok(expected));
    // Null where there is no default for it.
    let cells = encode(
        &all,
        &[
            null.clone(),
            null.clone(),
            null.clone(),
            CqlValue::Int(5),
            null,
        ],
    );
    let error = decode::<Lenient>(&all, &cells.unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "column 4 (note), field Lenient.note: null"
    );
    // A column that is there must fit.
    let wrong = columns(&[("id", ColumnType::Int), ("tags", ColumnType::Int)]);
    assert!(Lenient::check_columns(&wrong).is_err());
    let wrong = columns(&[("tags", ColumnType::Set(ColumnType::Text.into()))]);
    let error = Lenient::check_columns(&wrong).unwrap_err();
    assert_eq!(error.to_string(), "field Lenient.id: no column is named id");

    let lenient = Lenient {
        id: 8,
        ..Lenient::default()
    };
    let marker = columns(&[("id", ColumnType::Int)]);
    assert_eq!(encode(&marker, &lenient), encode(&marker, &(8,)));
}

#[derive(Debug, PartialEq, EncodeRow, DecodeRow)]
struct Position {
    latitude: f64,
    longitude: f64,
}

#[derive(Debug, PartialEq, EncodeRow, DecodeRow)]
struct Sighting<'a> {
    ship: &'a str,
    #[messina(flatten)]
    position: Position,
    at: i64,
    #[messina(flatten)]
    weather: Weather<'a>,
}

#[derive(Debug, PartialEq, EncodeRow, DecodeRow)]
struct Weather<'a> {
    wind: &'a str,
}

#[test]
fn a_flattened_struct_reads_and_binds_columns_of_the_same_row() {
    let types = [
        ("longitude", ColumnType::Double),
        ("at", ColumnType::BigInt),
        ("wind", ColumnType::Text),
        ("ship", ColumnType::Text),
        ("latitude", ColumnType::Double),
    ];
    let sighting = Sighting {
        ship: "Argo",
        position: Position {
            latitude: 38.2,
            longitude: 15.6,
        },
        at: 9,
        weather: Weather { wind: "north" },
    };
    let all = columns(&types);
    let bytes = encode(&all, &sighting).unwrap();
    assert_eq!(
        Ok(bytes.clone()),
        encode(&all, &(15.6, 9_i64, "north", "Argo", 38.2))
    );
    assert_eq!(decode(&all, &bytes), Ok(sighting));
    let error = Sighting::check_columns(&all[1..]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "field Position.longitude: no column is named longitude"
    );
    let more = [&all[..], &columns(&[("flag", ColumnType::Text)])].concat();
    let error = Sighting::check_columns(&more).unwrap_err();
    assert_eq!(error.to_string(), "no field is left for column 5 (flag)");
}

#[derive(Debug, PartialEq, EncodeRow, DecodeRow)]
struct Generic<'a, 'b, T, U, const N: usize>
where
    T: PartialEq,
{
    id: T,
    both: (&'a str, &'b str),
    list: Vec<Option<U>>,
    fixed: [f32; N],
    #[messina(skip)]
    marker: core::marker::PhantomData<fn() -> T>,
}

#[test]
fn generics_and_lifetimes() {
    let element = |ty| {
        messina_core::Shared::new(messina_core::types::VectorType {
            element: ty,
            dimension: 2,
        })
    };
    let all = columns(&[
        ("id", ColumnType::BigInt),
        (
            "both",
            ColumnType::Tuple(vec![ColumnType::Text, ColumnType::Ascii].into()),
        ),
        ("list", ColumnType::List(ColumnType::SmallInt.into())),
        ("fixed", ColumnType::Vector(element(ColumnType::Float))),
    ]);
    let row = Generic {
        id: 5_i64,
        both: ("a", "b"),
        list: vec![Some(3_i16), None],
        fixed: [1.0, 2.0],
        marker: core::marker::PhantomData,
    };
    let bytes = encode(&all, &row).unwrap();
    assert_eq!(decode(&all, &bytes), Ok(row));
    assert!(Generic::<'_, '_, i32, i16, 2>::check_columns(&all).is_err());
    assert!(Generic::<'_, '_, i64, i16, 3>::check_columns(&all).is_err());
}

#[derive(Debug, PartialEq, EncodeRow, DecodeRow)]
struct Nothing;

#[derive(Debug, PartialEq, EncodeRow, DecodeRow)]
struct Whole {
    #[messina(flatten)]
    pair: Position,
}

#[test]
fn rows_without_fields_of_their_own() {
    assert_eq!(encode(&[], &Nothing), Ok(Vec::new()));
    assert!(Nothing::check_columns(&columns(&HARBOUR)).is_err());
    let all = columns(&[
        ("longitude", ColumnType::Double),
        ("latitude", ColumnType::Double),
    ]);
    let whole = Whole {
        pair: Position {
            latitude: 1.0,
            longitude: 2.0,
        },
    };
    let bytes = encode(&all, &whole).unwrap();
    assert_eq!(decode(&all, &bytes), Ok(whole));
}

/// One macro's implementation is of no use to a field of another's.
#[derive(Debug, PartialEq, EncodeValue, DecodeValue)]
struct Id(i32);

#[test]
fn values_of_own_types_are_columns() {
    #[derive(Debug, PartialEq, EncodeRow, DecodeRow)]
    struct Row {
        id: Id,
    }
    let all = columns(&[("id", ColumnType::Int)]);
    let bytes = encode(&all, &Row { id: Id(4) }).unwrap();
    assert_eq!(decode(&all, &bytes), Ok(Row { id: Id(4) }));
}
