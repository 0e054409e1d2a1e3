//! One channel: a socket to a node, what the client sent and the node has not taken, and the check
//! that it is CQL.
//!
//! Bytes of the client are taken from the carrier only when the last ones have gone to the node,
//! and bytes of the node are read only when the last ones have gone to the carrier, so a side that
//! is slow holds up the other and nothing piles up here.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf, BytesMut};
use messina_websocket::tunnel::{Reason, Wish};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::carrier::{Carrier, Id};
use crate::cql::FirstBytes;
use crate::dial::DialError;
use crate::login::{Credentials, Login};
use crate::metrics::Metrics;
use crate::socket::Stream;

/// What channels of one relay share.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) credentials: Option<Credentials>,
    pub(crate) passes_tls: bool,
    pub(crate) metrics: Arc<Metrics>,
}

/// A connection to a node being opened.
pub(crate) type Dialling = Pin<Box<dyn Future<Output = Result<Stream, DialError>> + Send>>;

/// One channel.
pub(crate) struct Channel {
    pub(crate) id: Id,
    wish: Wish,
    stage: Stage,
    pub(crate) facts: Facts,
}

/// What the audit tells of a channel.
#[derive(Debug)]
pub(crate) struct Facts {
    /// As the client wrote it.
    pub(crate) target: String,
    pub(crate) node: Option<core::net::SocketAddr>,
    pub(crate) source_port: Option<u16>,
    pub(crate) to_node: u64,
    pub(crate) to_client: u64,
    pub(crate) since: Instant,
    pub(crate) active: Instant,
    /// The last bytes were the client's: the node owes an answer.
    pub(crate) is_waiting: bool,
}

enum Stage {
    Dialling(Dialling),
    Open(Box<Open>),
}

/// A channel that leads somewhere.
struct Open {
    socket: Stream,
    gate: Gate,
    /// From the client, not yet let through the gate.
    held: BytesMut,
    to_node: BytesMut,
    /// From the node, while the gate reads along.
    from_node: BytesMut,
    to_client: BytesMut,
    is_unflushed: bool,
    is_client_finished: bool,
    is_node_shut: bool,
    is_node_finished: bool,
}

/// What bytes must get through.
enum Gate {
    /// Nothing is known of the client.
    First,
    /// The relay logs in.
    Login(Login),
    /// No more.
    Free,
}

/// How a channel ends.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) reason: Reason,
    pub(crate) text: String,
}

impl Ended {
    fn new(reason: Reason) -> Self {
        let text = String::new();
        Self { reason, text }
    }
}

impl From<Reason> for Ended {
    fn from(reason: Reason) -> Self {
        Self::new(reason)
    }
}

impl Channel {
    pub(crate) fn new(id: Id, target: String, wish: Wish, dialling: Dialling) -> Self {
        let now = Instant::now();
        Self {
            id,
            wish,
            stage: Stage::Dialling(dialling),
            facts: Facts {
                target,
                node: None,
                source_port: None,
                to_node: 0,
                to_client: 0,
                since: now,
                active: now,
                is_waiting: false,
            },
        }
    }

    /// Whether it still has to show that it is CQL.
    pub(crate) fn is_at_gate(&self) -> bool {
        match &self.stage {
            Stage::Dialling(_) => false,
            Stage::Open(open) => !matches!(open.gate, Gate::Free),
        }
    }

