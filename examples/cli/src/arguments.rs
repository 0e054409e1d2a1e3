//! The command line: subcommands and the options they share.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::bench::BenchArguments;
use crate::demo::DemoArguments;
use crate::failure::Failure;
use crate::inspect::InspectArguments;
use crate::query::QueryArguments;
use crate::relay::RelayArguments;
use crate::route::RouteArguments;
use crate::sim::SimArguments;

/// A CQL driver at work: try it, ask a cluster, or start a simulated one.
#[derive(Debug, Parser)]
#[command(name = "messina", version, disable_help_subcommand = true, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Shown below the commands.
const EXAMPLES: &str = "\
Examples:
  messina demo                                    all in one process, in a second
  messina sim                                     a cluster to play with; then, elsewhere:
  export MESSINA_CONTACT=127.0.0.1
  messina inspect
  messina query \"SELECT cluster_name FROM system.local\"
  messina bench --seconds 5

Exit code: 0 done, 1 the cluster or the driver said no to anything, 2 wrong usage.";

/// What the command does.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch the driver work on a simulated cluster, or on a real one
    #[command(after_help = crate::demo::EXAMPLES)]
    Demo(DemoArguments),
    /// Run a simulated cluster as a server, until Ctrl-C
    #[command(after_help = crate::sim::EXAMPLES)]
    Sim(SimArguments),
    /// Lead WebSockets of browsers and edge functions to nodes, until Ctrl-C
    #[command(after_help = crate::relay::EXAMPLES)]
    Relay(Box<RelayArguments>),
    /// Run CQL statements
    #[command(after_help = crate::query::EXAMPLES)]
    Query(QueryArguments),
    /// Show the cluster and how it is connected
    #[command(after_help = crate::inspect::EXAMPLES)]
    Inspect(InspectArguments),
    /// Explain where a statement would go, and why
    #[command(after_help = crate::route::EXAMPLES)]
    Route(RouteArguments),
    /// Put load on a table, and measure
    #[command(after_help = crate::bench::EXAMPLES)]
    Bench(BenchArguments),
}

/// Options of every command that connects.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Common {
    /// Contact point; may repeat or hold a comma list
    #[arg(long, value_name = "HOST[:PORT]", env = "MESSINA_CONTACT")]
    pub(crate) contact: Vec<String>,
    /// User to log in as
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// Password of the user
    #[arg(long, env = "MESSINA_PASSWORD", hide_env_values = true)]
    pub(crate) password: Option<String>,
    #[command(flatten)]
    pub(crate) tls: TlsArguments,
    /// Preferred datacenter
    #[arg(long, value_name = "NAME")]
    pub(crate) dc: Option<String>,
    /// Preferred rack, in the preferred datacenter
    #[arg(long, value_name = "NAME", requires = "dc")]
    pub(crate) rack: Option<String>,
    /// Allow other datacenters
    #[arg(long)]
    pub(crate) dc_failover: bool,
    /// Allow them at LOCAL consistency levels too, which then mean the other datacenter
    #[arg(long, requires = "dc_failover")]
    pub(crate) dc_failover_at_local_levels: bool,
    /// Keyspace of unqualified names
    #[arg(long, value_name = "K")]
    pub(crate) keyspace: Option<String>,
    /// Consistency level, by its CQL name
    #[arg(long, value_name = "C", default_value = "LOCAL_QUORUM")]
    pub(crate) consistency: String,
    /// Serial consistency level, by its CQL name
    #[arg(long, value_name = "C", default_value = "LOCAL_SERIAL")]
    pub(crate) serial_consistency: String,
    /// Rows a page; 0 lets the server decide
    #[arg(long, value_name = "N", default_value_t = 5000,
        value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) page_size: i32,
    /// Time limit of a request
    #[arg(long, value_name = "MS", default_value_t = 10_000,
        value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    pub(crate) request_timeout: u64,
    /// Time limit of connecting, handshake included
    #[arg(long, value_name = "MS", default_value_t = 5000,
        value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    pub(crate) connect_timeout: u64,
    /// Protocol version
    #[arg(long, value_enum, default_value_t = Protocol::Auto)]
    pub(crate) protocol: Protocol,
    /// Compression of frames
    #[arg(long, value_enum, default_value_t = Compression::None)]
    pub(crate) compression: Compression,
    /// Connections to each shard [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "connections_per_host")]
    pub(crate) connections_per_shard: Option<core::num::NonZeroU16>,
    /// Connections to each node, whatever its shards
    #[arg(long, value_name = "N")]
    pub(crate) connections_per_host: Option<core::num::NonZeroU16>,
    /// One connection to each node, used for all of its shards
    #[arg(long)]
    pub(crate) no_shard_aware: bool,
    /// Do not choose shards by the source port
    #[arg(long)]
    pub(crate) no_shard_aware_port: bool,
    /// Treat strongly consistent tables like all others
    #[arg(long)]
    pub(crate) no_tablet_leader: bool,
    /// Output; a table on a terminal, else JSON
    #[arg(long, value_enum, help_heading = "Output")]
    pub(crate) format: Option<Format>,
    /// What to log to standard error
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = LogLevel::Warn,
        help_heading = "Output")]
    pub(crate) log: LogLevel,
}

