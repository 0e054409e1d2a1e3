//! core's `Transport` by the web's `WebSocket`.

use alloc::string::String;
use core::future::{Future, Ready, ready};
use core::pin::Pin;
use core::task::{Context, Poll};

use messina_core::drive::{Endpoint, Name, Resolved, SteeringKind, Target, Transport};
use messina_core::error::{LinkError, LinkErrorKind};

use super::link::WebSocketLink;
use super::time::{WebClock, WebTimer};
use super::{Protocol, Relay};
use crate::answer::{DEFAULT_PATH, query, token_entry};
use crate::mux::{Mux, Pump};
use crate::tunnel::Limits;
use crate::{CQL, CQL_MUX};

/// The transport.
///
/// With [`Protocol::Cql`] each link is a WebSocket of its own, its target and the wished shard in
/// the query of the address. With [`Protocol::Mux`] its links lead to the relay and no further:
/// [`WebSocketTransport::into_mux`] makes a transport of it.
#[derive(Clone, Debug)]
pub struct WebSocketTransport {
    relay: Relay,
}

impl WebSocketTransport {
    /// A transport through this relay.
    pub const fn new(relay: Relay) -> Self {
        Self { relay }
    }

    /// A transport whose links share one WebSocket, and the pump to run for it.
    pub fn into_mux(self) -> (Mux<Self>, Pump<Self>) {
        Mux::new(self, Endpoint::Local("".into()), Limits::client())
    }

    fn url(&self, target: &Target) -> String {
        let url = &self.relay.url;
        let (front, asked) = match url.split_once('?') {
            Some((front, asked)) => (front, Some(asked)),
            None => (url.as_str(), None),
        };
        let authority = front.find("://").map_or(0, |at| at.saturating_add(3));
        let has_path = front
            .get(authority..)
            .and_then(|rest| rest.split_once('/'))
            .is_some_and(|(_, path)| !path.is_empty());
        let mut text = String::from(if has_path {
            front
        } else {
            front.trim_end_matches('/')
        });
        if !has_path {
            text.push_str(DEFAULT_PATH);
        }
        let told = (self.relay.protocol == Protocol::Cql).then(|| query(target));
        let mut separator = '?';
        for part in [asked, told.as_deref()].into_iter().flatten() {
            text.push(separator);
            text.push_str(part);
            separator = '&';
        }
        text
    }
}

impl Transport for WebSocketTransport {
    type Link = WebSocketLink;
    type Timer = WebTimer;
    type Clock = WebClock;
    type Connecting = Connecting;
    type Resolving = Ready<Result<Resolved, LinkError>>;

    fn resolve(&self, _name: &Name) -> Self::Resolving {
        ready(Ok(Resolved::KeepName))
    }

    fn connect(&self, target: Target) -> Connecting {
        let protocol = match self.relay.protocol {
            Protocol::Cql => CQL,
            Protocol::Mux => CQL_MUX,
        };
        let token = self.relay.token.as_ref().map(|token| token_entry(&token()));
        let url = self.url(&target);
        Connecting(match &token {
            Some(token) => WebSocketLink::open(&url, &[protocol, token]).map(Some),
            None => WebSocketLink::open(&url, &[protocol]).map(Some),
        })
    }

    fn steering(&self) -> SteeringKind {
        SteeringKind::BestEffortShard
    }

    fn timer(&self) -> WebTimer {
        WebTimer::new()
    }

    fn clock(&self) -> WebClock {
        WebClock
    }
}

/// A WebSocket that is being opened.
#[derive(Debug)]
pub struct Connecting(Result<Option<WebSocketLink>, LinkError>);

impl Future for Connecting {
    type Output = Result<WebSocketLink, LinkError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let kept = match &mut self.0 {
            Ok(kept) => kept,
            Err(error) => return Poll::Ready(Err(*error)),
        };
        let Some(link) = kept else {
            return Poll::Ready(Err(LinkError::new(LinkErrorKind::Other)));
        };
        match link.poll_open(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) => {
                Poll::Ready(kept.take().ok_or(LinkError::new(LinkErrorKind::Other)))
            }
        }
    }
}
