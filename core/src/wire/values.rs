//! Bound values that are already encoded, and what builds them.
//!
//! Values are encoded once, outside of any lock, before the connection is known; the bytes are the
//! same in every protocol version, except that version 3 has no unset. [`Values`] remembers whether
//! it holds one, so that the writer of a request can refuse it.

use core::fmt;

use super::writer::{EncodeError, EncodeErrorKind, Sink, length_prefixed, short_count};
use super::{ParseError, ProtocolVersion, Reader};

/// Encoded values of one statement: each an `[int]` length and its bytes, a `[string]` name in
/// front of each when `named`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Values<'a> {
    count: u16,
    named: bool,
    has_unset: bool,
    bytes: &'a [u8],
}

impl<'a> Values<'a> {
    /// No values.
    pub const EMPTY: Values<'static> = Values {
        count: 0,
        named: false,
        has_unset: false,
        bytes: &[],
    };

    /// Values by position that a [`ValuesBuilder`] has encoded.
    pub(crate) const fn encoded(count: u16, has_unset: bool, bytes: &'a [u8]) -> Self {
        Self {
            count,
            named: false,
            has_unset,
            bytes,
        }
    }

    /// Checks values that were encoded elsewhere.
    pub fn parse(count: u16, named: bool, bytes: &'a [u8]) -> Result<Self, ParseError> {
        let mut reader = Reader::new(bytes);
        let mut has_unset = false;
        for _ in 0..count {
            let (_, value) = next_value(&mut reader, named)?;
            has_unset |= value == RawValue::Unset;
        }
        reader.finish("bound values")?;
        Ok(Self {
            count,
            named,
            has_unset,
            bytes,
        })
    }

    /// The values in order, each with its name if they are named.
    #[must_use]
    pub const fn iter(&self) -> ValuesIter<'a> {
        ValuesIter {
            left: self.count,
            named: self.named,
            reader: Reader::new(self.bytes),
        }
    }

    /// The value at a position, found by walking there.
    #[must_use]
    pub fn get(&self, index: u16) -> Option<RawValue<'a>> {
        self.iter().nth(usize::from(index)).map(|(_, value)| value)
    }

    /// Number of values.
    #[must_use]
    pub const fn len(&self) -> u16 {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether each value has its name in front.
    #[must_use]
    pub const fn is_named(&self) -> bool {
        self.named
    }

    /// Whether one of them is unset, which version 3 cannot say.
    #[must_use]
    pub const fn has_unset(&self) -> bool {
        self.has_unset
    }

    /// The encoded bytes, without the count.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether the version has all that is in them.
    pub(super) fn check(&self, version: ProtocolVersion) -> Result<(), EncodeError> {
        if self.has_unset && !version.has_unset() {
            let kind = EncodeErrorKind::NotInVersion(version);
            return Err(EncodeError::new("unset value", kind));
        }
        Ok(())
    }

    /// Writes count and values.
    pub(super) fn put<S: Sink + ?Sized>(
        &self,
        version: ProtocolVersion,
        sink: &mut S,
    ) -> Result<(), EncodeError> {
        self.check(version)?;
        sink.put_short(self.count);
        sink.put(self.bytes);
        Ok(())
    }
}

/// Shows the shape only: the values are a user's data.
impl fmt::Debug for Values<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Values")
            .field("count", &self.count)
            .field("named", &self.named)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

/// One encoded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "closed by the protocol")]
pub enum RawValue<'a> {
    /// Null: delete, or no value.
    Null,
    /// Unset: leave as it is.
    Unset,
    /// A value, perhaps of no bytes.
    Bytes(&'a [u8]),
}

impl<'a> RawValue<'a> {
    /// The bytes, unless null or unset.
    #[must_use]
    pub const fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Null | Self::Unset => None,
        }
    }
}

/// Iterates over [`Values`].
#[derive(Clone, Debug)]
pub struct ValuesIter<'a> {
    left: u16,
    named: bool,
    reader: Reader<'a>,
}

impl<'a> Iterator for ValuesIter<'a> {
    type Item = (Option<&'a str>, RawValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        next_value(&mut self.reader, self.named).ok()
    }
}

fn next_value<'a>(
    reader: &mut Reader<'a>,
    named: bool,
) -> Result<(Option<&'a str>, RawValue<'a>), ParseError> {
    let name = if named {
        Some(reader.string("value name")?)
    } else {
        None
    };
    let start = reader.clone();
    let value = match reader.int("bound value")? {
        NULL => RawValue::Null,
        UNSET => RawValue::Unset,
        len => match usize::try_from(len) {
            Ok(len) => RawValue::Bytes(reader.take("bound value", len)?),
            Err(_) => {
                let kind = super::ParseErrorKind::BadLength { len };
                return Err(start.error("bound value", kind));
            }
        },
    };
    Ok((name, value))
}

