//! A table: its columns and their parts in the key, its options, indexes, and what it is a view
//! of.

use std::collections::BTreeMap;

use super::super::cql::{ColumnDefinition, Options};
use super::super::error::CqlError;
use super::super::value::{CqlType, Native};

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
    /// Further options, shown and not acted upon.
    pub(crate) options: Options,
    pub(crate) indexes: Vec<Index>,
    /// Columns that were dropped.
    pub(crate) dropped: Vec<Dropped>,
    /// Of a materialized view: what it shows.
    pub(crate) view: Option<View>,
}

/// A secondary index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) name: String,
    pub(crate) column: String,
    pub(crate) target: IndexTarget,
}

/// What of a column is indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexTarget {
    /// The value of an ordinary column.
    Value,
    Values,
    Keys,
    Entries,
    /// A frozen collection.
    Full,
}

/// A column that is no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) name: String,
    pub(crate) ty: String,
    /// Microseconds.
    pub(crate) at: i64,
}

/// What a materialized view shows: the rows of its base in which no column of its key is null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) base: TableId,
    pub(crate) base_name: String,
    pub(crate) where_clause: String,
    pub(crate) includes_all: bool,
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
            options: Vec::new(),
            indexes: Vec::new(),
            dropped: Vec::new(),
            view: None,
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

    pub(crate) fn is_clustering(&self, column: usize) -> bool {
        (self.partition_len..self.key_len()).contains(&column)
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

    /// The table without a static or regular column, dropped at a time.
    pub(crate) fn without_column(&self, name: &str, at_micros: i64) -> Result<Self, CqlError> {
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
        if let Some(index) = self.indexes.iter().find(|index| index.column == name) {
            return Err(CqlError::Invalid(format!(
                "Cannot drop column {name} because it has dependent secondary indexes ({})",
                index.name
            )));
        }
        let mut altered = self.clone();
        let column = altered.columns.remove(at);
        altered.static_len -= usize::from(column.role == Role::Static);
        altered.dropped.retain(|dropped| dropped.name != name);
        altered.dropped.push(Dropped {
            name: column.name,
            ty: column.ty.to_string(),
            at: at_micros,
        });
        Ok(altered)
    }

    /// The table with another name for a column of its key.
    pub(crate) fn with_renamed(&self, old: &str, new: &str) -> Result<Self, CqlError> {
        let at = self.position(old).ok_or_else(|| {
            CqlError::Invalid(format!(
                "Cannot rename unknown column {old} in table {}",
                self.name
            ))
        })?;
        if self.position(new).is_some() {
            return Err(CqlError::Invalid(format!(
                "Cannot rename column {old} to {new} in table {}; another column of that name \
                 already exist",
                self.name
            )));
        }
        if at >= self.key_len() {
            return Err(CqlError::Invalid(format!(
                "Cannot rename non PRIMARY KEY part {old}"
            )));
        }
        if self.indexes.iter().any(|index| index.column == old) {
            return Err(CqlError::Invalid(format!(
                "Cannot rename column {old} because it has dependent secondary indexes"
            )));
        }
        let mut altered = self.clone();
        altered.columns[at].name = new.to_owned();
        Ok(altered)
    }

    /// Of the system tables: those that Apache Cassandra lacks.
    pub(crate) fn is_scylla_only(&self) -> bool {
        self.name.starts_with("scylla_")
    }

    /// The indexes of a column.
    pub(crate) fn indexes_of(&self, column: usize) -> impl Iterator<Item = &Index> {
        let name = self.columns.get(column).map(|column| column.name.as_str());
        self.indexes
            .iter()
            .filter(move |index| Some(index.column.as_str()) == name)
    }
}
