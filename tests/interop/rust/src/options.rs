//! The command line, the same as that of the other drivers' programs.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// What to visit and how.
pub(crate) struct Options {
    pub(crate) contact: String,
    pub(crate) user: Option<String>,
    pub(crate) control: Option<String>,
    pub(crate) scenario: Value,
    /// The scenario's entry of the cluster.
    pub(crate) cluster: Value,
}

impl Options {
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut given = BTreeMap::new();
        while let Some(name) = arguments.next() {
            let value = arguments.next().with_context(|| format!("{name} what?"))?;
            given.insert(name, value);
        }
        let mut take = |name: &str| given.remove(name);
        let contact = take("--contact").context("--contact is missing")?;
        let (user, control) = (take("--user"), take("--control"));
        let file = take("--scenario").context("--scenario is missing")?;
        let name = take("--cluster").context("--cluster is missing")?;
        if let Some((name, _)) = given.first_key_value() {
            bail!("{name} is not known");
        }
        let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
        let scenario: Value = serde_json::from_str(&text)?;
        let cluster = scenario["clusters"][&name].clone();
        if cluster.is_null() {
            bail!("the scenario knows no cluster {name}");
        }
        Ok(Self {
            contact,
            user,
            control,
            scenario,
            cluster,
        })
    }
}
