//! Whether what a driver saw is right, and where its requests arrived.
//!
//! Values are compared with the scenario's. Where requests arrived is taken from the simulator's
//! counters around the second round of writes and reads of a table, when the driver can have
//! learned everything: each such request must reach the owning node and shard, and the leader of a
//! strongly consistent table, if the driver claims to know them.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};

use super::{
    driver::{Account, Driver},
    scenario::Scenario,
    simulator::{NODES, SHARDS},
};

/// Share of warm requests that must arrive where they belong.
const SHARE_MIN: f64 = 0.995;

/// What came of one check.
#[derive(Debug)]
#[non_exhaustive]
pub struct Verdict {
    /// The check, and the table that it is about.
    pub name: String,
    /// What it saw, or what is wrong.
    pub result: Result<String>,
}

/// Where a driver's warm requests arrived, as shares of all of them.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Shares {
    /// At a node that holds the row (of a strongly consistent table too).
    pub owner_node: f64,
    /// At the shard that holds it.
    pub owner_shard: f64,
    /// At the leader, of those that need it.
    pub leader: Option<f64>,
}

/// What a driver's whole visit took, by the simulator's counters, up to the errors that the scenario
/// provokes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waste {
    /// Connections accepted.
    pub connections: u64,
    /// Routing attached to answers.
    pub payloads: u64,
    /// Requests answered with an error.
    pub error_answers: u64,
}

/// One driver's way through one cluster, judged.
#[derive(Debug)]
#[non_exhaustive]
pub struct Visit {
    /// The driver's package.
    pub driver: String,
    /// And its version.
    pub version: String,
    /// Which of the scenario's clusters.
    pub cluster: String,
    /// One for each check.
    pub verdicts: Vec<Verdict>,
    /// Rows written and read as written, over all tables.
    pub rows: u64,
    /// By table; empty where nothing counts.
    pub shares: Vec<(String, Shares)>,
    /// What the whole visit took; `None` where nothing counts.
    pub waste: Option<Waste>,
    /// Of the whole program.
    pub seconds: f64,
}

impl Scenario {
    /// Judges a program's account; `base` holds the simulator's counters from before it began.
    ///
    /// # Errors
    /// Fails when the scenario does not know the cluster.
    pub fn judge(
        &self,
        driver: Driver,
        cluster: &str,
        account: &Account,
        base: Option<&Value>,
    ) -> Result<Visit> {
        let mut verdicts = Vec::new();
        let mut rows = 0;
        for (check, table) in self.checks(driver, cluster)? {
            let result = account
                .saw(check, &table)
                .and_then(|saw| self.judge_one(driver, cluster, check, &table, saw));
            if check == "read" && result.is_ok() {
                rows += self.rows(cluster)?;
            }
            let name = if table.is_empty() {
                check.to_owned()
            } else {
                format!("{check} {table}")
            };
            verdicts.push(Verdict { name, result });
        }
        let waste = base.and_then(|base| Waste::during(base, self.last_look(cluster, account)?));
        if let Some(waste) = waste.filter(|_| driver.is_shard_aware()) {
            let result = waste.judge(cluster);
            verdicts.push(Verdict {
                name: "waste".to_owned(),
                result,
            });
        }
        Ok(Visit {
            driver: account.driver.clone(),
            version: account.version.clone(),
            cluster: cluster.to_owned(),
            verdicts,
            rows,
            shares: self.shares(cluster, account)?,
            waste,
            seconds: account.seconds,
        })
    }

    /// The counters before the scenario provokes errors, or at the end of a visit that does not.
    fn last_look<'a>(&self, cluster: &str, account: &'a Account) -> Option<&'a Value> {
        if let Ok(saw) = account.saw("errors", "") {
            return Some(&saw["before"]);
        }
        let table = self.tables(cluster).ok()?.pop()?;
        Some(&account.saw("warm_read", table).ok()?["after"])
    }

    fn judge_one(
        &self,
        driver: Driver,
        cluster: &str,
        check: &str,
        table: &str,
        saw: &Value,
    ) -> Result<String> {
        if let Some(expected) = self.expected(check, cluster)? {
            return as_expected(&expected, saw, &self.any_order(check));
        }
        let rows = self.rows(cluster)?;
        match check {
            "connect" => connected(driver, cluster, saw),
            "write" => all(saw, "written", rows),
            "read" => all(saw, "same", rows),
            "warm_write" => {
                all(saw, "written", rows).and_then(|_| routed(driver, table, saw, rows))
            }
            "warm_read" => all(saw, "same", rows).and_then(|_| routed(driver, table, saw, rows)),
            "pages" => paged(saw, rows, self.page_size()?),
            other => anyhow::bail!("nothing is known of the check {other}"),
        }
    }

    /// Where the warm requests of each table arrived.
    fn shares(&self, cluster: &str, account: &Account) -> Result<Vec<(String, Shares)>> {
        let mut shares = Vec::new();
        for table in self.tables(cluster)? {
            let mut sums = Counts::default();
            for check in ["warm_write", "warm_read"] {
                if let Some(counts) = account.saw(check, table).ok().and_then(Counts::during) {
                    sums = sums.plus(counts);
                }
            }
            shares.extend(sums.shares().map(|shares| (table.to_owned(), shares)));
        }
        Ok(shares)
    }
}

