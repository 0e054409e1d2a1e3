//! Materialized views and secondary indexes.

use super::super::super::cluster::Cluster;
use super::super::super::cql::{ColumnDefinition, CreateIndex, CreateView, Options, TableName};
use super::super::super::error::CqlError;
use super::super::super::schema::{Index, IndexTarget, Role, Table, View};
use super::super::super::value::{CqlType, Native};
use super::super::Result;
use super::tables::{clustering, set_options};
use super::{Change, Verb, check_name, qualified};

impl Cluster {
    pub(super) fn create_view(
        &mut self,
        create: &CreateView,
        current: Option<&str>,
    ) -> Result<Change> {
        let base = self.base_table(&create.base, current)?;
        let (keyspace_name, name) = qualified(&create.view, Some(&base.keyspace))?;
        if keyspace_name != base.keyspace {
            return Err(CqlError::invalid(
                "Cannot create a materialized view on a table in a separate keyspace",
            ));
        }
        let keyspace = self.user_keyspace(keyspace_name)?.clone();
        let change = Change::table(Verb::Created, keyspace_name, name);
        if keyspace.tables.contains_key(name) {
            if create.if_not_exists {
                return Ok(change.untold());
            }
            return Err(CqlError::AlreadyExists {
                keyspace: keyspace_name.to_owned(),
                table: name.to_owned(),
            });
        }
        check_name(name)?;
        check_view_key(create, &base)?;
        let columns = view_columns(create, &base)?;
        let clustering = clustering(&create.clustering, &create.order)?;
        let id = self.catalogue.next_id();
        let names = (keyspace_name, name);
        let mut view = Table::new(id, names, columns, &create.partition, &clustering)?;
        set_options(&mut view, &create.options)?;
        view.view = Some(View {
            base: base.id,
            base_name: base.name.clone(),
            where_clause: create.where_clause.clone(),
            includes_all: create.columns.is_empty(),
        });
        if keyspace.tablets.is_some() {
            self.tablets.insert(id, self.place_tablets(&keyspace)?);
        }
        self.put_table(view)?;
        Ok(change)
    }

    fn view(&mut self, view: &TableName, current: Option<&str>) -> Result<Table> {
        let (keyspace, name) = qualified(view, current)?;
        let found = self.user_keyspace(keyspace)?.tables.get(name);
        match found {
            Some(table) if table.view.is_some() => Ok(Table::clone(table)),
            _ => Err(CqlError::Invalid(format!(
                "Cannot drop non existing materialized view '{name}' in keyspace '{keyspace}'."
            ))),
        }
    }

    pub(super) fn alter_view(
        &mut self,
        view: &TableName,
        options: &Options,
        current: Option<&str>,
    ) -> Result<Change> {
        let mut view = self.view(view, current)?;
        set_options(&mut view, options)?;
        self.forget(&view.keyspace, Some(&view.name));
        let change = Change::table(Verb::Updated, &view.keyspace, &view.name);
        self.put_table(view)?;
        Ok(change)
    }

    pub(super) fn drop_view(
        &mut self,
        view: &TableName,
        if_exists: bool,
        current: Option<&str>,
    ) -> Result<Change> {
        let (keyspace, name) = qualified(view, current)?;
        let exists = self
            .catalogue
            .keyspace(keyspace)
            .is_some_and(|keyspace| keyspace.tables.contains_key(name));
        if if_exists && !exists {
            return Ok(Change::Nothing);
        }
        let view = self.view(view, current)?;
        self.remove_table(&view)?;
        Ok(Change::table(Verb::Dropped, &view.keyspace, &view.name))
    }

    pub(super) fn create_index(
        &mut self,
        create: &CreateIndex,
        current: Option<&str>,
    ) -> Result<Change> {
        let table = self.base_table(&create.table, current)?;
        if let Some(class) = &create.class {
            return Err(CqlError::Invalid(format!(
                "Non-supported custom class '{class}' provided"
            )));
        }
        let (column, target) = &create.target;
        let at = table.position(column).ok_or_else(|| {
            CqlError::Invalid(format!("No column definition found for column {column}"))
        })?;
        check_indexed(&table, at)?;
        let target = index_target(&table.columns[at].ty, target.as_deref(), column)?;
        let name = match &create.name {
            Some(name) => name.clone(),
            None => format!("{}_{column}_idx", table.name),
        };
        let change = Change::table(Verb::Updated, &table.keyspace, &table.name);
        let keyspace = self.user_keyspace(&table.keyspace)?;
        if keyspace.index(&name).is_some() {
            if create.if_not_exists {
                return Ok(change.untold());
            }
            return Err(CqlError::Invalid(format!("Index {name} already exists")));
        }
        let index = Index {
            name,
            column: column.clone(),
            target,
        };
        let is_same = |other: &&Index| other.column == index.column && other.target == target;
        if let Some(same) = table.indexes.iter().find(is_same) {
            if create.if_not_exists {
                return Ok(change.untold());
            }
            return Err(CqlError::Invalid(format!(
                "Index {} is a duplicate of existing index {}",
                index.name, same.name
            )));
        }
        let mut altered = Table::clone(&table);
        altered.indexes.push(index);
        self.forget(&table.keyspace, Some(&table.name));
        self.put_table(altered)?;
        Ok(change)
    }