/// Appends values to a sink and counts them.
#[derive(Debug)]
pub struct ValuesBuilder<S> {
    sink: S,
    start: usize,
    count: u16,
    named: bool,
    has_unset: bool,
}

impl<S: Sink> ValuesBuilder<S> {
    /// Values told apart by position.
    pub fn new(sink: S) -> Self {
        let start = sink.len();
        Self {
            sink,
            start,
            count: 0,
            named: false,
            has_unset: false,
        }
    }

    /// Values told apart by name; each `named_*` call gives one.
    pub fn new_named(sink: S) -> Self {
        Self {
            named: true,
            ..Self::new(sink)
        }
    }

    /// Appends a value of these bytes.
    pub fn value(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.raw(None, RawValue::Bytes(bytes))
    }

    /// Appends null.
    pub fn null(&mut self) -> Result<(), EncodeError> {
        self.raw(None, RawValue::Null)
    }

    /// Appends unset. A request that holds one is refused on protocol version 3.
    pub fn unset(&mut self) -> Result<(), EncodeError> {
        self.raw(None, RawValue::Unset)
    }

    /// Appends a value that is written piece by piece, length in front.
    pub fn value_with<E: From<EncodeError>>(
        &mut self,
        content: impl FnOnce(&mut S) -> Result<(), E>,
    ) -> Result<(), E> {
        self.append(None, |sink| {
            length_prefixed(sink, "value", content).map(|()| IsUnset(false))
        })
    }

    /// Appends a value with its name in front.
    pub fn named(&mut self, name: &str, value: RawValue<'_>) -> Result<(), EncodeError> {
        self.raw(Some(name), value)
    }

    /// Appends what `write` writes as one value: length and content, or null, or unset.
    pub(crate) fn append<E: From<EncodeError>>(
        &mut self,
        name: Option<&str>,
        write: impl FnOnce(&mut S) -> Result<IsUnset, E>,
    ) -> Result<(), E> {
        if name.is_some() != self.named {
            return Err(EncodeError::new("value name", EncodeErrorKind::NotHere).into());
        }
        let count = short_count("bound values", usize::from(self.count).saturating_add(1))?;
        let start = self.sink.len();
        let named = name.map_or(Ok(()), |name| self.sink.put_string("value name", name));
        match named.map_err(E::from).and_then(|()| write(&mut self.sink)) {
            Ok(IsUnset(is_unset)) => {
                self.count = count;
                self.has_unset |= is_unset;
                Ok(())
            }
            Err(error) => {
                self.sink.truncate(start);
                Err(error)
            }
        }
    }

    fn raw(&mut self, name: Option<&str>, value: RawValue<'_>) -> Result<(), EncodeError> {
        self.append(name, |sink| {
            match value {
                RawValue::Null => sink.put_int(NULL),
                RawValue::Unset => sink.put_int(UNSET),
                RawValue::Bytes(bytes) => sink.put_bytes("value", bytes)?,
            }
            Ok(IsUnset(value == RawValue::Unset))
        })
    }

    /// Number of values so far.
    #[must_use]
    pub const fn len(&self) -> u16 {
        self.count
    }

    /// Whether there are none so far.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Ends the list.
    pub fn finish(self) -> EncodedValues<S> {
        let Self {
            sink,
            start,
            count,
            named,
            has_unset,
        } = self;
        EncodedValues {
            sink,
            start,
            count,
            named,
            has_unset,
        }
    }
}

/// Whether the value just written is unset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IsUnset(pub(crate) bool);

/// Values with the buffer that holds them.
#[derive(Clone, Debug)]
pub struct EncodedValues<S> {
    sink: S,
    start: usize,
    count: u16,
    named: bool,
    has_unset: bool,
}

impl<S> EncodedValues<S> {
    /// Their number, and whether one of them is unset.
    pub(crate) const fn shape(&self) -> (u16, bool) {
        (self.count, self.has_unset)
    }
}

impl<S: AsRef<[u8]>> EncodedValues<S> {
    /// The values, borrowed.
    #[must_use]
    pub fn values(&self) -> Values<'_> {
        Values {
            count: self.count,
            named: self.named,
            has_unset: self.has_unset,
            bytes: self.sink.as_ref().get(self.start..).unwrap_or_default(),
        }
    }
}

