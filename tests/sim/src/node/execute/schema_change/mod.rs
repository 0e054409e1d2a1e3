//! CREATE, ALTER and DROP: changes of the catalogue, told to every registered connection.

mod keyspaces;
mod tables;
mod types;
mod views;

use super::super::cluster::Cluster;
use super::super::connection::EventKind;
use super::super::cql::{Dropped, SchemaStatement, TableName};
use super::super::error::CqlError;
use super::super::schema::Keyspace;
use super::{Executed, Outcome, Result};

/// What a SCHEMA_CHANGE says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchemaChange {
    pub(crate) verb: Verb,
    pub(crate) keyspace: String,
    pub(crate) target: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Created,
    Updated,
    Dropped,
}

/// What of a keyspace changed. Views and indexes tell of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Keyspace,
    Table(String),
    Type(String),
}

impl SchemaChange {
    /// The strings of the message, in their order.
    pub(crate) fn words(&self) -> Vec<&str> {
        let verb = match self.verb {
            Verb::Created => "CREATED",
            Verb::Updated => "UPDATED",
            Verb::Dropped => "DROPPED",
        };
        match &self.target {
            Target::Keyspace => vec![verb, "KEYSPACE", &self.keyspace],
            Target::Table(name) => vec![verb, "TABLE", &self.keyspace, name],
            Target::Type(name) => vec![verb, "TYPE", &self.keyspace, name],
        }
    }
}

/// A done change: to be announced or not.
enum Change {
    Made {
        told: SchemaChange,
        /// What else changed with it.
        also: Vec<SchemaChange>,
    },
    /// `IF NOT EXISTS` found it: only the requester hears of it.
    Existed(SchemaChange),
    Nothing,
}

impl Change {
    fn of(verb: Verb, keyspace: &str, target: Target) -> SchemaChange {
        SchemaChange {
            verb,
            keyspace: keyspace.to_owned(),
            target,
        }
    }

    fn only(told: SchemaChange) -> Self {
        Self::Made {
            told,
            also: Vec::new(),
        }
    }

    fn made(verb: Verb, keyspace: &str) -> Self {
        Self::only(Self::of(verb, keyspace, Target::Keyspace))
    }

    fn existed(verb: Verb, keyspace: &str) -> Self {
        Self::Existed(Self::of(verb, keyspace, Target::Keyspace))
    }

    fn table(verb: Verb, keyspace: &str, name: &str) -> Self {
        Self::only(Self::of(verb, keyspace, Target::Table(name.to_owned())))
    }

    fn user_type(verb: Verb, keyspace: &str, name: &str) -> Self {
        Self::only(Self::of(verb, keyspace, Target::Type(name.to_owned())))
    }

    /// The same, heard of by the requester alone.
    fn untold(self) -> Self {
        match self {
            Self::Made { told, .. } => Self::Existed(told),
            other => other,
        }
    }
}

impl Cluster {
    pub(super) fn change_schema(
        &mut self,
        statement: &SchemaStatement,
        current: Option<&str>,
        now: i64,
    ) -> Result<Executed> {
        let mut warnings = Vec::new();
        let change = match statement {
            SchemaStatement::CreateKeyspace {
                name,
                if_not_exists,
                options,
            } => self.create_keyspace(name, *if_not_exists, options, &mut warnings)?,
            SchemaStatement::AlterKeyspace { name, options } => {
                self.alter_keyspace(name, options)?
            }
            SchemaStatement::DropKeyspace { name, if_exists } => {
                self.drop_keyspace(name, *if_exists)?
            }
            SchemaStatement::CreateTable(create) => self.create_table(create, current)?,
            SchemaStatement::AlterTable { table, alteration } => {
                self.alter_table(table, alteration, current, now)?
            }
            SchemaStatement::CreateType {
                name,
                if_not_exists,
                fields,
            } => self.create_type(name, *if_not_exists, fields, current)?,
            SchemaStatement::AlterType { name, alteration } => {
                self.alter_type(name, alteration, current)?
            }
            SchemaStatement::CreateView(create) => self.create_view(create, current)?,
            SchemaStatement::AlterView { view, options } => {
                self.alter_view(view, options, current)?
            }
            SchemaStatement::CreateIndex(create) => self.create_index(create, current)?,
            SchemaStatement::Drop {
                kind,
                name,
                if_exists,
            } => match kind {
                Dropped::Table => self.drop_table(name, *if_exists, current)?,
                Dropped::Type => self.drop_type(name, *if_exists, current)?,
                Dropped::View => self.drop_view(name, *if_exists, current)?,
                Dropped::Index => self.drop_index(name, *if_exists, current)?,
            },
        };
        let outcome = match change {
            Change::Made { told, also } => {
                self.catalogue.bump();
                self.announce_schema(&told);
                also.iter().for_each(|change| self.announce_schema(change));
                Outcome::SchemaChange(told)
            }
            Change::Existed(change) => Outcome::SchemaChange(change),
            Change::Nothing => Outcome::Void,
        };
        Ok(Executed {
            outcome,
            payload: None,
            warnings,
        })
    }

    fn announce_schema(&mut self, change: &SchemaChange) {
        for connection in self.connections.values_mut() {
            if connection.is_registered(EventKind::Schema) {
                connection.push_schema_event(change);
                self.touched.push(connection.id);
            }
        }
        // The connection being served is not in the map; it takes its own events from here.
        self.own_events.push(change.clone());
    }

    /// Drops statements of a table, or of all tables of a keyspace, from every node's cache.
    fn forget(&mut self, keyspace: &str, table: Option<&str>) {
        for node in &mut self.nodes {
            node.prepared
                .retain(|_, prepared| !prepared.uses(keyspace, table));
        }
    }

    fn user_keyspace(&mut self, name: &str) -> Result<&mut Keyspace> {
        let found = self
            .catalogue
            .keyspaces
            .get_mut(name)
            .ok_or_else(|| CqlError::Invalid(format!("Keyspace {name} does not exist")))?;
        if found.is_system {
            let text = format!("{name} keyspace is not user-modifiable.");
            return Err(CqlError::Unauthorized(text));
        }
        Ok(found)
    }
}

fn qualified<'a>(table: &'a TableName, current: Option<&'a str>) -> Result<(&'a str, &'a str)> {
    let keyspace = table.keyspace.as_deref().or(current).ok_or_else(|| {
        CqlError::invalid(
            "No keyspace has been specified. USE a keyspace, or explicitly specify \
             keyspace.tablename",
        )
    })?;
    Ok((keyspace, &table.name))
}

fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.is_empty() && name.len() <= 192 && name.chars().all(plain) {
        return Ok(());
    }
    Err(CqlError::Invalid(format!(
        "\"{name}\" is not a valid keyspace or table name"
    )))
}