    pub(super) fn drop_index(
        &mut self,
        index: &TableName,
        if_exists: bool,
        current: Option<&str>,
    ) -> Result<Change> {
        let (keyspace, name) = qualified(index, current)?;
        let found = self
            .catalogue
            .keyspace(keyspace)
            .and_then(|keyspace| keyspace.index(name))
            .map(|(table, _)| Table::clone(table));
        let Some(mut table) = found else {
            if if_exists {
                return Ok(Change::Nothing);
            }
            return Err(CqlError::Invalid(format!(
                "Index '{name}' could not be found in any of the tables of keyspace '{keyspace}'"
            )));
        };
        table.indexes.retain(|index| index.name != name);
        self.forget(keyspace, Some(&table.name));
        let change = Change::table(Verb::Updated, keyspace, &table.name);
        self.put_table(table)?;
        Ok(change)
    }
}

/// The key of a view is that of its base, and at most one column more; none of it may be null.
fn check_view_key(create: &CreateView, base: &Table) -> Result<()> {
    let refuse = |text: String| Err(CqlError::Invalid(text));
    if base.is_counter() {
        return refuse("Materialized views are not supported on counter tables".to_owned());
    }
    if !create.relations.is_empty() {
        return refuse("Conditions of a view other than IS NOT NULL are not supported".to_owned());
    }
    let key: Vec<&String> = create.partition.iter().chain(&create.clustering).collect();
    let base_key = &base.columns[..base.key_len()];
    if let Some(missing) = base_key.iter().find(|column| !key.contains(&&column.name)) {
        return refuse(format!(
            "Cannot create Materialized View {} without primary key columns from base {} ({})",
            create.view.name, base.name, missing.name
        ));
    }
    let mut others = key
        .iter()
        .filter(|name| base_key.iter().all(|column| column.name != ***name));
    if let Some(second) = others.nth(1) {
        return refuse(format!(
            "Cannot include more than one non-primary key column '{second}' in materialized view \
             primary key"
        ));
    }
    for name in key {
        let Some(at) = base.position(name) else {
            return refuse(format!(
                "Unknown column name detected in CREATE MATERIALIZED VIEW statement: {name}"
            ));
        };
        if base.columns[at].role == Role::Static {
            return refuse(format!(
                "Cannot use Static column '{name}' in PRIMARY KEY of materialized view"
            ));
        }
        if !create.not_null.contains(name) {
            return refuse(format!(
                "Primary key column '{name}' is required to be filtered by 'IS NOT NULL'"
            ));
        }
    }
    Ok(())
}

/// The columns a view shows: those of its key come on their own.
fn view_columns(create: &CreateView, base: &Table) -> Result<Vec<ColumnDefinition<CqlType>>> {
    for name in create.columns.iter().chain(&create.not_null) {
        if base.position(name).is_none() {
            return Err(CqlError::Invalid(format!(
                "Unknown column name detected in CREATE MATERIALIZED VIEW statement: {name}"
            )));
        }
    }
    let is_shown = |name: &String| {
        create.columns.is_empty()
            || [&create.columns, &create.partition, &create.clustering]
                .iter()
                .any(|names| names.contains(name))
    };
    let shown: Vec<_> = base
        .columns
        .iter()
        .filter(|column| is_shown(&column.name))
        .collect();
    if shown.iter().any(|column| column.role == Role::Static) {
        return Err(CqlError::invalid(
            "Unable to include static column in Materialized View",
        ));
    }
    Ok(shown
        .into_iter()
        .map(|column| ColumnDefinition {
            name: column.name.clone(),
            ty: column.ty.clone(),
            is_static: false,
        })
        .collect())
}

fn check_indexed(table: &Table, at: usize) -> Result<()> {
    let column = &table.columns[at];
    if table.is_counter() {
        return Err(CqlError::invalid(
            "Secondary indexes are not supported on counter tables",
        ));
    }
    if column.role == Role::PartitionKey && table.partition_len == 1 {
        return Err(CqlError::Invalid(format!(
            "Cannot create secondary index on partition key column {}",
            column.name
        )));
    }
    if column.ty.contains(Native::Duration) {
        return Err(CqlError::invalid(
            "Secondary indexes are not supported on duration columns",
        ));
    }
    Ok(())
}

fn index_target(ty: &CqlType, written: Option<&str>, column: &str) -> Result<IndexTarget> {
    let is_collection = matches!(
        ty.thawed(),
        CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..)
    );
    let is_map = matches!(ty, CqlType::Map(..));
    let target = match (written, is_collection && ty.is_multi_cell()) {
        (None, false) => IndexTarget::Value,
        (None | Some("values"), true) => IndexTarget::Values,
        (Some("keys"), true) if is_map => IndexTarget::Keys,
        (Some("entries"), true) if is_map => IndexTarget::Entries,
        (Some("full"), false) if is_collection => IndexTarget::Full,
        (Some(written), _) => {
            return Err(CqlError::Invalid(format!(
                "Cannot create index on {written}({column}): column {column} is of type {ty}"
            )));
        }
    };
    if ty.is_multi_cell() && !is_collection {
        return Err(CqlError::invalid(
            "Secondary indexes are not supported on columns of non-frozen user types",
        ));
    }
    Ok(target)
}
