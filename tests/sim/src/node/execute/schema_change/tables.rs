//! CREATE, ALTER and DROP TABLE.

use std::sync::Arc;

use super::super::super::cluster::Cluster;
use super::super::super::cql::{Alteration, CreateTable, OptionValue, Options, TableName};
use super::super::super::error::CqlError;
use super::super::super::rate_limit;
use super::super::super::schema::Table;
use super::super::Result;
use super::super::write::TTL_MAX_SECONDS;
use super::{Change, Verb, check_name, qualified};

impl Cluster {
    pub(super) fn create_table(
        &mut self,
        create: &CreateTable,
        current: Option<&str>,
    ) -> Result<Change> {
        let (keyspace_name, name) = qualified(&create.table, current)?;
        let keyspace = self.user_keyspace(keyspace_name)?.clone();
        if keyspace.tables.contains_key(name) {
            if create.if_not_exists {
                return Ok(Change::table(Verb::Created, keyspace_name, name).untold());
            }
            return Err(CqlError::AlreadyExists {
                keyspace: keyspace_name.to_owned(),
                table: name.to_owned(),
            });
        }
        check_name(name)?;
        let columns: Result<Vec<_>> = create
            .columns
            .iter()
            .map(|column| keyspace.column(column))
            .collect();
        let columns = columns?;
        if create.partition.is_empty() {
            return Err(CqlError::invalid(
                "No PRIMARY KEY specified (exactly one required)",
            ));
        }
        let clustering = clustering(&create.clustering, &create.order)?;
        let id = self.catalogue.next_id();
        let names = (keyspace_name, name);
        let mut table = Table::new(id, names, columns, &create.partition, &clustering)?;
        set_options(&mut table, &create.options)?;
        if keyspace.tablets.is_some() {
            self.tablets.insert(id, self.place_tablets(&keyspace)?);
        }
        self.put_table(table)?;
        Ok(Change::table(Verb::Created, keyspace_name, name))
    }

    /// Enters a table, in place of the one of its name.
    pub(super) fn put_table(&mut self, table: Table) -> Result<()> {
        self.user_keyspace(&table.keyspace)?
            .tables
            .insert(table.name.clone(), Arc::new(table));
        Ok(())
    }

    /// A table that is no view, by its name as written.
    pub(super) fn base_table(
        &mut self,
        table: &TableName,
        current: Option<&str>,
    ) -> Result<Arc<Table>> {
        let (keyspace, name) = qualified(table, current)?;
        let found = self.user_keyspace(keyspace)?.tables.get(name).cloned();
        let found = found.ok_or_else(|| CqlError::Invalid(format!("unconfigured table {name}")))?;
        if found.view.is_some() {
            return Err(CqlError::invalid(
                "Cannot use ALTER TABLE, DROP TABLE or CREATE INDEX on a materialized view",
            ));
        }
        Ok(found)
    }

    pub(super) fn alter_table(
        &mut self,
        table: &TableName,
        alteration: &Alteration,
        current: Option<&str>,
        now: i64,
    ) -> Result<Change> {
        let old = self.base_table(table, current)?;
        let keyspace = self.user_keyspace(&old.keyspace)?.clone();
        let mut altered = Table::clone(&old);
        let mut views: Vec<Table> = keyspace
            .views_of(&old)
            .map(|view| Table::clone(view))
            .collect();
        match alteration {
            Alteration::Add(columns) => {
                for column in columns {
                    let column = keyspace.column(column)?;
                    altered = altered.with_column(&column)?;
                    for view in &mut views {
                        if view.view.as_ref().is_some_and(|view| view.includes_all) {
                            *view = view.with_column(&column)?;
                        }
                    }
                }
            }
            Alteration::Drop(columns) => {
                for column in columns {
                    if let Some(view) = views.iter().find(|view| view.position(column).is_some()) {
                        return Err(CqlError::Invalid(format!(
                            "Cannot drop column {column} from base table {}.{}: materialized view \
                             {} needs this column",
                            old.keyspace, old.name, view.name
                        )));
                    }
                    altered = altered.without_column(column, now)?;
                }
            }
            Alteration::Rename(renames) => {
                for (old, new) in renames {
                    altered = altered.with_renamed(old, new)?;
                    for view in &mut views {
                        *view = view.with_renamed(old, new)?;
                    }
                }
            }
            Alteration::With(options) => set_options(&mut altered, options)?,
        }
        let (keyspace, name) = (old.keyspace.as_str(), old.name.as_str());
        for table in views.into_iter().chain([altered]) {
            self.forget(keyspace, Some(&table.name));
            self.put_table(table)?;
        }
        Ok(Change::table(Verb::Updated, keyspace, name))
    }

