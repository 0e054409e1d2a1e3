//! From JSON to a CQL value of a given type.

use core::fmt::Display;
use core::net::IpAddr;

use messina_core::types::{
    ColumnType, Counter, CqlDate, CqlTime, CqlTimestamp, CqlValue, UdtType, UdtValue,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{number, temporal, unhex};

/// Reads `json` as a value of type `ty`; the error says what would have been one.
pub(crate) fn from_json(ty: &ColumnType, json: &Value) -> Result<CqlValue, String> {
    if json.is_null() {
        return Ok(CqlValue::Null);
    }
    if let Some(special) = special(ty, json) {
        return Ok(special);
    }
    Ok(match ty {
        ColumnType::Ascii => CqlValue::Ascii(ascii(text(ty, json)?)?),
        ColumnType::Text => CqlValue::Text(text(ty, json)?.to_owned()),
        ColumnType::BigInt => CqlValue::BigInt(integer(ty, json)?),
        ColumnType::Counter => CqlValue::Counter(Counter(integer(ty, json)?)),
        ColumnType::Int => CqlValue::Int(integer(ty, json)?),
        ColumnType::SmallInt => CqlValue::SmallInt(integer(ty, json)?),
        ColumnType::TinyInt => CqlValue::TinyInt(integer(ty, json)?),
        ColumnType::Varint => CqlValue::Varint(parsed(ty, json, "\"123\"", |text| {
            number::parse_varint(text)
        })?),
        ColumnType::Decimal => CqlValue::Decimal(parsed(ty, json, "\"1.23\"", |text| {
            number::parse_decimal(text)
        })?),
        ColumnType::Double => CqlValue::Double(float(ty, json)?),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "to the nearest float, checked"
        )]
        ColumnType::Float => {
            let wide = float(ty, json)?;
            let narrow = wide as f32;
            if wide.is_finite() && !narrow.is_finite() {
                return Err(format!("{json} is out of range of {ty}"));
            }
            CqlValue::Float(narrow)
        }
        ColumnType::Boolean => match json {
            Value::Bool(truth) => CqlValue::Boolean(*truth),
            _ => return Err(wanted(ty, "true or false", json)),
        },
        ColumnType::Blob => CqlValue::Blob(bytes(ty, json)?),
        ColumnType::Custom(_) | ColumnType::Unknown(_) => CqlValue::Custom(bytes(ty, json)?),
        ColumnType::Uuid => CqlValue::Uuid(uuid(ty, json)?),
        ColumnType::Timeuuid => CqlValue::Timeuuid(uuid(ty, json)?),
        ColumnType::Inet => CqlValue::Inet(parsed(ty, json, "\"127.0.0.1\"", |text| {
            text.parse::<IpAddr>().ok()
        })?),
        ColumnType::Timestamp | ColumnType::Date | ColumnType::Time | ColumnType::Duration => {
            temporal_value(ty, json)?
        }
        ColumnType::List(element) => CqlValue::List(elements(ty, element, json)?),
        ColumnType::Set(element) => CqlValue::Set(elements(ty, element, json)?),
        ColumnType::Vector(vector) => CqlValue::Vector(elements(ty, &vector.element, json)?),
        ColumnType::Tuple(types) => CqlValue::Tuple(tuple(ty, types, json)?),
        ColumnType::Map(types) => CqlValue::Map(entries(ty, &types.0, &types.1, json)?),
        ColumnType::Udt(udt) => match json {
            Value::Object(fields) => CqlValue::Udt(udt_value(udt, fields)?),
            _ => return Err(wanted(ty, "an object with its fields", json)),
        },
        _ => return Err(format!("values of type {ty} cannot be bound here")),
    })
}

/// `{"unset":true}` and `{"empty":true}`, unless that is a user-defined type with such a field.
fn special(ty: &ColumnType, json: &Value) -> Option<CqlValue> {
    let object = json.as_object().filter(|object| object.len() == 1)?;
    let (name, value) = object.iter().next()?;
    let is_field = match ty {
        ColumnType::Udt(udt) => udt.fields.iter().any(|(field, _)| **field == **name),
        _ => false,
    };
    match name.as_str() {
        _ if is_field || *value != Value::Bool(true) => None,
        "unset" => Some(CqlValue::Unset),
        "empty" => Some(CqlValue::Empty),
        _ => None,
    }
}

fn wanted(ty: &ColumnType, form: impl Display, got: &Value) -> String {
    let what = match got {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    let mut shown = got.to_string();
    if shown.chars().count() > 40 {
        shown = shown.chars().take(40).chain("…".chars()).collect();
    }
    format!("{ty} is written as {form}, got {what}: {shown}")
}

fn text<'a>(ty: &ColumnType, json: &'a Value) -> Result<&'a str, String> {
    json.as_str().ok_or_else(|| wanted(ty, "a string", json))
}

fn ascii(text: &str) -> Result<String, String> {
    if text.is_ascii() {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is not ASCII"))
    }
}

