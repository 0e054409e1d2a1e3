//! Structs as values of user-defined types, and of tuples.
//!
//! Fields of the type that the struct has none for are passed over in reading and null in writing,
//! not sent at all where they are the last ones; a value that ends before its type has null fields at
//! its end.

use crate::types::cell;
use crate::types::row::TypeCheck;
use crate::types::{
    ColumnType, DecodeValue, DecodeValueError, EncodeValueError, FieldMismatch, FieldName,
    TypeMismatch, UdtType, ValueWriter, Written,
};

/// How fields of a struct and of a type are paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "written out by the derive macros")]
pub enum Matching {
    /// By name, with a user-defined type.
    ByName,
    /// In order, with a user-defined type or a tuple.
    ByPosition,
}

/// What is asked of the field of a type.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written out by the derive macros"
)]
pub struct ValueField {
    /// What it goes by.
    pub name: FieldName,
    /// Whether its type fits.
    pub check: TypeCheck,
    /// Whether the struct does without it.
    pub may_be_missing: bool,
}

/// The fields of a type, with their names where they have some.
#[derive(Clone, Copy)]
enum Parts<'t> {
    Udt(&'t UdtType),
    Tuple(&'t [ColumnType]),
}

impl<'t> Parts<'t> {
    fn of(ty: &'t ColumnType, matching: Matching) -> Option<Self> {
        match (ty, matching) {
            (ColumnType::Udt(udt), _) => Some(Self::Udt(udt)),
            (ColumnType::Tuple(types), Matching::ByPosition) => Some(Self::Tuple(types)),
            _ => None,
        }
    }

    fn len(self) -> usize {
        match self {
            Self::Udt(udt) => udt.fields.len(),
            Self::Tuple(types) => types.len(),
        }
    }

    fn get(self, index: usize) -> Option<(&'t str, &'t ColumnType)> {
        match self {
            Self::Udt(udt) => udt.fields.get(index).map(|(name, ty)| (&**name, ty)),
            Self::Tuple(types) => types.get(index).map(|ty| ("", ty)),
        }
    }
}

/// Finds the field of the struct for each field of the type in turn.
struct Pairing<'n> {
    names: &'n [FieldName],
    matching: Matching,
    expected: usize,
}

impl<'n> Pairing<'n> {
    const fn new(names: &'n [FieldName], matching: Matching) -> Self {
        Self {
            names,
            matching,
            expected: 0,
        }
    }

    fn find(&mut self, name: &str) -> Option<usize> {
        let expected = self.expected;
        let found = match (self.names.get(expected), self.matching) {
            (Some(_), Matching::ByPosition) => Some(expected),
            (None, Matching::ByPosition) => None,
            (Some(next), Matching::ByName) if *next.name == *name => Some(expected),
            _ => self.names.iter().position(|field| *field.name == *name),
        };
        if let Some(found) = found {
            self.expected = found.saturating_add(1);
        }
        found
    }
}

/// Whether values of a type can become the struct `rust` of these fields.
pub fn check_fields<const N: usize>(
    rust: &'static str,
    ty: &ColumnType,
    fields: &[ValueField; N],
    matching: Matching,
    deny_unknown: bool,
) -> Result<(), TypeMismatch> {
    let names = fields.map(|field| field.name);
    let mut found = [false; N];
    check(
        rust,
        ty,
        fields,
        &mut found,
        Pairing::new(&names, matching),
        deny_unknown,
    )
}

/// One function for all structs.
fn check(
    rust: &'static str,
    ty: &ColumnType,
    fields: &[ValueField],
    found: &mut [bool],
    mut pairing: Pairing<'_>,
    deny_unknown: bool,
) -> Result<(), TypeMismatch> {
    let mismatch = || TypeMismatch::new(rust, ty);
    let parts = Parts::of(ty, pairing.matching).ok_or_else(mismatch)?;
    let deny_unknown = deny_unknown || matches!(parts, Parts::Tuple(_));
    for (name, ty) in (0..parts.len()).filter_map(|index| parts.get(index)) {
        let index = pairing.find(name);
        match index.and_then(|index| Some((fields.get(index)?, found.get_mut(index)?))) {
            Some((field, found)) => {
                let inside = FieldMismatch::Type(field.name.field);
                (field.check)(ty).map_err(|mismatch| mismatch.in_field(inside))?;
                *found = true;
            }
            None if deny_unknown => {
                return Err(mismatch().in_field(FieldMismatch::Unknown(name.into())));
            }
            None => {}
        }
    }
    let mut fields = fields.iter().zip(found);
    match fields.find(|(field, found)| !**found && !field.may_be_missing) {
        None => Ok(()),
        Some((ValueField { name, .. }, _)) => {
            let FieldName { name, field } = *name;
            Err(mismatch().in_field(FieldMismatch::Missing { field, name }))
        }
    }
}

/// A field's type and bytes.
type Cell<'t, 'a> = (&'t ColumnType, Option<&'a [u8]>);

/// The cells of one value, by the fields of a struct.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'t, 'a, const N: usize> {
    cells: [Option<Cell<'t, 'a>>; N],
}