    /// Lets it go on as far as it can. Ready when it is over.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        carrier: &mut Carrier,
        policy: &Policy,
        scratch: &mut [u8],
    ) -> Poll<Ended> {
        // What came before is still given to the node, as far as it takes it at once.
        let is_closed = carrier.is_closed(self.id);
        if let Stage::Dialling(dialling) = &mut self.stage {
            if is_closed {
                return Poll::Ready(Ended::new(Reason::Abandoned));
            }
            let socket = match dialling.as_mut().poll(cx) {
                Poll::Ready(Ok(socket)) => socket,
                Poll::Ready(Err(error)) => return Poll::Ready(self.not_dialled(&error)),
                Poll::Pending => return Poll::Pending,
            };
            self.handle_dialled(socket, carrier, policy);
        }
        let Stage::Open(open) = &mut self.stage else {
            return Poll::Pending;
        };
        let before = (self.facts.to_node, self.facts.to_client);
        let polled = open.poll(cx, self.id, carrier, policy, scratch, &mut self.facts);
        let (to_node, to_client) = (
            self.facts.to_node - before.0,
            self.facts.to_client - before.1,
        );
        if to_node > 0 || to_client > 0 {
            self.facts.active = Instant::now();
            self.facts.is_waiting = to_client == 0;
            let relaxed = core::sync::atomic::Ordering::Relaxed;
            policy.metrics.bytes_to_node.fetch_add(to_node, relaxed);
            policy.metrics.bytes_to_client.fetch_add(to_client, relaxed);
        }
        match polled {
            Ok(is_over) if is_over || is_closed => Poll::Ready(Ended::new(Reason::Abandoned)),
            Ok(_) => Poll::Pending,
            Err(ended) => Poll::Ready(ended),
        }
    }

    fn handle_dialled(&mut self, socket: Stream, carrier: &mut Carrier, policy: &Policy) {
        self.facts.node = socket.socket().peer_addr().ok();
        let port = socket.socket().local_addr().map_or(0, |local| local.port());
        self.facts.source_port = Some(port);
        self.facts.active = Instant::now();
        policy.metrics.dialled(self.facts.since.elapsed());
        if let Wish::Shard { shard, of } = self.wish
            && port % of == shard
        {
            let relaxed = core::sync::atomic::Ordering::Relaxed;
            policy.metrics.steered.fetch_add(1, relaxed);
        }
        carrier.accept(self.id, port);
        self.stage = Stage::Open(Box::new(Open {
            socket,
            gate: Gate::First,
            held: BytesMut::new(),
            to_node: BytesMut::new(),
            from_node: BytesMut::new(),
            to_client: BytesMut::new(),
            is_unflushed: false,
            is_client_finished: false,
            is_node_shut: false,
            is_node_finished: false,
        }));
    }

    fn not_dialled(&self, error: &DialError) -> Ended {
        let text = match error {
            DialError::NotAllowed(error) => {
                // For the operator; the client is not told what a name leads to.
                tracing::warn!(target: "messina_relay", asked = ?self.facts.target, "{error}");
                String::new()
            }
            DialError::Tls(error) => {
                tracing::warn!(target: "messina_relay", asked = ?self.facts.target, %error, "TLS");
                "the relay does not trust the node's TLS".to_owned()
            }
            _ => String::new(),
        };
        Ended {
            reason: error.reason(),
            text,
        }
    }
}

