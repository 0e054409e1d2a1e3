//! scylla-driver, ScyllaDB's Python driver, against `messina sim`.
//!
//! It must find the cluster shard aware, connect to every shard, create a schema, write and read
//! 1,000 rows, and page. Where its requests arrived is told by the simulator's counters: after
//! learning, at the owning node and shard. Once for each version of tablet routing.

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

/// The versions of tablet routing that the simulator is told to offer.
const TABLETS: [&str; 2] = ["v1", "v2"];

/// Runs the simulator and the driver once for each version of tablet routing.
pub(super) fn run(target: &Target, report: &mut Report, messina: &Messina, python: &Python) {
    for tablets in TABLETS {
        report.part(&format!(
            "scylla-driver against messina sim, tablets {tablets}"
        ));
        one(target, report, messina, python, tablets);
    }
}

fn one(target: &Target, report: &mut Report, messina: &Messina, python: &Python, tablets: &str) {
    let simulator = report.step("start the simulator", || {
        let folder = target.run_folder(&format!("sim-{tablets}"))?;
        let simulator = Simulator::start(messina, &folder, tablets)?;
        let saw = format!("{NODES} nodes of {SHARDS} shards at {}", simulator.contact);
        Ok((simulator, saw))
    });
    let Some(simulator) = simulator else { return };
    let saw = report.step("scylla-driver runs through", || {
        simulator.visit(python, target)
    });
    match saw {
        Some(saw) => judge(report, &saw, tablets),
        None => report::say(simulator.process.output_tail(30)),
    }
    report.step("stop the simulator", || {
        let stopped = simulator.process.stop()?;
        ensure!(!stopped.killed, "it did not end on SIGTERM");
        Ok(((), stopped.to_string()))
    });
}

/// Judges what the driver's script reported.
fn judge(report: &mut Report, saw: &Value, tablets: &str) {
    report.step("it is shard aware", || shard_aware(saw));
    report.step("it speaks the offered tablet routing", || {
        let wanted = format!("tablets_routing_{tablets}");
        let agreed = saw["extensions"].as_array().context("no extensions")?;
        ensure!(
            agreed.contains(&json!(wanted)),
            "agreed on {}",
            saw["extensions"]
        );
        let learned = number(saw, "tablets_learned")?;
        ensure!(learned > 0, "no tablet learned");
        Ok((
            (),
            format!("agreed on {}, {learned} tablets learned", saw["extensions"]),
        ))
    });
    report.step("1,000 rows written and read", || rows_as_written(saw));
    report.step("it reaches the owners, by the simulator's counters", || {
        owners(saw)
    });
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

fn rows_as_written(saw: &Value) -> Result<((), String)> {
    let rows = ROWS as u64;
    let wanted = [
        ("written", rows),
        ("different", 0),
        ("different_when_warm", 0),
        ("paged_rows", rows),
        ("paged_missing", 0),
        ("count", rows),
    ];
    for (name, expected) in wanted {
        let got = number(saw, name)?;
        ensure!(got == expected, "{name} is {got}, wanted {expected}");
    }
    let pages = number(saw, "pages")?;
    ensure!(pages >= rows / 100, "{rows} rows in {pages} pages of 100");
    Ok((
        (),
        format!("twice, every value as written; {pages} pages; COUNT(*) = {rows}"),
    ))
}

/// What the simulator's counters say of the warm round: reads by key, each at its owner.
fn owners(saw: &Value) -> Result<((), String)> {
    let during = |name: &str| -> Result<u64> {
        let after = sum(&saw["stats_after_warm"], name)?;
        let before = sum(&saw["stats_before_warm"], name)?;
        after
            .checked_sub(before)
            .with_context(|| format!("{name} went down"))
    };
    let requests = during("requests")?;
    ensure!(
        requests >= ROWS as u64,
        "{requests} requests for {ROWS} reads"
    );
    let share = |name: &str| -> Result<f64> { Ok(during(name)? as f64 / ROWS as f64) };
    let (node, shard) = (share("owner_node")?, share("owner_shard")?);
    let enough = OWNER_SHARE_MIN..=1.0;
    ensure!(
        enough.contains(&node) && enough.contains(&shard),
        "owner node {node:.4}, owner shard {shard:.4} of {ROWS} warm reads"
    );
    let forwarded = during("forwarded")?;
    Ok((
        (),
        format!(
            "{:.1} % at the owning node, {:.1} % at the owning shard, {forwarded} forwarded",
            node * 100.0,
            shard * 100.0
        ),
    ))
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
    fn visit(&self, python: &Python, target: &Target) -> Result<(Value, String)> {
        let mut script = python.script("shard_aware_rows.py");
        script
            .args(["--contact", &self.contact, "--control", &self.control])
            .args(["--rows", &ROWS.to_string()]);
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
