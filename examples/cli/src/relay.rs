//! `messina relay`: the server end of the WebSocket tunnel.

use core::net::SocketAddr;
use core::ops::RangeInclusive;
use core::time::Duration;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use messina_relay::{
    Access, Claims, Credentials, Limits, NodeTls, Relay, RelayConfig, Rule, SigningKey, TlsIdentity,
};
use serde_json::json;

use crate::arguments::LogLevel;
use crate::failure::Failure;
use crate::interrupt::interrupted;

/// Options of `messina relay`.
#[derive(Debug, clap::Args)]
pub(crate) struct RelayArguments {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// What may be connected to: HOST:PORTS, NETWORK:PORTS or ALIAS=HOST:PORTS, such as
    /// 10.0.0.0/8:9042,19042; may repeat; nothing is allowed by default
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_rule)]
    allow: Vec<Rule>,
    /// URL path of the WebSocket
    #[arg(long, value_name = "PATH", default_value = "/cql")]
    path: String,
    /// Answer GET /metrics and GET /health here
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    access: AccessArguments,
    #[command(flatten)]
    tls: TlsArguments,
    #[command(flatten)]
    node: NodeArguments,
    #[command(flatten)]
    limits: LimitArguments,
    /// What to log to standard error; `info` has a line for each connection and channel
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = LogLevel::Info)]
    log: LogLevel,
}

/// Who may come in.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Access")]
struct AccessArguments {
    /// Let in who has this token
    #[arg(
        long,
        value_name = "T",
        env = "MESSINA_RELAY_TOKEN",
        hide_env_values = true
    )]
    token: Option<String>,
    /// Let in who has a token signed (HS256) by the key in this file, 32 bytes or more
    #[arg(long, value_name = "FILE")]
    token_key: Option<PathBuf>,
    /// Print a token signed by --token-key that lives for so long, and end
    #[arg(long, value_name = "SECONDS", requires = "token_key",
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    issue_token: Option<u64>,
    /// What that token is good for: an alias, NAME:PORT or NETWORK:PORT; may repeat [default: all
    /// that the relay allows]
    #[arg(long, value_name = "TARGET", requires = "issue_token")]
    target: Vec<String>,
    /// Whom that token is for: limits and the audit count by it
    #[arg(long, value_name = "NAME", requires = "issue_token")]
    subject: Option<String>,
    /// Let in everybody who reaches a listener that is not on loopback
    #[arg(long, conflicts_with_all = ["token", "token_key"])]
    without_token: bool,
    /// Let in web pages of this origin only; may repeat
    #[arg(long, value_name = "O")]
    origin: Vec<String>,
}

/// The relay's certificate.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "TLS")]
struct TlsArguments {
    /// Serve wss: with this certificate
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

/// How nodes are reached.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Nodes")]
struct NodeArguments {
    /// Log in to nodes as this user in the clients' stead
    #[arg(long, requires = "password")]
    user: Option<String>,
    /// Password of the user
    #[arg(long, env = "MESSINA_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// Speak TLS with nodes, whose certificate authority this is
    #[arg(long, value_name = "FILE")]
    node_ca: Option<PathBuf>,
    /// Name in the nodes' certificates, where it is not their name or address
    #[arg(long, value_name = "NAME", requires = "node_ca")]
    node_server_name: Option<String>,
    /// Let clients speak TLS with nodes through the relay
    #[arg(long, conflicts_with_all = ["user", "node_ca"])]
    pass_tls: bool,
    /// Ports from which nodes are dialled when a shard is wished
    #[arg(long, value_name = "FIRST-LAST", default_value = "49152-65535",
        value_parser = parse_ports)]
    source_ports: RangeInclusive<u16>,
}

