//! Rows into structs: which column each field is read from, worked out once for a result, and the
//! cells of a row in the order of the fields.
//!
//! Where each column stands at the position of its field, the usual case, a row is read straight
//! through as a tuple is. Other columns are skipped on the way; in any other order the cells are put
//! aside first, in one pass over the row. Nothing allocates. Of a row of four columns a tuple takes 626
//! instructions, a struct 650, and 838 where the columns stand the other way round (`cargo xtask bench
//! --counts`).

use crate::types::row::{TypeCheck, column_error};
use crate::types::{ColumnSpec, DecodeRow, DecodeValue, DecodeValueError, FieldName, RowError};
use crate::wire::response::{CellsIter, RawRow};

/// A struct whose fields are read from columns by name: what `DecodeRow` is derived with.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be flattened into a row that is read",
    note = "derive `DecodeRow` for it, a struct whose fields have names"
)]
pub trait DecodeFields<'a>: DecodeRow<'a> {
    /// Whether a field goes by this name.
    fn has_column(name: &str) -> bool;

    /// Where the columns of the fields stand; others may stand among them.
    fn layout(columns: &[ColumnSpec]) -> Result<Self::Layout, RowError>;
}

/// What is asked of the column of a field.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written out by the derive macros"
)]
pub struct RowField {
    /// What it goes by.
    pub name: FieldName,
    /// Whether its type fits.
    pub check: TypeCheck,
    /// Whether the field does without it.
    pub may_be_missing: bool,
}

/// The column of each of `N` fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLayout<const N: usize> {
    positions: [usize; N],
    /// The fields in the order of their columns, those without one last.
    in_columns: [usize; N],
    found: usize,
    /// The columns stand in the order of the fields.
    is_ascending: bool,
    /// And there are no others between or before them, and none is missing.
    is_dense: bool,
}

/// The position of a column that is not there.
const MISSING: usize = usize::MAX;

impl<const N: usize> FieldLayout<N> {
    /// Finds the columns by their names.
    pub fn by_name(columns: &[ColumnSpec], fields: &[RowField; N]) -> Result<Self, RowError> {
        let mut positions = [MISSING; N];
        let mut expected = 0_usize;
        for (position, RowField { name, .. }) in positions.iter_mut().zip(fields) {
            let has_name = |column: &ColumnSpec| *column.name == *name.name;
            let found = match columns.get(expected) {
                Some(column) if has_name(column) => Some(expected),
                _ => columns.iter().position(has_name),
            };
            if let Some(found) = found {
                *position = found;
                expected = found.saturating_add(1);
            }
        }
        Self::checked(positions, columns, fields)
    }

    /// Takes the first columns, one for each field.
    pub fn by_position(columns: &[ColumnSpec], fields: &[RowField; N]) -> Result<Self, RowError> {
        let mut positions = [MISSING; N];
        for ((index, position), _) in positions.iter_mut().enumerate().zip(columns) {
            *position = index;
        }
        Self::checked(positions, columns, fields)
    }

    fn checked(
        positions: [usize; N],
        columns: &[ColumnSpec],
        fields: &[RowField; N],
    ) -> Result<Self, RowError> {
        check_fields(&positions, columns, fields)?;
        let mut in_columns = core::array::from_fn(|field| field);
        in_columns.sort_unstable_by_key(|field| positions.get(*field).copied());
        Ok(Self {
            positions,
            in_columns,
            found: positions.iter().filter(|at| **at != MISSING).count(),
            is_ascending: positions.is_sorted(),
            is_dense: positions.iter().enumerate().all(|(field, at)| field == *at),
        })
    }

    /// Whether each field is read from the column at its own position, as [`DenseCells`] do.
    #[inline]
    #[must_use]
    pub const fn is_dense(&self) -> bool {
        self.is_dense
    }

    /// Fields that have a column.
    #[must_use]
    pub const fn found(&self) -> usize {
        self.found
    }
}

/// One function for all structs.
fn check_fields(
    positions: &[usize],
    columns: &[ColumnSpec],
    fields: &[RowField],
) -> Result<(), RowError> {
    for (&index, field) in positions.iter().zip(fields) {
        let FieldName { name, field: rust } = field.name;
        match columns.get(index) {
            Some(column) => (field.check)(&column.ty)
                .map_err(|mismatch| column_error(index, column, Some(rust), mismatch.into()))?,
            None if field.may_be_missing => {}
            None => return Err(RowError::NoColumn { field: rust, name }),
        }
    }
    Ok(())
}

/// Fails if there are more columns than fields that found theirs.
pub fn all_columns_found(
    found: usize,
    columns: &[ColumnSpec],
    has_column: fn(&str) -> bool,
) -> Result<(), RowError> {
    if found == columns.len() {
        return Ok(());
    }
    no_other_columns(columns, has_column)
}

/// Fails if there are more columns than so many fields.
pub fn no_more_columns(fields: usize, columns: &[ColumnSpec]) -> Result<(), RowError> {
    let (expected, got) = (fields, columns.len());
    match got > expected {
        true => Err(RowError::Count { expected, got }),
        false => Ok(()),
    }
}

/// Fails with the first column that no field goes by the name of, or that has the name of one before.
pub fn no_other_columns(
    columns: &[ColumnSpec],
    has_column: fn(&str) -> bool,
) -> Result<(), RowError> {
    let other = columns.iter().enumerate().find(|(index, column)| {
        let mut before = columns.iter().take(*index);
        let twice = before.any(|first| first.name == column.name);
        twice || !has_column(&column.name)
    });
    match other {
        None => Ok(()),
        Some((index, column)) => Err(RowError::NoField {
            index,
            name: column.name.clone(),
        }),
    }
}

