//! The functions of CQL: which there are, what they take and give.

use super::super::cql::Term;
use super::super::error::CqlError;
use super::super::schema::Table;
use super::super::value::{CqlType, Native};
use super::Result;
use super::expression::{Expression, Place};
use super::planner::Planner;

/// A function of which the types are known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Function {
    /// A timeuuid of the present time.
    Now,
    /// A random uuid.
    Uuid,
    /// The present time as a native type.
    Current(Native),
    MinTimeUuid,
    MaxTimeUuid,
    /// The value of one native type as another: numbers, times, text.
    Cast(Native, Native),
    /// Milliseconds since 1970.
    ToUnixTimestamp(Native),
    /// A value as its bytes.
    AsBlob,
    /// Bytes as a value of the type.
    FromBlob(Native),
    /// The token of a partition key.
    Token,
}

/// A function over all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregate {
    /// Of values that are not null.
    Count,
    Min,
    Max,
    Sum,
    Avg,
}

impl Aggregate {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "count" => Self::Count,
            "min" => Self::Min,
            "max" => Self::Max,
            "sum" => Self::Sum,
            "avg" => Self::Avg,
            _ => return None,
        })
    }

    /// What it gives for values of a type.
    pub(crate) fn result(self, name: &str, ty: &CqlType) -> Result<CqlType> {
        let is_number = ty.native().is_some_and(is_number);
        match self {
            Self::Count => Ok(CqlType::BIGINT),
            Self::Min | Self::Max if !ty.contains(Native::Duration) => Ok(ty.clone()),
            Self::Sum | Self::Avg if is_number => Ok(match ty.native() {
                Some(Native::Counter) => CqlType::BIGINT,
                _ => ty.clone(),
            }),
            _ => Err(CqlError::Invalid(format!(
                "Invalid call to function {name}, none of its type signatures match (known type \
                 signatures: system.{name}) with argument of type {ty}"
            ))),
        }
    }
}

/// What is given to a function.
pub(super) enum Argument {
    /// Of a type that it has by itself.
    Typed(Expression, CqlType),
    /// Of the type that the function wants.
    Term(Term),
}

/// A function as it can be called.
struct Signature {
    function: Function,
    takes: Vec<CqlType>,
    gives: CqlType,
}

fn is_number(native: Native) -> bool {
    matches!(
        native,
        Native::TinyInt
            | Native::SmallInt
            | Native::Int
            | Native::BigInt
            | Native::Counter
            | Native::Float
            | Native::Double
            | Native::Varint
            | Native::Decimal
    )
}

/// All ways to call what a name means.
fn signatures(table: &Table, name: &str) -> Vec<Signature> {
    let native = CqlType::Native;
    let one = |function, takes: &[Native], gives| Signature {
        function,
        takes: takes.iter().copied().map(native).collect(),
        gives: native(gives),
    };
    let converted = |from: &[Native], to| {
        from.iter()
            .map(|from| one(Function::Cast(*from, to), &[*from], to))
            .collect()
    };
    match name {
        "now" | "currenttimeuuid" => vec![one(Function::Now, &[], Native::TimeUuid)],
        "uuid" => vec![one(Function::Uuid, &[], Native::Uuid)],
        "currenttimestamp" => {
            let native = Native::Timestamp;
            vec![one(Function::Current(native), &[], native)]
        }
        "currentdate" => vec![one(Function::Current(Native::Date), &[], Native::Date)],
        "currenttime" => vec![one(Function::Current(Native::Time), &[], Native::Time)],
        "mintimeuuid" => vec![one(
            Function::MinTimeUuid,
            &[Native::Timestamp],
            Native::TimeUuid,
        )],
        "maxtimeuuid" => vec![one(
            Function::MaxTimeUuid,
            &[Native::Timestamp],
            Native::TimeUuid,
        )],
        "totimestamp" => converted(&[Native::TimeUuid, Native::Date], Native::Timestamp),
        "dateof" => converted(&[Native::TimeUuid], Native::Timestamp),
        "todate" => converted(&[Native::TimeUuid, Native::Timestamp], Native::Date),
        "tounixtimestamp" | "unixtimestampof" => {
            [Native::TimeUuid, Native::Timestamp, Native::Date]
                .into_iter()
                .map(|from| one(Function::ToUnixTimestamp(from), &[from], Native::BigInt))
                .collect()
        }
        "token" => vec![Signature {
            function: Function::Token,
            takes: table
                .partition_columns()
                .iter()
                .map(|column| column.ty.clone())
                .collect(),
            gives: CqlType::BIGINT,
        }],
        _ => blob_conversion(name)
            .map(|(function, from, to)| one(function, &[from], to))
            .into_iter()
            .collect(),
    }
}

