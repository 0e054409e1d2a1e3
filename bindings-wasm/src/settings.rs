//! The settings of a session: pairs of byte strings, name and value, without padding.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
#[cfg(feature = "full")]
use core::num::NonZeroU16;
use core::time::Duration;

use messina_core::Shared;
#[cfg(feature = "full")]
use messina_core::config::PoolSize;
use messina_core::config::{Config, Routing};
use messina_core::conn::auth::{Authenticator, PlainAuthenticator};
use messina_core::conn::framer::FrameLimits;
use messina_core::drive::{Security, SteeringKind};
use messina_core::error::{ConfigProblem, Error, ErrorKind};
use messina_core::wire::{Consistency, ProtocolVersion, SerialConsistency};

/// What the settings say.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) config: Config,
    /// The contact points as they were given.
    pub(crate) contact_points: String,
    pub(crate) steering: SteeringKind,
    pub(crate) security: Security,
    /// All links go through one tunnel.
    pub(crate) has_tunnel: bool,
    /// What an earlier session has saved.
    pub(crate) warm_start: Vec<u8>,
}

/// Reads settings. Unknown names are refused, so that a slip of the pen is seen.
///
/// | name | value |
/// |---|---|
/// | `contactPoints` | `HOST[:PORT]`, separated by commas |
/// | `keyspace`, `user`, `password`, `localDataCenter`, `localRack`, `serverName`, `applicationName`, `applicationVersion` | text |
/// | `connectTimeout`, `requestTimeout`, `controlTimeout`, `closeTimeout`, `reconnectBase`, `reconnectMax`, `refreshInterval`, `heartbeatInterval`, `heartbeatTimeout` | milliseconds |
/// | `consistency`, `serialConsistency` | a level by its CQL name |
/// | `pageSize` | rows, 0 for everything at once |
/// | `protocol` | `3` or `4` |
/// | `timestamps`, `earlyRequests`, `shardAware`, `shardAwarePort`, `lazyShards`, `failover` | `true` or `false` |
/// | `connectionsPerShard`, `connectionsPerNode`, `inFlight`, `waiting` | a number |
/// | `frameMax`, `requestMax`, `tabletBytes`, `statements` | a number |
/// | `routing` | `single` (one connection) or `full`; see [`Routing`] |
/// | `steering` | how the shell reaches a wished shard: `none`, `port` (it binds source ports), `shard` (it passes the wish on) |
/// | `relay` | links lead through a relay, which takes wishes for shards: `mux` all through one link of the shell, `cql` each through its own |
/// | `tls` | whether the links are encrypted, which decides the shard-aware port |
/// | `warmStart` | the bytes that an earlier session saved |
pub(crate) fn parse(mut input: &[u8]) -> Result<Settings, Error> {
    let mut config = defaults();
    // Bytes come in chunks of the shell's choosing; a buffer is only needed for parts of frames.
    config.limits.read_chunk = READ_CHUNK;
    config.routing = Routing::Single;
    config.early_requests = true;
    let mut settings = Settings {
        config,
        contact_points: String::new(),
        steering: SteeringKind::None,
        security: Security::Plain,
        has_tunnel: false,
        warm_start: Vec::new(),
    };
    let (mut user, mut password) = (None, "");
    while !input.is_empty() {
        let name = text(take(&mut input)?)?;
        let value = take(&mut input)?;
        match name {
            "user" => user = Some(text(value)?),
            "password" => password = text(value)?,
            "warmStart" => settings.warm_start = Vec::from(value),
            _ => {
                let set = settings.set(name, text(value)?)?;
                set.ok_or_else(|| bad_setting(name))?;
            }
        }
    }
    if let Some(user) = user {
        let plain = PlainAuthenticator::new(user, password);
        let boxed: Box<dyn Authenticator> = Box::new(plain);
        settings.config.authenticator = Some(Shared::from(boxed));
    }
    Ok(settings)
}

/// What core sets. Not twice: it is long.
#[inline(never)]
pub(crate) fn defaults() -> Config {
    Config::server()
}

impl Settings {
    /// `None` if there is no such setting, or it cannot have this value.
    fn set(&mut self, name: &str, value: &str) -> Result<Option<()>, Error> {
        if name == "contactPoints" {
            self.contact_points = String::from(value);
        }
        let config = &mut self.config;
        let (timeouts, limits) = (&mut config.timeouts, &mut config.limits);
        let connection = &mut limits.connection;
        let some_text = || Some(value.into());
        let done = match name {
            "contactPoints" => Some(()),
            "keyspace" => put(&mut config.keyspace, some_text().map(Some)),
            "applicationName" => put(&mut config.application_name, some_text().map(Some)),
            "applicationVersion" => put(&mut config.application_version, some_text().map(Some)),
            "serverName" => put(&mut config.server_name, Some(Some(value.into()))),
            "connectTimeout" => put(&mut timeouts.connect, millis(value)),
            "requestTimeout" => put(&mut timeouts.request, millis(value)),
            "controlTimeout" => put(&mut timeouts.control, millis(value)),
            "closeTimeout" => put(&mut timeouts.close, millis(value)),
            "reconnectBase" => put(&mut timeouts.reconnect_base, millis(value)),
            "reconnectMax" => put(&mut timeouts.reconnect_max, millis(value)),
            "heartbeatInterval" => put(&mut connection.heartbeat_interval, millis(value)),
            "heartbeatTimeout" => put(&mut connection.heartbeat_timeout, millis(value)),
            "inFlight" => put(&mut connection.in_flight, number(value)),
            "waiting" => put(&mut connection.waiting, number(value)),
            "requestMax" => put(&mut connection.request_len_max, number(value)),
            "frameMax" => {
                let frame = number(value).map(|max| FrameLimits::new(max, 0));
                put(&mut limits.frame, frame)
            }
            "consistency" => put(&mut config.consistency, Consistency::from_name(value)),
            "serialConsistency" => {
                let level = SerialConsistency::from_name(value);
                put(&mut config.serial_consistency, level)
            }
            "pageSize" => {
                let rows = number(value).map(|rows: i32| (rows > 0).then_some(rows));
                put(&mut config.page_size, rows)
            }
            "protocol" => put(&mut config.protocol, version(value).map(Into::into)),
            "timestamps" => put(&mut config.client_timestamps, flag(value)),
            "earlyRequests" => put(&mut config.early_requests, flag(value)),
            "routing" => put(&mut config.routing, routing(value)),
            "steering" => put(&mut self.steering, steering(value)),
            "relay" => {
                self.steering = SteeringKind::BestEffortShard;
                put(&mut self.has_tunnel, has_tunnel(value))
            }
            "tls" => {
                let security = flag(value).map(|on| match on {
                    true => Security::Tls,
                    false => Security::Plain,
                });
                put(&mut self.security, security)
            }
            _ => self.set_of_topology(name, value),
        };
        Ok(done)
    }

