//! A running `messina sim` for foreign drivers.

use core::time::Duration;
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::driver::Call;
use crate::{
    command::Messina,
    ports,
    probe::Credentials,
    process::{Process, Stopped},
};

/// Nodes of the simulated cluster.
pub(super) const NODES: u8 = Simulator::NODES;
/// Shards of each.
pub(super) const SHARDS: u32 = Simulator::SHARDS;

/// What the simulated cluster offers, named as in the scenario.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Offer {
    /// The scenario's name for it.
    pub cluster: &'static str,
    /// Arguments of `messina sim`.
    pub arguments: &'static [&'static str],
    /// The login that it demands.
    pub credentials: Option<Credentials>,
}

impl Offer {
    /// Every kind of cluster that drivers meet.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let offer = Self::new;
        let mut login = offer("login", &["--tablets", "v2"]);
        login.credentials = Some(Credentials::new("stranger", "the-Password-4711"));
        vec![
            offer("v1", &["--tablets", "v1"]),
            Self::v2(),
            offer("plain", &["--plain"]),
            offer("tls", &["--tablets", "v2", "--tls"]),
            login,
        ]
    }

    /// Tablets of version 2.
    #[must_use]
    pub fn v2() -> Self {
        Self::new("v2", &["--tablets", "v2"])
    }

    fn new(cluster: &'static str, arguments: &'static [&'static str]) -> Self {
        Self {
            cluster,
            arguments,
            credentials: None,
        }
    }
}

/// The process and where it listens.
#[derive(Debug)]
pub struct Simulator {
    process: Process,
    offer: Offer,
    contact: String,
    control: String,
    ca: Option<PathBuf>,
}

impl Simulator {
    /// Nodes of the cluster.
    pub const NODES: u8 = 3;
    /// Shards of each.
    pub const SHARDS: u32 = 4;

    /// Starts one and waits until it is ready; it writes into `folder`.
    ///
    /// # Errors
    /// Fails when it is not ready in time.
    pub fn start(messina: &Messina, folder: &Path, offer: Offer) -> Result<Self> {
        let mut command = messina.subcommand("sim");
        command
            .args([
                "--nodes",
                &NODES.to_string(),
                "--shards",
                &SHARDS.to_string(),
            ])
            .args(["--port", &ports::free(NODES)?.to_string()])
            .args(["--shard-aware-port", &ports::free(NODES)?.to_string()])
            .args(["--seed", "1"])
            .args(offer.arguments);
        if let Some(credentials) = &offer.credentials {
            command
                .args(["--user", &credentials.user])
                .env("MESSINA_PASSWORD", &credentials.password);
        }
        let mut process = Process::spawn(&mut command, folder, "sim")?;
        let ready = ready_line(&mut process, Duration::from_secs(20))?;
        let contact = ready["contact"]
            .as_array()
            .context("no contact in the ready line")?;
        ensure!(
            contact.len() == usize::from(NODES),
            "the ready line is {ready}"
        );
        let contact = contact
            .first()
            .and_then(Value::as_str)
            .context("no contact")?;
        let control = ready["control"]
            .as_str()
            .context("no control in the ready line")?;
        let ca = ready["ca"].as_str().map(PathBuf::from);
        ensure!(
            ca.is_some() == offer.arguments.contains(&"--tls"),
            "the ready line is {ready}"
        );
        Ok(Self {
            process,
            offer,
            contact: contact.to_owned(),
            control: control.to_owned(),
            ca,
        })
    }

    /// How a program reaches it: by its first node alone.
    #[must_use]
    pub fn call(&self) -> Call<'_> {
        Call {
            control: Some(&self.control),
            ca: self.ca.as_deref(),
            credentials: self.offer.credentials.as_ref(),
            ..Call::new(self.offer.cluster, &self.contact)
        }
    }

    /// A line about it.
    #[must_use]
    pub fn describe(&self) -> String {
        format!(
            "{NODES} nodes of {SHARDS} shards, told of {} alone",
            self.contact
        )
    }

    /// Its counters as they are now.
    ///
    /// # Errors
    /// Fails when the control port does not answer.
    pub fn stats(&self) -> Result<Value> {
        self.control(&json!({ "cmd": "stats" }))
    }

    /// One command of the control port and its answer.
    ///
    /// # Errors
    /// Fails when the control port does not answer or refuses.
    pub fn control(&self, command: &Value) -> Result<Value> {
        let limit = Duration::from_secs(10);
        let mut stream = TcpStream::connect(&self.control).context("no control port")?;
        stream.set_read_timeout(Some(limit))?;
        stream.write_all(format!("{command}\n").as_bytes())?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line).context("the answer is no JSON")?;
        ensure!(answer["ok"] == true, "the control port says {answer}");
        Ok(answer)
    }

    /// The end of what it printed.
    #[must_use]
    pub fn output_tail(&self, lines: usize) -> String {
        self.process.output_tail(lines)
    }

    /// Stops it.
    ///
    /// # Errors
    /// Fails when it had ended by itself or did not heed SIGTERM.
    pub fn stop(self) -> Result<Stopped> {
        let stopped = self.process.stop()?;
        ensure!(!stopped.killed, "it did not end on SIGTERM");
        Ok(stopped)
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
