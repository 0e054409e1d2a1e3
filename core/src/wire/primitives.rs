//! Lists and maps of strings and bytes, borrowed from a body.
//!
//! `parse` walks the whole thing once, so that iterating later cannot fail; nothing is allocated,
//! and the declared count is used for nothing but knowing when to stop.

use super::{ParseError, Reader};

/// A `[string list]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StringList<'a> {
    count: u16,
    bytes: &'a [u8],
}

impl<'a> StringList<'a> {
    /// Reads and checks a list.
    pub fn parse(reader: &mut Reader<'a>, what: &'static str) -> Result<Self, ParseError> {
        let count = reader.short(what)?;
        let start = reader.clone();
        for _ in 0..count {
            reader.string(what)?;
        }
        Ok(Self {
            count,
            bytes: reader.since(&start),
        })
    }

    /// The strings, in order.
    #[must_use]
    pub const fn iter(&self) -> StringListIter<'a> {
        StringListIter {
            left: self.count,
            reader: Reader::new(self.bytes),
        }
    }

    /// The first string, if there is one.
    #[must_use]
    pub fn first(&self) -> Option<&'a str> {
        self.iter().next()
    }

    /// Number of strings.
    #[must_use]
    pub const fn len(&self) -> u16 {
        self.count
    }

    /// Whether there is no string.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl<'a> IntoIterator for StringList<'a> {
    type Item = &'a str;
    type IntoIter = StringListIter<'a>;

    fn into_iter(self) -> StringListIter<'a> {
        self.iter()
    }
}

/// Iterates over a [`StringList`].
#[derive(Clone, Debug)]
pub struct StringListIter<'a> {
    left: u16,
    reader: Reader<'a>,
}

impl<'a> Iterator for StringListIter<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.left = self.left.checked_sub(1)?;
        self.reader.string("list element").ok()
    }
}

/// A `[string multimap]`: the body of SUPPORTED.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StringMultimap<'a> {
    count: u16,
    bytes: &'a [u8],
}

impl<'a> StringMultimap<'a> {
    /// Reads and checks a multimap.
    pub fn parse(reader: &mut Reader<'a>, what: &'static str) -> Result<Self, ParseError> {
        let count = reader.short(what)?;
        let start = reader.clone();
        for _ in 0..count {
            reader.string(what)?;
            StringList::parse(reader, what)?;
        }
        Ok(Self {
            count,
            bytes: reader.since(&start),
        })
    }

    /// Keys with their values, in the order sent.
    #[must_use]
    pub const fn iter(&self) -> StringMultimapIter<'a> {
        StringMultimapIter {
            left: self.count,
            reader: Reader::new(self.bytes),
        }
    }

    /// The values of a key; the first entry counts if a peer sends a key twice.
    #[must_use]
    #[inline(never)]
    pub fn get(&self, key: &str) -> Option<StringList<'a>> {
        self.iter()
            .find_map(|(name, values)| (name == key).then_some(values))
    }

    /// Number of keys.
    #[must_use]
    pub const fn len(&self) -> u16 {
        self.count
    }

    /// Whether there is no key.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl<'a> IntoIterator for StringMultimap<'a> {
    type Item = (&'a str, StringList<'a>);
    type IntoIter = StringMultimapIter<'a>;

    fn into_iter(self) -> StringMultimapIter<'a> {
        self.iter()
    }
}

/// Iterates over a [`StringMultimap`].
#[derive(Clone, Debug)]
pub struct StringMultimapIter<'a> {
    left: u16,
    reader: Reader<'a>,
}

impl<'a> Iterator for StringMultimapIter<'a> {
    type Item = (&'a str, StringList<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let key = self.reader.string("map key").ok()?;
        let values = StringList::parse(&mut self.reader, "map values").ok()?;
        Some((key, values))
    }
}

/// A `[bytes map]`: a custom payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BytesMap<'a> {
    count: u16,
    bytes: &'a [u8],
}

