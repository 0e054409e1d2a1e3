//! Whole rows: values for all markers of a statement, and cells of all columns of a result.

use alloc::vec::Vec;

use super::{
    BindError, ColumnSpec, CqlValue, DecodeValue, DecodeValueError, EncodeValue, EncodeValueError,
    RowError, ValueWriter,
};
use crate::wire::response::{CellsIter, RawRow};
use crate::wire::{IsUnset, Sink, ValuesBuilder};

/// Values for all markers of a statement, by position.
pub trait EncodeRow {
    /// Appends one value for each marker in `columns`.
    ///
    /// If it fails, the builder may hold some of the values and is of no further use.
    fn encode_row<S: Sink>(
        &self,
        columns: &[ColumnSpec],
        values: &mut ValuesBuilder<S>,
    ) -> Result<(), BindError>;
}

/// A row type that rows of some columns can become.
pub trait DecodeRow<'a>: Sized {
    /// Whether rows of these columns can become one; to be asked once per result.
    fn type_check(columns: &[ColumnSpec]) -> Result<(), RowError>;

    /// Reads a row of these columns.
    fn decode_row(columns: &[ColumnSpec], row: RawRow<'a>) -> Result<Self, RowError>;
}

fn check_value_count(columns: &[ColumnSpec], got: usize) -> Result<(), BindError> {
    let expected = columns.len();
    if expected == got {
        Ok(())
    } else {
        Err(BindError::Count { expected, got })
    }
}

fn bind<S: Sink, T: EncodeValue + ?Sized>(
    values: &mut ValuesBuilder<S>,
    index: usize,
    column: &ColumnSpec,
    value: &T,
) -> Result<(), BindError> {
    let written = values.append::<EncodeValueError>(None, |sink| {
        let written = value.encode(&column.ty, ValueWriter::marker(sink))?;
        Ok(IsUnset(written.is_unset()))
    });
    written.map_err(|error| BindError::Value {
        index,
        name: column.name.clone(),
        error,
    })
}

fn check_column_count(columns: &[ColumnSpec], expected: usize) -> Result<(), RowError> {
    let got = columns.len();
    if expected == got {
        Ok(())
    } else {
        Err(RowError::Count { expected, got })
    }
}

fn column_error(index: usize, column: &ColumnSpec) -> impl FnOnce(DecodeValueError) -> RowError {
    move |error| RowError::Column {
        index,
        name: column.name.clone(),
        error,
    }
}

/// Walks columns and cells side by side.
struct Cursor<'c, 'a> {
    columns: core::iter::Enumerate<core::slice::Iter<'c, ColumnSpec>>,
    cells: CellsIter<'a>,
    /// What to say when one of the two ends early.
    count_error: RowError,
}

impl<'c, 'a> Cursor<'c, 'a> {
    fn new(columns: &'c [ColumnSpec], row: RawRow<'a>, expected: usize) -> Self {
        let got = usize::try_from(row.len()).unwrap_or(usize::MAX);
        Self {
            columns: columns.iter().enumerate(),
            cells: row.cells(),
            count_error: RowError::Count { expected, got },
        }
    }

    fn next<T: DecodeValue<'a>>(&mut self) -> Result<T, RowError> {
        let (Some((index, column)), Some(cell)) = (self.columns.next(), self.cells.next()) else {
            return Err(self.count_error.clone());
        };
        T::decode(&column.ty, cell).map_err(column_error(index, column))
    }
}

impl EncodeRow for () {
    fn encode_row<S: Sink>(
        &self,
        columns: &[ColumnSpec],
        _: &mut ValuesBuilder<S>,
    ) -> Result<(), BindError> {
        check_value_count(columns, 0)
    }
}

