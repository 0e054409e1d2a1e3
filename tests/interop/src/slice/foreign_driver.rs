//! scylla-driver, ScyllaDB's Python driver, against `messina sim`.
//!
//! It must find the cluster shard aware, connect to every shard, create schema, write and read
//! 1,000 rows a table, and page. Where its requests arrived is told by the simulator's counters:
//! after learning, at the owning node and shard, and at the leader where one must be. Once for each
//! version of tablet routing.

use core::time::Duration;
use std::{fs, path::Path, thread, time::Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::ROWS;
use crate::{
    command::Messina,
    ports,
    process::{self, Process},
    python::Python,
    report::{self, Report},
    target::Target,
};

const NODES: u8 = 3;
const SHARDS: u32 = 4;

/// Share of warm requests that must arrive where they belong.
const OWNER_SHARE_MIN: f64 = 0.995;

/// The versions of tablet routing that the simulator is told to offer, and the kinds of table
/// that each is tried with: leaders are told by version 2 alone.
const TABLETS: [(&str, &[&str]); 2] = [
    ("v1", &["eventual", "vnode"]),
    ("v2", &["eventual", "strong", "vnode"]),
];

/// Runs the simulator and the driver once for each version of tablet routing.
pub(super) fn run(target: &Target, report: &mut Report, messina: &Messina, python: &Python) {
    for (tablets, kinds) in TABLETS {
        report.part(&format!(
            "scylla-driver against messina sim, tablets {tablets}"
        ));
        let simulator = report.step("start the simulator", || {
            let folder = target.run_folder(&format!("sim-{tablets}"))?;
            let simulator = Simulator::start(messina, &folder, tablets)?;
            let saw = format!("{NODES} nodes of {SHARDS} shards at {}", simulator.contact);
            Ok((simulator, saw))
        });
        if let Some(simulator) = simulator {
            visit(target, report, simulator, python, tablets, kinds);
        }
    }
}

fn visit(
    target: &Target,
    report: &mut Report,
    simulator: Simulator,
    python: &Python,
    tablets: &str,
    kinds: &[&str],
) {
    let saw = report.step("scylla-driver runs through", || {
        simulator.visit(python, target, kinds)
    });
    match saw {
        Some(saw) => judge(report, &saw, tablets, kinds),
        None => report::say(simulator.process.output_tail(30)),
    }
    report.step("stop the simulator", || {
        let stopped = simulator.process.stop()?;
        ensure!(!stopped.killed, "it did not end on SIGTERM");
        Ok(((), stopped.to_string()))
    });
}

/// Judges what the driver's script reported.
fn judge(report: &mut Report, saw: &Value, tablets: &str, kinds: &[&str]) {
    report.step("it is shard aware", || shard_aware(saw));
    report.step("it speaks the offered tablet routing", || {
        let wanted = format!("tablets_routing_{tablets}");
        let agreed = saw["extensions"].as_array().context("no extensions")?;
        ensure!(
            agreed.contains(&json!(wanted)),
            "agreed on {}",
            saw["extensions"]
        );
        Ok(((), format!("agreed on {}", saw["extensions"])))
    });
    report.step("it makes no waste", || frugal(saw, kinds));
    for kind in kinds {
        let table = &saw["tables"][kind];
        report.step(&format!("{kind}: rows as written"), || {
            rows_as_written(table)
        });
        report.step(&format!("{kind}: where warm reads arrived"), || {
            owners(table, kind)
        });
    }
}

fn shard_aware(saw: &Value) -> Result<((), String)> {
    ensure!(
        saw["is_shard_aware"] == true,
        "is_shard_aware() is {}",
        saw["is_shard_aware"]
    );
    let pools = saw["shard_aware_stats"]
        .as_object()
        .context("no shard_aware_stats()")?;
    ensure!(
        pools.len() == usize::from(NODES),
        "{} pools: {}",
        pools.len(),
        json!(pools)
    );
    for (endpoint, pool) in pools {
        let whole = json!({ "shards_count": SHARDS, "connected": SHARDS });
        ensure!(*pool == whole, "{endpoint} has {pool}, wanted {whole}");
    }
    Ok((
        (),
        format!("{NODES} pools of {SHARDS} connections, one for each shard"),
    ))
}

/// By the simulator's counters: a connection for each shard and one for control, which takes the
/// shard-aware port (the regular one gives shards by chance), and no request that was an error.
fn frugal(saw: &Value, kinds: &[&str]) -> Result<((), String)> {
    let last = kinds.last().context("no kind of table")?;
    let stats = &saw["tables"][last]["after"];
    let (connections, errors) = (sum(stats, "connections")?, sum(stats, "errors")?);
    let wanted = u64::from(NODES) * u64::from(SHARDS) + 1;
    ensure!(
        (wanted..=wanted + 3).contains(&connections),
        "{connections} connections"
    );
    ensure!(errors == 0, "{errors} requests were answered with an error");
    Ok((
        (),
        format!("{connections} connections accepted, no error answered"),
    ))
}

fn rows_as_written(table: &Value) -> Result<((), String)> {
    let rows = ROWS as u64;
    let expect = |value: &Value, name: &str, wanted: u64| -> Result<()> {
        let got = number(value, name)?;
        ensure!(got == wanted, "{name} is {got}, wanted {wanted}");
        Ok(())
    };
    expect(table, "written", rows)?;
    expect(table, "different", 0)?;
    expect(table, "different_when_warm", 0)?;
    let scan = &table["scan"];
    if scan.is_null() {
        return Ok(((), format!("{rows}, read twice")));
    }
    expect(scan, "rows", rows)?;
    expect(scan, "missing", 0)?;
    expect(scan, "count", rows)?;
    let pages = number(scan, "pages")?;
    ensure!(pages >= rows / 100, "{rows} rows in {pages} pages of 100");
    Ok((
        (),
        format!("{rows}, read twice and in {pages} pages; COUNT(*) = {rows}"),
    ))
}

/// What the simulator's counters say of the warm round, in which each row was read by its key.
fn owners(table: &Value, kind: &str) -> Result<((), String)> {
    let during = |name: &str| -> Result<u64> {
        let (before, after) = (sum(&table["before"], name)?, sum(&table["after"], name)?);
        after
            .checked_sub(before)
            .with_context(|| format!("{name} went down"))
    };
    let requests = during("requests")?;
    ensure!(
        requests == ROWS as u64,
        "{requests} requests for {ROWS} reads"
    );
    let share = |name: &str| -> Result<f64> {
        let share = during(name)? as f64 / ROWS as f64;
        ensure!(
            share >= OWNER_SHARE_MIN,
            "{name}: {share:.4} of {ROWS} warm reads"
        );
        Ok(share * 100.0)
    };
    let (node, shard) = (share("at_owner_node")?, share("at_owner_shard")?);
    let payloads = during("payloads")?;
    ensure!(
        payloads as f64 <= (1.0 - OWNER_SHARE_MIN) * ROWS as f64,
        "{payloads} payloads"
    );
    let mut saw = format!("{node:.1} % at the owning node, {shard:.1} % at the owning shard");
    if kind == "strong" {
        share("needing_leader")?;
        let leader = share("at_leader")?;
        saw.push_str(&format!(", {leader:.1} % at the leader"));
    }
    let learned = number(table, "tablets_learned")?;
    let has_tablets = kind != "vnode";
    ensure!(has_tablets == (learned > 0), "{learned} tablets learned");
    let forwarded = during("forwarded")?;
    let rest = format!("{forwarded} forwarded, {payloads} payloads; {learned} tablets learned");
    Ok(((), format!("{saw}, {rest}")))
}

fn number(value: &Value, name: &str) -> Result<u64> {
    value[name]
        .as_u64()
        .with_context(|| format!("{name} is {}", value[name]))
}

/// One counter over all nodes.
fn sum(stats: &Value, name: &str) -> Result<u64> {
    let nodes = stats["nodes"]
        .as_array()
        .with_context(|| format!("stats are {stats}"))?;
    nodes.iter().map(|node| number(node, name)).sum()
}

/// A running `messina sim`.
struct Simulator {
    process: Process,
    contact: String,
    control: String,
}

impl Simulator {
    fn start(messina: &Messina, folder: &Path, tablets: &str) -> Result<Self> {
        let port = ports::free(NODES)?;
        let shard_aware_port = ports::free(NODES)?;
        let mut command = messina.subcommand("sim");
        command
            .args([
                "--nodes",
                &NODES.to_string(),
                "--shards",
                &SHARDS.to_string(),
            ])
            .args(["--port", &port.to_string()])
            .args(["--shard-aware-port", &shard_aware_port.to_string()])
            .args(["--tablets", tablets, "--seed", "1"]);
        let mut process = Process::spawn(&mut command, folder, "sim")?;
        let ready = ready_line(&mut process, Duration::from_secs(20))?;
        let contact = ready["contact"]
            .as_array()
            .context("no contact in the ready line")?;
        let contact: Vec<&str> = contact.iter().filter_map(Value::as_str).collect();
        ensure!(
            contact.len() == usize::from(NODES),
            "the ready line is {ready}"
        );
        let control = ready["control"]
            .as_str()
            .context("no control in the ready line")?;
        Ok(Self {
            process,
            contact: contact.join(","),
            control: control.to_owned(),
        })
    }

    /// Runs the driver's script; its report and a line about it.
    fn visit(&self, python: &Python, target: &Target, kinds: &[&str]) -> Result<(Value, String)> {
        let mut script = python.script("shard_aware_rows.py");
        script
            .args(["--contact", &self.contact, "--control", &self.control])
            .args(["--rows", &ROWS.to_string(), "--kinds", &kinds.join(",")]);
        let folder = target.run_folder("shard-aware-rows")?;
        let limit = Duration::from_secs(90);
        let finished = process::run(&mut script, &folder, "shard_aware_rows", limit)?
            .success("shard_aware_rows.py")?;
        let saw: Value = serde_json::from_str(&finished.stdout)?;
        fs::remove_dir_all(&folder)?;
        let word = |name: &str| saw[name].as_str().unwrap_or("?").to_owned();
        let line = format!(
            "{} {}, {:.1} s",
            word("driver"),
            word("version"),
            finished.seconds
        );
        Ok((saw, line))
    }
}

/// The first line that a server prints, which says that it is ready.
fn ready_line(process: &mut Process, limit: Duration) -> Result<Value> {
    let start = Instant::now();
    loop {
        let printed = fs::read_to_string(process.stdout_path())?;
        if let Some((line, _)) = printed.split_once('\n') {
            let ready: Value = serde_json::from_str(line).context("the ready line is not JSON")?;
            ensure!(ready["ready"] == true, "the ready line is {ready}");
            return Ok(ready);
        }
        if let Some(status) = process.poll_exit()? {
            bail!(
                "it ended while starting ({status}):\n{}",
                process.output_tail(20)
            );
        }
        if start.elapsed() >= limit {
            bail!(
                "not ready after {} s:\n{}",
                limit.as_secs(),
                process.output_tail(20)
            );
        }
        thread::sleep(Duration::from_millis(20));
    }
}