impl<'t, 'a, const N: usize> Fields<'t, 'a, N> {
    /// Splits a value of the type `ty` for the struct `rust`.
    pub fn parse(
        rust: &'static str,
        ty: &'t ColumnType,
        cell: Option<&'a [u8]>,
        names: &[FieldName; N],
        matching: Matching,
    ) -> Result<Self, DecodeValueError> {
        let mut cells = [None; N];
        split(rust, ty, cell, Pairing::new(names, matching), &mut cells)?;
        Ok(Self { cells })
    }

    /// Whether the type has the field.
    #[must_use]
    pub fn has(&self, field: usize) -> bool {
        self.cells.get(field).is_some_and(Option::is_some)
    }

    /// Reads a field, which `name` is of.
    pub fn take<T: DecodeValue<'a>>(
        &self,
        field: usize,
        name: &'static str,
    ) -> Result<T, DecodeValueError> {
        let (ty, cell) = self.cell(field)?;
        T::decode(ty, cell).map_err(|error| field_error(name, error))
    }

    /// The same; null is the type's default.
    pub fn take_or_default<T: DecodeValue<'a> + Default>(
        &self,
        field: usize,
        name: &'static str,
    ) -> Result<T, DecodeValueError> {
        match self.cell(field)? {
            (_, None) => Ok(T::default()),
            (ty, cell) => T::decode(ty, cell).map_err(|error| field_error(name, error)),
        }
    }

    fn cell(&self, field: usize) -> Result<Cell<'t, 'a>, DecodeValueError> {
        // Absent only of a type that was not checked.
        let cell = self.cells.get(field).copied().flatten();
        cell.ok_or(DecodeValueError::Null)
    }
}

/// One function for all structs of as many fields.
fn split<'t, 'a>(
    rust: &'static str,
    ty: &'t ColumnType,
    cell: Option<&'a [u8]>,
    mut pairing: Pairing<'_>,
    cells: &mut [Option<Cell<'t, 'a>>],
) -> Result<(), DecodeValueError> {
    let bytes = cell.ok_or(DecodeValueError::Null)?;
    let parts = Parts::of(ty, pairing.matching).ok_or_else(|| TypeMismatch::new(rust, ty))?;
    let mut values = cell::Fields::new(bytes);
    for (name, ty) in (0..parts.len()).filter_map(|index| parts.get(index)) {
        let value = values.next()?;
        let place = pairing.find(name).and_then(|index| cells.get_mut(index));
        if let Some(place) = place {
            *place = Some((ty, value));
        }
    }
    Ok(())
}

#[cold]
#[inline(never)]
fn field_error(field: &'static str, error: DecodeValueError) -> DecodeValueError {
    let error = error.into();
    DecodeValueError::Field { field, error }
}

/// Writes the struct `rust` of fields of these names, each by `encode`, as a value of the type `ty`.
/// Every field of the struct must have its own there.
pub fn encode_fields(
    rust: &'static str,
    ty: &ColumnType,
    writer: ValueWriter<'_>,
    names: &[FieldName],
    matching: Matching,
    deny_unknown: bool,
    encode: impl Fn(usize, &ColumnType, ValueWriter<'_>) -> Result<Written, EncodeValueError>,
) -> Result<Written, EncodeValueError> {
    let mismatch = || TypeMismatch::new(rust, ty);
    let parts = Parts::of(ty, matching).ok_or_else(mismatch)?;
    let mut pairing = Pairing::new(names, matching);
    writer.value_with(|content| {
        // Nulls are written once a field comes behind them.
        let (mut nulls, mut written) = (0_usize, 0_usize);
        for (name, ty) in (0..parts.len()).filter_map(|index| parts.get(index)) {
            let Some(index) = pairing.find(name) else {
                if deny_unknown {
                    return Err(mismatch()
                        .in_field(FieldMismatch::Unknown(name.into()))
                        .into());
                }
                nulls = nulls.saturating_add(1);
                continue;
            };
            for _ in 0..core::mem::take(&mut nulls) {
                content.nested().null()?;
            }
            encode(index, ty, content.nested()).map_err(|error| {
                let field = names.get(index).map_or(rust, |name| name.field);
                let error = error.into();
                EncodeValueError::Field { field, error }
            })?;
            written = written.saturating_add(1);
        }
        if written >= names.len() {
            return Ok(());
        }
        first_missing(parts, names, matching).map_or(Ok(()), |FieldName { name, field }| {
            Err(mismatch()
                .in_field(FieldMismatch::Missing { field, name })
                .into())
        })
    })
}

/// The first field of a struct that the type has none for.
#[cold]
fn first_missing(parts: Parts<'_>, names: &[FieldName], matching: Matching) -> Option<FieldName> {
    let is_missing = |field: &&FieldName| {
        let mut all = (0..parts.len()).filter_map(|index| parts.get(index));
        !all.any(|(name, _)| *name == *field.name)
    };
    match matching {
        Matching::ByPosition => names.get(parts.len()).copied(),
        Matching::ByName => names.iter().find(is_missing).copied(),
    }
}