/// Equal but for what only the harness looks at: the counters of the simulator. Rows of the
/// queries in `any_order` may come in any.
fn as_expected(expected: &Value, saw: &Value, any_order: &[&str]) -> Result<String> {
    let expected = expected
        .as_object()
        .context("the scenario expects nothing")?;
    let mut saw = saw.as_object().context("it saw no fields")?.clone();
    saw.remove("before");
    for (name, wanted) in expected {
        let got = saw.remove(name).with_context(|| format!("no {name}"))?;
        let same = if any_order.contains(&name.as_str()) {
            got["columns"] == wanted["columns"] && sorted_rows(&got) == sorted_rows(wanted)
        } else {
            got == *wanted
        };
        ensure!(same, "{name}: wanted {wanted}, saw {got}");
    }
    ensure!(saw.is_empty(), "it saw more: {}", json!(saw));
    Ok("as the scenario says".to_owned())
}

fn sorted_rows(answer: &Value) -> Vec<String> {
    let rows = answer["rows"].as_array().into_iter().flatten();
    let mut rows: Vec<String> = rows.map(Value::to_string).collect();
    rows.sort();
    rows
}

fn connected(driver: Driver, cluster: &str, saw: &Value) -> Result<String> {
    let has_shards = has_shards(cluster);
    let hosts = if cluster == "cassandra" {
        1
    } else {
        u64::from(NODES)
    };
    let got = number(saw, "hosts")?;
    ensure!(got == hosts, "it knows {got} nodes, wanted {hosts}");
    let mut said = format!("{hosts} nodes, protocol {}", saw["protocol"]);
    if driver.is_shard_aware() {
        ensure!(
            saw["shard_aware"] == has_shards,
            "shard_aware is {}",
            saw["shard_aware"]
        );
        let pools = saw["pools"].as_object().context("no pools")?;
        let wanted = if has_shards { usize::from(NODES) } else { 0 };
        ensure!(
            pools.len() == wanted,
            "{} pools: {}",
            pools.len(),
            json!(pools)
        );
        for (endpoint, pool) in pools {
            let shards = number(pool, "shards_count")?;
            ensure!(
                shards == u64::from(SHARDS),
                "{endpoint} has {shards} shards"
            );
            // The crate does not tell its connections.
            let connected = driver == Driver::Rust || pool["connected"] == SHARDS;
            ensure!(connected, "{endpoint} has {pool}");
        }
        said.push_str(if has_shards {
            ", shard aware"
        } else {
            ", no shards"
        });
    }
    if driver == Driver::Python {
        let agreed = saw["extensions"].as_array().context("no extensions")?;
        let tablets = |version: &str| agreed.contains(&json!(format!("tablets_routing_{version}")));
        let wanted = (cluster == "v1", has_shards && cluster != "v1");
        let got = (tablets("v1"), tablets("v2"));
        ensure!(got == wanted, "it agreed on {}", json!(agreed));
        said.push_str(&format!(", agreed on {}", json!(agreed)));
    }
    Ok(said)
}

fn all(saw: &Value, name: &str, wanted: u64) -> Result<String> {
    let got = number(saw, name)?;
    let error = saw["first_error"].as_str().unwrap_or_default();
    ensure!(got == wanted, "{name} {got} of {wanted} {error}");
    Ok(format!("{wanted} {name}"))
}

fn paged(saw: &Value, rows: u64, page_size: u64) -> Result<String> {
    for name in ["rows", "known", "count"] {
        all(saw, name, rows)?;
    }
    let (pages, longest) = (number(saw, "pages")?, number(saw, "longest")?);
    ensure!(longest <= page_size, "a page of {longest} rows");
    // A last page may be empty, and so may be pages on the way.
    ensure!(
        (rows / page_size..=2 * rows / page_size).contains(&pages),
        "{rows} rows in {pages} pages"
    );
    Ok(format!("{rows} rows in {pages} pages, COUNT(*) = {rows}"))
}

