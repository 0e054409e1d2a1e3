//! The schema that all nodes of the cluster share: keyspaces, tables, columns, one version.
//!
//! A table is immutable and shared; altering it makes a new one under the same id. Column ids are
//! never reused within a table, so stored cells survive alterations.

mod table;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use self::table::{Column, Dropped, Index, IndexTarget, Role, Table, TableId, View};

use super::cql::{ColumnDefinition, TypeName};
use super::error::CqlError;
use super::tablets::drawn;
use super::value::{CqlType, UserType};

/// How copies are spread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Replication {
    /// Every node has its own: system tables.
    Local,
    Simple {
        factor: u32,
    },
    NetworkTopology {
        factors: BTreeMap<String, u32>,
    },
}

impl Replication {
    /// The map as system_schema shows it.
    pub(crate) fn entries(&self) -> Vec<(String, String)> {
        const PACKAGE: &str = "org.apache.cassandra.locator";
        let class = |name| ("class".to_owned(), format!("{PACKAGE}.{name}"));
        match self {
            Self::Local => vec![class("LocalStrategy")],
            Self::Simple { factor } => {
                vec![
                    class("SimpleStrategy"),
                    ("replication_factor".to_owned(), factor.to_string()),
                ]
            }
            Self::NetworkTopology { factors } => {
                let factors = factors
                    .iter()
                    .map(|(dc, factor)| (dc.clone(), factor.to_string()));
                core::iter::once(class("NetworkTopologyStrategy"))
                    .chain(factors)
                    .collect()
            }
        }
    }
}

/// A keyspace.
#[derive(Clone, Debug)]
pub(crate) struct Keyspace {
    pub(crate) name: String,
    pub(crate) replication: Replication,
    pub(crate) durable_writes: bool,
    /// The `initial` of tablets (0: automatic); none for vnodes.
    pub(crate) tablets: Option<u32>,
    /// `eventual` or `global` where the statement said so.
    pub(crate) consistency: Option<String>,
    pub(crate) types: BTreeMap<String, Arc<UserType>>,
    /// Materialized views are among them.
    pub(crate) tables: BTreeMap<String, Arc<Table>>,
    /// Made by the node itself: cannot be altered or written.
    pub(crate) is_system: bool,
}

impl Keyspace {
    /// The column that a definition means here.
    pub(crate) fn column(
        &self,
        definition: &ColumnDefinition,
    ) -> Result<ColumnDefinition<CqlType>, CqlError> {
        Ok(ColumnDefinition {
            name: definition.name.clone(),
            ty: self.resolve(&definition.ty)?,
            is_static: definition.is_static,
        })
    }

    /// The type that a text means here.
    pub(crate) fn resolve(&self, ty: &TypeName) -> Result<CqlType, CqlError> {
        CqlType::resolve(ty, &self.name, &|name| self.types.get(name).cloned())
    }

    /// Views of a table.
    pub(crate) fn views_of(&self, base: &Table) -> impl Iterator<Item = &Arc<Table>> {
        let id = base.id;
        self.tables
            .values()
            .filter(move |table| table.view.as_ref().is_some_and(|view| view.base == id))
    }

    /// The table that has an index, with the index.
    pub(crate) fn index(&self, name: &str) -> Option<(&Arc<Table>, &Index)> {
        self.tables.values().find_map(|table| {
            let index = table.indexes.iter().find(|index| index.name == name)?;
            Some((table, index))
        })
    }

    /// Puts a new form of a user type wherever it is used.
    ///
    /// Gives the names of tables that use it.
    pub(crate) fn replace_type(
        &mut self,
        changed: &Arc<UserType>,
    ) -> Result<Vec<String>, CqlError> {
        let mut altered_tables = Vec::new();
        let replaced = |ty: &CqlType| ty.with_user(changed);
        for user in self.types.values_mut() {
            let fields = user.fields.iter();
            let fields = fields
                .map(|(name, ty)| (name.clone(), replaced(ty)))
                .collect();
            *user = Arc::new(UserType {
                fields,
                ..UserType::clone(user)
            });
            CqlType::User(Arc::clone(user)).check_size()?;
        }
        self.types.insert(changed.name.clone(), Arc::clone(changed));
        for table in self.tables.values_mut() {
            if table
                .columns
                .iter()
                .any(|column| column.ty.uses(&changed.name))
            {
                let mut altered = Table::clone(table);
                for column in &mut altered.columns {
                    column.ty = replaced(&column.ty);
                    column.ty.check_size()?;
                }
                altered_tables.push(altered.name.clone());
                *table = Arc::new(altered);
            }
        }
        Ok(altered_tables)
    }

    pub(crate) fn is_strong(&self) -> bool {
        self.consistency.as_deref() == Some("global")
    }
}

/// All keyspaces and the version that names this state of them.
#[derive(Debug)]
pub(crate) struct Catalogue {
    pub(crate) keyspaces: BTreeMap<String, Keyspace>,
    seed: u64,
    generation: u64,
    ids_made: u64,
}

impl Catalogue {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            keyspaces: BTreeMap::new(),
            seed,
            generation: 0,
            ids_made: 0,
        }
    }

    /// Marks a change.
    pub(crate) fn bump(&mut self) {
        self.generation += 1;
    }

    pub(crate) fn version(&self) -> [u8; 16] {
        uuid_from(self.seed, "schema version", self.generation, 3)
    }

    /// A fresh table id.
    pub(crate) fn next_id(&mut self) -> TableId {
        self.ids_made += 1;
        uuid_from(self.seed, "table", self.ids_made, 1)
    }

    pub(crate) fn keyspace(&self, name: &str) -> Option<&Keyspace> {
        self.keyspaces.get(name)
    }

    pub(crate) fn table(&self, keyspace: &str, table: &str) -> Result<Arc<Table>, CqlError> {
        let found = self
            .keyspace(keyspace)
            .ok_or_else(|| CqlError::Invalid(format!("Keyspace {keyspace} does not exist")))?;
        found
            .tables
            .get(table)
            .cloned()
            .ok_or_else(|| CqlError::Invalid(format!("unconfigured table {table}")))
    }
}

/// A uuid drawn from the seed, well-formed for `version`.
pub(crate) fn uuid_from(seed: u64, what: &str, at: u64, version: u8) -> [u8; 16] {
    let high = u128::from(drawn(seed, what, at)) << 64;
    let low = u128::from(drawn(seed.wrapping_add(1), what, at));
    let mut bytes = (high | low).to_be_bytes();
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}
