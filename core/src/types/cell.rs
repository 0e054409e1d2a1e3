//! Cursors over the inside of a cell, shared by typed and dynamic decoding.
//!
//! Counts are compared with the bytes that are there before anything is read, so that no loop and no
//! allocation follows a count that lies.

use super::{ColumnType, DecodeValueError, VectorType, vint};
use crate::wire::{ParseError, ParseErrorKind, Reader};

/// The bytes of a cell that must be a value of `N` bytes.
pub(super) fn fixed<const N: usize>(cell: Option<&[u8]>) -> Result<[u8; N], DecodeValueError> {
    let bytes = present(cell)?;
    let wrong = || DecodeValueError::Length {
        expected: N,
        got: bytes.len(),
    };
    bytes.try_into().map_err(|_| wrong())
}

/// The bytes of a cell that must be a value of at least one byte.
pub(super) fn present(cell: Option<&[u8]>) -> Result<&[u8], DecodeValueError> {
    match cell {
        None => Err(DecodeValueError::Null),
        Some([]) => Err(DecodeValueError::Empty),
        Some(bytes) => Ok(bytes),
    }
}

/// The elements of a list or set, or keys and values of a map by turns.
#[derive(Debug)]
pub(super) struct Elements<'a> {
    left: u32,
    reader: Reader<'a>,
}

impl<'a> Elements<'a> {
    /// Starts at a cell with `per_entry` elements for each one counted. No bytes are no elements.
    pub(super) fn parse(cell: &'a [u8], per_entry: u32) -> Result<Self, DecodeValueError> {
        let mut reader = Reader::new(cell);
        if cell.is_empty() {
            return Ok(Self { left: 0, reader });
        }
        let start = reader.clone();
        let count = reader.count("collection")?;
        let held = u32::try_from(reader.rest().len()).unwrap_or(u32::MAX);
        // Each element is at least its length.
        match count.checked_mul(per_entry) {
            Some(elements) if elements.checked_mul(4).is_some_and(|least| least <= held) => {
                Ok(Self {
                    left: elements,
                    reader,
                })
            }
            _ => {
                let count = i32::try_from(count).unwrap_or(i32::MAX);
                Err(start
                    .error("collection", ParseErrorKind::BadCount { count })
                    .into())
            }
        }
    }

    /// The next element; `None` after the last one.
    pub(super) fn next(&mut self) -> Option<Result<Option<&'a [u8]>, ParseError>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.reader.bytes("element of collection"))
    }

    /// Fails if bytes are left over.
    pub(super) fn finish(&self) -> Result<(), DecodeValueError> {
        Ok(self.reader.finish("collection")?)
    }
}

/// The elements of a vector.
#[derive(Debug)]
pub(super) struct VectorElements<'a> {
    left: u32,
    width: Option<usize>,
    reader: Reader<'a>,
}

impl<'a> VectorElements<'a> {
    pub(super) fn parse(ty: &VectorType, cell: &'a [u8]) -> Result<Self, DecodeValueError> {
        if cell.is_empty() {
            return Err(DecodeValueError::Empty);
        }
        let width = ty.element.vector_width();
        // An element without fixed width is at least its length.
        let least = usize::try_from(ty.dimension)
            .ok()
            .and_then(|dimension| dimension.checked_mul(width.unwrap_or(1)));
        let fits = match (least, width) {
            (Some(least), Some(_)) => least == cell.len(),
            (Some(least), None) => least <= cell.len(),
            (None, _) => false,
        };
        if !fits {
            let expected = least.unwrap_or(usize::MAX);
            return Err(DecodeValueError::Length {
                expected,
                got: cell.len(),
            });
        }
        Ok(Self {
            left: ty.dimension,
            width,
            reader: Reader::new(cell),
        })
    }

    /// The next element; `None` after the last one.
    pub(super) fn next(&mut self) -> Option<Result<&'a [u8], ParseError>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.take())
    }

    fn take(&mut self) -> Result<&'a [u8], ParseError> {
        let what = "element of vector";
        let len = match self.width {
            Some(width) => width,
            None => {
                let start = self.reader.clone();
                let len = vint::parse_unsigned(&mut self.reader, what)?;
                usize::try_from(len).map_err(|_| start.error(what, ParseErrorKind::OutOfRange))?
            }
        };
        self.reader.take(what, len)
    }

    /// Fails if bytes are left over.
    pub(super) fn finish(&self) -> Result<(), DecodeValueError> {
        Ok(self.reader.finish("vector")?)
    }
}

/// The fields of a tuple or user-defined type.
///
/// A value may end before its type does (a field was added since): the rest is null. What goes beyond
/// the type is not looked at.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    reader: Reader<'a>,
}

impl<'a> Fields<'a> {
    pub(super) const fn new(cell: &'a [u8]) -> Self {
        Self {
            reader: Reader::new(cell),
        }
    }

    /// The next field; null if the value ended.
    pub(super) fn next(&mut self) -> Result<Option<&'a [u8]>, ParseError> {
        if self.reader.is_empty() {
            Ok(None)
        } else {
            self.reader.bytes("field")
        }
    }
}

/// The element type of a list, set or vector.
pub(super) fn element_type(ty: &ColumnType) -> Option<&ColumnType> {
    match ty {
        ColumnType::List(element) | ColumnType::Set(element) => Some(element),
        ColumnType::Vector(vector) => Some(&vector.element),
        _ => None,
    }
}
