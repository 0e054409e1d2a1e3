//! Evaluation of expressions: pure over the bound values, a row, and the time and the uuids that
//! the cluster deals out.

use core::cell::Cell;

use bytes::Bytes;

use super::super::codec::{Bound, Writer};
use super::super::error::CqlError;
use super::super::plan::{Expression, Function};
use super::super::schema::uuid_from;
use super::super::token::{partition_key, token_of};
use super::super::value::{
    CqlType, Native, bigint, date_bytes, duration, elements, entries, fields, int,
};
use super::Result;
use super::conversion::convert;

/// What an expression may look at.
pub(super) struct Scope<'a> {
    pub(super) values: &'a [Bound],
    /// Values of the row's columns by position; none outside of SELECT.
    pub(super) row: Option<&'a dyn RowView>,
    /// Microseconds.
    pub(super) now: i64,
    pub(super) seed: u64,
    /// Uuids made so far.
    pub(super) uuids_made: &'a Cell<u64>,
}

/// A row as a SELECT clause sees it.
pub(super) trait RowView {
    fn value(&self, column: usize) -> Option<Bytes>;
    /// Timestamp of a cell and when it is gone, both in microseconds.
    fn written(&self, column: usize) -> Option<(i64, Option<i64>)>;
}

impl Scope<'_> {
    pub(super) fn evaluate(&self, expression: &Expression) -> Result<Option<Bytes>> {
        let row = |get: &dyn Fn(&dyn RowView) -> Option<Bytes>| Ok(self.row.and_then(get));
        match expression {
            Expression::Constant(value) => Ok(value.clone()),
            Expression::Variable(at) => match self.values.get(*at) {
                Some(Bound::Value(value)) => Ok(Some(value.clone())),
                Some(Bound::Null) | None => Ok(None),
                Some(Bound::Unset) => Err(CqlError::invalid(
                    "Invalid unset value inside of a collection, a tuple or a function call",
                )),
            },
            Expression::Column(at) => row(&|row| row.value(*at)),
            Expression::WriteTime(at) => row(&|row| Some(bigint(row.written(*at)?.0))),
            Expression::TimeToLive(at) => row(&|row| {
                let left = row.written(*at)?.1?.saturating_sub(self.now) / 1_000_000;
                Some(int(i32::try_from(left).unwrap_or(i32::MAX)))
            }),
            Expression::List(parts) => {
                let mut out = Writer::default();
                out.count(parts.len());
                for part in parts {
                    out.bytes(&self.present(part, "list")?);
                }
                Ok(Some(out.into_bytes().into()))
            }
            Expression::Set(element, parts) => {
                let mut out = Writer::default();
                out.count(parts.len());
                for part in parts {
                    out.bytes(&self.present(part, "set")?);
                }
                let ty = CqlType::Set(Box::new(element.clone()));
                ty.canonical(out.as_slice(), "set").map(Some)
            }
            Expression::Map(ty, parts) => {
                let mut out = Writer::default();
                out.count(parts.len());
                for (key, value) in parts {
                    out.bytes(&self.present(key, "map")?);
                    out.bytes(&self.present(value, "map")?);
                }
                ty.canonical(out.as_slice(), "map").map(Some)
            }
            Expression::Fields(parts) => {
                let mut out = Writer::default();
                for part in parts {
                    out.value(self.evaluate(part)?.as_ref());
                }
                Ok(Some(out.into_bytes().into()))
            }
            Expression::Vector(element, parts) => {
                let mut out = Vec::new();
                for part in parts {
                    let value = self.present(part, "vector")?;
                    if element.vector_element_len().is_none() {
                        duration::put_unsigned(value.len() as u64, &mut out);
                    }
                    out.extend_from_slice(&value);
                }
                Ok(Some(out.into()))
            }
            Expression::Element(of, ty, key) => {
                let (of, key) = (self.evaluate(of)?, self.evaluate(key)?);
                Ok(of.zip(key).and_then(|(of, key)| element(ty, &of, &key)))
            }
            Expression::Field(of, at) => Ok(self.evaluate(of)?.and_then(|of| {
                let field = *fields(&of)?.get(*at)?;
                field.map(Bytes::copy_from_slice)
            })),
            Expression::Call(function, arguments) => self.call(function, arguments),
        }
    }

    fn present(&self, part: &Expression, what: &str) -> Result<Bytes> {
        self.evaluate(part)?.ok_or_else(|| {
            CqlError::Invalid(format!(
                "Invalid null value: null is not supported inside a {what}"
            ))
        })
    }

    fn call(&self, function: &Function, arguments: &[Expression]) -> Result<Option<Bytes>> {
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            // A function of null is null.
            let Some(value) = self.evaluate(argument)? else {
                return Ok(None);
            };
            values.push(value);
        }
        let first = values.first().cloned().unwrap_or_default();
        let millis = self.now.div_euclid(1000);
        Ok(match function {
            Function::Now => Some(self.time_uuid()),
            Function::Uuid => Some(Bytes::copy_from_slice(&self.fresh(4))),
            Function::Current(native) => {
                let now = bigint(millis);
                match native {
                    Native::Date => convert(Native::Timestamp, Native::Date, &now)?,
                    Native::Time => Some(bigint(self.now.rem_euclid(DAY_MICROS) * 1000)),
                    _ => Some(now),
                }
            }
            Function::MinTimeUuid => time_uuid_at(&first, [0x80; 8]),
            Function::MaxTimeUuid => {
                let mut node = [0x7f; 8];
                node[0] = 0xbf;
                // The last 100 ns of the millisecond.
                time_uuid_at(&first, node).map(|uuid| raise(&uuid, 9999))
            }
            Function::Cast(from, to) => convert(*from, *to, &first)?,
            Function::ToUnixTimestamp(from) => convert(*from, Native::Timestamp, &first)?,
            Function::AsBlob => Some(first),
            Function::FromBlob(native) => Some(CqlType::Native(*native).canonical(&first, "blob")?),
            Function::Token => {
                let key = partition_key(values.iter().map(|value| &value[..]));
                key.map(|key| bigint(token_of(&key)))
            }
        })
    }

    fn fresh(&self, version: u8) -> [u8; 16] {
        let made = self.uuids_made.get().wrapping_add(1);
        self.uuids_made.set(made);
        uuid_from(self.seed, "uuid of a function", made, version)
    }

    /// The present time, and what no other has in the other half.
    fn time_uuid(&self) -> Bytes {
        let ticks = ticks_of_micros(self.now);
        let fresh = self.fresh(1);
        let mut node = [0; 8];
        node.copy_from_slice(&fresh[8..]);
        with_ticks(ticks, node)
    }
}