/// How to be sure of whom one talks to.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct TlsArguments {
    /// Use TLS; without --ca the public certificate authorities are trusted
    #[arg(long)]
    pub(crate) tls: bool,
    /// Certificate authority of the nodes; uses TLS
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Use TLS, but do not verify certificates
    #[arg(long, conflicts_with = "ca")]
    pub(crate) tls_insecure: bool,
    /// Name in the nodes' certificates, where it is not their address
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_server_name: Option<String>,
    /// Certificate to show to nodes that want one
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Key of that certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

impl TlsArguments {
    /// Whether connections are to be encrypted.
    pub(crate) const fn is_wanted(&self) -> bool {
        self.tls || self.tls_insecure || self.ca.is_some()
    }
}

impl Common {
    /// The output's form, decided by the terminal where it is not given.
    pub(crate) fn output(&self) -> Format {
        self.format.unwrap_or_else(Format::of_stdout)
    }
}

// The variants below have no documentation, or `--help` would give each a line of its own.

/// Form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // For people.
    Table,
    // For programs.
    Json,
    // Rows only, for spreadsheets.
    Csv,
}

impl Format {
    /// A table on a terminal, else JSON.
    pub(crate) fn of_stdout() -> Self {
        if std::io::IsTerminal::is_terminal(&std::io::stdout()) {
            Self::Table
        } else {
            Self::Json
        }
    }
}

/// Protocol versions to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    // The newest that both sides speak.
    Auto,
    // Version 4.
    #[value(name = "4")]
    V4,
    // Version 5.
    #[value(name = "5")]
    V5,
}

/// Compressions to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compression {
    // Frames go as they are.
    None,
    // LZ4.
    Lz4,
    // Snappy.
    Snappy,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    // Nothing.
    Off,
    // What failed.
    Error,
    // What is odd.
    Warn,
    // What happens.
    Info,
    // Every step.
    Debug,
    // Everything.
    Trace,
}

impl LogLevel {
    /// Sends what the driver logs to standard error from now on. Only the first call counts.
    pub(crate) fn start(self) {
        let most = match self {
            Self::Off => return,
            Self::Error => tracing_subscriber::filter::LevelFilter::ERROR,
            Self::Warn => tracing_subscriber::filter::LevelFilter::WARN,
            Self::Info => tracing_subscriber::filter::LevelFilter::INFO,
            Self::Debug => tracing_subscriber::filter::LevelFilter::DEBUG,
            Self::Trace => tracing_subscriber::filter::LevelFilter::TRACE,
        };
        let lines = tracing_subscriber::fmt()
            .with_max_level(most)
            .with_writer(std::io::stderr);
        let _ = lines.with_target(false).without_time().compact().try_init();
    }
}

/// Whether errors are to be JSON, also when the command line itself is what is wrong.
pub(crate) fn wants_json_errors() -> bool {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let before_values = arguments.iter().position(|argument| argument == "--");
    let options = &arguments[..before_values.unwrap_or(arguments.len())];
    options.iter().any(|argument| argument == "--format=json")
        || options
            .windows(2)
            .any(|pair| pair[0] == "--format" && pair[1] == "json")
}

/// What the parser of the command line has to say, as one line.
pub(crate) fn usage_failure(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let parts = text
        .split("\n\n")
        .map(|part| part.trim().trim_start_matches("error: "))
        .filter(|part| !part.starts_with("Usage:") && !part.starts_with("For more information"));
    let told = parts.collect::<Vec<_>>().join("; ");
    Failure::usage(format!("{told} (see messina --help)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }
}
