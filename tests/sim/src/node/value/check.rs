//! Which bytes are a value of a type.

use super::super::error::CqlError;
use super::{CqlType, Native};

impl Native {
    /// Serialized length where it is fixed. Zero length is legal for most types on top of this.
    fn fixed_len(self) -> Option<usize> {
        match self {
            Self::Boolean | Self::TinyInt => Some(1),
            Self::SmallInt => Some(2),
            Self::Int | Self::Float | Self::Date => Some(4),
            Self::BigInt | Self::Double | Self::Timestamp | Self::Time | Self::Counter => Some(8),
            Self::Uuid | Self::TimeUuid => Some(16),
            _ => None,
        }
    }
}

impl CqlType {
    /// Refuses bytes that are no value of the type.
    pub(crate) fn check(&self, bytes: &[u8], column: &str) -> Result<(), CqlError> {
        let Self::Native(native) = self.thawed() else {
            return Ok(());
        };
        let ok = match native {
            Native::Ascii => bytes.is_ascii(),
            Native::Text => core::str::from_utf8(bytes).is_ok(),
            Native::Inet => matches!(bytes.len(), 0 | 4 | 16),
            _ => native
                .fixed_len()
                .is_none_or(|len| bytes.is_empty() || bytes.len() == len),
        };
        if ok {
            return Ok(());
        }
        Err(CqlError::Invalid(format!(
            "Exception while binding column {column}: marshaling error: Validation failed for \
             type {self}: got {} bytes",
            bytes.len()
        )))
    }
}