const DAY_MICROS: i64 = 86_400_000_000;

/// 100 ns steps from 1582-10-15 to 1970-01-01.
const EPOCH_TICKS: i64 = 0x01b2_1dd2_1381_4000;

fn ticks_of_micros(micros: i64) -> i64 {
    micros.saturating_mul(10).saturating_add(EPOCH_TICKS)
}

fn with_ticks(ticks: i64, node: [u8; 8]) -> Bytes {
    let ticks = ticks.to_be_bytes();
    let mut out = [0; 16];
    out[..4].copy_from_slice(&ticks[4..]);
    out[4..6].copy_from_slice(&ticks[2..4]);
    out[6..8].copy_from_slice(&ticks[..2]);
    out[6] = out[6] & 0x0f | 0x10;
    out[8..].copy_from_slice(&node);
    Bytes::copy_from_slice(&out)
}

fn time_uuid_at(millis: &[u8], node: [u8; 8]) -> Option<Bytes> {
    let millis = i64::from_be_bytes(millis.try_into().ok()?);
    Some(with_ticks(
        ticks_of_micros(millis.saturating_mul(1000)),
        node,
    ))
}

/// 100 ns steps of a version 1 uuid, from 1582-10-15.
pub(super) fn ticks(uuid: &[u8; 16]) -> i64 {
    let mut out = [0; 8];
    out[4..].copy_from_slice(&uuid[..4]);
    out[2..4].copy_from_slice(&uuid[4..6]);
    out[..2].copy_from_slice(&uuid[6..8]);
    out[0] &= 0x0f;
    i64::from_be_bytes(out)
}

/// Milliseconds since 1970 of a version 1 uuid.
pub(super) fn millis_of(uuid: &[u8]) -> Option<i64> {
    let uuid = <[u8; 16]>::try_from(uuid).ok()?;
    Some((ticks(&uuid) - EPOCH_TICKS).div_euclid(10_000))
}

fn raise(uuid: &[u8], by: i64) -> Bytes {
    let Ok(whole) = <[u8; 16]>::try_from(uuid) else {
        return Bytes::copy_from_slice(uuid);
    };
    let mut node = [0; 8];
    node.copy_from_slice(&whole[8..]);
    with_ticks(ticks(&whole).saturating_add(by), node)
}

/// What a collection has at a key.
fn element(ty: &CqlType, of: &[u8], key: &[u8]) -> Option<Bytes> {
    let found = match ty {
        CqlType::Map(key_type, _) => {
            let key = key_type.sort_key(key);
            let [_, value] = entries(of)?
                .into_iter()
                .find(|[found, _]| key_type.sort_key(found) == key)?;
            value
        }
        CqlType::Set(element) => {
            let key = element.sort_key(key);
            elements(of)?
                .into_iter()
                .find(|found| element.sort_key(found) == key)?
        }
        CqlType::List(_) => {
            let at = i32::from_be_bytes(key.try_into().ok()?);
            *elements(of)?.get(usize::try_from(at).ok()?)?
        }
        _ => return None,
    };
    Some(Bytes::copy_from_slice(found))
}

/// Days as `date` counts them, of milliseconds.
pub(super) fn date_of_millis(millis: i64) -> Option<Bytes> {
    date_bytes(millis.div_euclid(86_400_000)).map(Bytes::from)
}
