//! Values of the command line for the markers of a statement.

use messina_core::types::{ColumnSpec, CqlValue};
use serde_json::Value;

use crate::failure::Failure;
use crate::value::from_json;

/// The values of a JSON array or, if they are named, of a JSON object.
pub(crate) fn values(
    markers: &[ColumnSpec],
    text: &str,
    is_named: bool,
) -> Result<Vec<CqlValue>, Failure> {
    let json = parsed(text, is_named).map_err(Failure::usage)?;
    if is_named {
        named_values(markers, &json)
    } else {
        positional_values(markers, &json)
    }
}

/// Whether the text is JSON of the right kind; what is wrong with it if not.
pub(crate) fn check(text: &str, is_named: bool) -> Result<(), String> {
    parsed(text, is_named).map(drop)
}

fn parsed(text: &str, is_named: bool) -> Result<Value, String> {
    let json: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    match (is_named, &json) {
        (false, Value::Array(_)) | (true, Value::Object(_)) => Ok(json),
        (false, _) => Err("must be a JSON array (or use --named)".to_owned()),
        (true, _) => Err("must be a JSON object with --named".to_owned()),
    }
}

fn positional_values(markers: &[ColumnSpec], json: &Value) -> Result<Vec<CqlValue>, Failure> {
    let values = json.as_array().map(Vec::as_slice).unwrap_or_default();
    if values.len() != markers.len() {
        let message = format!(
            "{} values for {} markers; the statement wants ({})",
            values.len(),
            markers.len(),
            signature(markers)
        );
        return Err(Failure::encode(message));
    }
    markers
        .iter()
        .zip(values)
        .enumerate()
        .map(|(at, (marker, value))| bound(at, marker, value))
        .collect()
}

/// A marker that stands several times takes the same value everywhere.
fn named_values(markers: &[ColumnSpec], json: &Value) -> Result<Vec<CqlValue>, Failure> {
    let no_object = serde_json::Map::new();
    let object = json.as_object().unwrap_or(&no_object);
    let is_marker = |name: &str| markers.iter().any(|marker| *marker.name == *name);
    if let Some(name) = object.keys().find(|name| !is_marker(name)) {
        let message = format!(
            "no marker is named {name}; the statement wants ({})",
            signature(markers)
        );
        return Err(Failure::encode(message));
    }
    let value_of = |(at, marker): (usize, &ColumnSpec)| match object.get(&*marker.name) {
        Some(value) => bound(at, marker, value),
        None => Err(Failure::encode(format!(
            "no value for marker {}; {{\"unset\":true}} leaves a column as it is",
            marker.name
        ))),
    };
    markers.iter().enumerate().map(value_of).collect()
}

fn bound(at: usize, marker: &ColumnSpec, value: &Value) -> Result<CqlValue, Failure> {
    from_json(&marker.ty, value)
        .map_err(|error| Failure::encode(format!("value {} ({}): {error}", at + 1, marker.name)))
}

fn signature(markers: &[ColumnSpec]) -> String {
    let marker = |marker: &ColumnSpec| format!("{} {}", marker.name, marker.ty);
    markers.iter().map(marker).collect::<Vec<_>>().join(", ")
}
