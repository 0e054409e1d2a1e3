//! Where an encoder writes its one value.
//!
//! A [`ValueWriter`] is used up by writing and gives a [`Written`], which nothing else can make: an
//! encoder that compiles has written exactly one value. The writer knows the place it writes to (bind
//! marker, collection element, field, vector element) and so which framing and which of null and
//! unset are allowed there. Nothing is left behind by an encoder that fails.

use alloc::vec::Vec;
use core::fmt;

use super::{ColumnType, EncodeValueError, vint};
use crate::wire::{EncodeError, EncodeErrorKind, Sink, length_prefixed};

/// Proof that a value was written.
#[derive(Debug)]
pub struct Written {
    is_unset: bool,
}

impl Written {
    pub(crate) const fn is_unset(&self) -> bool {
        self.is_unset
    }
}

/// Takes one value.
pub struct ValueWriter<'w> {
    sink: &'w mut dyn Sink,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A bind marker: null and unset are possible.
    Marker,
    /// An element of a collection, or a field of a tuple or user-defined type: null is possible.
    Inside,
    /// An element of a vector of a type of fixed width: no length, so always a value of that width.
    Bare { width: usize },
    /// An element of another vector: a length that cannot say null.
    Vint,
}

impl<'w> ValueWriter<'w> {
    pub(crate) fn marker(sink: &'w mut dyn Sink) -> Self {
        Self {
            sink,
            place: Place::Marker,
        }
    }

    /// Writes null.
    pub fn null(self) -> Result<Written, EncodeValueError> {
        if !matches!(self.place, Place::Marker | Place::Inside) {
            return Err(not_here("null inside a vector"));
        }
        self.sink.put_int(-1);
        Ok(Written { is_unset: false })
    }

    /// Writes unset. Only bind markers can be unset.
    pub fn unset(self) -> Result<Written, EncodeValueError> {
        if self.place != Place::Marker {
            return Err(not_here("unset inside a value"));
        }
        self.sink.put_int(-2);
        Ok(Written { is_unset: true })
    }

    /// Writes a value of these bytes.
    pub fn value(self, bytes: &[u8]) -> Result<Written, EncodeValueError> {
        match self.place {
            Place::Marker | Place::Inside => self.sink.put_bytes("value", bytes)?,
            Place::Bare { width } if bytes.len() == width => self.sink.put(bytes),
            Place::Bare { .. } => return Err(not_here("value of another width inside a vector")),
            Place::Vint => {
                put_vint_length(self.sink, bytes.len());
                self.sink.put(bytes);
            }
        }
        Ok(Written { is_unset: false })
    }

    /// Writes a value piece by piece.
    pub fn value_with(
        self,
        content: impl FnOnce(&mut ValueContent<'_>) -> Result<(), EncodeValueError>,
    ) -> Result<Written, EncodeValueError> {
        match self.place {
            Place::Marker | Place::Inside => length_prefixed(self.sink, "value", |sink| {
                content(&mut ValueContent { sink })
            })?,
            Place::Bare { width } => {
                let start = self.sink.len();
                content(&mut ValueContent { sink: self.sink })?;
                if self.sink.len().checked_sub(start) != Some(width) {
                    return Err(not_here("value of another width inside a vector"));
                }
            }
            Place::Vint => {
                // The width of the length depends on the length: the content has to be known first.
                let mut piece = Vec::new();
                content(&mut ValueContent { sink: &mut piece })?;
                put_vint_length(self.sink, piece.len());
                self.sink.put(&piece);
            }
        }
        Ok(Written { is_unset: false })
    }
}

impl fmt::Debug for ValueWriter<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ValueWriter")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// Takes the bytes of one value, and the values nested in it.
pub struct ValueContent<'w> {
    sink: &'w mut dyn Sink,
}

impl ValueContent<'_> {
    /// Appends bytes.
    pub fn put(&mut self, bytes: &[u8]) {
        self.sink.put(bytes);
    }

    /// Appends the number of elements of a list or set, or of entries of a map.
    pub fn put_count(&mut self, count: usize) -> Result<(), EncodeValueError> {
        let fits = i32::try_from(count).map_err(|_| {
            let max = i32::MAX.unsigned_abs();
            EncodeError::new("collection", EncodeErrorKind::TooMany { count, max })
        })?;
        self.sink.put_int(fits);
        Ok(())
    }

    /// A writer for an element of a collection, or for a field of a tuple or user-defined type.
    pub fn nested(&mut self) -> ValueWriter<'_> {
        ValueWriter {
            sink: self.sink,
            place: Place::Inside,
        }
    }

    /// A writer for an element of a vector of the given element type.
    pub fn vector_element(&mut self, element: &ColumnType) -> ValueWriter<'_> {
        let place = element
            .vector_width()
            .map_or(Place::Vint, |width| Place::Bare { width });
        ValueWriter {
            sink: self.sink,
            place,
        }
    }

    pub(super) fn sink(&mut self) -> &mut dyn Sink {
        self.sink
    }
}

impl fmt::Debug for ValueContent<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ValueContent(..)")
    }
}

fn put_vint_length(sink: &mut dyn Sink, len: usize) {
    vint::put_unsigned(sink, u64::try_from(len).unwrap_or(u64::MAX));
}

fn not_here(what: &'static str) -> EncodeValueError {
    EncodeValueError::Encode(EncodeError::new(what, EncodeErrorKind::NotHere))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::EncodeValue;
    use crate::types::testing::{bytes, encode, ty};

    /// An encoder that writes its bytes whatever the type is, whole or piece by piece.
    struct Raw(&'static [u8], bool);

    impl EncodeValue for Raw {
        fn encode(
            &self,
            _: &ColumnType,
            writer: ValueWriter<'_>,
        ) -> Result<Written, EncodeValueError> {
            let Self(bytes, whole) = *self;
            if whole {
                return writer.value(bytes);
            }
            writer.value_with(|content| {
                bytes.iter().for_each(|byte| content.put(&[*byte]));
                Ok(())
            })
        }
    }

    #[test]
    fn each_place_has_its_framing() {
        for whole in [true, false] {
            let two = [Raw(&[1, 2, 3, 4], whole), Raw(&[5, 6, 7, 8], whole)];
            let table = [
                (
                    "ListType(Int32Type)",
                    "00000014 00000002 00000004 01020304 00000004 05060708",
                ),
                ("VectorType(Int32Type,2)", "00000008 01020304 05060708"),
                (
                    "VectorType(InetAddressType,2)",
                    "0000000a 04 01020304 04 05060708",
                ),
            ];
            for (class, expected) in table {
                let expected = bytes(&expected.replace(' ', ""));
                assert_eq!(encode(&ty(class), &two), Ok(expected), "{class}");
            }
        }
    }

    #[test]
    fn an_element_of_fixed_width_has_that_width() {
        for whole in [true, false] {
            for short in [&[][..], &[1, 2, 3], &[1, 2, 3, 4, 5]] {
                let error = encode(&ty("VectorType(Int32Type,1)"), &[Raw(short, whole)]);
                let Err(EncodeValueError::Encode(error)) = error else {
                    panic!("{short:?}")
                };
                assert_eq!(error.kind, EncodeErrorKind::NotHere);
            }
        }
    }
}