/// The simulator's counters of a warm round, for those that know where requests belong.
fn routed(driver: Driver, table: &str, saw: &Value, rows: u64) -> Result<String> {
    let Some(counts) = Counts::during(saw) else {
        return Ok(format!("{rows} rows, nothing counts here"));
    };
    ensure!(
        counts.requests == rows,
        "{} requests for {rows} rows",
        counts.requests
    );
    let shares = counts.shares().context("no requests")?;
    let knows_ring = driver.is_shard_aware() || matches!(table, "vnode" | "plain");
    let knows_shards = driver.is_shard_aware() && table != "plain";
    let enough = |share: f64, what: &str, claimed: bool| {
        ensure!(
            !claimed || share >= SHARE_MIN,
            "{:.1} % {what}",
            share * 100.0
        );
        Ok(())
    };
    enough(shares.owner_node, "at the owning node", knows_ring)?;
    enough(shares.owner_shard, "at the owning shard", knows_shards)?;
    if table == "strong" {
        let leader = shares.leader.context("no request needed the leader")?;
        enough(leader, "at the leader", driver.is_shard_aware())?;
    }
    if driver == Driver::Rust && knows_shards {
        // It tells no connections, but the shard that answered.
        let reached = number(saw, "shards_reached")?;
        let whole = u64::from(NODES) * u64::from(SHARDS);
        ensure!(reached == whole, "{reached} of {whole} shards answered");
    }
    if driver.is_shard_aware() {
        let payloads = counts.payloads as f64;
        ensure!(
            payloads <= (1.0 - SHARE_MIN) * rows as f64,
            "{payloads} payloads when warm"
        );
    }
    Ok(shares.to_string())
}

impl Waste {
    fn during(base: &Value, last: &Value) -> Option<Self> {
        let count = |name| sum(last, name)?.checked_sub(sum(base, name)?);
        Some(Self {
            connections: count("connections")?,
            payloads: count("payloads")?,
            error_answers: count("errors")?,
        })
    }

    /// A connection for each shard and one for control, which takes the shard-aware port (the
    /// regular one gives shards by chance) and may come down from a newer protocol; and no answer
    /// that was an error, but where ScyllaDB's own tables are asked for in vain.
    fn judge(self, cluster: &str) -> Result<String> {
        let whole = u64::from(NODES) * u64::from(SHARDS) + 1;
        let fair = if has_shards(cluster) {
            whole..=whole + 3
        } else {
            u64::from(NODES) + 1..=whole
        };
        let connections = self.connections;
        ensure!(
            fair.contains(&connections),
            "{connections} connections, wanted {fair:?}"
        );
        let errors = self.error_answers;
        ensure!(
            errors == 0 || !has_shards(cluster),
            "{errors} answers were errors"
        );
        Ok(format!(
            "{connections} connections, {} payloads, {errors} errors",
            self.payloads
        ))
    }
}

/// What the simulator counted between two looks, over all nodes.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    requests: u64,
    at_owner_node: u64,
    at_owner_shard: u64,
    needing_leader: u64,
    at_leader: u64,
    payloads: u64,
}

impl Counts {
    fn during(saw: &Value) -> Option<Self> {
        let count = |name| sum(&saw["after"], name)?.checked_sub(sum(&saw["before"], name)?);
        Some(Self {
            requests: count("requests")?,
            at_owner_node: count("at_owner_node")?,
            at_owner_shard: count("at_owner_shard")?,
            needing_leader: count("needing_leader")?,
            at_leader: count("at_leader")?,
            payloads: count("payloads")?,
        })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            at_owner_node: self.at_owner_node + other.at_owner_node,
            at_owner_shard: self.at_owner_shard + other.at_owner_shard,
            needing_leader: self.needing_leader + other.needing_leader,
            at_leader: self.at_leader + other.at_leader,
            payloads: self.payloads + other.payloads,
        }
    }

    fn shares(self) -> Option<Shares> {
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        Some(Shares {
            owner_node: share(self.at_owner_node, self.requests)?,
            owner_shard: share(self.at_owner_shard, self.requests)?,
            leader: share(self.at_leader, self.needing_leader),
        })
    }
}

impl core::fmt::Display for Shares {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (node, shard) = (self.owner_node * 100.0, self.owner_shard * 100.0);
        write!(
            f,
            "{node:.1} % at the owning node, {shard:.1} % at the owning shard"
        )?;
        match self.leader {
            Some(leader) => write!(f, ", {:.1} % at the leader", leader * 100.0),
            None => Ok(()),
        }
    }
}

