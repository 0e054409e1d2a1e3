//! From a type as written to the type it names, with the rules of what must be frozen.

use std::sync::Arc;

use super::super::cql::TypeName;
use super::super::error::CqlError;
use super::{CqlType, Native, UserType};

type Result<T> = core::result::Result<T, CqlError>;

/// Most types in one, those of fields included.
const SIZE_MAX: usize = 4096;

/// Deepest nesting, through fields of user types as well.
const DEPTH_MAX: usize = 128;

/// Most dimensions of a vector.
const VECTOR_LEN_MAX: u16 = 16_000;

impl CqlType {
    /// `find` gives user types by name; `keyspace` is the one in which the type is used.
    pub(crate) fn resolve(
        name: &TypeName,
        keyspace: &str,
        find: &dyn Fn(&str) -> Option<Arc<UserType>>,
    ) -> Result<Self> {
        let found = Resolver { keyspace, find }.resolve(name, false)?;
        found.check_size()?;
        Ok(found)
    }

    /// Refuses types that would be very long where they are spelled out, as in metadata.
    pub(crate) fn check_size(&self) -> Result<()> {
        let mut left = SIZE_MAX;
        if self.count(&mut left, DEPTH_MAX) {
            return Ok(());
        }
        Err(CqlError::invalid("a type has too many parts, all told"))
    }

    /// Takes the types in it from what is left; whether that was enough.
    fn count(&self, left: &mut usize, depth: usize) -> bool {
        let Some(less) = left.checked_sub(1).filter(|_| depth > 0) else {
            return false;
        };
        *left = less;
        self.inner()
            .iter()
            .all(|inner| inner.count(left, depth - 1))
    }

    /// The type with what it holds frozen, as part of something frozen.
    fn frozen(self) -> Self {
        if self.is_multi_cell() {
            Self::Frozen(Box::new(self))
        } else {
            self
        }
    }
}

struct Resolver<'a> {
    keyspace: &'a str,
    find: &'a dyn Fn(&str) -> Option<Arc<UserType>>,
}

impl Resolver<'_> {
    /// `frozen`: whether it stands inside of something frozen.
    fn resolve(&self, name: &TypeName, frozen: bool) -> Result<CqlType> {
        if name.len.is_some() && name.name != "vector" {
            return Err(unknown(name));
        }
        let arguments = name.arguments.as_slice();
        let found = match (name.keyspace.as_deref(), name.name.as_str(), arguments) {
            (None, word, []) if Native::named(word).is_some() => {
                return Native::named(word)
                    .map(CqlType::Native)
                    .ok_or_else(|| unknown(name));
            }
            (None, "frozen", [inner]) => return self.frozen(inner),
            (None, "list", [element]) => CqlType::List(self.held(element, frozen)?),
            (None, "set", [element]) => {
                refuse_duration(element, "set")?;
                CqlType::Set(self.held(element, frozen)?)
            }
            (None, "map", [key, value]) => {
                refuse_duration(key, "map key")?;
                CqlType::Map(self.held(key, frozen)?, self.held(value, frozen)?)
            }
            (None, "tuple", [_, ..]) => {
                let elements: Result<Vec<CqlType>> = arguments
                    .iter()
                    .map(|element| self.member(element))
                    .collect();
                return Ok(CqlType::Frozen(Box::new(CqlType::Tuple(elements?))));
            }
            (None, "vector", [element]) => return self.vector(name, element),
            (keyspace, word, []) => CqlType::User(self.user(keyspace, word)?),
            _ => return Err(unknown(name)),
        };
        if frozen {
            return Ok(found.frozen());
        }
        if let CqlType::User(user) = &found
            && user.fields.iter().any(|(_, ty)| ty.is_multi_cell())
        {
            return Err(CqlError::invalid(
                "Non-frozen UDTs with nested non-frozen collections are not supported",
            ));
        }
        Ok(found)
    }

    fn frozen(&self, inner: &TypeName) -> Result<CqlType> {
        match self.resolve(inner, true)? {
            found @ (CqlType::Frozen(_) | CqlType::Vector(..)) => Ok(found),
            found => Err(CqlError::Invalid(format!(
                "frozen<> is only allowed on collections, tuples, and user-defined types (got \
                 {found})"
            ))),
        }
    }

    /// What a collection holds: frozen already, or frozen with it.
    fn held(&self, name: &TypeName, frozen: bool) -> Result<Box<CqlType>> {
        let found = self.resolve(name, frozen)?;
        if found.is_multi_cell() {
            let what = match found {
                CqlType::User(_) => "UDTs",
                _ => "collections",
            };
            return Err(CqlError::Invalid(format!(
                "Non-frozen {what} are not allowed inside collections: {found}"
            )));
        }
        if found == CqlType::Native(Native::Counter) {
            return Err(CqlError::invalid(
                "Counters are not allowed inside collections",
            ));
        }
        Ok(Box::new(found))
    }

    /// What a tuple or a vector holds.
    fn member(&self, name: &TypeName) -> Result<CqlType> {
        match self.resolve(name, true)? {
            CqlType::Native(Native::Counter) => Err(CqlError::invalid(
                "Counters are not allowed inside tuples and vectors",
            )),
            found => Ok(found),
        }
    }

    fn vector(&self, name: &TypeName, element: &TypeName) -> Result<CqlType> {
        let len = name.len.ok_or_else(|| unknown(name))?;
        if len == 0 || len > VECTOR_LEN_MAX {
            return Err(CqlError::Invalid(format!(
                "Vectors must have a dimension between 1 and {VECTOR_LEN_MAX}"
            )));
        }
        Ok(CqlType::Vector(Box::new(self.member(element)?), len))
    }

    fn user(&self, keyspace: Option<&str>, name: &str) -> Result<Arc<UserType>> {
        if let Some(other) = keyspace.filter(|other| *other != self.keyspace) {
            return Err(CqlError::Invalid(format!(
                "Statement on keyspace {} cannot refer to a user type in keyspace {other}; user \
                 types can only be used in the keyspace they are defined in",
                self.keyspace
            )));
        }
        (self.find)(name)
            .ok_or_else(|| CqlError::Invalid(format!("Unknown type {}.{name}", self.keyspace)))
    }
}

fn unknown(name: &TypeName) -> CqlError {
    CqlError::Invalid(format!("Unknown type {name}"))
}

fn refuse_duration(name: &TypeName, what: &str) -> Result<()> {
    if name.name == "duration" && name.keyspace.is_none() {
        return Err(CqlError::Invalid(format!(
            "Durations are not allowed as {what}s: {name}"
        )));
    }
    Ok(())
}