impl<'a> BytesMap<'a> {
    /// Reads and checks a map.
    pub fn parse(reader: &mut Reader<'a>, what: &'static str) -> Result<Self, ParseError> {
        let count = reader.short(what)?;
        let start = reader.clone();
        for _ in 0..count {
            reader.string(what)?;
            reader.bytes(what)?;
        }
        Ok(Self {
            count,
            bytes: reader.since(&start),
        })
    }

    /// Keys with their values (null is `None`), in the order sent.
    #[must_use]
    pub const fn iter(&self) -> BytesMapIter<'a> {
        BytesMapIter {
            left: self.count,
            reader: Reader::new(self.bytes),
        }
    }

    /// The value of a key; null counts as absent.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a [u8]> {
        self.iter()
            .find_map(|(name, value)| value.filter(|_| name == key))
    }

    /// Number of keys.
    #[must_use]
    pub const fn len(&self) -> u16 {
        self.count
    }

    /// Whether there is no key.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl<'a> IntoIterator for BytesMap<'a> {
    type Item = (&'a str, Option<&'a [u8]>);
    type IntoIter = BytesMapIter<'a>;

    fn into_iter(self) -> BytesMapIter<'a> {
        self.iter()
    }
}

/// Iterates over a [`BytesMap`].
#[derive(Clone, Debug)]
pub struct BytesMapIter<'a> {
    left: u16,
    reader: Reader<'a>,
}

impl<'a> Iterator for BytesMapIter<'a> {
    type Item = (&'a str, Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let key = self.reader.string("map key").ok()?;
        let value = self.reader.bytes("map value").ok()?;
        Some((key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn keys_without_values_do_not_end_the_map() {
        let bytes = [
            0, 2, 0, 1, b'a', 0, 0, 0, 1, b'b', 0, 2, 0, 0, 0, 1, b'c', 99,
        ];
        let mut reader = Reader::new(&bytes);
        let map = StringMultimap::parse(&mut reader, "map").unwrap();
        assert_eq!(reader.rest(), [99]);
        let a = map.get("a").unwrap();
        assert_eq!((a.first(), a.len(), a.is_empty()), (None, 0, true));
        assert_eq!(map.get("b").unwrap().iter().collect::<Vec<_>>(), ["", "c"]);
        assert_eq!(map.get("c"), None);
        assert!(!map.get("b").unwrap().is_empty());
        assert_eq!((map.len(), map.iter().count()), (2, 2));
        assert_eq!(
            (map.is_empty(), StringMultimap::default().is_empty()),
            (false, true)
        );
        for cut in 0..bytes.len() - 1 {
            assert!(StringMultimap::parse(&mut Reader::new(&bytes[..cut]), "map").is_err());
        }
    }

    #[test]
    fn a_null_in_a_payload_counts_as_absent() {
        let bytes = [
            0, 2, 0, 1, b'a', 0xff, 0xff, 0xff, 0xff, 0, 1, b'b', 0, 0, 0, 1, 7, 99,
        ];
        let mut reader = Reader::new(&bytes);
        let map = BytesMap::parse(&mut reader, "map").unwrap();
        assert_eq!(reader.rest(), [99]);
        assert_eq!((map.get("a"), map.get("b")), (None, Some(&[7][..])));
        assert_eq!(
            map.into_iter().collect::<Vec<_>>(),
            [("a", None), ("b", Some(&[7][..]))]
        );
        assert_eq!((map.len(), map.is_empty()), (2, false));
        assert!(BytesMap::default().is_empty());
    }

    #[test]
    fn a_declared_count_is_not_believed() {
        for bytes in [
            &[0xff, 0xff][..],
            &[0xff, 0xff, 0, 0],
            &[0xff, 0xff, 0, 0, 0, 0, 0, 0],
        ] {
            assert!(StringList::parse(&mut Reader::new(bytes), "list").is_err());
            assert!(StringMultimap::parse(&mut Reader::new(bytes), "map").is_err());
            assert!(BytesMap::parse(&mut Reader::new(bytes), "map").is_err());
        }
    }
}
