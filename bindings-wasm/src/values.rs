//! Values that the shell has encoded by the markers' types.

use messina_core::types::{BindError, ColumnSpec, EncodeRow, EncodeValueError};
use messina_core::wire::{RawValue, Sink, Values, ValuesBuilder};

/// Values of one statement: each a big-endian length (-1 null, -2 unset) and its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundValues<'a> {
    pub(crate) count: u16,
    pub(crate) bytes: &'a [u8],
}

impl BoundValues<'_> {
    /// No values.
    pub(crate) const NONE: Self = Self {
        count: 0,
        bytes: &[],
    };
}

impl EncodeRow for BoundValues<'_> {
    fn encode_row<S: Sink>(
        &self,
        columns: &[ColumnSpec],
        values: &mut ValuesBuilder<S>,
    ) -> Result<(), BindError> {
        let wrong_count = BindError::Count {
            expected: columns.len(),
            got: usize::from(self.count),
        };
        let Ok(bound) = Values::parse(self.count, false, self.bytes) else {
            return Err(wrong_count);
        };
        if usize::from(self.count) != columns.len() {
            return Err(wrong_count);
        }
        for (index, (column, (_, value))) in columns.iter().zip(bound.iter()).enumerate() {
            let put = match value {
                RawValue::Null => values.null(),
                RawValue::Unset => values.unset(),
                RawValue::Bytes(bytes) => values.value(bytes),
            };
            put.map_err(|error| BindError::Value {
                index,
                name: column.name.clone(),
                error: EncodeValueError::Encode(error),
            })?;
        }
        Ok(())
    }
}