fn integer<T: TryFrom<i64>>(ty: &ColumnType, json: &Value) -> Result<T, String> {
    let Value::Number(number) = json else {
        return Err(wanted(ty, "a whole number", json));
    };
    if number.is_f64() && number.as_f64().is_some_and(|number| number.fract() != 0.0) {
        return Err(wanted(ty, "a whole number", json));
    }
    number
        .as_i64()
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| format!("{number} is out of range of {ty}"))
}

fn float(ty: &ColumnType, json: &Value) -> Result<f64, String> {
    match json {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
    .ok_or_else(|| wanted(ty, "a number, \"NaN\", \"Infinity\" or \"-Infinity\"", json))
}

/// A string that reads as a value; `example` is one.
fn parsed<T>(
    ty: &ColumnType,
    json: &Value,
    example: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, String> {
    json.as_str()
        .and_then(parse)
        .ok_or_else(|| wanted(ty, format_args!("a string such as {example}"), json))
}

fn bytes(ty: &ColumnType, json: &Value) -> Result<Vec<u8>, String> {
    parsed(ty, json, "\"0x00ff\"", unhex)
}

fn uuid(ty: &ColumnType, json: &Value) -> Result<Uuid, String> {
    let example = "\"12345678-1234-1234-1234-123456789abc\"";
    parsed(ty, json, example, |text| Uuid::try_parse(text).ok())
}

fn temporal_value(ty: &ColumnType, json: &Value) -> Result<CqlValue, String> {
    Ok(match (ty, json.as_i64()) {
        (ColumnType::Timestamp, Some(milliseconds)) => {
            CqlValue::Timestamp(CqlTimestamp { milliseconds })
        }
        (ColumnType::Timestamp, None) => {
            let example = "\"2026-11-29T12:00:00.000Z\" or a number of milliseconds";
            CqlValue::Timestamp(parsed(ty, json, example, temporal::parse_timestamp)?)
        }
        (ColumnType::Date, _) => CqlValue::Date(parsed::<CqlDate>(
            ty,
            json,
            "\"2026-11-29\"",
            temporal::parse_date,
        )?),
        (ColumnType::Time, Some(nanoseconds)) => CqlValue::Time(CqlTime { nanoseconds }),
        (ColumnType::Time, None) => {
            let example = "\"12:00:00.000000000\"";
            CqlValue::Time(parsed(ty, json, example, temporal::parse_time)?)
        }
        _ => CqlValue::Duration(parsed(ty, json, "\"1mo2d3ns\"", temporal::parse_duration)?),
    })
}

fn array<'a>(ty: &ColumnType, json: &'a Value) -> Result<&'a [Value], String> {
    json.as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| wanted(ty, "an array", json))
}

fn elements(ty: &ColumnType, element: &ColumnType, json: &Value) -> Result<Vec<CqlValue>, String> {
    array(ty, json)?
        .iter()
        .map(|value| from_json(element, value))
        .collect()
}

fn tuple(ty: &ColumnType, types: &[ColumnType], json: &Value) -> Result<Vec<CqlValue>, String> {
    let values = array(ty, json)?;
    if values.len() > types.len() {
        return Err(format!("{} fields for {ty}", values.len()));
    }
    types
        .iter()
        .zip(values)
        .map(|(ty, value)| from_json(ty, value))
        .collect()
}

fn entries(
    ty: &ColumnType,
    key_type: &ColumnType,
    value_type: &ColumnType,
    json: &Value,
) -> Result<Vec<(CqlValue, CqlValue)>, String> {
    let entry = |entry: &Value| match entry.as_array().map(Vec::as_slice) {
        Some([key, value]) => Ok((from_json(key_type, key)?, from_json(value_type, value)?)),
        _ => Err(wanted(ty, "an array of [key, value]", entry)),
    };
    array(ty, json)?.iter().map(entry).collect()
}

fn udt_value(udt: &UdtType, object: &Map<String, Value>) -> Result<UdtValue, String> {
    let mut fields = Vec::new();
    for (name, value) in object {
        let known = udt.fields.iter().find(|(field, _)| **field == **name);
        let (field, ty) =
            known.ok_or_else(|| format!("{}.{} has no field {name}", udt.keyspace, udt.name))?;
        let value = from_json(ty, value).map_err(|error| format!("field {name}: {error}"))?;
        fields.push((field.clone(), value));
    }
    Ok(UdtValue { fields })
}

#[cfg(test)]
mod tests {
    use super::super::to_json;
    use super::*;
    use messina_core::Shared;
    use messina_core::types::VectorType;
    use serde_json::json;

    fn udt() -> ColumnType {
        ColumnType::Udt(Shared::new(UdtType {
            keyspace: "ks".into(),
            name: "point".into(),
            fields: vec![
                ("x".into(), ColumnType::Int),
                ("unset".into(), ColumnType::Boolean),
            ]
            .into(),
        }))
    }

