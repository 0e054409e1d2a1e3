//! CREATE, ALTER and DROP: changes of the catalogue, told to every registered connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::cluster::Cluster;
use super::super::connection::EventKind;
use super::super::cql::{
    Alteration, CreateTable, Dropped, OptionValue, Options, SchemaStatement, TableName,
};
use super::super::error::CqlError;
use super::super::schema::{Keyspace, Replication, Table};
use super::{Executed, Outcome, Result};

/// What a SCHEMA_CHANGE says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchemaChange {
    pub(crate) change: &'static str,
    pub(crate) keyspace: String,
    /// None for the keyspace itself.
    pub(crate) table: Option<String>,
}

impl SchemaChange {
    pub(crate) fn target(&self) -> &'static str {
        if self.table.is_some() {
            "TABLE"
        } else {
            "KEYSPACE"
        }
    }
}

/// A done change: to be announced or not.
enum Change {
    Made(SchemaChange),
    /// `IF NOT EXISTS` found it: only the requester hears of it.
    Existed(SchemaChange),
    Nothing,
}

fn created(keyspace: &str, table: Option<&str>) -> SchemaChange {
    let table = table.map(str::to_owned);
    SchemaChange {
        change: "CREATED",
        keyspace: keyspace.to_owned(),
        table,
    }
}