/// How much of everything.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
struct LimitArguments {
    /// Most WebSockets at once
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_connections: usize,
    /// The same for one token, or one subject of signed tokens [default: no limit of its own]
    #[arg(long, value_name = "N")]
    max_connections_per_token: Option<usize>,
    /// The same for one address
    #[arg(long, value_name = "N", default_value_t = 2000)]
    max_connections_per_address: usize,
    /// Most channels of one WebSocket at once
    #[arg(long, value_name = "N", default_value_t = 256)]
    max_channels: usize,
    /// Largest message of a WebSocket
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20,
        value_parser = parse_message_len)]
    max_message: usize,
    /// Bytes a second for one token [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    rate_per_token: Option<u32>,
    /// Bytes a second for one address [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    rate_per_address: Option<u32>,
    /// Longest time until a connection is a WebSocket
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = milliseconds())]
    handshake_timeout: u64,
    /// Longest time to reach a node
    #[arg(long, value_name = "MS", default_value_t = 5000, value_parser = milliseconds())]
    dial_timeout: u64,
    /// Longest time until a channel has shown that it is CQL
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = milliseconds())]
    first_bytes_timeout: u64,
    /// Longest time without a byte on a channel, or without a channel
    #[arg(long, value_name = "MS", default_value_t = 300_000, value_parser = milliseconds())]
    idle_timeout: u64,
    /// Longest time that connections have to end after Ctrl-C
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = milliseconds())]
    drain_timeout: u64,
}

/// Shown below the options.
pub(crate) const EXAMPLES: &str = "\
Examples:
  messina relay --allow 127.0.0.0/8:9042,19042 --token secret
  messina relay --allow db.example:9042 --allow 10.0.0.0/8:9042,19042 --token-key key \\
      --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --origin https://shop.example

  messina relay --token-key key --issue-token 300 --subject page-7 --target node1

A name may lead to public addresses only, unless a network is allowed too that holds what it leads
to: a private one, loopback, and so on must be named. It prints one JSON line when it is ready.";

/// Serves until it is interrupted, then lets connections end; a second interrupt drops them.
pub(crate) async fn run(arguments: RelayArguments) -> Result<(), Failure> {
    if let Some(life) = arguments.access.issue_token {
        return arguments.access.issue(life);
    }
    arguments.log.start();
    raise_descriptor_limit();
    let scheme = if arguments.tls.tls_cert.is_some() {
        "wss"
    } else {
        "ws"
    };
    let path = arguments.path.clone();
    let place = format!("cannot listen on {}", arguments.listen);
    let relay = Relay::bind(arguments.config()?).await;
    let relay = relay.map_err(|error| Failure::io(&place, &error))?;
    let listen = relay
        .local_addr()
        .map_err(|error| Failure::io(&place, &error))?;
    let mut ready = json!({
        "ready": true,
        "listen": listen.to_string(),
        "url": format!("{scheme}://{listen}{path}"),
    });
    if let Some(metrics) = relay.metrics_addr() {
        ready["metrics"] = metrics.to_string().into();
    }
    let (first, second) = (interrupted(), interrupted());
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{ready}")
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::stdout(&error))?;
    drop(stdout);
    let (told, hears) = tokio::sync::oneshot::channel::<()>();
    let stop = async move {
        first.await;
        let _ = told.send(());
    };
    let at_once = async move {
        // The signal that both have heard; only one behind it counts.
        let _ = hears.await;
        second.await;
        interrupted().await;
    };
    tokio::select! {
        drained = relay.run(stop) => {
            if drained.dropped > 0 {
                eprintln!("dropped {} of {} connections", drained.dropped, drained.connections);
            }
        }
        () = at_once => {}
    }
    Ok(())
}

impl RelayArguments {
    fn config(self) -> Result<RelayConfig, Failure> {
        if self.allow.is_empty() {
            return Err(Failure::usage(
                "nothing is allowed: say by --allow what may be connected to",
            ));
        }
        let is_guarded = self.access.token.is_some() || self.access.token_key.is_some();
        if !is_guarded && !self.access.without_token && !self.listen.ip().is_loopback() {
            return Err(Failure::usage(format!(
                "{} is not on loopback: whoever reaches it needs --token or --token-key",
                self.listen
            )));
        }
        if !self.path.starts_with('/') {
            return Err(Failure::usage("--path begins with a slash"));
        }
        let mut config = RelayConfig::new(self.listen);
        config.allow = self.allow.into_iter().collect();
        config.metrics = self.metrics;
        config.path = self.path;
        config.access = self.access.access()?;
        config.limits = self.limits.limits();
        if let (Some(certificate), Some(key)) = (&self.tls.tls_cert, &self.tls.tls_key) {
            let identity = TlsIdentity::from_pem(&read(certificate)?, &read(key)?);
            let identity = identity.map_err(|error| Failure::usage(error.to_string()))?;
            config.tls = Some(identity);
        }
        config.node_tls = self.node.tls()?;
        config.passes_tls = self.node.pass_tls;
        config.source_ports = self.node.source_ports;
        if let (Some(user), Some(password)) = (&self.node.user, &self.node.password) {
            config.login = Some(Credentials::new(user, password));
        }
        Ok(config)
    }
}