const NULL: i32 = -1;
const UNSET: i32 = -2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::SmallBuffer;
    use alloc::format;
    use alloc::vec::Vec;

    #[test]
    fn null_unset_and_empty_are_three_things() {
        // 7, null, unset, "" as in the specification's notation.
        let mut builder = ValuesBuilder::new(SmallBuffer::<64>::new());
        builder.value(&7_i32.to_be_bytes()).unwrap();
        builder.null().unwrap();
        builder.unset().unwrap();
        builder.value(b"").unwrap();
        let encoded = builder.finish();
        let values = encoded.values();
        let expected = [
            0, 0, 0, 4, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 0,
        ];
        assert_eq!((values.len(), values.as_bytes()), (4, &expected[..]));
        assert!(values.has_unset());
        assert_eq!(Values::parse(4, false, &expected), Ok(values));
        assert_eq!(values.get(0), Some(RawValue::Bytes(&[0, 0, 0, 7])));
        assert_eq!(values.get(1), Some(RawValue::Null));
        assert_eq!(values.get(2), Some(RawValue::Unset));
        assert_eq!(values.get(3), Some(RawValue::Bytes(&[])));
        assert_eq!(values.get(4), None);
        let mut sink = Vec::new();
        let error = values.put(ProtocolVersion::V3, &mut sink).unwrap_err();
        assert_eq!(
            error.kind,
            EncodeErrorKind::NotInVersion(ProtocolVersion::V3)
        );
        assert!(sink.is_empty());
        values.put(ProtocolVersion::V4, &mut sink).unwrap();
        assert_eq!(sink[..2], [0, 4]);
    }

    #[test]
    fn lengths_below_unset_are_refused() {
        for len in [-3, i32::MIN] {
            let kind = Values::parse(1, false, &len.to_be_bytes())
                .unwrap_err()
                .kind;
            assert_eq!(kind, crate::wire::ParseErrorKind::BadLength { len });
        }
        assert!(Values::parse(1, false, &[]).is_err());
        assert!(Values::parse(0, false, &[0]).is_err());
    }

    #[test]
    fn at_most_65535_values() {
        let mut builder = ValuesBuilder::new(Vec::new());
        for _ in 0..65_535 {
            builder.null().unwrap();
        }
        let kind = builder.null().unwrap_err().kind;
        assert_eq!(
            kind,
            EncodeErrorKind::TooMany {
                count: 65_536,
                max: 65_535
            }
        );
        let encoded = builder.finish();
        assert_eq!(encoded.values().len(), 65_535);
        assert_eq!(encoded.values().as_bytes().len(), 4 * 65_535);
    }

    #[test]
    fn names_stand_in_front_of_all_values_or_none() {
        let mut builder = ValuesBuilder::new_named(Vec::new());
        builder.named("p", RawValue::Bytes(&[0, 0, 0, 7])).unwrap();
        assert!(builder.null().is_err());
        let encoded = builder.finish();
        let bytes = [0, 1, b'p', 0, 0, 0, 4, 0, 0, 0, 7];
        assert_eq!(encoded.values(), Values::parse(1, true, &bytes).unwrap());
        assert!(
            ValuesBuilder::new(Vec::new())
                .named("p", RawValue::Null)
                .is_err()
        );
    }

    #[test]
    fn a_value_written_piece_by_piece_gets_its_length() {
        let mut builder = ValuesBuilder::new(Vec::new());
        assert!(builder.is_empty());
        builder
            .value_with::<EncodeError>(|sink| {
                sink.put(&[1]);
                sink.put(&[2, 3]);
                Ok(())
            })
            .unwrap();
        let failure = || EncodeError::new("inner", EncodeErrorKind::NotHere);
        let failed = builder.value_with(|sink| {
            sink.put(&[4]);
            Err(failure())
        });
        assert_eq!(failed, Err(failure()));
        builder.null().unwrap();
        assert_eq!((builder.len(), builder.is_empty()), (2, false));
        let encoded = builder.finish();
        let expected = [0, 0, 0, 3, 1, 2, 3, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(encoded.values().as_bytes(), expected);
    }

    #[test]
    fn values_do_not_show_when_printed() {
        let mut builder = ValuesBuilder::new_named(Vec::new());
        builder.named("p", RawValue::Bytes(b"secret")).unwrap();
        let shown = format!("{:?}", builder.finish().values());
        assert_eq!(shown, "Values { count: 1, named: true, bytes: 13 }");
    }
}
