//! The listener: from an accepted TCP connection to a session, and the end of all of them.

use core::future::Future;
use core::net::SocketAddr;
use core::ops::RangeInclusive;
use core::pin::pin;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use messina_websocket::tunnel::Reason;
use messina_websocket::{CQL, CQL_MUX};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_util::sync::CancellationToken;

use crate::access::{Access, AccessError, Grant};
use crate::allow::AllowList;
use crate::audit;
use crate::carrier::Carrier;
use crate::channel::{Facts, Policy};
use crate::dial::{Dialer, Resolver, SystemResolver};
use crate::handshake::{HEAD_LEN_MAX, Protocol, Refusal, Request};
use crate::limits::{Admission, Full, Limits, Register};
use crate::login::Credentials;
use crate::metrics::Metrics;
use crate::monitor;
use crate::session::{Session, tell_end};
use crate::socket::{Socket, Stream};
use crate::target::Target;
use crate::tls::{NodeTls, TlsIdentity};

/// What a relay does and does not.
#[derive(Debug)]
#[non_exhaustive]
pub struct RelayConfig {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where to answer `GET /metrics` and `GET /health`; nowhere unless set. Whoever reaches it may
    /// read it.
    pub metrics: Option<SocketAddr>,
    /// The URL's path.
    pub path: String,
    /// What may be connected to.
    pub allow: AllowList,
    /// Who may come in.
    pub access: Access,
    /// How much of everything.
    pub limits: Limits,
    /// The relay's certificate, for `wss:`.
    pub tls: Option<TlsIdentity>,
    /// Logs in to nodes in the clients' stead. Clients then have all rights of this user.
    pub login: Option<Credentials>,
    /// Speaks TLS with the nodes, and whom to trust there. Clients do not notice.
    pub node_tls: Option<NodeTls>,
    /// Lets clients speak TLS with the nodes through the relay, which then cannot look whether it
    /// is CQL.
    pub passes_tls: bool,
    /// Ports from which nodes are dialled when a shard is wished.
    pub source_ports: RangeInclusive<u16>,
    /// Finds the addresses of names.
    pub resolver: Arc<dyn Resolver>,
}

impl RelayConfig {
    /// Allows nothing, lets in everybody but web pages, has all limits on.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            metrics: None,
            path: "/cql".to_owned(),
            allow: AllowList::new(),
            access: Access::new(),
            limits: Limits::default(),
            tls: None,
            login: None,
            node_tls: None,
            passes_tls: false,
            source_ports: 49_152..=65_535,
            resolver: Arc::new(SystemResolver),
        }
    }
}

/// A relay that listens.
#[derive(Debug)]
pub struct Relay {
    listener: TcpListener,
    monitor: Option<TcpListener>,
    shared: Arc<Shared>,
}

/// How a relay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// WebSockets that were open when it was told to stop.
    pub connections: usize,
    /// Those of them that did not end in time and were dropped.
    pub dropped: usize,
}

/// What all sessions share.
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) dialer: Dialer,
    pub(crate) policy: Policy,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) stop: CancellationToken,
    path: String,
    access: Access,
    register: Arc<Register>,
    tls: Option<TlsAcceptor>,
}