impl NodeArguments {
    fn tls(&self) -> Result<Option<NodeTls>, Failure> {
        let Some(file) = &self.node_ca else {
            return Ok(None);
        };
        let tls = NodeTls::with_ca_pem(&read(file)?);
        let tls = tls.and_then(|tls| match &self.node_server_name {
            Some(name) => tls.server_name(name),
            None => Ok(tls),
        });
        tls.map(Some)
            .map_err(|error| Failure::usage(error.to_string()))
    }
}

impl AccessArguments {
    fn access(&self) -> Result<Access, Failure> {
        let mut access = Access::new();
        if let Some(token) = &self.token {
            if token.is_empty() {
                return Err(Failure::usage("--token is empty"));
            }
            access = access.bearer(token);
        }
        if let Some(file) = &self.token_key {
            access = access.signing_key(read_key(file)?);
        }
        for origin in &self.origin {
            access = access.origin(origin);
        }
        Ok(access)
    }
}

impl AccessArguments {
    /// Prints a signed token.
    fn issue(&self, life: u64) -> Result<(), Failure> {
        let Some(file) = &self.token_key else {
            return Err(Failure::usage("--issue-token needs --token-key"));
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_secs());
        let mut claims = Claims::new(now + life);
        claims.targets.clone_from(&self.target);
        claims.subject.clone_from(&self.subject);
        let checked = claims.check();
        checked.map_err(|error| Failure::usage(format!("--target or --subject: {error}")))?;
        let token = json!({ "token": read_key(file)?.sign(&claims), "expires": claims.expires });
        writeln!(std::io::stdout(), "{token}").map_err(|error| Failure::stdout(&error))
    }
}

impl LimitArguments {
    fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.connections_max = self.max_connections;
        limits.connections_per_token_max = self
            .max_connections_per_token
            .unwrap_or(self.max_connections);
        limits.connections_per_address_max = self.max_connections_per_address;
        limits.channels_max = self.max_channels;
        limits.message_len_max = self.max_message;
        limits.bytes_per_second_per_token = self.rate_per_token;
        limits.bytes_per_second_per_address = self.rate_per_address;
        limits.handshake_timeout = Duration::from_millis(self.handshake_timeout);
        limits.dial_timeout = Duration::from_millis(self.dial_timeout);
        limits.first_bytes_timeout = Duration::from_millis(self.first_bytes_timeout);
        limits.idle_timeout = Duration::from_millis(self.idle_timeout);
        limits.drain_timeout = Duration::from_millis(self.drain_timeout);
        limits
    }
}

fn parse_rule(text: &str) -> Result<Rule, String> {
    Rule::parse(text).map_err(|error| error.to_string())
}

fn parse_ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let ports = text.split_once('-').and_then(|(first, last)| {
        let ports = first.parse().ok()?..=last.parse().ok()?;
        (!ports.is_empty() && *ports.start() > 0).then_some(ports)
    });
    ports.ok_or_else(|| "two ports with a dash between, the smaller first".to_owned())
}

fn parse_message_len(text: &str) -> Result<usize, String> {
    let len = text
        .parse()
        .ok()
        .filter(|len| (1024..=1 << 28).contains(len));
    len.ok_or_else(|| "between 1024 and 268435456 bytes".to_owned())
}

fn milliseconds() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=86_400_000)
}

/// A key without the end of its line.
fn read_key(file: &Path) -> Result<SigningKey, Failure> {
    SigningKey::new(read(file)?.trim_ascii_end())
        .ok_or_else(|| Failure::usage(format!("{}: a key has 32 bytes or more", file.display())))
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(file)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))
}

/// Each connection has two descriptors, and systems start with few.
#[cfg(unix)]
fn raise_descriptor_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

#[cfg(not(unix))]
const fn raise_descriptor_limit() {}
