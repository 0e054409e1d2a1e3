//! Whole rows: values for all markers of a statement, and cells of all columns of a result.
//!
//! Here are the traits, and rows by position: tuples, slices, vectors. Structs come by the derive
//! macros; what those share is in `structs`.

use alloc::vec::Vec;
use core::fmt;

use super::{
    BindError, ColumnSpec, ColumnType, CqlValue, DecodeValue, DecodeValueError, EncodeValue,
    EncodeValueError, MarkerOrder, RowError, TypeMismatch, ValueNames, ValueWriter,
};
use crate::wire::response::{CellsIter, RawRow};
use crate::wire::{IsUnset, Sink, ValuesBuilder};

/// Values for all markers of a statement: a tuple or a slice, by position, or a struct that derives
/// it.
pub trait EncodeRow {
    /// The names of its values, if they go by name. A session then works out once for a prepared
    /// statement which value goes to which marker.
    const NAMES: Option<ValueNames> = None;

    /// Appends one value for each marker in `columns`.
    ///
    /// If it fails, the builder may hold some of the values and is of no further use.
    fn encode_row<S: Sink>(
        &self,
        columns: &[ColumnSpec],
        values: &mut ValuesBuilder<S>,
    ) -> Result<(), BindError>;

    /// The same where the order was worked out before: from [`NAMES`](Self::NAMES) and these columns.
    fn encode_ordered<S: Sink>(
        &self,
        order: &MarkerOrder,
        columns: &[ColumnSpec],
        values: &mut ValuesBuilder<S>,
    ) -> Result<(), BindError> {
        let _ = order;
        self.encode_row(columns, values)
    }
}

/// A row type that rows of some columns can become: a tuple, by position, a
/// [`Vec<CqlValue>`](CqlValue), or a struct that derives it.
pub trait DecodeRow<'a>: Sized {
    /// What is found out once for the columns of a result, such as where the column of each field
    /// stands.
    type Layout: Clone + fmt::Debug;

    /// Whether rows of these columns can become one, and how; to be asked once per result.
    fn check_columns(columns: &[ColumnSpec]) -> Result<Self::Layout, RowError>;

    /// Reads a row of these columns, which `layout` is of.
    fn decode_row(
        layout: &Self::Layout,
        columns: &[ColumnSpec],
        row: RawRow<'a>,
    ) -> Result<Self, RowError>;
}

pub(super) fn check_value_count(columns: &[ColumnSpec], got: usize) -> Result<(), BindError> {
    let expected = columns.len();
    if expected == got {
        Ok(())
    } else {
        Err(BindError::Count { expected, got })
    }
}

/// One function for all row types; with `std` each has its own, which takes fewer instructions.
#[cfg(not(feature = "std"))]
fn bind_all<S: Sink>(
    values: &mut ValuesBuilder<S>,
    columns: &[ColumnSpec],
    row: &[&dyn EncodeValue],
) -> Result<(), BindError> {
    check_value_count(columns, row.len())?;
    for (index, (column, value)) in columns.iter().zip(row).enumerate() {
        bind(values, index, column, *value)?;
    }
    Ok(())
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
    written.map_err(|error| bind_error(index, column, None, error))
}

#[cold]
#[inline(never)]
pub(super) fn bind_error(
    index: usize,
    column: &ColumnSpec,
    field: Option<&'static str>,
    error: EncodeValueError,
) -> BindError {
    BindError::Value {
        index,
        name: column.name.clone(),
        field,
        error,
    }
}

/// One function for all row types, with the checks of their fields.
fn check_columns(columns: &[ColumnSpec], checks: &[TypeCheck]) -> Result<(), RowError> {
    let (expected, got) = (checks.len(), columns.len());
    if expected != got {
        return Err(RowError::Count { expected, got });
    }
    for (index, (column, check)) in columns.iter().zip(checks).enumerate() {
        check(&column.ty).map_err(|mismatch| column_error(index, column, None, mismatch.into()))?;
    }
    Ok(())
}

/// Whether cells of a type can become what a field is.
pub(super) type TypeCheck = fn(&ColumnType) -> Result<(), TypeMismatch>;

