//! `messina sim`: the simulated cluster as a server.

mod tls;

use core::net::{IpAddr, SocketAddr};
use std::io::Write;

use messina_sim::node::{Credentials, NodeOptions, Options, TabletsMode};
use messina_sim::tcp::SimServer;
use serde_json::json;

use crate::failure::Failure;
use crate::interrupt::interrupted;
use tls::TlsArguments;

/// Options of `messina sim`.
#[derive(Debug, clap::Args)]
pub(crate) struct SimArguments {
    /// Nodes; node i listens on the i-th address from --host
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u16).range(1..=200))]
    nodes: u16,
    /// Shards of each node
    #[arg(long, value_name = "N", default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=256))]
    shards: u32,
    /// A datacenter and its number of nodes; may repeat
    #[arg(long, value_name = "NAME:NODES", value_parser = parse_dc, conflicts_with = "nodes")]
    dc: Vec<(String, u16)>,
    /// Address of the first node
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// Port of CQL; 0 takes a free one
    #[arg(long, default_value_t = 9042)]
    port: u16,
    /// Port that takes the shard from the client's port; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 19042)]
    shard_aware_port: u16,
    /// Tablets extensions that are offered
    #[arg(long, value_name = "v1|v2|both|off", default_value = "v2", value_parser = parse_tablets)]
    tablets: TabletsMode,
    /// The same for node I (counted from 0); may repeat
    #[arg(long, value_name = "I=v1|v2|both|off", value_parser = parse_node_tablets)]
    node_tablets: Vec<(usize, TabletsMode)>,
    /// Offer no ScyllaDB extension at all
    #[arg(long)]
    plain: bool,
    /// Demand that clients log in as this user
    #[arg(long, requires = "password")]
    user: Option<String>,
    /// Password of the user
    #[arg(long, env = "MESSINA_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    #[command(flatten)]
    tls: TlsArguments,
    /// Answer every request alike, for benchmarks
    #[arg(long)]
    lean: bool,
    /// Seed of all ids, tokens and tablets
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

/// Shown below the options.
pub(crate) const EXAMPLES: &str = "\
Examples:
  messina sim                                     three nodes on 127.0.0.1, .2 and .3
  messina sim --dc east:3 --dc west:3 --shards 8
  messina sim --plain --nodes 1                   as if it were Apache Cassandra

It prints one JSON line when it is ready. Its `control` address takes one JSON object a line, such
as {\"cmd\":\"stats\"} or {\"cmd\":\"kill\",\"node\":1}, and answers with one.";

/// Serves until it is interrupted.
pub(crate) async fn run(arguments: &SimArguments) -> Result<(), Failure> {
    let options = options(arguments)?;
    let place = format!(
        "cannot listen on {} port {}",
        arguments.host, arguments.port
    );
    let started = match arguments.tls.options()? {
        Some(tls) => SimServer::start_tls(options, tls).await,
        None => SimServer::start(options).await,
    };
    let server = started.map_err(|error| Failure::io(&place, &error))?;
    // Removed at the end of this function, however that comes.
    let ca = tls::CaFile::of(&server)?;
    let mut ready = json!({
        "ready": true,
        "contact": texts(server.contacts()),
        "control": server.control().to_string(),
    });
    if let Some(ca) = &ca {
        ready["ca"] = ca.path().into();
    }
    if arguments.tls.is_beside() {
        ready["contact_tls"] = texts(&server.tls_contacts()).into();
    }
    let end = interrupted();
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{ready}")
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::stdout(&error))?;
    drop(stdout);
    end.await;
    server.stop().await;
    Ok(())
}

fn texts(addresses: &[SocketAddr]) -> Vec<String> {
    addresses.iter().map(ToString::to_string).collect()
}

fn options(arguments: &SimArguments) -> Result<Options, Failure> {
    let mut options = Options::uniform(usize::from(arguments.nodes), arguments.shards);
    if !arguments.dc.is_empty() {
        options.nodes = nodes_of_dcs(&arguments.dc, arguments.shards);
    }
    options = options.with_tablets(arguments.tablets);
    for (at, mode) in &arguments.node_tablets {
        let count = options.nodes.len();
        let node = options.nodes.get_mut(*at).ok_or_else(|| {
            Failure::usage(format!(
                "--node-tablets {at}: there are {count} nodes, counted from 0"
            ))
        })?;
        node.tablets = *mode;
    }
    if arguments.plain {
        options = options.with_plain();
    }
    if let (Some(user), Some(password)) = (&arguments.user, &arguments.password) {
        options.auth = Some(Credentials::new(user, password));
    }
    options.base_address = arguments.host;
    options.port = arguments.port;
    options.shard_aware_port = (!arguments.plain).then_some(arguments.shard_aware_port);
    options.seed = arguments.seed;
    options.lean = arguments.lean;
    Ok(options)
}

/// Each on a rack of its own up to three racks.
fn nodes_of_dcs(dcs: &[(String, u16)], shards: u32) -> Vec<NodeOptions> {
    let nodes = dcs.iter().flat_map(|(name, count)| {
        (0..*count).map(move |at| {
            let mut node = NodeOptions::default();
            node.datacenter.clone_from(name);
            node.rack = format!("rack{}", at % 3 + 1);
            node.shards = shards;
            node
        })
    });
    nodes.collect()
}

fn parse_dc(text: &str) -> Result<(String, u16), String> {
    let parsed = text.rsplit_once(':').and_then(|(name, nodes)| {
        let nodes = nodes
            .parse()
            .ok()
            .filter(|nodes| (1..=200).contains(nodes))?;
        (!name.is_empty()).then(|| (name.to_owned(), nodes))
    });
    parsed.ok_or_else(|| "write NAME:NODES, such as dc1:3".to_owned())
}

fn parse_tablets(text: &str) -> Result<TabletsMode, String> {
    TabletsMode::named(text).ok_or_else(|| "write v1, v2, both or off".to_owned())
}

fn parse_node_tablets(text: &str) -> Result<(usize, TabletsMode), String> {
    let parsed = text
        .split_once('=')
        .and_then(|(node, mode)| Some((node.parse().ok()?, TabletsMode::named(mode)?)));
    parsed.ok_or_else(|| "write NODE=v1|v2|both|off, such as 0=v1".to_owned())
}
