//! Prepared statements: what a node told of each, and where its rows live.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::answer;
use super::plane::{Plane, TableKey};
use crate::conn::Answer;
use crate::conn::extensions::Agreed;
use crate::digits::put_number;
use crate::error::{EncodeFailure, Error, ErrorKind};
use crate::routing::Token;
use crate::wire::response::{KeyIndexes, Prepared, ResultBody};
use crate::wire::{Dialect, Sink as _, Values};
use crate::words::{boxed_bytes, explain, put};

/// A prepared statement.
#[derive(Debug)]
pub struct Statement {
    /// What was prepared.
    pub text: Box<str>,
    /// PREPARED as it came, and how it is read.
    body: Box<[u8]>,
    dialect: Dialect,
    /// With its length in front, as it stands in a request.
    pub(super) id: Box<[u8]>,
    marker_count: u16,
    /// The places of the partition key among the markers, as they came; none if the key is not wholly
    /// bound.
    key: Box<[u8]>,
    pub(super) table: Option<TableKey>,
    pub(super) is_lwt: bool,
    /// It brings rows whatever happens, so a time of writing says nothing.
    pub(super) is_read: bool,
    /// The link that it was prepared on; none in an earlier session.
    pub(super) prepared_on: Option<u32>,
}

impl Statement {
    pub(super) fn new(
        text: Box<str>,
        answer: &Answer,
        agreed: &Agreed,
        table: &mut dyn FnMut(&str, &str) -> Option<TableKey>,
    ) -> Result<Self, Error> {
        let body = answer::message(answer)?;
        let is_lwt = |flags| agreed.is_lwt(flags);
        Self::parse(text, body, agreed.dialect(), &is_lwt, table)
    }

    /// From the body of PREPARED, or from what was saved of it.
    #[inline(never)]
    pub(super) fn parse(
        text: Box<str>,
        body: &[u8],
        dialect: Dialect,
        is_lwt: &dyn Fn(u32) -> bool,
        table: &mut dyn FnMut(&str, &str) -> Option<TableKey>,
    ) -> Result<Self, Error> {
        let prepared = parse(body, &dialect)?;
        let is_lwt = is_lwt(prepared.bound.flags);
        let first = prepared.bound.columns.iter().next();
        let count = prepared.bound.columns.iter().count();
        Ok(Self {
            text,
            id: with_length(prepared.id)?,
            marker_count: u16::try_from(count).unwrap_or(u16::MAX),
            key: boxed_bytes(prepared.bound.key_indexes.as_bytes()),
            table: first.and_then(|column| table(column.keyspace, column.table)),
            is_lwt,
            is_read: prepared.result.column_count > 0 && !is_lwt,
            prepared_on: None,
            body: boxed_bytes(body),
            dialect,
        })
    }

    /// What it was made of: the body of PREPARED, how that is read, whether it is conditional.
    #[cfg(any(test, feature = "warm-start"))]
    pub(super) const fn parts(&self) -> (&[u8], &Dialect, bool) {
        (&self.body, &self.dialect, self.is_lwt)
    }

    /// What the node told of it.
    ///
    /// # Errors
    /// None that a statement that was made has.
    pub fn prepared(&self) -> Result<Prepared<'_>, Error> {
        parse(&self.body, &self.dialect)
    }

    /// How many values it takes.
    pub const fn marker_count(&self) -> u16 {
        self.marker_count
    }

    /// Whether it is conditional.
    pub const fn is_lwt(&self) -> bool {
        self.is_lwt
    }

    /// Whether its values tell where their rows live.
    pub const fn is_token_aware(&self) -> bool {
        !self.key.is_empty()
    }

    pub(super) fn id(&self) -> &[u8] {
        self.id.get(2..).unwrap_or_default()
    }

    pub(super) fn has_id(&self, id: &[u8]) -> bool {
        self.id() == id
    }

    /// Whether another node has prepared the same.
    pub(super) fn check_same(&self, answer: &Answer, agreed: &Agreed) -> Result<(), Error> {
        let other = parse(answer::message(answer)?, &agreed.dialect())?;
        answer::check_same(&self.prepared()?, &other)
    }

    pub(super) fn check_count(&self, values: Values<'_>) -> Result<(), Error> {
        match values.len() == self.marker_count {
            true => Ok(()),
            false => Err(wrong_count(values.len(), self.marker_count)),
        }
    }

    pub(super) fn token(&self, plane: &Plane, values: Values<'_>) -> Option<Token> {
        let partitioner = plane.partitioner(self.table?)?;
        let mut components: heapless::Vec<&[u8], KEY_COLUMNS_MAX> = heapless::Vec::new();
        for place in KeyIndexes::from_bytes(&self.key) {
            components.push(values.get(place)?.bytes()?).ok()?;
        }
        partitioner.token(components.iter().copied()).ok()
    }
}

#[inline(never)]
fn parse<'a>(body: &'a [u8], dialect: &Dialect) -> Result<Prepared<'a>, Error> {
    let mut reader = answer::of_kind(body, ResultBody::PREPARED)?;
    Ok(Prepared::parse(dialect, &mut reader)?)
}

/// Bytes behind their length.
fn with_length(bytes: &[u8]) -> Result<Box<[u8]>, Error> {
    let mut written = Vec::new();
    written.put_short_bytes("prepared id", bytes)?;
    Ok(written.into())
}

#[cold]
#[inline(never)]
fn wrong_count(values: u16, markers: u16) -> Error {
    let kind = ErrorKind::Encode(EncodeFailure::Value);
    let text = explain(|text| {
        put_number(text, u64::from(values));
        put(text, " values for ");
        put_number(text, u64::from(markers));
        put(text, " markers");
    });
    Error::with_text(kind, text)
}

/// Columns of a partition key that are hashed; one of more is planned without its token.
const KEY_COLUMNS_MAX: usize = 32;
