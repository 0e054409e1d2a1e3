//! CREATE, ALTER and DROP KEYSPACE.

use std::collections::BTreeMap;

use super::super::super::cluster::Cluster;
use super::super::super::cql::{OptionValue, Options};
use super::super::super::error::CqlError;
use super::super::super::schema::{Keyspace, Replication};
use super::super::Result;
use super::{Change, Verb, check_name};

impl Cluster {
    pub(super) fn create_keyspace(
        &mut self,
        name: &str,
        if_not_exists: bool,
        options: &Options,
        warnings: &mut Vec<String>,
    ) -> Result<Change> {
        if self.catalogue.keyspace(name).is_some() {
            if if_not_exists {
                return Ok(Change::existed(Verb::Created, name));
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
            self.check_keyspace_option(option)?;
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
                ("storage", OptionValue::Map(_)) => {
                    return Err(CqlError::invalid(
                        "keyspace storage options are not supported by this node",
                    ));
                }
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
        Ok(Change::made(Verb::Created, name))
    }

    /// A cluster of plain nodes does not know what only ScyllaDB has.
    fn check_keyspace_option(&self, option: &str) -> Result<()> {
        let is_own = matches!(option, "tablets" | "consistency" | "storage");
        if is_own && self.options.nodes.iter().all(|node| node.plain) {
            return Err(CqlError::Syntax(format!("Unknown property '{option}'")));
        }
        Ok(())
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

    pub(super) fn alter_keyspace(&mut self, name: &str, options: &Options) -> Result<Change> {
        let mut altered = self.user_keyspace(name)?.clone();
        for (option, value) in options {
            self.check_keyspace_option(option)?;
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
        Ok(Change::made(Verb::Updated, name))
    }

    pub(super) fn drop_keyspace(&mut self, name: &str, if_exists: bool) -> Result<Change> {
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
        Ok(Change::made(Verb::Dropped, name))
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