impl core::fmt::Debug for Shared {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Relay {
    /// Listens. Clients can connect from now on, and are served once it [runs](Self::run).
    ///
    /// # Errors
    ///
    /// When an address cannot be listened at.
    pub async fn bind(config: RelayConfig) -> io::Result<Self> {
        let listener = TcpListener::bind(config.listen).await?;
        let monitor = match config.metrics {
            Some(address) => Some(TcpListener::bind(address).await?),
            None => None,
        };
        let metrics = Arc::new(Metrics::default());
        let shared = Shared {
            dialer: Dialer {
                allow: Arc::new(config.allow),
                resolver: config.resolver,
                source_ports: config.source_ports,
                timeout: config.limits.dial_timeout,
                tls: config.node_tls,
            },
            policy: Policy {
                credentials: config.login,
                passes_tls: config.passes_tls,
                metrics: Arc::clone(&metrics),
            },
            metrics,
            stop: CancellationToken::new(),
            path: config.path,
            access: config.access,
            register: Arc::new(Register::new(config.limits.clone())),
            tls: config.tls.map(TlsIdentity::into_acceptor),
            limits: config.limits,
        };
        Ok(Self {
            listener,
            monitor,
            shared: Arc::new(shared),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    ///
    /// When the operating system does not tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where its metrics are, if anywhere.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.monitor.as_ref()?.local_addr().ok()
    }

    /// Serves until `stop` is ready, then takes nobody in any more, tells all clients, and ends when
    /// they are gone or [`Limits::drain_timeout`] is over. Dropping the future drops all
    /// connections.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Drained {
        let Self {
            listener,
            monitor,
            shared,
        } = self;
        let mut sessions = JoinSet::new();
        let mut monitors = JoinSet::new();
        if let Some(monitor) = monitor {
            monitors.spawn(monitor::run(monitor, Arc::clone(&shared)));
        }
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(_) = sessions.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => accept(&shared, &mut sessions, stream, peer),
                    // Out of descriptors, or the client is gone already.
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
            }
        }
        drop(listener);
        shared.stop.cancel();
        let connections = sessions.len();
        let patience = shared.limits.drain_timeout + GRACE;
        let all = async { while sessions.join_next().await.is_some() {} };
        let _ = timeout(patience, all).await;
        Drained {
            connections,
            dropped: sessions.len(),
        }
    }
}

impl Shared {
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    pub(crate) fn channel_refused(&self, grant: &Grant, target: &str, reason: Reason, text: &str) {
        self.metrics.close(reason);
        audit::channel_refused(&grant.label, target, reason, text);
    }

    pub(crate) fn channel_ended(&self, grant: &Grant, facts: &Facts, reason: Reason) {
        self.metrics.channels_open.down();
        self.metrics.close(reason);
        audit::channel_ended(&grant.label, facts, reason);
    }
}

/// Starts a task for a connection, if there is a place for it.
fn accept(shared: &Arc<Shared>, sessions: &mut JoinSet<()>, stream: TcpStream, peer: SocketAddr) {
    let admission = shared.register.admit(peer.ip());
    // Those who wait to hear that the relay is full need places too.
    if admission.is_err() && sessions.len() >= shared.limits.connections_max + REFUSING_MAX {
        return;
    }
    let shared = Arc::clone(shared);
    sessions.spawn(async move { serve(shared, admission, stream, peer).await });
}

/// One connection from its first byte to its end.
async fn serve(
    shared: Arc<Shared>,
    admission: Result<Admission, Full>,
    stream: TcpStream,
    peer: SocketAddr,
) {
    let since = Instant::now();
    let shaking = shake(&shared, admission, stream, peer);
    let shaken = tokio::select! {
        shaken = timeout(shared.limits.handshake_timeout, shaking) => shaken,
        () = shared.stop.cancelled() => return,
    };
    let Ok(Some((session, grant))) = shaken else {
        return;
    };
    shared.metrics.connections.fetch_add(1, Ordering::Relaxed);
    shared.metrics.connections_open.up();
    let end = session.run().await;
    shared.metrics.connections_open.down();
    tell_end(&grant, peer, since, &end);
}

/// TLS, the request, and the answer.
async fn shake(
    shared: &Arc<Shared>,
    admission: Result<Admission, Full>,
    stream: TcpStream,
    peer: SocketAddr,
) -> Option<(Box<Session>, Grant)> {
    let socket = Socket::new(stream).ok()?;
    let mut stream = match &shared.tls {
        Some(tls) => Stream::Tls(Box::new(tls.accept(socket).await.ok()?.into())),
        None => Stream::Plain(socket),
    };
    let mut head = Vec::new();
    let asked = read_request(&mut stream, &mut head, &shared.path).await?;
    let judged = asked.and_then(|(request, len)| {
        let (grant, admission) = judge(shared, admission, &request)?;
        Ok((request, len, grant, admission))
    });
    let (request, len, grant, admission) = match judged {
        Ok(judged) => judged,
        Err(refusal) => {
            shared.metrics.refuse(refusal.status);
            audit::connection_refused(peer, refusal.status, refusal.reason);
            refuse(stream, refusal).await;
            return None;
        }
    };
    stream.write_all(request.accepted().as_bytes()).await.ok()?;
    stream.flush().await.ok()?;
    let origin = request.origin.as_deref();
    let (carrier, protocol) = match request.protocol {
        Protocol::Mux => (Carrier::mux(&shared.limits), CQL_MUX),
        Protocol::Plain(target, wish) => (Carrier::plain(target, wish, &shared.limits), CQL),
    };
    audit::connection_opened(&grant.label, peer, origin, protocol);
    let behind = head.split_off(len);
    let config = socket_config(&shared.limits);
    let socket =
        WebSocketStream::from_partially_read(stream, behind, Role::Server, Some(config)).await;
    let session = Session::new(
        socket,
        carrier,
        grant.clone(),
        admission,
        Arc::clone(shared),
    );
    Some((Box::new(session), grant))
}