#[cold]
#[inline(never)]
pub(super) fn column_error(
    index: usize,
    column: &ColumnSpec,
    field: Option<&'static str>,
    error: DecodeValueError,
) -> RowError {
    RowError::Column {
        index,
        name: column.name.clone(),
        field,
        error,
    }
}

/// Walks columns and cells side by side.
struct Cursor<'c, 'a> {
    columns: core::iter::Enumerate<core::slice::Iter<'c, ColumnSpec>>,
    cells: CellsIter<'a>,
    expected: usize,
    got: u32,
}

impl<'c, 'a> Cursor<'c, 'a> {
    fn new(columns: &'c [ColumnSpec], row: RawRow<'a>, expected: usize) -> Self {
        Self {
            columns: columns.iter().enumerate(),
            cells: row.cells(),
            expected,
            got: row.len(),
        }
    }

    fn next<T: DecodeValue<'a>>(&mut self) -> Result<T, RowError> {
        let Some((index, column, cell)) = self.next_cell() else {
            return Err(self.count_error());
        };
        T::decode(&column.ty, cell).map_err(|error| column_error(index, column, None, error))
    }

    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn next_cell(&mut self) -> Option<(usize, &'c ColumnSpec, Option<&'a [u8]>)> {
        let (index, column) = self.columns.next()?;
        Some((index, column, self.cells.next()?))
    }

    #[cold]
    #[inline(never)]
    const fn count_error(&self) -> RowError {
        RowError::Count {
            expected: self.expected,
            got: self.got as usize,
        }
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
    const NAMES: Option<ValueNames> = T::NAMES;

    fn encode_row<S: Sink>(
        &self,
        columns: &[ColumnSpec],
        values: &mut ValuesBuilder<S>,
    ) -> Result<(), BindError> {
        (**self).encode_row(columns, values)
    }

    fn encode_ordered<S: Sink>(
        &self,
        order: &MarkerOrder,
        columns: &[ColumnSpec],
        values: &mut ValuesBuilder<S>,
    ) -> Result<(), BindError> {
        (**self).encode_ordered(order, columns, values)
    }
}

/// A row of any columns.
impl<'a> DecodeRow<'a> for Vec<CqlValue> {
    type Layout = ();

    fn check_columns(_: &[ColumnSpec]) -> Result<(), RowError> {
        Ok(())
    }

