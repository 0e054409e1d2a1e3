//! Consistency levels: numbers and names.

use core::fmt;

use super::{ParseError, Reader};

/// How many replicas must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u16)]
pub enum Consistency {
    /// Writes only: even a hint is enough.
    Any = 0,
    /// One replica.
    One = 1,
    /// Two replicas.
    Two = 2,
    /// Three replicas.
    Three = 3,
    /// A majority of all replicas.
    Quorum = 4,
    /// Every replica.
    All = 5,
    /// A majority of the replicas in the coordinator's data centre.
    LocalQuorum = 6,
    /// A majority in every data centre.
    EachQuorum = 7,
    /// Reads only: sees every finished conditional write.
    Serial = 8,
    /// Reads only: [`Self::Serial`] within one data centre.
    LocalSerial = 9,
    /// One replica in the coordinator's data centre.
    LocalOne = 10,
}

impl Consistency {
    /// All levels, by number.
    pub const ALL: [Self; 11] = [
        Self::Any,
        Self::One,
        Self::Two,
        Self::Three,
        Self::Quorum,
        Self::All,
        Self::LocalQuorum,
        Self::EachQuorum,
        Self::Serial,
        Self::LocalSerial,
        Self::LocalOne,
    ];

    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// Finds a level by its number.
    #[must_use]
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The CQL name, in capitals.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "ANY",
            Self::One => "ONE",
            Self::Two => "TWO",
            Self::Three => "THREE",
            Self::Quorum => "QUORUM",
            Self::All => "ALL",
            Self::LocalQuorum => "LOCAL_QUORUM",
            Self::EachQuorum => "EACH_QUORUM",
            Self::Serial => "SERIAL",
            Self::LocalSerial => "LOCAL_SERIAL",
            Self::LocalOne => "LOCAL_ONE",
        }
    }

    /// Finds a level by its CQL name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|level| level.name().eq_ignore_ascii_case(name))
    }

    /// The same level as a serial one, if it is one.
    #[must_use]
    pub const fn as_serial(self) -> Option<SerialConsistency> {
        match self {
            Self::Serial => Some(SerialConsistency::Serial),
            Self::LocalSerial => Some(SerialConsistency::LocalSerial),
            _ => None,
        }
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A level as an answer tells it. Its number is kept even if it is none of [`Consistency`]: a level
/// that is news to us must not hide the error that it came with.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConsistencyCode(u16);

impl ConsistencyCode {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u16 {
        self.0
    }

    /// The level, if it is one that we know.
    #[must_use]
    pub fn level(self) -> Option<Consistency> {
        Consistency::from_code(self.0)
    }

    /// Reads a `[consistency]`.
    pub(crate) fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        reader.short("consistency").map(Self)
    }
}

impl From<Consistency> for ConsistencyCode {
    fn from(level: Consistency) -> Self {
        Self(level.code())
    }
}

impl PartialEq<Consistency> for ConsistencyCode {
    fn eq(&self, level: &Consistency) -> bool {
        self.0 == level.code()
    }
}

/// The name, or the number of a level without one.
impl fmt::Display for ConsistencyCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level() {
            Some(level) => level.fmt(formatter),
            None => write!(formatter, "level {}", self.0),
        }
    }
}

impl fmt::Debug for ConsistencyCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// How far the agreement of a conditional write reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "closed by the protocol")]
pub enum SerialConsistency {
    /// Over all data centres.
    #[default]
    Serial,
    /// Within the coordinator's data centre.
    LocalSerial,
}

impl SerialConsistency {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u16 {
        self.as_consistency().code()
    }

    /// The CQL name, in capitals.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.as_consistency().name()
    }

    /// Finds a level by its CQL name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Consistency::from_name(name)?.as_serial()
    }

    /// The same level among all levels.
    #[must_use]
    pub const fn as_consistency(self) -> Consistency {
        match self {
            Self::Serial => Consistency::Serial,
            Self::LocalSerial => Consistency::LocalSerial,
        }
    }
}

impl fmt::Display for SerialConsistency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;

    #[test]
    fn names_and_numbers_of_the_specification() {
        let levels = [
            ("ANY", 0),
            ("ONE", 1),
            ("TWO", 2),
            ("THREE", 3),
            ("QUORUM", 4),
            ("ALL", 5),
            ("LOCAL_QUORUM", 6),
            ("EACH_QUORUM", 7),
            ("SERIAL", 8),
            ("LOCAL_SERIAL", 9),
            ("LOCAL_ONE", 10),
        ];
        for (name, code) in levels {
            let level = Consistency::from_name(name).unwrap();
            assert_eq!((level.code(), level.name()), (code, name));
            assert_eq!(Consistency::from_code(code), Some(level));
            assert_eq!(level.to_string(), name);
            let sent = ConsistencyCode::from(level);
            for other in Consistency::ALL {
                assert_eq!(sent == other, level == other);
            }
            assert_eq!(format!("{sent} {sent:?}"), format!("{name} {name}"));
        }
        for code in 11..=u16::MAX {
            assert_eq!(Consistency::from_code(code), None);
        }
        assert_eq!(ConsistencyCode(11).to_string(), "level 11");
        assert_eq!(
            Consistency::from_name("local_one"),
            Some(Consistency::LocalOne)
        );
        assert_eq!(Consistency::from_name("LOCAL"), None);
        let serial = [
            ("SERIAL", SerialConsistency::Serial, 8),
            ("LOCAL_SERIAL", SerialConsistency::LocalSerial, 9),
        ];
        for (name, level, code) in serial {
            assert_eq!(SerialConsistency::from_name(name), Some(level));
            assert_eq!((level.code(), level.name()), (code, name));
            assert_eq!(level.to_string(), name);
        }
        assert_eq!(SerialConsistency::from_name("ONE"), None);
    }
}