impl Visit {
    /// Checks that went well.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.verdicts
            .iter()
            .filter(|verdict| verdict.result.is_ok())
            .count()
    }

    /// One line for machines.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let failed = self.verdicts.iter().filter_map(|verdict| {
            let error = verdict.result.as_ref().err()?;
            Some((verdict.name.clone(), json!(format!("{error:#}"))))
        });
        let shares = self.shares.iter().map(|(table, shares)| {
            let shares = json!({ "owner_node": shares.owner_node, "owner_shard": shares.owner_shard,
                "leader": shares.leader });
            (table.clone(), shares)
        });
        json!({
            "driver": self.driver,
            "version": self.version,
            "cluster": self.cluster,
            "checks": self.verdicts.len(),
            "passed": self.passed(),
            "failed": failed.collect::<Map<_, _>>(),
            "rows": self.rows,
            "shares": shares.collect::<Map<_, _>>(),
            "connections": self.waste.map(|waste| waste.connections),
            "payloads": self.waste.map(|waste| waste.payloads),
            "error_answers": self.waste.map(|waste| waste.error_answers),
            "seconds": self.seconds,
        })
    }
}

fn has_shards(cluster: &str) -> bool {
    !matches!(cluster, "plain" | "cassandra")
}

fn number(value: &Value, name: &str) -> Result<u64> {
    value[name]
        .as_u64()
        .with_context(|| format!("{name} is {}", value[name]))
}

