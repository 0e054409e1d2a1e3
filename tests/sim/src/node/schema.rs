//! The schema that all nodes of the cluster share: keyspaces, tables, columns, one version.
//!
//! A table is immutable and shared; altering it makes a new one under the same id. Column ids are
//! never reused within a table, so stored cells survive alterations.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cql::{ColumnDefinition, TypeName};
use super::error::CqlError;
use super::tablets::drawn;
use super::value::{CqlType, Native, UserType};

/// Identity of a table for its whole life.
pub(crate) type TableId = [u8; 16];

/// The part a column plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    PartitionKey,
    Clustering {
        descending: bool,
    },
    /// One value for all rows of a partition.
    Static,
    Regular,
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) id: u16,
    pub(crate) name: String,
    pub(crate) ty: CqlType,
    pub(crate) role: Role,
}

impl Column {
    pub(crate) fn is_counter(&self) -> bool {
        self.ty == CqlType::Native(Native::Counter)
    }
}

const NO_CLUSTERING: &str = "Static columns are only useful (and thus allowed) if the table has at least one clustering \
     column";

/// A table. Columns stand in the order of `SELECT *`: partition key, clustering, static ones by
/// name, regular ones by name.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) id: TableId,
    pub(crate) keyspace: String,
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) partition_len: usize,
    pub(crate) clustering_len: usize,
    static_len: usize,
    /// Seconds that values live where the statement does not say, 0 for ever.
    pub(crate) default_ttl: i32,
    pub(crate) comment: String,
    next_column_id: u16,
    /// Served from the cluster's state instead of the store.
    pub(crate) is_virtual: bool,
}

impl Table {
    /// `partition` and `clustering` name columns of `columns`; the latter with "descending".
    pub(crate) fn new(
        id: TableId,
        (keyspace, name): (&str, &str),
        columns: Vec<ColumnDefinition<CqlType>>,
        partition: &[String],
        clustering: &[(String, bool)],
    ) -> Result<Self, CqlError> {
        let mut rest: BTreeMap<String, (CqlType, bool)> = BTreeMap::new();
        for ColumnDefinition {
            name,
            ty,
            is_static,
        } in columns
        {
            if rest.insert(name.clone(), (ty, is_static)).is_some() {
                return Err(CqlError::Invalid(format!(
                    "Multiple definition of identifier {name}"
                )));
            }
        }
        let mut take = |column: &String| match rest.remove(column) {
            Some((ty, false)) => Ok(ty),
            Some((_, true)) => Err(CqlError::Invalid(format!(
                "Static column {column} cannot be part of the PRIMARY KEY"
            ))),
            None => Err(CqlError::Invalid(format!(
                "Unknown definition {column} referenced in PRIMARY KEY"
            ))),
        };
        let mut keyed = Vec::new();
        for column in partition {
            keyed.push((column.clone(), take(column)?, Role::PartitionKey));
        }
        for (column, descending) in clustering {
            let role = Role::Clustering {
                descending: *descending,
            };
            keyed.push((column.clone(), take(column)?, role));
        }
        if let Some((column, ty, _)) = keyed.iter().find(|(_, ty, _)| !ty.is_clusterable()) {
            return Err(CqlError::Invalid(format!(
                "Invalid type {ty} for PRIMARY KEY component {column}"
            )));
        }
        let (statics, regular): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|(_, (_, is_static))| *is_static);
        if clustering.is_empty() && !statics.is_empty() {
            return Err(CqlError::invalid(NO_CLUSTERING));
        }
        let static_len = statics.len();
        let statics = statics
            .into_iter()
            .map(|(column, (ty, _))| (column, ty, Role::Static));
        let regular = regular
            .into_iter()
            .map(|(column, (ty, _))| (column, ty, Role::Regular));
        let columns: Vec<Column> = (0u16..)
            .zip(keyed.into_iter().chain(statics).chain(regular))
            .map(|(id, (name, ty, role))| Column { id, name, ty, role })
            .collect();
        let table = Self {
            id,
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
            next_column_id: u16::try_from(columns.len()).unwrap_or(u16::MAX),
            columns,
            partition_len: partition.len(),
            clustering_len: clustering.len(),
            static_len,
            default_ttl: 0,
            comment: String::new(),
            is_virtual: false,
        };
        table.check_counters()?;
        Ok(table)
    }

    /// Counters stand alone: beside them only the key may have other types.
    fn check_counters(&self) -> Result<(), CqlError> {
        let values = &self.columns[self.key_len()..];
        if self.is_counter() && values.iter().any(|column| !column.is_counter()) {
            return Err(CqlError::invalid(
                "Cannot mix counter and non counter columns in the same table",
            ));
        }
        Ok(())
    }

    /// Whether its values are counters.
    pub(crate) fn is_counter(&self) -> bool {
        self.columns.iter().any(Column::is_counter)
    }

    /// Position of a column.
    pub(crate) fn position(&self, column: &str) -> Option<usize> {
        self.columns
            .iter()
            .position(|candidate| candidate.name == column)
    }

    pub(crate) fn key_len(&self) -> usize {
        self.partition_len + self.clustering_len
    }

    pub(crate) fn partition_columns(&self) -> &[Column] {
        &self.columns[..self.partition_len]
    }

    pub(crate) fn clustering_columns(&self) -> &[Column] {
        &self.columns[self.partition_len..self.key_len()]
    }

    /// Where the regular columns begin.
    fn regular_start(&self) -> usize {
        self.key_len() + self.static_len
    }

    pub(crate) fn static_columns(&self) -> &[Column] {
        &self.columns[self.key_len()..self.regular_start()]
    }

    pub(crate) fn regular_columns(&self) -> &[Column] {
        &self.columns[self.regular_start()..]
    }

    /// The table with one more column.
    pub(crate) fn with_column(
        &self,
        definition: &ColumnDefinition<CqlType>,
    ) -> Result<Self, CqlError> {
        let ColumnDefinition {
            name,
            ty,
            is_static,
        } = definition;
        if self.position(name).is_some() {
            return Err(CqlError::Invalid(format!(
                "Invalid column name {name} because it conflicts with an existing column"
            )));
        }
        if *is_static && self.clustering_len == 0 {
            return Err(CqlError::invalid(NO_CLUSTERING));
        }
        let mut altered = self.clone();
        let (role, start, others) = if *is_static {
            (Role::Static, self.key_len(), self.static_columns())
        } else {
            (Role::Regular, self.regular_start(), self.regular_columns())
        };
        let at = others.partition_point(|other| other.name < *name);
        let column = Column {
            id: self.next_column_id,
            name: name.clone(),
            ty: ty.clone(),
            role,
        };
        altered.next_column_id = altered.next_column_id.saturating_add(1);
        altered.columns.insert(start + at, column);
        altered.static_len += usize::from(*is_static);
        altered.check_counters()?;
        Ok(altered)
    }

    /// The table without a static or regular column.
    pub(crate) fn without_column(&self, name: &str) -> Result<Self, CqlError> {
        let at = self.position(name).ok_or_else(|| {
            CqlError::Invalid(format!(
                "Column {name} was not found in table {}",
                self.name
            ))
        })?;
        if at < self.key_len() {
            return Err(CqlError::Invalid(format!(
                "Cannot drop PRIMARY KEY part {name}"
            )));
        }
        let mut altered = self.clone();
        let dropped = altered.columns.remove(at);
        altered.static_len -= usize::from(dropped.role == Role::Static);
        Ok(altered)
    }
}

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
