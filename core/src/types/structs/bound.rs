//! Structs as values for the markers of a statement.

use crate::types::row::bind_error;
use crate::types::{
    BindError, ColumnSpec, ColumnType, EncodeRow, EncodeValueError, FieldName, MarkerOrder,
    ValueWriter, Written,
};
use crate::wire::{EncodeError, EncodeErrorKind, IsUnset, Sink, ValuesBuilder};

/// A struct whose fields can be bound one by one: what `EncodeRow` is derived with.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be flattened into a row that is bound",
    note = "derive `EncodeRow` for it"
)]
pub trait EncodeFields {
    /// Fields that are bound, those of structs that are flattened into this one included.
    const COUNT: usize;

    /// What the field at a position goes by; `None` after the last.
    fn field_name(index: usize) -> Option<FieldName>;

    /// Writes the field at a position.
    fn encode_field(
        &self,
        index: usize,
        ty: &ColumnType,
        writer: ValueWriter<'_>,
    ) -> Result<Written, EncodeValueError>;
}

/// What a field answers that is not there.
#[cold]
pub fn no_field() -> Result<Written, EncodeValueError> {
    Err(EncodeError::new("value without a field", EncodeErrorKind::NotHere).into())
}

/// Binds by name, in an order that is worked out for this one row.
pub fn encode_by_name<R: EncodeFields + EncodeRow, S: Sink>(
    row: &R,
    columns: &[ColumnSpec],
    values: &mut ValuesBuilder<S>,
) -> Result<(), BindError> {
    match R::NAMES {
        Some(names) => encode_ordered(row, &MarkerOrder::of(names, columns)?, columns, values),
        None => encode_by_position(row, false, columns, values),
    }
}

/// Binds in an order that was worked out before, for these columns.
pub fn encode_ordered<R: EncodeFields, S: Sink>(
    row: &R,
    order: &MarkerOrder,
    columns: &[ColumnSpec],
    values: &mut ValuesBuilder<S>,
) -> Result<(), BindError> {
    let (expected, got) = (columns.len(), order.values().len());
    if expected != got {
        return Err(BindError::Count { expected, got });
    }
    let fields = order.values().iter().copied();
    bind_fields(row, fields, columns, values)
}

/// Binds the fields in their order. If fields `may_be_unused`, those behind the last marker are left
/// out.
pub fn encode_by_position<R: EncodeFields, S: Sink>(
    row: &R,
    may_be_unused: bool,
    columns: &[ColumnSpec],
    values: &mut ValuesBuilder<S>,
) -> Result<(), BindError> {
    let (expected, got) = (columns.len(), R::COUNT);
    if expected > got || (expected < got && !may_be_unused) {
        return Err(BindError::Count { expected, got });
    }
    bind_fields(row, 0..expected, columns, values)
}

fn bind_fields<R: EncodeFields, S: Sink>(
    row: &R,
    fields: impl Iterator<Item = usize>,
    columns: &[ColumnSpec],
    values: &mut ValuesBuilder<S>,
) -> Result<(), BindError> {
    for (index, (column, field)) in columns.iter().zip(fields).enumerate() {
        let written = values.append::<EncodeValueError>(None, |sink| {
            let written = row.encode_field(field, &column.ty, ValueWriter::marker(sink))?;
            Ok(IsUnset(written.is_unset()))
        });
        written.map_err(|error| {
            let name = R::field_name(field).map(|name| name.field);
            bind_error(index, column, name, error)
        })?;
    }
    Ok(())
}