/// `intAsBlob`, `blobAsInt` and the like.
fn blob_conversion(name: &str) -> Option<(Function, Native, Native)> {
    if let Some(ty) = name.strip_suffix("asblob") {
        return Some((Function::AsBlob, Native::named(ty)?, Native::Blob));
    }
    let to = Native::named(name.strip_prefix("blobas")?)?;
    Some((Function::FromBlob(to), Native::Blob, to))
}

impl Planner<'_> {
    /// A call, with the type of its result.
    pub(super) fn call(
        &mut self,
        place: Place<'_>,
        name: &str,
        arguments: Vec<Argument>,
    ) -> Result<(Expression, CqlType)> {
        let mut found = signatures(place.table, name);
        if found.is_empty() {
            return Err(CqlError::Invalid(format!("Unknown function '{name}'")));
        }
        let arguments: Result<Vec<Argument>> = arguments
            .into_iter()
            .map(|argument| self.with_type(place, argument))
            .collect();
        let arguments = arguments?;
        // With one candidate there is nothing to try: planning tells whether it fits.
        let only = found.len() == 1;
        found.retain(|signature| self.accepts(place, signature, &arguments, only));
        let Some(signature) = found.pop() else {
            return Err(CqlError::Invalid(format!(
                "Invalid call to function {name}, none of its type signatures match"
            )));
        };
        if !found.is_empty() {
            return Err(CqlError::Invalid(format!(
                "Ambiguous call to function {name}: use type casts to disambiguate"
            )));
        }
        let mut planned = Vec::with_capacity(arguments.len());
        for (argument, ty) in arguments.into_iter().zip(&signature.takes) {
            planned.push(match argument {
                Argument::Typed(expression, _) => expression,
                Argument::Term(term) => {
                    let name = format!("arg0(system.{name})");
                    let place = Place {
                        name: &name,
                        ..place
                    };
                    self.expression(place, term, ty)?
                }
            });
        }
        Ok((
            Expression::Call(signature.function, planned),
            signature.gives,
        ))
    }

    /// Calls have types of their own. They are planned once, not for each candidate: trials inside
    /// of trials would grow with the power of their depth.
    fn with_type(&mut self, place: Place<'_>, argument: Argument) -> Result<Argument> {
        let Argument::Term(Term::Call(name, arguments)) = argument else {
            return Ok(argument);
        };
        let arguments = arguments.into_iter().map(Argument::Term).collect();
        let (expression, ty) = self.call(place, &name, arguments)?;
        Ok(Argument::Typed(expression, ty))
    }

    fn accepts(
        &mut self,
        place: Place<'_>,
        signature: &Signature,
        given: &[Argument],
        only: bool,
    ) -> bool {
        given.len() == signature.takes.len()
            && given
                .iter()
                .zip(&signature.takes)
                .all(|(argument, ty)| match argument {
                    Argument::Typed(_, found) => is_like(found, ty),
                    Argument::Term(_) if only => true,
                    Argument::Term(Term::Marker(_)) => true,
                    Argument::Term(term) => {
                        // A trial: what it says about variables is taken back.
                        let described = self.variables.clone();
                        let fits = self.expression(place, term.clone(), ty).is_ok();
                        self.variables = described;
                        fits
                    }
                })
    }
}

/// Whether a value of one type can be given where the other is wanted.
fn is_like(found: &CqlType, wanted: &CqlType) -> bool {
    found.thawed() == wanted.thawed()
        || (found.native(), wanted.native()) == (Some(Native::Ascii), Some(Native::Text))
        || (found.native(), wanted.native()) == (Some(Native::Counter), Some(Native::BigInt))
}

/// The function that `cast` means, if there is one.
pub(super) fn cast(from: &CqlType, to: &CqlType) -> Result<Function> {
    let refuse = || CqlError::Invalid(format!("{from} cannot be cast to {to}"));
    let (source, target) = from.native().zip(to.native()).ok_or_else(refuse)?;
    let is_text = |native| matches!(native, Native::Text | Native::Ascii);
    let is_known = source == target
        || (is_number(source) && is_number(target) && target != Native::Counter)
        || (is_text(target) && source != Native::Blob)
        || matches!(
            (source, target),
            (Native::TimeUuid, Native::Timestamp | Native::Date)
                | (Native::Timestamp, Native::Date)
                | (Native::Date, Native::Timestamp)
        );
    if is_known {
        Ok(Function::Cast(source, target))
    } else {
        Err(refuse())
    }
}
