//! What a session is set to, as one JSON object for operators: the STARTUP option DRIVER_CONFIG.
//!
//! Told on the connections through which the contact points are tried, of which one becomes the
//! control connection. When those are gone, and where a session began without them, the next
//! connection that is opened tells it; all others carry SESSION_ID alone. Nobody's secret is in it: no
//! credentials, no name or key of TLS, no address, no keyspace. A text longer than [`LEN_MAX`] bytes is
//! not told at all, since half of an object says nothing. Facts: ScyllaDB's `system.clients`.

use alloc::string::String;
use core::fmt::Write;
use core::num::NonZeroU16;
use core::time::Duration;

use crate::config::{Config, PoolSize};
use crate::conn::extensions::TabletsRouting;
use crate::target::{Security, SteeringKind};

/// The longest text that is told, in bytes.
pub(super) const LEN_MAX: usize = 32 << 10;

/// Whether it is told at all: small builds are spared it.
const IS_TOLD: bool = cfg!(any(test, feature = "driver-config"));

/// The text, unless it is too long. How links are made is the transport's affair: whether they are
/// encrypted, and whether it can choose source ports.
pub(super) fn describe(
    config: &Config,
    security: Security,
    steering: SteeringKind,
) -> Option<String> {
    if !IS_TOLD {
        return None;
    }
    let mut json = Json::new();
    json.put("version", FORMAT);
    json.put("protocol", u64::from(config.protocol.first().number()));
    json.put("tls", security == Security::Tls);
    json.put("authenticates", config.authenticator.is_some());
    json.put("compression", config.compression.map(|kind| kind.name()));
    json.put("tablets", tablets(config.tablets_max));
    json.put("consistency", config.consistency.name());
    json.put("serial_consistency", config.serial_consistency.name());
    let page_size = config.page_size.and_then(|size| u64::try_from(size).ok());
    json.put("page_size", page_size);
    json.put("client_timestamps", config.client_timestamps);
    json.put("write_deferral", config.write_deferral);
    json.object("policy", |json| policy(config, json));
    json.put("host_filter", config.host_filter.is_some());
    json.object("pool", |json| pool(config, steering, json));
    json.object("timeouts_ms", |json| timeouts(config, json));
    json.object("limits", |json| limits(config, json));
    let text = json.end();
    (text.len() <= LEN_MAX).then_some(text)
}

fn policy(config: &Config, json: &mut Json) {
    let policy = &config.policy;
    json.put("preferred_dc", policy.preferred_dc.as_deref());
    json.put("preferred_rack", policy.preferred_rack.as_deref());
    json.put("dc_failover", policy.dc_failover);
    json.put(
        "dc_failover_at_local_levels",
        policy.dc_failover_at_local_levels,
    );
    json.put("other_shards_when_full", policy.other_shards_when_full);
    json.put("tablet_leader", policy.tablet_leader);
    json.put("shuffle", policy.shuffle);
    json.put("rotate_lwt", policy.rotate_lwt);
    #[cfg(feature = "lwt-learning")]
    json.put("learn_lwt", policy.learn_lwt);
}

fn pool(config: &Config, steering: SteeringKind, json: &mut Json) {
    let pool = &config.pool;
    let number = |each: NonZeroU16| Some(u64::from(each.get()));
    let (per_shard, per_host) = match pool.size {
        PoolSize::PerShard(each) => (number(each), None),
        PoolSize::PerHost(each) => (None, number(each)),
    };
    json.put("per_shard", per_shard);
    json.put("per_host", per_host);
    json.put("shard_aware", pool.shard_aware);
    let is_steered = steering != SteeringKind::None;
    json.put("shard_aware_port", pool.shard_aware_port && is_steered);
    json.put("source_port_first", u64::from(pool.source_ports.first()));
    json.put("source_port_last", u64::from(pool.source_ports.last()));
    json.put("lazy_shards", pool.lazy_shards);
    let max = pool
        .connections_max
        .and_then(|max| u64::try_from(max.get()).ok());
    json.put("connections_max", max);
}

fn timeouts(config: &Config, json: &mut Json) {
    let timeouts = &config.timeouts;
    for (name, time) in [
        ("connect", timeouts.connect),
        ("request", timeouts.request),
        ("control", timeouts.control),
        ("schema_agreement", timeouts.schema_agreement),
        ("reconnect_base", timeouts.reconnect_base),
        ("reconnect_max", timeouts.reconnect_max),
        ("refresh_interval", timeouts.refresh_interval),
        ("close", timeouts.close),
        (
            "heartbeat_interval",
            config.limits.connection.heartbeat_interval,
        ),
        (
            "heartbeat_timeout",
            config.limits.connection.heartbeat_timeout,
        ),
    ] {
        json.put(name, time);
    }
}

