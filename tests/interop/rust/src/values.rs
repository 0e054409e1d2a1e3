//! Between the scenario's JSON and values of crate `scylla`, guided by the types that the server named.

use anyhow::{Context as _, Result, bail};
use scylla::cluster::metadata::{CollectionType, ColumnType, NativeType};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{Counter, CqlValue};
use serde_json::{Map, Value, json};

/// What a marker takes: null is `None`.
pub(crate) type Bound = Option<CqlValue>;

/// The values of one execution.
pub(crate) fn bind(statement: &PreparedStatement, values: &Value) -> Result<Vec<Bound>> {
    let specs = statement.get_variable_col_specs();
    let values = array(values)?;
    if specs.len() != values.len() {
        bail!("{} values for {} markers", values.len(), specs.len());
    }
    specs
        .iter()
        .zip(values)
        .map(|(spec, value)| bound(spec.typ(), value))
        .collect()
}

fn bound(typ: &ColumnType<'_>, value: &Value) -> Result<Bound> {
    if value.is_null() {
        return Ok(None);
    }
    Ok(Some(match typ {
        ColumnType::Native(native) => simple(native, value)?,
        ColumnType::Collection { typ, .. } => collection(typ, value)?,
        ColumnType::Tuple(types) => {
            let values = types.iter().zip(array(value)?);
            let values = values.map(|(typ, value)| bound(typ, value));
            CqlValue::Tuple(values.collect::<Result<_>>()?)
        }
        ColumnType::UserDefinedType { definition, .. } => CqlValue::UserDefinedType {
            keyspace: definition.keyspace.to_string(),
            name: definition.name.to_string(),
            fields: definition
                .field_types
                .iter()
                .map(|(name, typ)| Ok((name.to_string(), bound(typ, &value[&**name])?)))
                .collect::<Result<_>>()?,
        },
        other => bail!("type {other:?}"),
    }))
}

fn collection(typ: &CollectionType<'_>, value: &Value) -> Result<CqlValue> {
    let items = array(value)?.iter();
    Ok(match typ {
        CollectionType::List(typ) => {
            CqlValue::List(items.map(|value| item(typ, value)).collect::<Result<_>>()?)
        }
        CollectionType::Set(typ) => {
            CqlValue::Set(items.map(|value| item(typ, value)).collect::<Result<_>>()?)
        }
        CollectionType::Map(key, typ) => {
            let pairs = items.map(|pair| Ok((item(key, &pair[0])?, item(typ, &pair[1])?)));
            CqlValue::Map(pairs.collect::<Result<_>>()?)
        }
        other => bail!("collection {other:?}"),
    })
}

fn item(typ: &ColumnType<'_>, value: &Value) -> Result<CqlValue> {
    bound(typ, value)?.context("null inside a collection")
}

fn simple(native: &NativeType, value: &Value) -> Result<CqlValue> {
    let number = || {
        value
            .as_i64()
            .with_context(|| format!("{value} is no integer"))
    };
    Ok(match native {
        NativeType::Text => CqlValue::Text(value.as_str().context("no text")?.to_owned()),
        NativeType::Int => CqlValue::Int(i32::try_from(number()?)?),
        NativeType::BigInt => CqlValue::BigInt(number()?),
        NativeType::Counter => CqlValue::Counter(Counter(number()?)),
        NativeType::Boolean => CqlValue::Boolean(value.as_bool().context("no boolean")?),
        other => bail!("the scenario binds no {other:?}"),
    })
}

fn array(value: &Value) -> Result<&Vec<Value>> {
    value
        .as_array()
        .with_context(|| format!("{value} is no array"))
}

/// A value that was read, in the scenario's notation.
pub(crate) fn shown(value: Option<&CqlValue>) -> Value {
    let all = |items: &[CqlValue]| {
        items
            .iter()
            .map(|item| shown(Some(item)))
            .collect::<Vec<_>>()
    };
    match value {
        None => Value::Null,
        Some(CqlValue::List(items)) => json!(all(items)),
        Some(CqlValue::Set(items)) => sorted(all(items)),
        Some(CqlValue::Map(pairs)) => {
            let pair = |(key, item)| json!([shown(Some(key)), shown(Some(item))]);
            sorted(pairs.iter().map(|(key, item)| pair((key, item))).collect())
        }
        Some(CqlValue::Tuple(items)) => items.iter().map(|item| shown(item.as_ref())).collect(),
        Some(CqlValue::UserDefinedType { fields, .. }) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| (name.clone(), shown(value.as_ref())));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Some(other) => shown_simple(other),
    }
}

/// The same of a value that holds no others.
fn shown_simple(value: &CqlValue) -> Value {
    match value {
        CqlValue::Text(text) | CqlValue::Ascii(text) => json!(text),
        CqlValue::TinyInt(number) => json!(number),
        CqlValue::SmallInt(number) => json!(number),
        CqlValue::Int(number) => json!(number),
        CqlValue::BigInt(number) | CqlValue::Counter(Counter(number)) => {
            integer(i128::from(*number))
        }
        CqlValue::Varint(number) => integer(signed(number.as_signed_bytes_be_slice())),
        CqlValue::Decimal(number) => {
            let (unscaled, scale) = number.as_signed_be_bytes_slice_and_exponent();
            json!([signed(unscaled).to_string(), scale])
        }
        CqlValue::Boolean(flag) => json!(flag),
        CqlValue::Float(number) => json!(number),
        CqlValue::Double(number) => json!(number),
        CqlValue::Blob(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            json!(format!("0x{digits}"))
        }
        CqlValue::Date(date) => json!(i64::from(date.0) - (1 << 31)),
        CqlValue::Time(time) => json!(time.0),
        CqlValue::Timestamp(timestamp) => json!(timestamp.0),
        CqlValue::Duration(duration) => {
            json!([duration.months, duration.days, duration.nanoseconds])
        }
        CqlValue::Inet(address) => json!(address),
        CqlValue::Uuid(uuid) => json!(uuid.to_string()),
        CqlValue::Timeuuid(uuid) => json!(uuid.to_string()),
        other => json!(format!("{other:?}")),
    }
}

/// Beyond what a double holds, as text.
fn integer(number: i128) -> Value {
    match i64::try_from(number) {
        Ok(number) if number.unsigned_abs() <= 1 << 53 => json!(number),
        _ => json!(number.to_string()),
    }
}

/// Two's complement of at most 16 bytes, which is what the scenario has.
fn signed(bytes: &[u8]) -> i128 {
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let start = if negative { -1 } else { 0 };
    bytes
        .iter()
        .fold(start, |number, byte| (number << 8) | i128::from(*byte))
}

/// By text: the scenario's sets and maps have keys of one type, and none that begins another.
fn sorted(mut items: Vec<Value>) -> Value {
    items.sort_by_key(Value::to_string);
    json!(items)
}

/// A column's type by its CQL name.
pub(crate) fn type_name(typ: &ColumnType<'_>) -> String {
    match typ {
        ColumnType::Native(native) => format!("{native:?}").to_lowercase(),
        other => format!("{other:?}"),
    }
}
