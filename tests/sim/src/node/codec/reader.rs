//! A cursor over a request body. Every step checks the bounds and fails with the node's own words.

use bytes::Bytes;

use super::super::error::CqlError;
use super::Consistency;

/// A bound value of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Value(Bytes),
    Null,
    Unset,
}

/// What is left of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], CqlError> {
        let Some((head, tail)) = self.rest.split_at_checked(len) else {
            return Err(CqlError::Protocol(format!(
                "truncated frame: expected {len} bytes, length is {}",
                self.rest.len()
            )));
        };
        self.rest = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CqlError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, CqlError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn short(&mut self) -> Result<u16, CqlError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(crate) fn int(&mut self) -> Result<i32, CqlError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(crate) fn long(&mut self) -> Result<i64, CqlError> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    pub(crate) fn string(&mut self) -> Result<&'a str, CqlError> {
        let len = usize::from(self.short()?);
        text(self.take(len)?)
    }

    pub(crate) fn long_string(&mut self) -> Result<&'a str, CqlError> {
        let len = self.int()?;
        let len = usize::try_from(len)
            .map_err(|_| CqlError::Protocol(format!("invalid string length: {len}")))?;
        text(self.take(len)?)
    }

    pub(crate) fn short_bytes(&mut self) -> Result<&'a [u8], CqlError> {
        let len = usize::from(self.short()?);
        self.take(len)
    }

    pub(crate) fn bytes(&mut self) -> Result<Option<&'a [u8]>, CqlError> {
        match usize::try_from(self.int()?) {
            Ok(len) => self.take(len).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// A bound value: -1 is null, -2 unset; version 3 knows only null.
    pub(crate) fn value(&mut self, version: u8) -> Result<Bound, CqlError> {
        let len = self.int()?;
        match usize::try_from(len) {
            Ok(len) => Ok(Bound::Value(Bytes::copy_from_slice(self.take(len)?))),
            Err(_) if len == -1 || version < 4 => Ok(Bound::Null),
            Err(_) if len == -2 => Ok(Bound::Unset),
            Err(_) => Err(CqlError::Protocol(format!("invalid value length: {len}"))),
        }
    }

    pub(crate) fn consistency(&mut self) -> Result<Consistency, CqlError> {
        let code = self.short()?;
        Consistency::from_code(code).ok_or_else(|| {
            CqlError::Protocol(format!("Unknown code {code} for a consistency level"))
        })
    }

    pub(crate) fn string_list(&mut self) -> Result<Vec<&'a str>, CqlError> {
        let count = self.short()?;
        (0..count).map(|_| self.string()).collect()
    }

    pub(crate) fn string_map(&mut self) -> Result<Vec<(&'a str, &'a str)>, CqlError> {
        let count = self.short()?;
        (0..count)
            .map(|_| Ok((self.string()?, self.string()?)))
            .collect()
    }

    /// Reads and drops a `[bytes map]`.
    pub(crate) fn skip_bytes_map(&mut self) -> Result<(), CqlError> {
        for _ in 0..self.short()? {
            self.string()?;
            self.bytes()?;
        }
        Ok(())
    }
}

fn text(bytes: &[u8]) -> Result<&str, CqlError> {
    core::str::from_utf8(bytes).map_err(|error| {
        CqlError::Protocol(format!(
            "Cannot decode string as UTF8, invalid character at byte offset {}",
            error.valid_up_to()
        ))
    })
}