/// Reads until the request is complete. `None`: the client is gone.
async fn read_request(
    stream: &mut Stream,
    head: &mut Vec<u8>,
    path: &str,
) -> Option<Result<(Request, usize), Refusal>> {
    loop {
        let len = head.len();
        head.resize(len + READ_LEN, 0);
        let read = stream.read(&mut head[len..]).await.ok()?;
        head.truncate(len + read);
        if read == 0 {
            return None;
        }
        match Request::parse(head, path) {
            Ok(None) if head.len() <= HEAD_LEN_MAX => {}
            Ok(None) => return None,
            Ok(Some(request)) => return Some(Ok(request)),
            Err(refusal) => return Some(Err(refusal)),
        }
    }
}

/// Whether this request may become a WebSocket.
fn judge(
    shared: &Shared,
    admission: Result<Admission, Full>,
    request: &Request,
) -> Result<(Grant, Admission), Refusal> {
    let refusal = |status, reason| Refusal { status, reason };
    if shared.is_stopping() {
        return Err(refusal(503, "the relay is about to stop"));
    }
    let full = |full: Full| match full {
        Full::Relay => refusal(503, full.as_str()),
        Full::Address | Full::Token => refusal(429, full.as_str()),
    };
    let mut admission = admission.map_err(full)?;
    let origin = shared.access.check_origin(request.origin.as_deref());
    origin.map_err(|_| refusal(403, "origin not allowed"))?;
    let token = shared.access.check_token(request.token.as_deref());
    let grant = token.map_err(|error| match error {
        AccessError::Token(error) => refusal(401, error.as_str()),
        _ => refusal(401, "a token is needed"),
    })?;
    admission.hold(&grant).map_err(full)?;
    if let Protocol::Plain(target, _) = &request.protocol {
        let target = Target::parse(target).map_err(|error| refusal(403, error.as_str()))?;
        let is_named = grant
            .scope
            .as_ref()
            .is_none_or(|scope| scope.names(&target));
        if !is_named {
            return Err(refusal(403, "target is none of the token's"));
        }
        if shared.dialer.allow.judge(&target).is_err() {
            return Err(refusal(403, "target not allowed"));
        }
    }
    Ok((grant, admission))
}

/// Answers, and gives the client time to read it: a socket that is closed with unread bytes would
/// take the answer away from it.
async fn refuse(mut stream: Stream, refusal: Refusal) {
    let response = refusal.response();
    if stream.write_all(response.as_bytes()).await.is_err() || stream.shutdown().await.is_err() {
        return;
    }
    let mut rest = [0; 512];
    let reading = async {
        for _ in 0..REFUSED_READS_MAX {
            if !matches!(stream.read(&mut rest).await, Ok(1..)) {
                return;
            }
        }
    };
    let _ = timeout(REFUSED_TIMEOUT, reading).await;
}

fn socket_config(limits: &Limits) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_LEN)
        .write_buffer_size(0)
        .max_message_size(Some(limits.message_len_max))
        .max_frame_size(Some(limits.message_len_max))
}

/// Bytes that are read of a request at once.
const READ_LEN: usize = 2048;

/// What a WebSocket reads at once, and keeps while it is idle.
const READ_BUFFER_LEN: usize = 16 << 10;

/// Until a descriptor may be free again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Beyond the limit, those who are being told so.
const REFUSING_MAX: usize = 256;

/// Sessions say goodbye within this.
const GRACE: Duration = Duration::from_millis(2500);

const REFUSED_TIMEOUT: Duration = Duration::from_secs(1);
const REFUSED_READS_MAX: usize = 64;
