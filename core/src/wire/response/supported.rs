//! SUPPORTED: what a node offers, as a multimap of names to values.
//!
//! Names and values are not interpreted here. A key may come with one empty value, with none, or
//! with several.

use crate::wire::{ParseError, Reader, StringList, StringMultimap, StringMultimapIter};

/// The SUPPORTED response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supported<'a> {
    /// All options.
    pub options: StringMultimap<'a>,
}

impl<'a> Supported<'a> {
    /// Reads the body.
    pub fn parse(reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        Ok(Self {
            options: StringMultimap::parse(reader, "supported options")?,
        })
    }

    /// The values of an option, if the node named it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<StringList<'a>> {
        self.options.get(name)
    }

    /// The first value of an option; `None` if the node did not name it or gave no value.
    #[must_use]
    #[inline(never)]
    pub fn first(&self, name: &str) -> Option<&'a str> {
        self.get(name)?.first()
    }

    /// Whether the node named an option, with or without value.
    #[must_use]
    #[inline(never)]
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// All options in the order sent.
    #[must_use]
    pub const fn iter(&self) -> StringMultimapIter<'a> {
        self.options.iter()
    }
}
