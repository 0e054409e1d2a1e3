//! One line for each connection and channel, under the target `messina_relay::audit`: who, where to,
//! how much, how long, and why it ended. Never what was sent, and no token.
//!
//! Texts of clients are written escaped: they cannot forge a line.

use core::net::SocketAddr;
use core::time::Duration;

use messina_websocket::tunnel::Reason;

use crate::channel::Facts;
use crate::session::End;

pub(crate) fn connection_refused(peer: SocketAddr, status: u16, reason: &str) {
    tracing::info!(target: TARGET, event = "refused", %peer, status, reason);
}

pub(crate) fn connection_opened(
    holder: &str,
    peer: SocketAddr,
    origin: Option<&str>,
    protocol: &str,
) {
    tracing::info!(target: TARGET, event = "connection", %peer, ?holder, ?origin, protocol);
}

pub(crate) fn connection_ended(holder: &str, peer: SocketAddr, took: Duration, end: &End) {
    let ms = millis(took);
    match end {
        End::Gone => {
            tracing::info!(target: TARGET, event = "end", %peer, ?holder, ms, by = "client");
        }
        End::Said(code, reason) => {
            tracing::info!(target: TARGET, event = "end", %peer, ?holder, ms, by = "relay", code, ?reason);
        }
    }
}

pub(crate) fn channel_refused(holder: &str, target: &str, reason: Reason, text: &str) {
    tracing::info!(
        target: TARGET, event = "channel refused", ?holder, asked = ?target,
        reason = reason.as_str(), ?text
    );
}

pub(crate) fn channel_ended(holder: &str, facts: &Facts, reason: Reason) {
    tracing::info!(
        target: TARGET, event = "channel", ?holder, asked = ?facts.target, node = ?facts.node,
        source_port = facts.source_port, to_node = facts.to_node, to_client = facts.to_client,
        ms = millis(facts.since.elapsed()), reason = reason.as_str()
    );
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

const TARGET: &str = "messina_relay::audit";
