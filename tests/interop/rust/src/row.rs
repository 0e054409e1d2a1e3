//! The scenario's rows.

use scylla::value::CqlValue;

use crate::values::Bound;

/// Cells that make the key: region, id and slot.
pub(crate) const KEY: usize = 3;

/// Row `number` as the scenario's text says.
pub(crate) fn row(number: u32) -> Vec<Bound> {
    let name = format!("náme {number} \u{1f40d}");
    let tag = (0x4000_u128 << 64) | (0x8000 << 48) | u128::from(number);
    let payload = vec![0; number as usize % 5 * 11];
    vec![
        Some(CqlValue::Text(format!("region-{}", number % 13))),
        Some(CqlValue::BigInt(
            i64::from(number) * 7_919_000_003 - (1 << 60),
        )),
        Some(CqlValue::Int((number % 5) as i32)),
        (!number.is_multiple_of(7)).then_some(CqlValue::Text(name)),
        Some(CqlValue::Blob(payload)),
        Some(CqlValue::Uuid(uuid(tag))),
        Some(CqlValue::Boolean(number.is_multiple_of(3))),
        Some(CqlValue::Double(f64::from(number) / 7.0 - 50.0)),
    ]
}

fn uuid(bits: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(bits)
}