impl Cluster {
    pub(super) fn change_schema(
        &mut self,
        statement: &SchemaStatement,
        current: Option<&str>,
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
                self.alter_table(table, alteration, current)?
            }
            SchemaStatement::Drop {
                kind: Dropped::Table,
                name,
                if_exists,
            } => self.drop_table(name, *if_exists, current)?,
            _ => {
                return Err(CqlError::invalid(
                    "this kind of schema object is not supported",
                ));
            }
        };
        let outcome = match change {
            Change::Made(change) => {
                self.catalogue.bump();
                self.announce_schema(&change);
                Outcome::SchemaChange(change)
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
        // The connection being served is not in the map; it takes its own event from here.
        self.own_event = Some(change.clone());
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

    fn create_keyspace(
        &mut self,
        name: &str,
        if_not_exists: bool,
        options: &Options,
        warnings: &mut Vec<String>,
    ) -> Result<Change> {
        if self.catalogue.keyspace(name).is_some() {
            if if_not_exists {
                return Ok(Change::Existed(created(name, None)));
            }
            return Err(CqlError::AlreadyExists {
                keyspace: name.to_owned(),
                table: String::new(),
            });
        }
        check_name(name)?;
        let mut keyspace = Keyspace {
            name: name.to_owned(),
            replication: Replication::Local,
            durable_writes: true,
            tablets: None,
            consistency: None,
            types: BTreeMap::new(),
            tables: BTreeMap::new(),
            is_system: false,
        };
        let mut tablets_option = None;
        for (option, value) in options {
            match (option.as_str(), value) {
                ("replication", OptionValue::Map(entries)) => {
                    keyspace.replication = self.replication(entries)?;
                }
                ("durable_writes", OptionValue::Word(word)) => {
                    keyspace.durable_writes = word.eq_ignore_ascii_case("true");
                }
                ("tablets", OptionValue::Map(entries)) => tablets_option = Some(entries),
                ("consistency", OptionValue::Word(word)) => {
                    keyspace.consistency = Some(consistency_option(word)?);
                }
                ("storage", OptionValue::Map(_)) => {}
                _ => {
                    return Err(CqlError::Syntax(format!("Unknown property '{option}'")));
                }
            }
        }
        if keyspace.replication == Replication::Local {
            return Err(CqlError::Config(
                "Missing mandatory replication strategy class".to_owned(),
            ));
        }
        let is_topology = matches!(keyspace.replication, Replication::NetworkTopology { .. });
        let offered = self
            .options
            .nodes
            .iter()
            .any(|node| node.tablets.v1() || node.tablets.v2());
        keyspace.tablets = tablets_of(tablets_option, is_topology, offered, warnings)?;
        if keyspace.is_strong() && keyspace.tablets.is_none() {
            return Err(CqlError::Config(
                "Strongly consistent keyspaces require tablets".to_owned(),
            ));
        }
        self.catalogue.keyspaces.insert(name.to_owned(), keyspace);
        Ok(Change::Made(created(name, None)))
    }

    fn replication(&self, entries: &[(String, String)]) -> Result<Replication> {
        let config = |text: String| CqlError::Config(text);
        let class = entries
            .iter()
            .find(|(key, _)| key == "class")
            .map(|(_, class)| class.rsplit('.').next().unwrap_or(""))
            .ok_or_else(|| config("Missing mandatory replication strategy class".to_owned()))?;
        let mut factors = BTreeMap::new();
        let mut general = None;
        for (key, value) in entries.iter().filter(|(key, _)| key != "class") {
            let factor: u32 = value
                .parse()
                .map_err(|_| config(format!("Replication factor must be numeric: {value}")))?;
            if key == "replication_factor" {
                general = Some(factor);
            } else {
                if !self.places.iter().any(|place| place.datacenter == *key) {
                    let text = format!("Unrecognized strategy option {{{key}}} passed to {class}");
                    return Err(config(text));
                }
                factors.insert(key.clone(), factor);
            }
        }
        match class {
            "SimpleStrategy" => general
                .map(|factor| Replication::Simple { factor })
                .ok_or_else(|| config("SimpleStrategy requires a replication_factor".to_owned())),
            "NetworkTopologyStrategy" => {
                if let Some(factor) = general {
                    for place in self.places.iter().filter(|place| !place.zero_token) {
                        factors.entry(place.datacenter.clone()).or_insert(factor);
                    }
                }
                factors.retain(|_, factor| *factor > 0);
                Ok(Replication::NetworkTopology { factors })
            }
            other => Err(config(format!(
                "Unable to find replication strategy class '{other}'"
            ))),
        }
    }

    fn alter_keyspace(&mut self, name: &str, options: &Options) -> Result<Change> {
        let mut altered = self.user_keyspace(name)?.clone();
        for (option, value) in options {
            match (option.as_str(), value) {
                ("replication", OptionValue::Map(entries)) => {
                    let replication = self.replication(entries)?;
                    if altered.tablets.is_some() && replication != altered.replication {
                        return Err(CqlError::invalid(
                            "altering the replication of tablet keyspaces is not supported",
                        ));
                    }
                    altered.replication = replication;
                }
                ("durable_writes", OptionValue::Word(word)) => {
                    altered.durable_writes = word.eq_ignore_ascii_case("true");
                }
                ("consistency", _) => {
                    return Err(CqlError::invalid(
                        "Cannot alter the consistency of a keyspace",
                    ));
                }
                _ => return Err(CqlError::Syntax(format!("Unknown property '{option}'"))),
            }
        }
        self.catalogue.keyspaces.insert(name.to_owned(), altered);
        let keyspace = name.to_owned();
        Ok(Change::Made(SchemaChange {
            change: "UPDATED",
            keyspace,
            table: None,
        }))
    }

    fn drop_keyspace(&mut self, name: &str, if_exists: bool) -> Result<Change> {
        if if_exists && self.catalogue.keyspace(name).is_none() {
            return Ok(Change::Nothing);
        }
        let ids: Vec<_> = self
            .user_keyspace(name)?
            .tables
            .values()
            .map(|table| table.id)
            .collect();
        for id in ids {
            self.store.clear(&id);
            self.tablets.remove(&id);
        }
        self.catalogue.keyspaces.remove(name);
        self.forget(name, None);
        let keyspace = name.to_owned();
        Ok(Change::Made(SchemaChange {
            change: "DROPPED",
            keyspace,
            table: None,
        }))
    }

    fn create_table(&mut self, create: &CreateTable, current: Option<&str>) -> Result<Change> {
        let (keyspace_name, name) = qualified(&create.table, current)?;
        let keyspace = self.user_keyspace(keyspace_name)?.clone();
        if keyspace.tables.contains_key(name) {
            if create.if_not_exists {
                return Ok(Change::Existed(created(keyspace_name, Some(name))));
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
        let clustering = clustering(create)?;
        let id = self.catalogue.next_id();
        let names = (keyspace_name, name);
        let mut table = Table::new(id, names, columns, &create.partition, &clustering)?;
        table.comment = comment_of(&create.options).unwrap_or_default();
        table.default_ttl = default_ttl_of(&create.options, &table)?.unwrap_or_default();
        if keyspace.tablets.is_some() {
            self.tablets.insert(id, self.place_tablets(&keyspace)?);
        }
        self.user_keyspace(keyspace_name)?
            .tables
            .insert(name.to_owned(), Arc::new(table));
        Ok(Change::Made(created(keyspace_name, Some(name))))
    }

    fn alter_table(
        &mut self,
        table: &TableName,
        alteration: &Alteration,
        current: Option<&str>,
    ) -> Result<Change> {
        let (keyspace, name) = qualified(table, current)?;
        let old = self
            .user_keyspace(keyspace)?
            .tables
            .get(name)
            .cloned()
            .ok_or_else(|| CqlError::Invalid(format!("unconfigured table {name}")))?;
        let mut altered = Table::clone(&old);
        match alteration {
            Alteration::Add(columns) => {
                for column in columns {
                    let column = self.user_keyspace(keyspace)?.column(column)?;
                    altered = altered.with_column(&column)?;
                }
            }
            Alteration::Drop(columns) => {
                for column in columns {
                    altered = altered.without_column(column)?;
                }
            }
            Alteration::Rename(_) => {
                return Err(CqlError::invalid(
                    "renaming of columns is not supported yet",
                ));
            }
            Alteration::With(options) => {
                if let Some(comment) = comment_of(options) {
                    altered.comment = comment;
                }
                if let Some(seconds) = default_ttl_of(options, &altered)? {
                    altered.default_ttl = seconds;
                }
            }
        }
        self.user_keyspace(keyspace)?
            .tables
            .insert(name.to_owned(), Arc::new(altered));
        self.forget(keyspace, Some(name));
        Ok(Change::Made(SchemaChange {
            change: "UPDATED",
            keyspace: keyspace.to_owned(),
            table: Some(name.to_owned()),
        }))
    }

    fn drop_table(
        &mut self,
        table: &TableName,
        if_exists: bool,
        current: Option<&str>,
    ) -> Result<Change> {
        let (keyspace, name) = qualified(table, current)?;
        let exists = self
            .catalogue
            .keyspace(keyspace)
            .is_some_and(|k| k.tables.contains_key(name));
        if if_exists && !exists {
            return Ok(Change::Nothing);
        }
        let dropped = self
            .user_keyspace(keyspace)?
            .tables
            .remove(name)
            .ok_or_else(|| {
                CqlError::Invalid(format!(
                    "Cannot drop non existing table '{name}' in '{keyspace}'"
                ))
            })?;
        self.store.clear(&dropped.id);
        self.tablets.remove(&dropped.id);
        self.forget(keyspace, Some(name));
        Ok(Change::Made(SchemaChange {
            change: "DROPPED",
            keyspace: keyspace.to_owned(),
            table: Some(name.to_owned()),
        }))
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

fn clustering(create: &CreateTable) -> Result<Vec<(String, bool)>> {
    for (column, _) in &create.order {
        if !create.clustering.contains(column) {
            return Err(CqlError::Invalid(format!(
                "Missing or wrong column {column} in CLUSTERING ORDER BY"
            )));
        }
    }
    let descending = |column: &String| {
        create
            .order
            .iter()
            .any(|(ordered, descending)| ordered == column && *descending)
    };
    Ok(create
        .clustering
        .iter()
        .map(|column| (column.clone(), descending(column)))
        .collect())
}

fn comment_of(options: &Options) -> Option<String> {
    options.iter().find_map(|(name, value)| match value {
        OptionValue::Word(word) if name == "comment" => Some(word.clone()),
        _ => None,
    })
}

fn default_ttl_of(options: &Options, table: &Table) -> Result<Option<i32>> {
    const NAME: &str = "default_time_to_live";
    let Some((_, value)) = options.iter().find(|(name, _)| name == NAME) else {
        return Ok(None);
    };
    let seconds = match value {
        OptionValue::Word(word) => word.parse::<i32>().ok(),
        OptionValue::Map(_) => None,
    };
    match seconds {
        Some(1..) if table.is_counter() => Err(CqlError::invalid(
            "Cannot set default_time_to_live on a table with counters",
        )),
        Some(seconds @ 0..=super::modify::TTL_MAX_SECONDS) => Ok(Some(seconds)),
        _ => Err(CqlError::Config(format!(
            "{NAME} must be between 0 and {}",
            super::modify::TTL_MAX_SECONDS
        ))),
    }
}

fn consistency_option(word: &str) -> Result<String> {
    match word {
        "eventual" | "global" => Ok(word.to_owned()),
        "local" => Err(CqlError::Config(
            "Local consistency is not supported yet".to_owned(),
        )),
        other => Err(CqlError::Config(format!(
            "Unknown consistency option '{other}'"
        ))),
    }
}

/// Tablets are the default of NetworkTopologyStrategy where any node speaks of them.
fn tablets_of(
    option: Option<&Vec<(String, String)>>,
    is_topology: bool,
    offered: bool,
    warnings: &mut Vec<String>,
) -> Result<Option<u32>> {
    let Some(entries) = option else {
        return Ok((is_topology && offered).then_some(0));
    };
    let mut enabled = true;
    let mut initial = 0;
    for (key, value) in entries {
        match key.as_str() {
            "enabled" => enabled = value.eq_ignore_ascii_case("true"),
            "initial" => {
                initial = value.parse().map_err(|_| {
                    CqlError::Config(format!(
                        "Initial number of tablets is not a number: {value}"
                    ))
                })?;
            }
            other => {
                let text = format!("Unrecognized tablets option {other}");
                return Err(CqlError::Config(text));
            }
        }
    }
    if !enabled {
        return Ok(None);
    }
    if !is_topology {
        let text = "tablets are supported with NetworkTopologyStrategy only";
        return Err(CqlError::Config(text.to_owned()));
    }
    if initial > MAP_LEN_MAX {
        let text = format!("Initial number of tablets is too large: {initial}");
        return Err(CqlError::Config(text));
    }
    if initial > 0 {
        warnings.push(
            "The 'initial' option of tablets is deprecated; use the table's tablets options"
                .to_owned(),
        );
    }
    Ok(Some(initial))
}

/// Most tablets of one table.
const MAP_LEN_MAX: u32 = 65_536;