impl<T: EncodeValue> EncodeRow for [T] {
    fn encode_row<S: Sink>(
        &self,
        columns: &[ColumnSpec],
        values: &mut ValuesBuilder<S>,
    ) -> Result<(), BindError> {
        check_value_count(columns, self.len())?;
        for (index, (column, value)) in columns.iter().zip(self).enumerate() {
            bind(values, index, column, value)?;
        }
        Ok(())
    }
}

impl<T: EncodeValue, const N: usize> EncodeRow for [T; N] {
    fn encode_row<S: Sink>(
        &self,
        columns: &[ColumnSpec],
        values: &mut ValuesBuilder<S>,
    ) -> Result<(), BindError> {
        self.as_slice().encode_row(columns, values)
    }
}

impl<T: EncodeValue> EncodeRow for Vec<T> {
    fn encode_row<S: Sink>(
        &self,
        columns: &[ColumnSpec],
        values: &mut ValuesBuilder<S>,
    ) -> Result<(), BindError> {
        self.as_slice().encode_row(columns, values)
    }
}

impl<T: EncodeRow + ?Sized> EncodeRow for &T {
    fn encode_row<S: Sink>(
        &self,
        columns: &[ColumnSpec],
        values: &mut ValuesBuilder<S>,
    ) -> Result<(), BindError> {
        (**self).encode_row(columns, values)
    }
}

/// A row of any columns.
impl<'a> DecodeRow<'a> for Vec<CqlValue> {
    fn type_check(_: &[ColumnSpec]) -> Result<(), RowError> {
        Ok(())
    }

    fn decode_row(columns: &[ColumnSpec], row: RawRow<'a>) -> Result<Self, RowError> {
        let mut cursor = Cursor::new(columns, row, columns.len());
        columns.iter().map(|_| cursor.next()).collect()
    }
}

/// Implements both traits for tuples.
macro_rules! tuple_row {
    ($count:literal: $($field:ident)+) => {
        impl<$($field: EncodeValue),+> EncodeRow for ($($field,)+) {
            #[expect(non_snake_case, reason = "one name for the type and the field")]
            fn encode_row<S: Sink>(
                &self,
                columns: &[ColumnSpec],
                values: &mut ValuesBuilder<S>,
            ) -> Result<(), BindError> {
                check_value_count(columns, $count)?;
                let mut columns = columns.iter().enumerate();
                let ($($field,)+) = self;
                $(if let Some((index, column)) = columns.next() {
                    bind(values, index, column, $field)?;
                })+
                Ok(())
            }
        }

        impl<'a, $($field: DecodeValue<'a>),+> DecodeRow<'a> for ($($field,)+) {
            fn type_check(columns: &[ColumnSpec]) -> Result<(), RowError> {
                check_column_count(columns, $count)?;
                let mut columns = columns.iter().enumerate();
                $(if let Some((index, column)) = columns.next() {
                    $field::type_check(&column.ty)
                        .map_err(|mismatch| column_error(index, column)(mismatch.into()))?;
                })+
                Ok(())
            }

            fn decode_row(columns: &[ColumnSpec], row: RawRow<'a>) -> Result<Self, RowError> {
                let mut cursor = Cursor::new(columns, row, $count);
                Ok(($(cursor.next::<$field>()?,)+))
            }
        }
    };
}

tuple_row!(1: A);
tuple_row!(2: A B);
tuple_row!(3: A B C);
tuple_row!(4: A B C D);
tuple_row!(5: A B C D E);
tuple_row!(6: A B C D E F);
tuple_row!(7: A B C D E F G);
tuple_row!(8: A B C D E F G H);
tuple_row!(9: A B C D E F G H I);
tuple_row!(10: A B C D E F G H I J);
tuple_row!(11: A B C D E F G H I J K);
tuple_row!(12: A B C D E F G H I J K L);
tuple_row!(13: A B C D E F G H I J K L M);
tuple_row!(14: A B C D E F G H I J K L M N);
tuple_row!(15: A B C D E F G H I J K L M N O);
tuple_row!(16: A B C D E F G H I J K L M N O P);