    fn decode_row(
        (): &Self::Layout,
        columns: &[ColumnSpec],
        row: RawRow<'a>,
    ) -> Result<Self, RowError> {
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
                let ($($field,)+) = self;
                #[cfg(not(feature = "std"))]
                return bind_all(values, columns, &[$($field),+]);
                #[cfg(feature = "std")]
                {
                    check_value_count(columns, $count)?;
                    let mut columns = columns.iter().enumerate();
                    $(if let Some((index, column)) = columns.next() {
                        bind(values, index, column, $field)?;
                    })+
                    Ok(())
                }
            }
        }

        impl<'a, $($field: DecodeValue<'a>),+> DecodeRow<'a> for ($($field,)+) {
            type Layout = ();

            fn check_columns(columns: &[ColumnSpec]) -> Result<(), RowError> {
                check_columns(columns, &[$($field::type_check),+])
            }

            fn decode_row(
                (): &Self::Layout,
                columns: &[ColumnSpec],
                row: RawRow<'a>,
            ) -> Result<Self, RowError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::testing::{bytes, columns};
    use crate::types::{ColumnType, MaybeUnset, Unset};
    use crate::wire::SmallBuffer;
    use crate::wire::response::RowsContent;
    use std::string::{String, ToString};
    use std::vec;

    fn encode(columns: &[ColumnSpec], row: &impl EncodeRow) -> Result<(u16, Vec<u8>), BindError> {
        let mut builder = ValuesBuilder::new(SmallBuffer::<16>::new());
        row.encode_row(columns, &mut builder)?;
        let encoded = builder.finish();
        let values = encoded.values();
        Ok((values.len(), Vec::from(values.as_bytes())))
    }

    #[test]
    fn tuples_and_dynamic_rows_bind_the_same_bytes() {
        let columns = columns(&[
            ("a", ColumnType::Int),
            ("b", ColumnType::Int),
            ("c", ColumnType::Int),
            ("d", ColumnType::Text),
        ]);
        let expected = (4, bytes("0000000400000007fffffffffffffffe00000000"));
        assert_eq!(
            encode(&columns, &(7, None::<i32>, Unset, "")),
            Ok(expected.clone())
        );
        assert_eq!(
            encode(&columns, &&(7, None::<i32>, MaybeUnset::<i32>::Unset, "")),
            Ok(expected.clone())
        );
        let dynamic = vec![
            CqlValue::Int(7),
            CqlValue::Null,
            CqlValue::Unset,
            CqlValue::Text(String::new()),
        ];
        assert_eq!(encode(&columns, &dynamic), Ok(expected.clone()));
        let objects: [&dyn EncodeValue; 4] = [&7, &None::<i32>, &Unset, &""];
        assert_eq!(encode(&columns, &objects), Ok(expected));
        assert_eq!(encode(&[], &()), Ok((0, vec![])));
    }

    #[test]
    fn a_bound_unset_is_remembered() {
        let columns = columns(&[("a", ColumnType::Int)]);
        for (value, is_unset) in [(MaybeUnset::Unset, true), (MaybeUnset::Set(1), false)] {
            let mut builder = ValuesBuilder::new(Vec::new());
            (value,).encode_row(&columns, &mut builder).unwrap();
            assert_eq!(builder.finish().values().has_unset(), is_unset);
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let columns = columns(&[("id", ColumnType::Int), ("name", ColumnType::Text)]);
        assert_eq!(
            encode(&columns, &(1,)),
            Err(BindError::Count {
                expected: 2,
                got: 1
            })
        );
        assert_eq!(
            encode(&columns, &()),
            Err(BindError::Count {
                expected: 2,
                got: 0
            })
        );
        assert_eq!(
            encode(&columns, &[1, 2, 3]),
            Err(BindError::Count {
                expected: 2,
                got: 3
            })
        );
        let error = encode(&columns, &(1, 2_i64)).unwrap_err();
        assert_eq!(error.to_string(), "value 1 (name): i64 does not fit text");
        let error = <(i32, i64)>::check_columns(&columns).unwrap_err();
        assert_eq!(error.to_string(), "column 1 (name): i64 does not fit text");
        let error = <(i32,)>::check_columns(&columns).unwrap_err();
        assert_eq!(
            error,
            RowError::Count {
                expected: 1,
                got: 2
            }
        );
        assert!(<(i32, String)>::check_columns(&columns).is_ok());
    }

    #[test]
    fn rows_become_tuples_or_values() {
        let columns = columns(&[("id", ColumnType::Int), ("name", ColumnType::Text)]);
        let cells =
            bytes("0000000400000007000000016100000004000000080000000000000002000000000001ff");
        let content = RowsContent::new(2, 3, &cells).unwrap();
        let rows: Vec<_> = content.iter().map(Result::unwrap).collect();
        assert_eq!(
            <(i32, &str)>::decode_row(&(), &columns, rows[0]),
            Ok((7, "a"))
        );
        assert_eq!(
            <(i32, Option<String>)>::decode_row(&(), &columns, rows[1]),
            Ok((8, Some(String::new())))
        );
        let dynamic = Vec::<CqlValue>::decode_row(&(), &columns, rows[0]);
        assert_eq!(
            dynamic,
            Ok(vec![CqlValue::Int(7), CqlValue::Text("a".into())])
        );
        let error = <(i32, &str)>::decode_row(&(), &columns, rows[2]).unwrap_err();
        let length = DecodeValueError::Length {
            expected: 4,
            got: 2,
        };
        assert_eq!(
            error,
            RowError::Column {
                index: 0,
                name: "id".into(),
                field: None,
                error: length
            }
        );
        // More columns than cells: an error, never a row that is cut.
        let wide = [columns.clone(), columns.clone()].concat();
        assert!(Vec::<CqlValue>::decode_row(&(), &wide, rows[0]).is_err());
        assert!(<(i32, &str, i32)>::decode_row(&(), &wide, rows[0]).is_err());
    }
}
