//! The values: for each type its CQL literals, what they mean, and the node's JSON for them.

use core::net::IpAddr;

use messina_core::types::{
    CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlValue, CqlVarint, UdtValue,
};
use uuid::Uuid;

/// A column of the table, so a type.
pub(super) struct Column {
    pub(super) ty: &'static str,
    pub(super) cases: Vec<Case>,
}

/// One value in three forms.
pub(super) struct Case {
    pub(super) literal: &'static str,
    pub(super) value: CqlValue,
    pub(super) json: &'static str,
}

impl Column {
    /// The node's function that gives the bytes of a value: every native type but blob has one.
    pub(super) fn blob_function(&self) -> Option<String> {
        let is_native = self.ty.chars().all(|c| c.is_ascii_alphabetic());
        (is_native && !["blob", "place"].contains(&self.ty)).then(|| format!("{}_as_blob", self.ty))
    }
}

fn column<const N: usize>(
    ty: &'static str,
    cases: [(&'static str, CqlValue, &'static str); N],
) -> Column {
    let case = |(literal, value, json)| Case {
        literal,
        value,
        json,
    };
    Column {
        ty,
        cases: cases.into_iter().map(case).collect(),
    }
}

/// Every native type, then collections, tuples, user-defined types and vectors.
pub(super) fn columns() -> Vec<Column> {
    let mut columns = whole_numbers();
    columns.extend(fractions());
    columns.extend(texts());
    columns.extend(times());
    columns.extend(collections());
    columns.extend(composites());
    columns.extend(vectors());
    columns
}

fn whole_numbers() -> Vec<Column> {
    use CqlValue::{BigInt, Boolean, Empty, SmallInt, TinyInt};
    let varint = |bytes: &[u8]| CqlValue::Varint(CqlVarint::from_signed_bytes(bytes).unwrap());
    vec![
        column(
            "boolean",
            [
                ("true", Boolean(true), "true"),
                ("false", Boolean(false), "false"),
            ],
        ),
        column(
            "tinyint",
            [
                ("0", TinyInt(0), "0"),
                ("-1", TinyInt(-1), "-1"),
                ("127", TinyInt(i8::MAX), "127"),
                ("-128", TinyInt(i8::MIN), "-128"),
            ],
        ),
        column(
            "smallint",
            [
                ("0", SmallInt(0), "0"),
                ("-1", SmallInt(-1), "-1"),
                ("32767", SmallInt(i16::MAX), "32767"),
                ("-32768", SmallInt(i16::MIN), "-32768"),
            ],
        ),
        column(
            "int",
            [
                ("0", int(0), "0"),
                ("-1", int(-1), "-1"),
                ("2147483647", int(i32::MAX), "2147483647"),
                ("-2147483648", int(i32::MIN), "-2147483648"),
                ("blob_as_int(0x)", Empty, "null"),
            ],
        ),
        column(
            "bigint",
            [
                ("0", BigInt(0), "0"),
                ("-1", BigInt(-1), "-1"),
                (
                    "9223372036854775807",
                    BigInt(i64::MAX),
                    "9223372036854775807",
                ),
                (
                    "-9223372036854775808",
                    BigInt(i64::MIN),
                    "-9223372036854775808",
                ),
                ("blob_as_bigint(0x)", Empty, "null"),
            ],
        ),
        column(
            "varint",
            [
                ("0", varint(&[0]), "0"),
                ("-1", varint(&[0xff]), "-1"),
                ("127", varint(&[0x7f]), "127"),
                ("128", varint(&[0, 0x80]), "128"),
                ("-128", varint(&[0x80]), "-128"),
                ("-129", varint(&[0xff, 0x7f]), "-129"),
                (
                    "170141183460469231731687303715884105728",
                    varint(&[&[0, 0x80][..], &[0; 15]].concat()),
                    "170141183460469231731687303715884105728",
                ),
                (
                    "-170141183460469231731687303715884105729",
                    varint(&[&[0xff, 0x7f][..], &[0xff; 15]].concat()),
                    "-170141183460469231731687303715884105729",
                ),
                ("blob_as_varint(0x)", Empty, "null"),
            ],
        ),
    ]
}