    fn parse(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    /// What is written comes back as it was.
    #[test]
    fn json_both_ways() {
        let list = ColumnType::List(Shared::new(ColumnType::Int));
        let map = ColumnType::Map(Shared::new((ColumnType::Text, ColumnType::BigInt)));
        let tuple = ColumnType::Tuple(Shared::from(vec![ColumnType::Int, ColumnType::Text]));
        let vector = ColumnType::Vector(Shared::new(VectorType {
            element: ColumnType::Float,
            dimension: 2,
        }));
        for (ty, text) in [
            (ColumnType::Int, "-2147483648"),
            (ColumnType::Int, "null"),
            (ColumnType::Int, r#"{"empty":true}"#),
            (ColumnType::Int, r#"{"unset":true}"#),
            (ColumnType::TinyInt, "-128"),
            (ColumnType::SmallInt, "32767"),
            (ColumnType::BigInt, "9223372036854775807"),
            (ColumnType::BigInt, "-9223372036854775808"),
            (ColumnType::Counter, "7"),
            (
                ColumnType::Varint,
                r#""340282366920938463463374607431768211456""#,
            ),
            (ColumnType::Decimal, r#""-1.50""#),
            (ColumnType::Float, "0.1"),
            (ColumnType::Float, r#""NaN""#),
            (ColumnType::Double, "1.5"),
            (ColumnType::Double, r#""-Infinity""#),
            (ColumnType::Double, r#""Infinity""#),
            (ColumnType::Boolean, "true"),
            (ColumnType::Text, r#""a \"ü\" \u0007""#),
            (ColumnType::Ascii, r#""plain""#),
            (ColumnType::Blob, r#""0x00ff""#),
            (ColumnType::Blob, r#""0x""#),
            (
                ColumnType::Uuid,
                r#""01020304-0506-0708-090a-0b0c0d0e0f10""#,
            ),
            (ColumnType::Inet, r#""2001:db8::1""#),
            (ColumnType::Timestamp, r#""2026-11-29T12:00:00.000Z""#),
            (ColumnType::Date, r#""2026-11-29""#),
            (ColumnType::Time, r#""12:00:00.000000000""#),
            (ColumnType::Duration, r#""1mo2d3ns""#),
            (list.clone(), "[1,null,3]"),
            (
                ColumnType::Set(Shared::new(ColumnType::Text)),
                r#"["a","b"]"#,
            ),
            (map, r#"[["a",1],["b",2]]"#),
            (tuple, r#"[1,"a"]"#),
            (vector, "[1.0,-2.5]"),
            (udt(), r#"{"x":1,"unset":true}"#),
            (udt(), r#"{"unset":true}"#),
            (ColumnType::Custom(Shared::from("c")), r#""0x01""#),
        ] {
            let json = parse(text);
            let value = from_json(&ty, &json).unwrap();
            assert_eq!(to_json(&value), json, "{ty}");
        }
        assert_eq!(
            from_json(&ColumnType::Timestamp, &json!(5)).unwrap(),
            CqlValue::Timestamp(CqlTimestamp { milliseconds: 5 })
        );
        assert_eq!(
            from_json(&list, &json!([])).unwrap(),
            CqlValue::List(vec![])
        );
    }

    #[test]
    fn wrong_json_says_what_would_be_right() {
        let list = ColumnType::List(Shared::new(ColumnType::Int));
        let map = ColumnType::Map(Shared::new((ColumnType::Int, ColumnType::Int)));
        for (ty, text, part) in [
            (
                ColumnType::Int,
                r#""1""#,
                "int is written as a whole number, got a string",
            ),
            (ColumnType::Int, "1.5", "a whole number"),
            (ColumnType::Int, "2147483648", "out of range of int"),
            (ColumnType::TinyInt, "128", "out of range"),
            (ColumnType::BigInt, "9223372036854775808", "out of range"),
            (ColumnType::BigInt, "1e30", "out of range"),
            (ColumnType::Varint, "1", "\"123\""),
            (ColumnType::Float, "1e39", "out of range"),
            (ColumnType::Double, r#""1.5""#, "a number"),
            (ColumnType::Ascii, r#""ü""#, "not ASCII"),
            (ColumnType::Text, "1", "a string"),
            (ColumnType::Text, r#"{"empty":false}"#, "a string"),
            (ColumnType::Boolean, "1", "true or false"),
            (ColumnType::Blob, r#""00ff""#, "0x00ff"),
            (ColumnType::Blob, r#""0x0""#, "0x00ff"),
            (ColumnType::Blob, r#""0x0g""#, "0x00ff"),
            (ColumnType::Uuid, r#""x""#, "1234"),
            (ColumnType::Inet, r#""300.1.1.1""#, "127.0.0.1"),
            (ColumnType::Date, "1", "2026"),
            (ColumnType::Duration, r#""P1D""#, "1mo2d3ns"),
            (list, "[1,\"x\"]", "whole number"),
            (map.clone(), r#"{"1":2}"#, "an array"),
            (map, "[[1,2,3]]", "[key, value]"),
            (udt(), r#"{"y":1}"#, "ks.point has no field y"),
            (udt(), r#"{"x":"a"}"#, "field x"),
        ] {
            let error = from_json(&ty, &parse(text)).unwrap_err();
            assert!(error.contains(part), "{ty} {text}: {error}");
        }
    }
}
