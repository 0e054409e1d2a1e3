//! From a CQL value to JSON, and to the text of a table's cell.

use messina_core::types::CqlValue;
use serde_json::{Map, Number, Value, json};

use super::{hex, number, temporal};

/// The JSON form of a value.
pub(crate) fn to_json(value: &CqlValue) -> Value {
    match value {
        CqlValue::Unset => json!({ "unset": true }),
        CqlValue::Empty => json!({ "empty": true }),
        CqlValue::Ascii(text) | CqlValue::Text(text) => text.as_str().into(),
        CqlValue::BigInt(number) => (*number).into(),
        CqlValue::Blob(bytes) | CqlValue::Custom(bytes) => hex(bytes).into(),
        CqlValue::Boolean(truth) => (*truth).into(),
        CqlValue::Counter(counter) => counter.0.into(),
        CqlValue::Decimal(decimal) => number::decimal_text(decimal).into(),
        CqlValue::Double(number) => float(*number),
        // By way of its shortest text: 0.1 and not 0.10000000149011612.
        CqlValue::Float(number) => float(
            number
                .to_string()
                .parse()
                .unwrap_or_else(|_| f64::from(*number)),
        ),
        CqlValue::Int(number) => (*number).into(),
        CqlValue::Timestamp(timestamp) => temporal::timestamp_text(*timestamp).into(),
        CqlValue::Uuid(id) | CqlValue::Timeuuid(id) => id.to_string().into(),
        CqlValue::Varint(varint) => number::varint_text(varint).into(),
        CqlValue::Inet(address) => address.to_string().into(),
        CqlValue::Date(date) => temporal::date_text(*date).into(),
        CqlValue::Time(time) => {
            temporal::time_text(*time).map_or_else(|| time.nanoseconds.into(), Value::from)
        }
        CqlValue::SmallInt(number) => (*number).into(),
        CqlValue::TinyInt(number) => (*number).into(),
        CqlValue::Duration(duration) => temporal::duration_text(*duration).into(),
        CqlValue::List(values)
        | CqlValue::Set(values)
        | CqlValue::Tuple(values)
        | CqlValue::Vector(values) => values.iter().map(to_json).collect(),
        CqlValue::Map(entries) => entries
            .iter()
            .map(|(key, value)| json!([to_json(key), to_json(value)]))
            .collect(),
        CqlValue::Udt(udt) => {
            let fields = udt
                .fields
                .iter()
                .map(|(name, value)| (name.to_string(), to_json(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        // Null, and kinds that a later driver may add.
        _ => Value::Null,
    }
}

/// The text of a cell: strings bare, everything else as in JSON; null is the word.
pub(crate) fn to_text(value: &CqlValue) -> String {
    match to_json(value) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn float(number: f64) -> Value {
    match Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number.is_nan() => "NaN".into(),
        None if number > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}