fn fractions() -> Vec<Column> {
    use CqlValue::{Double, Empty, Float};
    vec![
        column(
            "float",
            [
                ("0", Float(0.0), "0.0"),
                ("-0.0", Float(-0.0), "-0.0"),
                ("1.5", Float(1.5), "1.5"),
                ("-3.4028235E38", Float(f32::MIN), "-3.4028235E38"),
                ("3.4028235E38", Float(f32::MAX), "3.4028235E38"),
                ("1.4E-45", Float(1.4e-45), "1.4E-45"),
                ("NaN", Float(f32::NAN), "null"),
                ("-Infinity", Float(f32::NEG_INFINITY), "null"),
                ("blob_as_float(0x)", Empty, "null"),
            ],
        ),
        column(
            "double",
            [
                ("0", Double(0.0), "0.0"),
                ("-0.0", Double(-0.0), "-0.0"),
                ("0.1", Double(0.1), "0.1"),
                (
                    "-1.7976931348623157E308",
                    Double(f64::MIN),
                    "-1.7976931348623157E308",
                ),
                (
                    "1.7976931348623157E308",
                    Double(f64::MAX),
                    "1.7976931348623157E308",
                ),
                ("4.9E-324", Double(5e-324), "4.9E-324"),
                ("NaN", Double(f64::NAN), "null"),
                ("Infinity", Double(f64::INFINITY), "null"),
                ("blob_as_double(0x)", Empty, "null"),
            ],
        ),
        column(
            "decimal",
            [
                ("0", decimal(0, 0), "0"),
                ("1.50", decimal(150, 2), "1.50"),
                ("-0.001", decimal(-1, 3), "-0.001"),
                ("1E10", decimal(1, -10), "1E+10"),
                (
                    "123456789012345678901234567890.12",
                    decimal(12_345_678_901_234_567_890_123_456_789_012, 2),
                    "123456789012345678901234567890.12",
                ),
                ("blob_as_decimal(0x)", Empty, "null"),
            ],
        ),
    ]
}

