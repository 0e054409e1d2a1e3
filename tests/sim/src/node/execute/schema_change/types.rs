//! CREATE, ALTER and DROP TYPE.

use std::sync::Arc;

use super::super::super::cluster::Cluster;
use super::super::super::cql::{TableName, TypeAlteration, TypeName};
use super::super::super::error::CqlError;
use super::super::super::schema::Keyspace;
use super::super::super::value::{CqlType, Native, UserType};
use super::super::Result;
use super::{Change, Target, Verb, check_name, qualified};

impl Cluster {
    pub(super) fn create_type(
        &mut self,
        name: &TableName,
        if_not_exists: bool,
        fields: &[(String, TypeName)],
        current: Option<&str>,
    ) -> Result<Change> {
        let (keyspace_name, name) = qualified(name, current)?;
        let keyspace = self.user_keyspace(keyspace_name)?;
        let change = Change::user_type(Verb::Created, keyspace_name, name);
        if keyspace.types.contains_key(name) {
            if if_not_exists {
                return Ok(change.untold());
            }
            return Err(CqlError::Invalid(format!(
                "A user type of name {keyspace_name}.{name} already exists"
            )));
        }
        check_name(name)?;
        let mut user = UserType {
            keyspace: keyspace_name.to_owned(),
            name: name.to_owned(),
            fields: Vec::with_capacity(fields.len()),
        };
        for (field, ty) in fields {
            if user.position(field).is_some() {
                return Err(CqlError::Invalid(format!(
                    "Duplicate field name {field} in type {name}"
                )));
            }
            user.fields.push((field.clone(), field_type(keyspace, ty)?));
        }
        let user = Arc::new(user);
        CqlType::User(Arc::clone(&user)).check_size()?;
        keyspace.types.insert(name.to_owned(), user);
        Ok(change)
    }

    pub(super) fn alter_type(
        &mut self,
        name: &TableName,
        alteration: &TypeAlteration,
        current: Option<&str>,
    ) -> Result<Change> {
        let (keyspace_name, name) = qualified(name, current)?;
        let keyspace = self.user_keyspace(keyspace_name)?;
        let old = keyspace.types.get(name).ok_or_else(|| {
            CqlError::Invalid(format!("No user type named {keyspace_name}.{name} exists."))
        })?;
        let mut altered = UserType::clone(old);
        match alteration {
            TypeAlteration::Add(field, ty) => {
                if altered.position(field).is_some() {
                    return Err(CqlError::Invalid(format!(
                        "Cannot add new field {field} to type {keyspace_name}.{name}: a field of \
                         the same name already exists"
                    )));
                }
                let ty = field_type(keyspace, ty)?;
                if ty.uses(name) {
                    return Err(CqlError::Invalid(format!(
                        "Cannot add new field {field} of type {ty} to type {keyspace_name}.{name} \
                         as this would create a circular reference"
                    )));
                }
                altered.fields.push((field.clone(), ty));
            }
            TypeAlteration::Rename(renames) => {
                for (old, new) in renames {
                    let unknown = || {
                        CqlError::Invalid(format!(
                            "Unknown field {old} in type {keyspace_name}.{name}"
                        ))
                    };
                    let at = altered.position(old).ok_or_else(unknown)?;
                    if altered.position(new).is_some() {
                        return Err(CqlError::Invalid(format!(
                            "Duplicate field name {new} in type {name}"
                        )));
                    }
                    altered.fields[at].0.clone_from(new);
                }
            }
        }
        // On a copy: a type that grew too large leaves all as it was.
        let mut replaced = keyspace.clone();
        let tables = replaced.replace_type(&Arc::new(altered))?;
        *keyspace = replaced;
        for table in &tables {
            self.forget(keyspace_name, Some(table));
        }
        let table = |name| Change::of(Verb::Updated, keyspace_name, Target::Table(name));
        Ok(Change::Made {
            told: Change::of(Verb::Updated, keyspace_name, Target::Type(name.to_owned())),
            also: tables.into_iter().map(table).collect(),
        })
    }

    pub(super) fn drop_type(
        &mut self,
        name: &TableName,
        if_exists: bool,
        current: Option<&str>,
    ) -> Result<Change> {
        let (keyspace_name, name) = qualified(name, current)?;
        if if_exists && self.catalogue.keyspace(keyspace_name).is_none() {
            return Ok(Change::Nothing);
        }
        let keyspace = self.user_keyspace(keyspace_name)?;
        if !keyspace.types.contains_key(name) {
            if if_exists {
                return Ok(Change::Nothing);
            }
            return Err(CqlError::Invalid(format!(
                "No user type named {keyspace_name}.{name} exists."
            )));
        }
        if let Some(user) = user_of(keyspace, name) {
            return Err(CqlError::Invalid(format!(
                "Cannot drop user type {keyspace_name}.{name} as it is still used by {user}"
            )));
        }
        keyspace.types.remove(name);
        Ok(Change::user_type(Verb::Dropped, keyspace_name, name))
    }
}

/// What keeps a type from being dropped.
fn user_of(keyspace: &Keyspace, name: &str) -> Option<String> {
    let by_type = keyspace
        .types
        .values()
        .find(|user| user.fields.iter().any(|(_, ty)| ty.uses(name)))
        .map(|user| format!("user type {}.{}", keyspace.name, user.name));
    by_type.or_else(|| {
        keyspace
            .tables
            .values()
            .find(|table| table.columns.iter().any(|column| column.ty.uses(name)))
            .map(|table| format!("table {}.{}", keyspace.name, table.name))
    })
}

fn field_type(keyspace: &Keyspace, ty: &TypeName) -> Result<CqlType> {
    match keyspace.resolve(ty)? {
        CqlType::Native(Native::Counter) => {
            Err(CqlError::invalid("A user type cannot contain counters"))
        }
        CqlType::User(_) => Err(CqlError::invalid(
            "A user type cannot contain non-frozen user type fields",
        )),
        ty => Ok(ty),
    }
}
