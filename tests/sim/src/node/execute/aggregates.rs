//! `count`, `min`, `max`, `sum` and `avg`: what has been seen of the rows so far.

use bytes::Bytes;

use super::super::error::CqlError;
use super::super::plan::{Aggregate, Output};
use super::super::value::decimal::Decimal;
use super::super::value::{CqlType, Native, bigint};
use super::Result;
use super::conversion::{Number, integer};
use super::functions::Scope;

/// One value per output of a SELECT that has aggregates.
#[derive(Debug)]
pub(super) struct Aggregation {
    states: Vec<State>,
}

#[derive(Debug)]
struct State {
    count: i64,
    /// The first value, the least, the greatest.
    value: Option<Bytes>,
    whole: i128,
    floating: f64,
    /// Scale of the sum of decimals, whose unscaled sum is `whole`.
    scale: i64,
}

impl Aggregation {
    pub(super) fn new(outputs: &[Output]) -> Self {
        let state = |_| State {
            count: 0,
            value: None,
            whole: 0,
            floating: 0.0,
            scale: 0,
        };
        Self {
            states: outputs.iter().map(state).collect(),
        }
    }

    /// Takes a row in.
    pub(super) fn add(&mut self, outputs: &[Output], scope: &Scope<'_>) -> Result<()> {
        for (state, output) in self.states.iter_mut().zip(outputs) {
            match output {
                Output::CountRows => state.count += 1,
                // Beside aggregates a plain column shows the first row.
                Output::Value(expression) if state.count == 0 => {
                    state.count = 1;
                    state.value = scope.evaluate(expression)?;
                }
                Output::Value(_) => {}
                Output::Aggregate(aggregate, expression, ty) => {
                    if let Some(value) = scope.evaluate(expression)? {
                        state.count += 1;
                        state.take(*aggregate, ty, value)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The values of the one row.
    pub(super) fn finish(self, outputs: &[Output]) -> Result<Vec<Option<Bytes>>> {
        self.states
            .into_iter()
            .zip(outputs)
            .map(|(state, output)| match output {
                Output::CountRows | Output::Aggregate(Aggregate::Count, ..) => {
                    Ok(Some(bigint(state.count)))
                }
                Output::Aggregate(aggregate @ (Aggregate::Sum | Aggregate::Avg), _, ty) => {
                    state.number(*aggregate, ty).map(Some)
                }
                _ => Ok(state.value),
            })
            .collect()
    }
}

impl State {
    fn take(&mut self, aggregate: Aggregate, ty: &CqlType, value: Bytes) -> Result<()> {
        match aggregate {
            Aggregate::Count => {}
            Aggregate::Min | Aggregate::Max => {
                let is_better = self.value.as_ref().is_none_or(|old| {
                    let (old, new) = (ty.sort_key(old), ty.sort_key(&value));
                    if aggregate == Aggregate::Min {
                        new < old
                    } else {
                        new > old
                    }
                });
                if is_better {
                    self.value = Some(value);
                }
            }
            Aggregate::Sum | Aggregate::Avg => {
                let number = ty.native().and_then(|native| Number::read(native, &value));
                self.sum(number).ok_or_else(|| out_of_range(ty))?;
            }
        }
        Ok(())
    }

    fn sum(&mut self, number: Option<Number>) -> Option<()> {
        match number? {
            Number::Whole(value) => self.whole = self.whole.checked_add(value)?,
            Number::Floating(value) => self.floating += value,
            Number::Decimal(decimal) => {
                let scale = self.scale.max(decimal.scale);
                let sign = if decimal.negative { -1 } else { 1 };
                let unscaled: i128 = decimal.digits.parse().ok()?;
                let more = scaled(unscaled, scale - decimal.scale)?.checked_mul(sign)?;
                self.whole = scaled(self.whole, scale - self.scale)?.checked_add(more)?;
                self.scale = scale;
            }
        }
        Some(())
    }

    /// Of no values the sum and the average are 0.
    fn number(&self, aggregate: Aggregate, ty: &CqlType) -> Result<Bytes> {
        let native = ty.native().unwrap_or(Native::BigInt);
        let divisor = match aggregate {
            Aggregate::Avg => self.count.max(1),
            _ => 1,
        };
        let bytes = match native {
            #[expect(
                clippy::cast_precision_loss,
                reason = "counts of rows are far below 2^53"
            )]
            Native::Float | Native::Double => {
                Number::Floating(self.floating / divisor as f64).write(native)
            }
            Native::Decimal => Decimal {
                negative: self.whole < 0,
                digits: (self.whole / i128::from(divisor))
                    .unsigned_abs()
                    .to_string(),
                scale: self.scale,
            }
            .serialize(),
            _ => integer(self.whole / i128::from(divisor), native),
        };
        bytes.map(Bytes::from).ok_or_else(|| out_of_range(ty))
    }
}

fn scaled(value: i128, by: i64) -> Option<i128> {
    value.checked_mul(10i128.checked_pow(u32::try_from(by).ok()?)?)
}

fn out_of_range(ty: &CqlType) -> CqlError {
    CqlError::Invalid(format!("The sum is out of the range of {ty} on this node"))
}
