//! The simulated cluster as a process of its own, so that its heap calls and instructions are not
//! counted with the client's.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use messina_sim::node::{Options, TabletsMode};
use messina_sim::tcp::SimServer;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

/// Nodes of the cluster.
pub const NODES: usize = 3;
/// Shards of each node.
pub const SHARDS: u32 = 4;

/// A running server process; killed, by its id, when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    contacts: Vec<String>,
    control: String,
}

impl Server {
    /// Starts `program serve` and waits until it listens.
    pub fn start(program: &Path) -> Result<Self> {
        let child = Command::new(program)
            .arg("serve")
            // It ends with its standard input, should this process die without a word.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut server = Self {
            child,
            contacts: Vec::new(),
            control: String::new(),
        };
        let stdout = server.child.stdout.take().context("no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let ready: Value = serde_json::from_str(&line).context("the server did not start")?;
        let contacts = ready["contacts"].as_array().context("no contacts")?;
        server.contacts = contacts
            .iter()
            .filter_map(|contact| Some(contact.as_str()?.to_owned()))
            .collect();
        server.control = ready["control"].as_str().context("no control")?.to_owned();
        Ok(server)
    }

    /// Where drivers connect, separated by commas.
    pub fn contacts(&self) -> String {
        self.contacts.join(",")
    }

    /// What the nodes have counted so far, all together.
    pub fn counted(&self) -> Result<Counted> {
        let mut control = TcpStream::connect(&self.control)?;
        control.write_all(b"{\"cmd\":\"stats\"}\n")?;
        let mut line = String::new();
        BufReader::new(control).read_line(&mut line)?;
        let stats: Value = serde_json::from_str(&line)?;
        ensure!(stats["ok"] == true, "no counters: {line}");
        let nodes = stats["nodes"].as_array().context("no nodes")?;
        let sum = |key: &str| nodes.iter().filter_map(|node| node[key].as_u64()).sum();
        Ok(Counted {
            executes: sum("executes"),
            payloads: sum("payloads"),
        })
    }
}

/// Counters of all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counted {
    /// EXECUTE requests taken.
    pub executes: u64,
    /// Answers that told a tablet.
    pub payloads: u64,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server's own side: says where it listens and serves until its standard input ends.
pub async fn serve(mut out: impl Write) -> Result<()> {
    let mut options = Options::uniform(NODES, SHARDS).with_tablets(TabletsMode::Both);
    (options.port, options.shard_aware_port) = (0, Some(0));
    let server = SimServer::start(options).await?;
    let contacts: Vec<_> = server.contacts().iter().map(ToString::to_string).collect();
    let control = server.control().to_string();
    writeln!(
        out,
        "{}",
        json!({ "contacts": contacts, "control": control })
    )?;
    out.flush()?;
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    server.stop().await;
    Ok(())
}