    /// The same for what only a session with topology looks at.
    #[cfg(feature = "full")]
    fn set_of_topology(&mut self, name: &str, value: &str) -> Option<()> {
        let config = &mut self.config;
        match name {
            "localDataCenter" => put(&mut config.policy.preferred_dc, Some(Some(value.into()))),
            "localRack" => put(&mut config.policy.preferred_rack, Some(Some(value.into()))),
            "failover" => put(&mut config.policy.dc_failover, flag(value)),
            "refreshInterval" => put(&mut config.timeouts.refresh_interval, millis(value)),
            "tabletBytes" => put(&mut config.limits.tablet_bytes, number(value)),
            "statements" => put(&mut config.limits.prepared_statements, number(value)),
            "shardAware" => put(&mut config.pool.shard_aware, flag(value)),
            "shardAwarePort" => put(&mut config.pool.shard_aware_port, flag(value)),
            "lazyShards" => put(&mut config.pool.lazy_shards, flag(value)),
            "connectionsPerShard" => put(&mut config.pool.size, some(value, PoolSize::PerShard)),
            "connectionsPerNode" => put(&mut config.pool.size, some(value, PoolSize::PerHost)),
            _ => None,
        }
    }

    /// One connection looks at none of it.
    #[cfg(not(feature = "full"))]
    fn set_of_topology(&mut self, name: &str, _: &str) -> Option<()> {
        const NAMES: [&str; 11] = [
            "localDataCenter",
            "localRack",
            "failover",
            "refreshInterval",
            "tabletBytes",
            "statements",
            "shardAware",
            "shardAwarePort",
            "lazyShards",
            "connectionsPerShard",
            "connectionsPerNode",
        ];
        NAMES.contains(&name).then_some(())
    }
}

fn put<T>(place: &mut T, value: Option<T>) -> Option<()> {
    *place = value?;
    Some(())
}

pub(crate) fn number<T: TryFrom<u64>>(value: &str) -> Option<T> {
    T::try_from(value.parse::<u64>().ok()?).ok()
}

fn flag(value: &str) -> Option<bool> {
    match value {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn millis(value: &str) -> Option<Duration> {
    number(value).map(Duration::from_millis)
}

#[cfg(feature = "full")]
fn some(value: &str, make: fn(NonZeroU16) -> PoolSize) -> Option<PoolSize> {
    number(value).and_then(NonZeroU16::new).map(make)
}

fn version(value: &str) -> Option<ProtocolVersion> {
    match value {
        "3" => Some(ProtocolVersion::V3),
        "4" => Some(ProtocolVersion::V4),
        _ => None,
    }
}

fn routing(value: &str) -> Option<Routing> {
    match value {
        "single" => Some(Routing::Single),
        "full" => Some(Routing::MOST).filter(|most| *most == Routing::Full),
        _ => None,
    }
}

fn steering(value: &str) -> Option<SteeringKind> {
    match value {
        "none" => Some(SteeringKind::None),
        "port" => Some(SteeringKind::ExactPort),
        "shard" => Some(SteeringKind::BestEffortShard),
        _ => None,
    }
}

fn has_tunnel(value: &str) -> Option<bool> {
    match value {
        "cql" => Some(false),
        "mux" => cfg!(feature = "full").then_some(true),
        _ => None,
    }
}

fn take<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Error> {
    let (len, rest) = input.split_first_chunk().ok_or_else(broken_input)?;
    let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
    let (bytes, rest) = rest.split_at_checked(len).ok_or_else(broken_input)?;
    *input = rest;
    Ok(bytes)
}

fn text(bytes: &[u8]) -> Result<&str, Error> {
    core::str::from_utf8(bytes).map_err(|_| broken_input())
}

fn bad_setting(name: &str) -> Error {
    let kind = ErrorKind::Config(ConfigProblem::OutOfRange);
    Error::with_text(kind, String::from(name))
}

pub(crate) fn broken_input() -> Error {
    Error::bug("the shell's input is malformed")
}

/// Bytes that one read asks for.
const READ_CHUNK: usize = 4 << 10;