    pub(super) fn drop_table(
        &mut self,
        table: &TableName,
        if_exists: bool,
        current: Option<&str>,
    ) -> Result<Change> {
        let (keyspace_name, name) = qualified(table, current)?;
        let exists = self
            .catalogue
            .keyspace(keyspace_name)
            .is_some_and(|keyspace| keyspace.tables.contains_key(name));
        if if_exists && !exists {
            return Ok(Change::Nothing);
        }
        let keyspace = self.user_keyspace(keyspace_name)?;
        let dropped = keyspace.tables.get(name).cloned().ok_or_else(|| {
            CqlError::Invalid(format!(
                "Cannot drop non existing table '{name}' in '{keyspace_name}'"
            ))
        })?;
        if dropped.view.is_some() {
            return Err(CqlError::invalid(
                "Cannot use DROP TABLE on Materialized View",
            ));
        }
        let views: Vec<&str> = keyspace
            .views_of(&dropped)
            .map(|view| view.name.as_str())
            .collect();
        if !views.is_empty() {
            return Err(CqlError::Invalid(format!(
                "Cannot drop table when materialized views still depend on it \
                 ({keyspace_name}.{{{}}})",
                views.join(", ")
            )));
        }
        self.remove_table(&dropped)?;
        Ok(Change::table(Verb::Dropped, keyspace_name, name))
    }

    /// Takes a table and all that belongs to it away.
    pub(super) fn remove_table(&mut self, table: &Table) -> Result<()> {
        self.user_keyspace(&table.keyspace)?
            .tables
            .remove(&table.name);
        self.store.clear(&table.id);
        self.tablets.remove(&table.id);
        self.forget(&table.keyspace, Some(&table.name));
        Ok(())
    }
}

/// Clustering columns with "descending".
pub(super) fn clustering(
    columns: &[String],
    order: &[(String, bool)],
) -> Result<Vec<(String, bool)>> {
    for (column, _) in order {
        if !columns.contains(column) {
            return Err(CqlError::Invalid(format!(
                "Missing or wrong column {column} in CLUSTERING ORDER BY"
            )));
        }
    }
    let descending = |column: &String| {
        order
            .iter()
            .any(|(ordered, descending)| ordered == column && *descending)
    };
    Ok(columns
        .iter()
        .map(|column| (column.clone(), descending(column)))
        .collect())
}

/// Options that a node shows and a simulated one has no use for.
const SHOWN: [&str; 17] = [
    "bloom_filter_fp_chance",
    "caching",
    "compaction",
    "compression",
    "crc_check_chance",
    "dclocal_read_repair_chance",
    "extensions",
    "gc_grace_seconds",
    "in_memory",
    "max_index_interval",
    "memtable_flush_period_in_ms",
    "min_index_interval",
    "paxos_grace_seconds",
    "read_repair_chance",
    "speculative_retry",
    "synchronous_updates",
    "tombstone_gc",
];

/// Sets what is known; what is not is refused.
pub(super) fn set_options(table: &mut Table, options: &Options) -> Result<()> {
    for (name, value) in options {
        match (name.as_str(), value) {
            ("comment", OptionValue::Word(word)) => table.comment.clone_from(word),
            ("default_time_to_live", _) => table.default_ttl = default_ttl(table, value)?,
            ("cdc", OptionValue::Map(entries)) => {
                let is_on = |(key, value): &(String, String)| {
                    key == "enabled" && !value.eq_ignore_ascii_case("false")
                };
                if entries.iter().any(is_on) {
                    return Err(CqlError::invalid("CDC is not supported by this node"));
                }
            }
            (known, _) if SHOWN.contains(&known) || known == rate_limit::OPTION => {
                if let (rate_limit::OPTION, OptionValue::Map(entries)) = (known, value) {
                    rate_limit::check(entries)?;
                }
                table.options.retain(|(other, _)| other != name);
                table.options.push((name.clone(), value.clone()));
            }
            _ => return Err(CqlError::Syntax(format!("Unknown property '{name}'"))),
        }
    }
    Ok(())
}

fn default_ttl(table: &Table, value: &OptionValue) -> Result<i32> {
    let seconds = match value {
        OptionValue::Word(word) => word.parse::<i32>().ok(),
        OptionValue::Map(_) => None,
    };
    match seconds {
        Some(1..) if table.is_counter() => Err(CqlError::invalid(
            "Cannot set default_time_to_live on a table with counters",
        )),
        Some(seconds @ 0..=TTL_MAX_SECONDS) => Ok(seconds),
        _ => Err(CqlError::Config(format!(
            "default_time_to_live must be between 0 and {TTL_MAX_SECONDS}"
        ))),
    }
}