fn limits(config: &Config, json: &mut Json) {
    let limits = &config.limits;
    let connection = &limits.connection;
    for (name, bound) in [
        ("in_flight", usize::from(connection.in_flight)),
        ("waiting", connection.waiting),
        ("pending_bytes", connection.pending_bytes),
        ("orphans", usize::from(connection.orphans)),
        ("read_chunk", limits.read_chunk),
        ("nodes", usize::from(limits.nodes)),
        ("tablet_bytes", limits.tablet_bytes),
        ("prepared_statements", limits.prepared_statements),
        ("connecting", limits.connecting),
    ] {
        json.put(name, u64::try_from(bound).ok());
    }
    json.put("frame_len", u64::from(limits.frame.frame_len_max));
    json.put("request_len", u64::from(connection.request_len_max));
}

const fn tablets(newest: TabletsRouting) -> Option<&'static str> {
    match newest {
        TabletsRouting::Off => None,
        TabletsRouting::V1 => Some("v1"),
        TabletsRouting::V2 => Some("v2"),
    }
}

/// The shape of the object; raised when a member changes its meaning.
const FORMAT: u64 = 1;

/// Writes one JSON object: members of plain values and of objects. Names are ours and need no
/// escapes.
struct Json {
    text: String,
}

impl Json {
    fn new() -> Self {
        Self { text: "{".into() }
    }

    fn put<'a>(&mut self, name: &str, value: impl Into<Scalar<'a>>) {
        self.put_name(name);
        match value.into() {
            Scalar::Null => self.text.push_str("null"),
            Scalar::Bool(true) => self.text.push_str("true"),
            Scalar::Bool(false) => self.text.push_str("false"),
            // Writing to a string does not fail.
            Scalar::Number(number) => drop(write!(self.text, "{number}")),
            Scalar::Text(text) => self.put_text(text),
        }
    }

    fn object(&mut self, name: &str, members: impl FnOnce(&mut Self)) {
        self.put_name(name);
        self.text.push('{');
        members(self);
        self.text.push('}');
    }

    fn end(mut self) -> String {
        self.text.push('}');
        self.text
    }

    fn put_name(&mut self, name: &str) {
        if !self.text.ends_with('{') {
            self.text.push(',');
        }
        self.put_text(name);
        self.text.push(':');
    }

    fn put_text(&mut self, text: &str) {
        self.text.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.text.extend(['\\', c]),
                '\0'..' ' => drop(write!(self.text, "\\u{:04x}", u32::from(c))),
                _ => self.text.push(c),
            }
        }
        self.text.push('"');
    }
}

/// A value that is no object.
enum Scalar<'a> {
    Null,
    Bool(bool),
    Number(u64),
    Text(&'a str),
}

impl From<bool> for Scalar<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u64> for Scalar<'_> {
    fn from(value: u64) -> Self {
        Self::Number(value)
    }
}

impl From<Duration> for Scalar<'_> {
    fn from(value: Duration) -> Self {
        Self::Number(u64::try_from(value.as_millis()).unwrap_or(u64::MAX))
    }
}

impl<'a> From<&'a str> for Scalar<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl<'a, T: Into<Self>> From<Option<T>> for Scalar<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, T::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(config: &Config) -> Option<String> {
        describe(config, Security::Plain, SteeringKind::ExactPort)
    }

    /// The letters of RFC 8259, section 7.
    #[test]
    fn texts_are_escaped() {
        for (text, expected) in [
            ("", r#"{"a":""}"#),
            ("dc1", r#"{"a":"dc1"}"#),
            (r#"a"b\c/d"#, r#"{"a":"a\"b\\c/d"}"#),
            ("\n\t\0\u{1f}", r#"{"a":"\u000a\u0009\u0000\u001f"}"#),
            (" \u{7f}\u{2028}é😀", "{\"a\":\" \u{7f}\u{2028}é😀\"}"),
        ] {
            let mut json = Json::new();
            json.put("a", text);
            assert_eq!(json.end(), expected);
        }
    }

    #[test]
    fn members_are_parted_by_commas() {
        let mut json = Json::new();
        json.object("o", |json| {
            json.put("n", None::<u64>);
            json.object("e", |_| {});
            json.put("t", Some(true));
        });
        json.put("d", Duration::MAX);
        json.put("s", "{");
        json.put("f", false);
        assert_eq!(
            json.end(),
            r#"{"o":{"n":null,"e":{},"t":true},"d":18446744073709551615,"s":"{","f":false}"#
        );
    }

    /// Bytes count, not letters: `é` is one letter of two bytes.
    #[test]
    fn the_bound_is_in_bytes() {
        let mut config = Config::server();
        config.policy.preferred_dc = Some("".into());
        let rest = LEN_MAX - described(&config).unwrap().len();
        for (odd, len) in [("", rest / 2 * 2), ("x", rest / 2 * 2 + 1)] {
            let name = ["é".repeat(rest / 2).as_str(), odd].concat();
            assert_eq!(name.len(), len);
            config.policy.preferred_dc = Some(name.into());
            let text = described(&config);
            assert_eq!(text.is_some(), len <= rest);
            assert!(text.is_none_or(|text| text.len() + rest - len == LEN_MAX));
        }
        config.policy.preferred_dc = Some("x".repeat(rest).into());
        assert_eq!(described(&config).map(|text| text.len()), Some(LEN_MAX));
        config.policy.preferred_dc = Some("x".repeat(rest + 1).into());
        assert_eq!(described(&config), None);
    }
}