/// The cells of one row whose first columns are those of the fields, in their order.
#[derive(Debug)]
pub struct DenseCells<'c, 'a> {
    columns: core::iter::Enumerate<core::slice::Iter<'c, ColumnSpec>>,
    cells: CellsIter<'a>,
    got: u32,
}

impl<'c, 'a> DenseCells<'c, 'a> {
    /// The cells of a row of these columns.
    #[must_use]
    pub fn new(columns: &'c [ColumnSpec], row: RawRow<'a>) -> Self {
        Self {
            columns: columns.iter().enumerate(),
            cells: row.cells(),
            got: row.len(),
        }
    }

    /// Whether a field has a column: here all have.
    #[inline]
    #[must_use]
    pub const fn has(&self, _: usize) -> bool {
        true
    }

    /// Reads the next field, which `name` is of.
    #[inline(always)]
    pub fn take<T: DecodeValue<'a>>(
        &mut self,
        _: usize,
        name: &'static str,
    ) -> Result<T, RowError> {
        let Some((index, column, cell)) = self.next_cell() else {
            return Err(self.cut_short());
        };
        T::decode(&column.ty, cell).map_err(|error| field_error(index, column, name, error))
    }

    /// The same; null is the type's default.
    #[inline]
    pub fn take_or_default<T: DecodeValue<'a> + Default>(
        &mut self,
        field: usize,
        name: &'static str,
    ) -> Result<T, RowError> {
        self.take::<Option<T>>(field, name)
            .map(Option::unwrap_or_default)
    }

    #[inline(always)]
    fn next_cell(&mut self) -> Option<(usize, &'c ColumnSpec, Option<&'a [u8]>)> {
        let (index, column) = self.columns.next()?;
        Some((index, column, self.cells.next()?))
    }

    #[cold]
    #[inline(never)]
    fn cut_short(&self) -> RowError {
        let got = usize::try_from(self.got).unwrap_or(usize::MAX);
        let expected = got.saturating_add(self.columns.len());
        RowError::Count { expected, got }
    }
}

/// The cells of one row, taken in the order of the fields.
#[derive(Debug)]
pub struct FieldCells<'c, 'a, const N: usize> {
    positions: &'c [usize; N],
    columns: &'c [ColumnSpec],
    cells: CellsIter<'a>,
    /// The column of the next cell.
    next: usize,
    /// The cells of the fields, if the columns stand in another order.
    aside: Option<[Option<&'a [u8]>; N]>,
}

impl<'c, 'a, const N: usize> FieldCells<'c, 'a, N> {
    /// The cells of a row of these columns, which the layout is of.
    #[must_use]
    pub fn new(layout: &'c FieldLayout<N>, columns: &'c [ColumnSpec], row: RawRow<'a>) -> Self {
        let mut cells = Self {
            positions: &layout.positions,
            columns,
            cells: row.cells(),
            next: 0,
            aside: None,
        };
        if !layout.is_ascending {
            cells.put_aside(layout);
        }
        cells
    }

    #[inline(never)]
    fn put_aside(&mut self, layout: &FieldLayout<N>) {
        let mut aside = [None; N];
        for field in layout.in_columns {
            let position = layout.positions.get(field).copied().unwrap_or(MISSING);
            if position == MISSING {
                break;
            }
            if let (Some(place), Some(cell)) = (aside.get_mut(field), self.skip_to(position)) {
                *place = cell;
            }
        }
        self.aside = Some(aside);
    }

    /// The cell of a column that was not passed yet.
    #[inline]
    fn skip_to(&mut self, position: usize) -> Option<Option<&'a [u8]>> {
        while self.next < position {
            self.cells.next()?;
            self.next = self.next.saturating_add(1);
        }
        self.next = self.next.saturating_add(1);
        self.cells.next()
    }

    /// Whether a field has a column.
    #[inline]
    #[must_use]
    pub fn has(&self, field: usize) -> bool {
        self.positions.get(field).is_some_and(|at| *at != MISSING)
    }

    /// The column of a field and its cell. Fields have to be asked for in their order.
    #[inline]
    fn cell(
        &mut self,
        field: usize,
    ) -> Result<(usize, &'c ColumnSpec, Option<&'a [u8]>), RowError> {
        let position = self.positions.get(field).copied().unwrap_or(MISSING);
        let column = self.columns.get(position);
        let cell = match &self.aside {
            Some(aside) => aside.get(field).copied(),
            None => self.skip_to(position),
        };
        match (column, cell) {
            (Some(column), Some(cell)) => Ok((position, column, cell)),
            _ => Err(self.cut_short()),
        }
    }

    /// A row of other columns than the layout is of.
    #[cold]
    #[inline(never)]
    fn cut_short(&self) -> RowError {
        RowError::Count {
            expected: self.columns.len(),
            got: self.next,
        }
    }

    /// Reads a field, which `name` is of.
    #[inline]
    pub fn take<T: DecodeValue<'a>>(
        &mut self,
        field: usize,
        name: &'static str,
    ) -> Result<T, RowError> {
        let (index, column, cell) = self.cell(field)?;
        T::decode(&column.ty, cell).map_err(|error| field_error(index, column, name, error))
    }

    /// The same; null is the type's default.
    #[inline]
    pub fn take_or_default<T: DecodeValue<'a> + Default>(
        &mut self,
        field: usize,
        name: &'static str,
    ) -> Result<T, RowError> {
        self.take::<Option<T>>(field, name)
            .map(Option::unwrap_or_default)
    }
}

#[cold]
#[inline(never)]
fn field_error(
    index: usize,
    column: &ColumnSpec,
    name: &'static str,
    error: DecodeValueError,
) -> RowError {
    column_error(index, column, Some(name), error)
}