impl Open {
    /// Whether both directions have come to their ends.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        id: Id,
        carrier: &mut Carrier,
        policy: &Policy,
        scratch: &mut [u8],
        facts: &mut Facts,
    ) -> Result<bool, Ended> {
        for _ in 0..TURNS_MAX {
            let mut is_moving = self.poll_to_node(cx, id, carrier, policy, facts)?;
            is_moving |= self.poll_to_client(cx, id, carrier, policy, scratch, facts)?;
            if self.is_node_shut && self.is_node_finished && self.to_client.is_empty() {
                return Ok(true);
            }
            if !is_moving {
                return Ok(false);
            }
        }
        // Others of this WebSocket want their turn.
        cx.waker().wake_by_ref();
        Ok(false)
    }

    /// From the client to the node; whether anything moved.
    fn poll_to_node(
        &mut self,
        cx: &mut Context<'_>,
        id: Id,
        carrier: &mut Carrier,
        policy: &Policy,
        facts: &mut Facts,
    ) -> Result<bool, Ended> {
        if self.is_node_shut {
            return Ok(false);
        }
        if self.to_node.is_empty() {
            self.take_from_client(id, carrier, policy)?;
        }
        let mut is_moving = false;
        while !self.to_node.is_empty() {
            match Pin::new(&mut self.socket).poll_write(cx, &self.to_node) {
                // What it said before can still be read; then that ends too.
                Poll::Ready(Ok(0) | Err(_)) => {
                    self.to_node = BytesMut::new();
                    self.is_node_shut = true;
                    return Ok(true);
                }
                Poll::Ready(Ok(len)) => {
                    self.to_node.advance(len);
                    facts.to_node += len as u64;
                    self.is_unflushed = true;
                    is_moving = true;
                }
                Poll::Pending => return Ok(is_moving),
            }
        }
        // Under TLS a record may still wait to be written; otherwise this is nothing.
        if self.is_unflushed && Pin::new(&mut self.socket).poll_flush(cx).is_ready() {
            self.is_unflushed = false;
        }
        if self.to_node.capacity() > KEPT_MAX {
            self.to_node = BytesMut::new();
        }
        let is_all = self.is_client_finished && self.held.is_empty();
        if is_all && let Poll::Ready(shut) = Pin::new(&mut self.socket).poll_shutdown(cx) {
            shut.map_err(|_| Reason::Reset)?;
            self.is_node_shut = true;
        }
        Ok(is_moving)
    }

    /// Fills `to_node`, through the gate.
    fn take_from_client(
        &mut self,
        id: Id,
        carrier: &mut Carrier,
        policy: &Policy,
    ) -> Result<(), Ended> {
        if matches!(self.gate, Gate::Free) && self.held.is_empty() {
            if !self.is_client_finished && carrier.read(id, &mut self.to_node)? == Some(0) {
                self.is_client_finished = true;
            }
            return Ok(());
        }
        loop {
            let before = self.held.len();
            if before < HELD_MAX && !self.is_client_finished {
                // A buffer that holds something is filled up to its capacity only.
                if before > 0 {
                    self.held.reserve(HELD_MAX.min(4096));
                }
                if carrier.read(id, &mut self.held)? == Some(0) {
                    self.is_client_finished = true;
                }
            }
            self.pass_gate(policy)?;
            if !self.to_node.is_empty() || self.held.len() == before {
                return Ok(());
            }
        }
    }

    fn pass_gate(&mut self, policy: &Policy) -> Result<(), Ended> {
        match &mut self.gate {
            Gate::First => match (FirstBytes::of(&self.held), &policy.credentials) {
                (FirstBytes::Unclear, _) if self.is_client_finished => {
                    return Err(Reason::Abandoned.into());
                }
                (FirstBytes::Unclear, _) => {}
                (FirstBytes::Cql, Some(_)) => {
                    self.gate = Gate::Login(Login::new());
                    return self.pass_gate(policy);
                }
                (FirstBytes::Cql, None) => self.gate = Gate::Free,
                (FirstBytes::Tls, None) if policy.passes_tls => self.gate = Gate::Free,
                (FirstBytes::Tls | FirstBytes::Other, _) => return Err(Reason::NotCql.into()),
            },
            Gate::Login(login) => {
                let passed =
                    login.handle_client(&mut self.held, &mut self.to_node, &mut self.to_client);
                passed.map_err(|_| Reason::NotCql)?;
            }
            Gate::Free => {}
        }
        if matches!(self.gate, Gate::Free) && self.to_node.is_empty() {
            core::mem::swap(&mut self.to_node, &mut self.held);
        }
        Ok(())
    }

    /// From the node to the client; whether anything moved.
    fn poll_to_client(
        &mut self,
        cx: &mut Context<'_>,
        id: Id,
        carrier: &mut Carrier,
        policy: &Policy,
        scratch: &mut [u8],
        facts: &mut Facts,
    ) -> Result<bool, Ended> {
        let mut is_moving = false;
        while !self.to_client.is_empty() {
            let Some(len) = carrier.write(id, &self.to_client)? else {
                return Ok(is_moving);
            };
            self.to_client.advance(len);
            facts.to_client += len as u64;
            is_moving = true;
        }
        if self.to_client.capacity() > 0 {
            self.to_client = BytesMut::new();
        }
        match &self.gate {
            Gate::First => return Ok(is_moving),
            Gate::Login(login) if login.is_over() => return Err(Reason::Abandoned.into()),
            _ if self.is_node_finished => return Ok(is_moving),
            _ => {}
        }
        if !carrier.has_room() {
            // Nothing is taken, but a change will be told; what was read would only wait here.
            carrier.write(id, &[])?;
            return Ok(is_moving);
        }
        let mut read = ReadBuf::new(scratch);
        match Pin::new(&mut self.socket).poll_read(cx, &mut read) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => return Err(Reason::Reset.into()),
            Poll::Pending => return Ok(is_moving),
        }
        if read.filled().is_empty() {
            self.is_node_finished = true;
            carrier.finish(id);
            return Ok(true);
        }
        if let (Gate::Login(login), Some(credentials)) = (&mut self.gate, &policy.credentials) {
            self.from_node.extend_from_slice(read.filled());
            let (from, node, client) =
                (&mut self.from_node, &mut self.to_node, &mut self.to_client);
            let passed = login.handle_node(credentials, from, node, client);
            passed.map_err(|_| Reason::NotCql)?;
            if login.is_done() {
                let relaxed = core::sync::atomic::Ordering::Relaxed;
                policy.metrics.logins.fetch_add(1, relaxed);
                self.gate = Gate::Free;
                self.from_node = BytesMut::new();
            }
            return Ok(true);
        }
        let mut bytes = read.filled();
        while !bytes.is_empty() {
            let Some(len) = carrier.write(id, bytes)? else {
                self.to_client.extend_from_slice(bytes);
                return Ok(true);
            };
            bytes = &bytes[len..];
            facts.to_client += len as u64;
        }
        Ok(true)
    }
}

impl core::fmt::Debug for Channel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Channel")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Turns of one channel before others have theirs.
const TURNS_MAX: usize = 16;

/// A buffer with more room is given back when it is empty.
const KEPT_MAX: usize = 4 << 10;

/// Most bytes of a client that wait at the gate: one frame, and one behind it.
const HELD_MAX: usize = 128 << 10;
