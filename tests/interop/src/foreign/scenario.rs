//! The scenario as the harness reads it: which checks a cluster asks for and what they must give.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::driver::Driver;
use crate::target;

/// `scenario.json`.
#[derive(Debug, Clone)]
pub struct Scenario(Value);

/// Where `scenario.json` lies.
#[must_use]
pub fn scenario_file() -> PathBuf {
    target::crate_folder().join("scenario.json")
}

impl Scenario {
    /// Reads the file.
    ///
    /// # Errors
    /// Fails when it cannot be read or is no JSON.
    pub fn read() -> Result<Self> {
        let text = fs::read_to_string(scenario_file()).context("cannot read scenario.json")?;
        Self::parse(&text)
    }

    /// From text.
    ///
    /// # Errors
    /// Fails when it is no JSON object.
    pub fn parse(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text).context("the scenario is no JSON")?;
        ensure!(
            value["clusters"].is_object(),
            "the scenario has no clusters"
        );
        Ok(Self(value))
    }

    /// What it says of a cluster.
    ///
    /// # Errors
    /// Fails when it does not know the cluster.
    pub fn cluster(&self, name: &str) -> Result<&Value> {
        self.0["clusters"]
            .get(name)
            .with_context(|| format!("the scenario knows no cluster {name}"))
    }

    /// Rows that each table of a cluster holds.
    ///
    /// # Errors
    /// Fails when it says nothing of them.
    pub fn rows(&self, cluster: &str) -> Result<u64> {
        let rows = self.cluster(cluster)?["rows"].as_u64();
        rows.or_else(|| self.0["rows"].as_u64())
            .context("no rows in the scenario")
    }

    /// Rows of a page.
    ///
    /// # Errors
    /// Fails when it says nothing of it.
    pub fn page_size(&self) -> Result<u64> {
        self.0["page_size"]
            .as_u64()
            .context("no page_size in the scenario")
    }

    /// The kinds of table of a cluster.
    ///
    /// # Errors
    /// Fails when it does not know the cluster.
    pub fn tables(&self, cluster: &str) -> Result<Vec<&str>> {
        let tables = self.cluster(cluster)?["tables"]
            .as_array()
            .context("no tables")?;
        Ok(tables.iter().filter_map(Value::as_str).collect())
    }

    /// Every check that `driver` must report of a cluster, with the table that it is about.
    ///
    /// # Errors
    /// Fails when it does not know the cluster.
    pub fn checks(&self, driver: Driver, cluster: &str) -> Result<Vec<(&'static str, String)>> {
        let mut checks = vec![("connect", String::new())];
        for table in self.tables(cluster)? {
            let of_table = [
                "schema",
                "prepare",
                "write",
                "read",
                "warm_write",
                "warm_read",
                "pages",
            ];
            checks.extend(of_table.into_iter().filter_map(|check| {
                let left_out = match check {
                    // It prepares by itself and shows nobody what it got.
                    "prepare" => driver == Driver::JavaScript,
                    // A strongly consistent table answers for one partition at a time.
                    "pages" => table == "strong",
                    _ => false,
                };
                (!left_out).then(|| (check, table.to_owned()))
            }));
        }
        if self.cluster(cluster)?["features"].is_string() {
            let features = [
                "collections",
                "udt",
                "lwt",
                "batch",
                "counter",
                "queries",
                "errors",
            ];
            checks.extend(features.map(|check| (check, String::new())));
        }
        Ok(checks)
    }

    /// What a check must have seen, where that is the same for every driver.
    ///
    /// # Errors
    /// Fails when it does not know the cluster.
    pub fn expected(&self, check: &str, cluster: &str) -> Result<Option<Value>> {
        let expect = |part: &str| self.0[part]["expect"].clone();
        Ok(Some(match check {
            "schema" | "prepare" => expect("table")[check].clone(),
            "lwt" => {
                let answers = self.cluster(cluster)?["answers"]
                    .as_str()
                    .context("no answers")?;
                let expect = expect("lwt");
                json!({ "steps": expect[answers], "row": expect["row"] })
            }
            "collections" | "udt" | "batch" | "counter" | "queries" | "errors" => expect(check),
            _ => return Ok(None),
        }))
    }

    /// Queries of a check whose rows may come in any order.
    #[must_use]
    pub fn any_order(&self, check: &str) -> Vec<&str> {
        let names = self.0[check]["any_order"].as_array().into_iter().flatten();
        names.filter_map(Value::as_str).collect()
    }
}