fn texts() -> Vec<Column> {
    use CqlValue::{Ascii, Blob, Empty};
    let low = "00000000-0000-0000-0000-000000000000";
    let high = "ffffffff-ffff-ffff-ffff-ffffffffffff";
    let inet = |text: &str| CqlValue::Inet(text.parse::<IpAddr>().unwrap());
    let uuid = |text: &str| CqlValue::Uuid(Uuid::parse_str(text).unwrap());
    let timeuuid = |text: &str| CqlValue::Timeuuid(Uuid::parse_str(text).unwrap());
    vec![
        column(
            "ascii",
            [
                ("''", Ascii(String::new()), r#""""#),
                ("'it''s'", Ascii("it's".to_owned()), r#""it's""#),
                ("'~'", Ascii("~".to_owned()), r#""~""#),
            ],
        ),
        column(
            "text",
            [
                ("''", text(""), r#""""#),
                ("'grün'", text("grün"), r#""grün""#),
                (
                    "'\u{1f40d} \"q\" \\'",
                    text("\u{1f40d} \"q\" \\"),
                    "\"\u{1f40d} \\\"q\\\" \\\\\"",
                ),
            ],
        ),
        column(
            "blob",
            [
                ("0x", Blob(vec![]), r#""0x""#),
                ("0x00ff80", Blob(vec![0, 0xff, 0x80]), r#""0x00ff80""#),
            ],
        ),
        column(
            "inet",
            [
                ("'0.0.0.0'", inet("0.0.0.0"), r#""0.0.0.0""#),
                (
                    "'255.255.255.255'",
                    inet("255.255.255.255"),
                    r#""255.255.255.255""#,
                ),
                ("'::'", inet("::"), r#""0:0:0:0:0:0:0:0""#),
                (
                    "'2001:db8::1'",
                    inet("2001:db8::1"),
                    r#""2001:db8:0:0:0:0:0:1""#,
                ),
                ("blob_as_inet(0x)", Empty, "null"),
            ],
        ),
        column(
            "uuid",
            [
                (
                    "00000000-0000-0000-0000-000000000000",
                    uuid(low),
                    r#""00000000-0000-0000-0000-000000000000""#,
                ),
                (
                    "ffffffff-ffff-ffff-ffff-ffffffffffff",
                    uuid(high),
                    r#""ffffffff-ffff-ffff-ffff-ffffffffffff""#,
                ),
                (
                    "01234567-89ab-4def-8123-456789abcdef",
                    uuid("01234567-89ab-4def-8123-456789abcdef"),
                    r#""01234567-89ab-4def-8123-456789abcdef""#,
                ),
                ("blob_as_uuid(0x)", Empty, "null"),
            ],
        ),
        column(
            "timeuuid",
            [
                (
                    "13814000-1dd2-11b2-8080-808080808080",
                    timeuuid("13814000-1dd2-11b2-8080-808080808080"),
                    r#""13814000-1dd2-11b2-8080-808080808080""#,
                ),
                (
                    "ffffffff-ffff-1fff-bfff-ffffffffffff",
                    timeuuid("ffffffff-ffff-1fff-bfff-ffffffffffff"),
                    r#""ffffffff-ffff-1fff-bfff-ffffffffffff""#,
                ),
                ("blob_as_timeuuid(0x)", Empty, "null"),
            ],
        ),
    ]
}

fn times() -> Vec<Column> {
    let date = |days_since_epoch| CqlValue::Date(CqlDate { days_since_epoch });
    let time = |nanoseconds| CqlValue::Time(CqlTime { nanoseconds });
    let timestamp = |milliseconds| CqlValue::Timestamp(CqlTimestamp { milliseconds });
    vec![
        column(
            "date",
            [
                ("'1970-01-01'", date(0), r#""1970-01-01""#),
                ("'1969-12-31'", date(-1), r#""1969-12-31""#),
                ("'2024-02-29'", date(19_782), r#""2024-02-29""#),
                ("0", date(i32::MIN), r#""-5877641-06-23""#),
                ("4294967295", date(i32::MAX), r#""+5881580-07-11""#),
            ],
        ),
        column(
            "time",
            [
                ("'00:00:00'", time(0), r#""00:00:00.000000000""#),
                (
                    "'23:59:59.999999999'",
                    time(86_399_999_999_999),
                    r#""23:59:59.999999999""#,
                ),
            ],
        ),
        column(
            "timestamp",
            [
                ("0", timestamp(0), r#""1970-01-01 00:00:00.000Z""#),
                ("-1", timestamp(-1), r#""1969-12-31 23:59:59.999Z""#),
                (
                    "'2024-02-29T12:34:56.789Z'",
                    timestamp(1_709_210_096_789),
                    r#""2024-02-29 12:34:56.789Z""#,
                ),
                (
                    "9223372036854775807",
                    timestamp(i64::MAX),
                    r#""+292278994-08-17 07:12:55.807Z""#,
                ),
                (
                    "-9223372036854775808",
                    timestamp(i64::MIN),
                    r#""+292275056-05-16 16:47:04.192Z""#,
                ),
                ("blob_as_timestamp(0x)", CqlValue::Empty, "null"),
            ],
        ),
        column(
            "duration",
            [
                ("0ns", duration(0, 0, 0), r#""""#),
                ("1mo2d3ns", duration(1, 2, 3), r#""1mo2d3ns""#),
                ("-1mo2d3ns", duration(-1, -2, -3), r#""-1mo2d3ns""#),
                (
                    "2147483647mo2147483647d9223372036854775807ns",
                    duration(i32::MAX, i32::MAX, i64::MAX),
                    r#""178956970y7mo2147483647d2562047h47m16s854ms775us807ns""#,
                ),
            ],
        ),
    ]
}

fn collections() -> Vec<Column> {
    use CqlValue::{List, Map, Set};
    let blob = |bytes: &[u8]| CqlValue::Blob(bytes.to_vec());
    vec![
        column(
            "list<int>",
            [
                ("[1]", List(vec![int(1)]), "[1]"),
                (
                    "[3, -2147483648, 3]",
                    List(vec![int(3), int(i32::MIN), int(3)]),
                    "[3, -2147483648, 3]",
                ),
            ],
        ),
        column(
            "frozen<list<int>>",
            [
                ("[]", List(vec![]), "[]"),
                ("[2, 1]", List(vec![int(2), int(1)]), "[2, 1]"),
            ],
        ),
        column(
            "set<text>",
            [(
                "{'b', 'a', ''}",
                Set(vec![text(""), text("a"), text("b")]),
                r#"["", "a", "b"]"#,
            )],
        ),
        column("frozen<set<text>>", [("{}", Set(vec![]), "[]")]),
        column(
            "map<text, int>",
            [(
                "{'b': -1, 'a': 2}",
                Map(vec![(text("a"), int(2)), (text("b"), int(-1))]),
                r#"{"a": 2, "b": -1}"#,
            )],
        ),
        column("frozen<map<text, int>>", [("{}", Map(vec![]), "{}")]),
        column(
            "map<int, frozen<map<text, blob>>>",
            [(
                "{7: {'k': 0x01, '': 0x}, 8: {}}",
                Map(vec![
                    (
                        int(7),
                        Map(vec![(text(""), blob(&[])), (text("k"), blob(&[1]))]),
                    ),
                    (int(8), Map(vec![])),
                ]),
                r#"{"7": {"": "0x", "k": "0x01"}, "8": {}}"#,
            )],
        ),
        column(
            "list<frozen<set<frozen<list<int>>>>>",
            [(
                "[{[1], [1, 2]}, {}]",
                List(vec![
                    Set(vec![List(vec![int(1)]), List(vec![int(1), int(2)])]),
                    Set(vec![]),
                ]),
                "[[[1], [1, 2]], []]",
            )],
        ),
        column(
            "list<duration>",
            [(
                "[1d, 5s]",
                List(vec![duration(0, 1, 0), duration(0, 0, 5_000_000_000)]),
                r#"["1d", "5s"]"#,
            )],
        ),
    ]
}

fn composites() -> Vec<Column> {
    use CqlValue::{BigInt, List, Null, Set, Tuple};
    let place = |street, zip, tags| udt(vec![("street", street), ("zip", zip), ("tags", tags)]);
    let market = || place(text("Market"), int(7), Set(vec![text("a"), text("b")]));
    vec![
        column(
            "tuple<int, text, bigint>",
            [
                (
                    "(1, 'a', -1)",
                    Tuple(vec![int(1), text("a"), BigInt(-1)]),
                    r#"[1, "a", -1]"#,
                ),
                (
                    "(1, null, 3)",
                    Tuple(vec![int(1), Null, BigInt(3)]),
                    "[1, null, 3]",
                ),
                (
                    "(null, '', null)",
                    Tuple(vec![Null, text(""), Null]),
                    r#"[null, "", null]"#,
                ),
            ],
        ),
        column(
            "frozen<tuple<frozen<tuple<int, int>>, frozen<list<text>>>>",
            [(
                "((1, 2), ['x'])",
                Tuple(vec![Tuple(vec![int(1), int(2)]), List(vec![text("x")])]),
                r#"[[1, 2], ["x"]]"#,
            )],
        ),
        column(
            "place",
            [
                (
                    "{street: 'Market', zip: 7, tags: {'b', 'a'}}",
                    market(),
                    r#"{"street": "Market", "zip": 7, "tags": ["a", "b"]}"#,
                ),
                (
                    "{zip: 0}",
                    place(Null, int(0), Null),
                    r#"{"street": null, "zip": 0, "tags": null}"#,
                ),
            ],
        ),
        column(
            "frozen<place>",
            [(
                "{street: '', zip: null, tags: {}}",
                place(text(""), Null, Set(vec![])),
                r#"{"street": "", "zip": null, "tags": []}"#,
            )],
        ),
        column(
            "list<frozen<home>>",
            [(
                "[{place: {street: 'Market', zip: 7, tags: {'a', 'b'}}, corners: [(1, 'x'), (2, null)]}]",
                List(vec![udt(vec![
                    ("place", market()),
                    (
                        "corners",
                        List(vec![
                            Tuple(vec![int(1), text("x")]),
                            Tuple(vec![int(2), Null]),
                        ]),
                    ),
                ])]),
                r#"[{"place": {"street": "Market", "zip": 7, "tags": ["a", "b"]}, "corners": [[1, "x"], [2, null]]}]"#,
            )],
        ),
    ]
}

fn vectors() -> Vec<Column> {
    use CqlValue::{Float, List, SmallInt, Vector};
    vec![
        column(
            "vector<float, 3>",
            [(
                "[1.5, -2, 0]",
                Vector(vec![Float(1.5), Float(-2.0), Float(0.0)]),
                "[1.5, -2.0, 0.0]",
            )],
        ),
        column("vector<int, 1>", [("[-1]", Vector(vec![int(-1)]), "[-1]")]),
        column(
            "vector<smallint, 2>",
            [(
                "[1, -2]",
                Vector(vec![SmallInt(1), SmallInt(-2)]),
                "[1, -2]",
            )],
        ),
        column(
            "vector<text, 2>",
            [(
                "['', 'grün']",
                Vector(vec![text(""), text("grün")]),
                r#"["", "grün"]"#,
            )],
        ),
        column(
            "vector<frozen<list<int>>, 2>",
            [(
                "[[1, 2], []]",
                Vector(vec![List(vec![int(1), int(2)]), List(vec![])]),
                "[[1, 2], []]",
            )],
        ),
        column(
            "vector<vector<float, 2>, 2>",
            [(
                "[[1, 2], [3, 4]]",
                Vector(vec![
                    Vector(vec![Float(1.0), Float(2.0)]),
                    Vector(vec![Float(3.0), Float(4.0)]),
                ]),
                "[[1.0, 2.0], [3.0, 4.0]]",
            )],
        ),
        column(
            "list<frozen<vector<float, 2>>>",
            [(
                "[[1, 2]]",
                List(vec![Vector(vec![Float(1.0), Float(2.0)])]),
                "[[1.0, 2.0]]",
            )],
        ),
    ]
}

fn int(value: i32) -> CqlValue {
    CqlValue::Int(value)
}

fn text(value: &str) -> CqlValue {
    CqlValue::Text(value.to_owned())
}

fn decimal(unscaled: i128, scale: i32) -> CqlValue {
    let unscaled = CqlVarint::from(unscaled);
    CqlValue::Decimal(CqlDecimal { unscaled, scale })
}

fn duration(months: i32, days: i32, nanoseconds: i64) -> CqlValue {
    CqlValue::Duration(CqlDuration {
        months,
        days,
        nanoseconds,
    })
}

fn udt(fields: Vec<(&str, CqlValue)>) -> CqlValue {
    let fields = fields.into_iter().map(|(name, value)| (name.into(), value));
    CqlValue::Udt(UdtValue {
        fields: fields.collect(),
    })
}