/// One counter over all nodes; `None` where nothing counts.
fn sum(stats: &Value, name: &str) -> Option<u64> {
    stats["nodes"]
        .as_array()?
        .iter()
        .map(|node| node[name].as_u64())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario() -> Scenario {
        Scenario::read().unwrap()
    }

    /// Counters of one node.
    fn stats(requests: u64, right: u64, payloads: u64) -> Value {
        json!({ "nodes": [{ "requests": requests, "at_owner_node": right, "at_owner_shard": right,
            "needing_leader": requests, "at_leader": right, "payloads": payloads,
            "connections": 13, "errors": 0 }] })
    }

    fn warm(name: &str, before: Value, after: Value) -> Value {
        json!({ name: 2000, "shards_reached": 12, "before": before, "after": after })
    }

    fn pools(connected: u32) -> Value {
        let pool = json!({ "shards_count": 4, "connected": connected });
        json!({ "a": pool, "b": pool, "c": pool })
    }

    /// What a check may see: on `v2`, by `driver`, about the strongly consistent table.
    fn judge(driver: Driver, check: &str, saw: &Value) -> Result<String> {
        scenario().judge_one(driver, "v2", check, "strong", saw)
    }

    #[test]
    fn a_right_sight_passes_and_each_wrong_one_fails() {
        let (python, rust) = (Driver::Python, Driver::Rust);
        let connect = |hosts: u32, shard_aware: bool, connected: u32, extension: &str| {
            json!({ "hosts": hosts, "shard_aware": shard_aware, "protocol": 4,
                "pools": pools(connected), "extensions": [extension] })
        };
        let pages = |rows: u64, known: u64, pages: u64, longest: u64, count: u64| {
            json!({ "rows": rows, "known": known, "pages": pages, "longest": longest,
                "count": count })
        };
        let v2 = "tablets_routing_v2";
        let mut few_shards = warm("same", stats(0, 0, 0), stats(2000, 2000, 0));
        few_shards["shards_reached"] = json!(11);
        let table: [(Driver, &str, Value, bool); 20] = [
            (python, "connect", connect(3, true, 4, v2), true),
            (python, "connect", connect(2, true, 4, v2), false),
            (python, "connect", connect(3, false, 4, v2), false),
            (python, "connect", connect(3, true, 3, v2), false),
            (
                python,
                "connect",
                connect(3, true, 4, "tablets_routing_v1"),
                false,
            ),
            (python, "write", json!({ "written": 2000 }), true),
            (
                python,
                "write",
                json!({ "written": 1999, "first_error": "x" }),
                false,
            ),
            (python, "read", json!({ "same": 1999 }), false),
            (
                python,
                "warm_read",
                warm("same", stats(5, 3, 1), stats(2005, 2003, 11)),
                true,
            ),
            (
                python,
                "warm_read",
                warm("same", stats(5, 3, 1), stats(2005, 2003, 12)),
                false,
            ),
            (
                python,
                "warm_read",
                warm("same", stats(0, 0, 0), stats(2000, 1989, 0)),
                false,
            ),
            (
                python,
                "warm_write",
                warm("written", stats(0, 0, 0), stats(2001, 2001, 0)),
                false,
            ),
            (
                rust,
                "warm_read",
                warm("same", stats(0, 0, 0), stats(2000, 2000, 0)),
                true,
            ),
            (rust, "warm_read", few_shards, false),
            (
                Driver::JavaScript,
                "warm_read",
                warm("same", stats(0, 0, 0), stats(2000, 9, 70)),
                true,
            ),
            (python, "pages", pages(2000, 2000, 21, 100, 2000), true),
            (python, "pages", pages(2001, 2000, 21, 100, 2000), false),
            (python, "pages", pages(2000, 2000, 19, 100, 2000), false),
            (python, "pages", pages(2000, 2000, 21, 101, 2000), false),
            (python, "pages", pages(2000, 2000, 21, 100, 1999), false),
        ];
        for (driver, check, saw, good) in table {
            let result = judge(driver, check, &saw);
            assert_eq!(
                result.is_ok(),
                good,
                "{driver:?} {check}: {result:?}, {saw}"
            );
        }
    }

    #[test]
    fn expected_values_are_compared_whole() {
        for check in [
            "schema",
            "prepare",
            "collections",
            "udt",
            "lwt",
            "batch",
            "counter",
            "errors",
            "queries",
        ] {
            for cluster in ["v2", "plain"] {
                let expected = scenario().expected(check, cluster).unwrap().unwrap();
                let mut saw = expected.clone();
                saw["before"] = json!({ "nodes": [] });
                let judge =
                    |saw: &Value| scenario().judge_one(Driver::Rust, cluster, check, "", saw);
                assert!(judge(&saw).is_ok(), "{check}");
                let fields: Vec<String> = expected.as_object().unwrap().keys().cloned().collect();
                for field in fields {
                    let mut saw = expected.clone();
                    saw[&field] = Value::Null;
                    assert!(judge(&saw).is_err(), "{check} without {field}");
                }
                saw["more"] = json!(1);
                assert!(judge(&saw).is_err(), "{check} with more");
            }
        }
    }

    #[test]
    fn only_rows_that_may_come_in_any_order_do() {
        let answer = |rows: Value| json!({ "q": { "columns": ["a"], "rows": rows } });
        let expected = answer(json!([[1], [2]]));
        let table = [
            (json!([[1], [2]]), true, true),
            (json!([[2], [1]]), false, true),
            (json!([[2], [2]]), false, false),
            (json!([[1]]), false, false),
        ];
        for (rows, in_order, in_any) in table {
            let saw = answer(rows);
            assert_eq!(as_expected(&expected, &saw, &[]).is_ok(), in_order, "{saw}");
            assert_eq!(
                as_expected(&expected, &saw, &["q"]).is_ok(),
                in_any,
                "{saw}"
            );
        }
        let renamed = json!({ "q": { "columns": ["b"], "rows": [[1], [2]] } });
        assert!(as_expected(&expected, &renamed, &["q"]).is_err());
    }

    #[test]
    fn what_is_not_reported_has_failed() {
        let first = "{\"driver\":\"scylla-driver\",\"version\":\"1\"}";
        let account = Account::parse(first, 1.0).unwrap();
        let visit = scenario()
            .judge(Driver::Python, "v2", &account, None)
            .unwrap();
        assert_eq!(
            (visit.passed(), visit.verdicts.len(), visit.rows),
            (0, 28, 0)
        );
        assert_eq!(visit.to_json()["failed"]["pages vnode"], "not reported");
        assert!(visit.shares.is_empty() && visit.waste.is_none());
        assert!(
            scenario()
                .judge(Driver::Python, "no such", &account, None)
                .is_err()
        );
    }

    #[test]
    fn waste_is_counted_from_the_base() {
        let look = |connections: u64, payloads: u64, errors: u64| {
            json!({ "nodes": [{ "connections": connections, "payloads": payloads,
                "errors": errors }] })
        };
        let waste = |last: &Value| Waste::during(&look(20, 7, 3), last).unwrap();
        let table = [
            (look(33, 9, 3), true),
            (look(36, 9, 3), true),
            (look(37, 9, 3), false),
            (look(32, 9, 3), false),
            (look(33, 9, 4), false),
        ];
        for (last, good) in table {
            assert_eq!(waste(&last).judge("v2").is_ok(), good, "{last}");
            assert_eq!(waste(&last).payloads, 2);
        }
        for (connections, good) in [(24, true), (33, true), (34, false), (23, false)] {
            let result = waste(&look(connections, 7, 9)).judge("plain");
            assert_eq!(result.is_ok(), good, "{connections}");
        }
        assert!(Waste::during(&look(0, 0, 0), &Value::Null).is_none());
    }
}
