//! The only file that names embassy-net: sockets, their pool, look-ups, and whether the network is
//! there at all. A successor of embassy-net is met here and nowhere else.
//!
//! Invariant: a socket is either in its slot of the pool or owned by one [`PooledSocket`]. What
//! returns to the pool is aborted; the reset that this owes to the peer leaves before the socket
//! connects again.

use core::cell::Cell;
use core::fmt;
use core::future::Future;
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU16;
use core::pin::pin;
use core::task::{Context, Poll, ready};

use bytes::BytesMut;
#[cfg(feature = "dns")]
use embassy_net::dns::DnsQueryType;
use embassy_net::tcp::{ConnectError, Error as TcpError, State, TcpSocket};
#[cfg(feature = "steering")]
use embassy_net::udp::UdpSocket;
use embassy_net::{IpAddress, IpEndpoint, Stack};
use embassy_time::{Duration, Instant, with_deadline, with_timeout};
use messina_core::drive::transport::RESOLVED_MAX;
use messina_core::error::{LinkError, LinkErrorKind};

/// All sockets of the pool are in use: more connections are wanted than were placed.
pub const NO_FREE_SOCKET: LinkError = LinkError::with_os_code(LinkErrorKind::Other, 1);

/// How long the reset of a socket's previous connection may take to leave. A cut cable keeps it
/// for ever, and then it is of no use to anyone.
const RESET_GRACE: Duration = Duration::from_millis(50);

/// Memory for `N` sockets with `RX` bytes of receive and `TX` bytes of send window each.
pub struct SocketBuffers<const N: usize, const RX: usize, const TX: usize> {
    sockets: [([u8; RX], [u8; TX]); N],
}

impl<const N: usize, const RX: usize, const TX: usize> SocketBuffers<N, RX, TX> {
    /// Zeroed memory; meant for a static, where it is never moved.
    pub const fn new() -> Self {
        Self {
            sockets: [([0; RX], [0; TX]); N],
        }
    }
}

impl<const N: usize, const RX: usize, const TX: usize> Default for SocketBuffers<N, RX, TX> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize, const RX: usize, const TX: usize> fmt::Debug for SocketBuffers<N, RX, TX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SocketBuffers {{ {N} * ({RX} + {TX}) }}")
    }
}

/// `N` sockets of one stack: the most connections that can be open or opening at once. A few words
/// in size; the windows stay where the caller placed them.
pub struct SocketPool<'d, const N: usize> {
    stack: Stack<'d>,
    slots: [Slot<'d>; N],
}

impl<'d, const N: usize> SocketPool<'d, N> {
    /// Makes the sockets.
    ///
    /// # Panics
    ///
    /// If the stack's `StackResources` have no room for `N` sockets; DHCP and DNS take one each.
    pub fn new<const RX: usize, const TX: usize>(
        stack: Stack<'d>,
        buffers: &'d mut SocketBuffers<N, RX, TX>,
    ) -> Self {
        let slots = buffers
            .sockets
            .each_mut()
            .map(|(rx, tx)| Slot(Cell::new(Some(TcpSocket::new(stack, rx, tx)))));
        Self { stack, slots }
    }

    /// Sockets that are in nobody's use.
    pub fn free(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_free()).count()
    }

    pub(crate) fn network(&'d self) -> Network<'d> {
        Network {
            stack: self.stack,
            slots: &self.slots,
        }
    }
}

impl<const N: usize> fmt::Debug for SocketPool<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SocketPool {{ {} of {N} free }}", self.free())
    }
}

struct Slot<'d>(Cell<Option<TcpSocket<'d>>>);

impl Slot<'_> {
    fn is_free(&self) -> bool {
        let socket = self.0.take();
        let free = socket.is_some();
        self.0.set(socket);
        free
    }
}

/// A connection should come from a port that is `shard` modulo `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardWish {
    pub(crate) shard: u16,
    pub(crate) of: NonZeroU16,
}

/// What a look-up gives.
pub(crate) type Addrs = heapless::Vec<IpAddr, RESOLVED_MAX>;

/// The pool without its size in the type, and the stack.
#[derive(Clone, Copy)]
pub(crate) struct Network<'d> {
    stack: Stack<'d>,
    slots: &'d [Slot<'d>],
}

impl<'d> Network<'d> {
    /// Whether the cable is in and an address is known.
    pub(crate) fn is_up(self) -> bool {
        self.stack.is_link_up() && self.stack.is_config_up()
    }

    /// Connects a free socket. Dropping the future gives the socket back.
    pub(crate) async fn connect(
        self,
        remote: SocketAddr,
        wish: Option<ShardWish>,
        deadline: Instant,
    ) -> Result<PooledSocket<'d>, LinkError> {
        let mut pooled = self.lease().ok_or(NO_FREE_SOCKET)?;
        match with_deadline(deadline, self.open(&mut pooled, remote, wish)).await {
            Ok(Ok(())) => Ok(pooled),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(self.silence()),
        }
    }

    /// What it means that nothing was heard.
    pub(crate) fn silence(self) -> LinkError {
        if self.is_up() {
            LinkError::TIMED_OUT
        } else {
            LinkError::new(LinkErrorKind::Unreachable)
        }
    }

    fn lease(self) -> Option<PooledSocket<'d>> {
        self.slots.iter().find_map(|slot| {
            let socket = slot.0.take()?;
            Some(PooledSocket {
                slot,
                socket: Some(socket),
            })
        })
    }

    async fn open(
        self,
        pooled: &mut PooledSocket<'d>,
        remote: SocketAddr,
        wish: Option<ShardWish>,
    ) -> Result<(), LinkError> {
        let socket = pooled.socket()?;
        // An attempt while DHCP is under way waits for it, within the deadline.
        self.stack.wait_config_up().await;
        let _ = with_timeout(RESET_GRACE, socket.flush()).await;
        // Without a timeout in the stack, its "reset" while connecting can only be a refusal.
        socket.set_timeout(None);
        socket.set_keep_alive(None);
        // Whole frames are written at once; waiting for more would only add the peer's ack delay.
        socket.set_nagle_enabled(false);
        if let Some(wish) = wish {
            // Nothing waits between this and the connect, which takes the next port at once.
            self.steer(wish);
        }
        socket.connect(endpoint(remote)?).await.map_err(|error| {
            LinkError::new(match error {
                ConnectError::ConnectionReset => LinkErrorKind::Refused,
                ConnectError::TimedOut => LinkErrorKind::TimedOut,
                ConnectError::NoRoute => LinkErrorKind::Unreachable,
                ConnectError::InvalidState => LinkErrorKind::Other,
            })
        })
    }

    /// Brings the stack's port counter to where the next connect takes a port of the wished shard.
    ///
    /// Ports count up one by one and wrap around. A bind to port zero takes one and tells it, so
    /// the one after it is known. Should the counter ever behave otherwise, the connection lands
    /// on some other shard, which SUPPORTED tells.
    #[cfg(feature = "steering")]
    fn steer(self, ShardWish { shard, of }: ShardWish) {
        let mut taker = UdpSocket::new(self.stack, &mut [], &mut [], &mut [], &mut []);
        for _ in 0..of.get().saturating_mul(2) {
            if taker.bind(0).is_err() {
                return;
            }
            let next = taker.endpoint().port.checked_add(1);
            taker.close();
            if next.is_some_and(|port| port % of == shard) {
                return;
            }
        }
    }

    #[cfg(not(feature = "steering"))]
    const fn steer(self, _wish: ShardWish) {}

    /// Addresses of a name, at least one. Literal addresses need neither server nor feature.
    pub(crate) async fn resolve(self, host: &str, patience: Duration) -> Result<Addrs, LinkError> {
        let mut addrs = Addrs::new();
        if let Ok(literal) = host.parse() {
            addrs.extend([literal]);
            return Ok(addrs);
        }
        match with_timeout(patience, self.look_up(host, &mut addrs)).await {
            Ok(()) if addrs.is_empty() => Err(LinkError::new(LinkErrorKind::Resolve)),
            Ok(()) => Ok(addrs),
            Err(_) => Err(self.silence()),
        }
    }

    #[cfg(feature = "dns")]
    async fn look_up(self, host: &str, addrs: &mut Addrs) {
        self.stack.wait_config_up().await;
        // How many come is fixed when smoltcp is built: SMOLTCP_DNS_MAX_RESULT_COUNT, one.
        if let Ok(found) = self.stack.dns_query(host, DnsQueryType::A).await {
            addrs.extend(found.into_iter().map(IpAddr::from).take(RESOLVED_MAX));
        }
    }

    #[cfg(not(feature = "dns"))]
    async fn look_up(self, _host: &str, _addrs: &mut Addrs) {}
}

/// How reading or writing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionLost;

/// A socket out of the pool, returned aborted when dropped.
pub(crate) struct PooledSocket<'d> {
    slot: &'d Slot<'d>,
    /// `None` only inside `drop`.
    socket: Option<TcpSocket<'d>>,
}

impl<'d> PooledSocket<'d> {
    fn socket(&mut self) -> Result<&mut TcpSocket<'d>, LinkError> {
        self.socket.as_mut().ok_or(NO_FREE_SOCKET)
    }

    /// Probes the peer and gives it up after silence; both or neither.
    pub(crate) fn watch(&mut self, probe_and_give_up: Option<(Duration, Duration)>) {
        if let Some(socket) = &mut self.socket {
            socket.set_keep_alive(probe_and_give_up.map(|(probe, _)| probe));
            socket.set_timeout(probe_and_give_up.map(|(_, give_up)| give_up));
        }
    }

    /// Appends what has arrived, at most `spare` bytes. Zero means that the peer has closed.
    ///
    /// The futures of embassy-net's sockets hold no progress, so a new one for each poll is right.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
        spare: usize,
    ) -> Poll<Result<usize, ConnectionLost>> {
        let Some(socket) = &mut self.socket else {
            return Poll::Ready(Err(ConnectionLost));
        };
        let take = |arrived: &mut [u8]| {
            let len = arrived.len().min(spare);
            into.extend_from_slice(arrived.get(..len).unwrap_or_default());
            (len, len)
        };
        if let Ok(len) = ready!(pin!(socket.read_with(take)).poll(cx)) {
            return Poll::Ready(Ok(len));
        }
        // `read_with` says reset for an orderly end too; `read` tells the two apart. Nothing can
        // have arrived in between, so no byte is lost in the probe.
        pin!(socket.read(&mut [0])).poll(cx).map_err(lost)
    }

    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, ConnectionLost>> {
        match &mut self.socket {
            Some(socket) => pin!(socket.write(bytes)).poll(cx).map_err(lost),
            None => Poll::Ready(Err(ConnectionLost)),
        }
    }

    /// Whether the stack still takes bytes for this connection.
    pub(crate) fn may_send(&self) -> bool {
        self.socket.as_ref().is_some_and(TcpSocket::may_send)
    }

    /// Queues the end of our side behind what was written.
    pub(crate) fn close(&mut self) {
        if let Some(socket) = &mut self.socket {
            socket.close();
        }
    }

    /// Ready when the peer has acknowledged everything, or the connection is gone.
    pub(crate) fn poll_acknowledged(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.socket {
            Some(socket) => pin!(socket.flush()).poll(cx).map(|_| ()),
            None => Poll::Ready(()),
        }
    }

    pub(crate) fn source_port(&self) -> Option<NonZeroU16> {
        let local = self.socket.as_ref()?.local_endpoint()?;
        NonZeroU16::new(local.port)
    }
}

/// A stack built for IPv4 alone has no way to an IPv6 address.
const fn endpoint(remote: SocketAddr) -> Result<IpEndpoint, LinkError> {
    match remote.ip() {
        IpAddr::V4(address) => Ok(IpEndpoint::new(IpAddress::Ipv4(address), remote.port())),
        #[cfg(feature = "ipv6")]
        IpAddr::V6(address) => Ok(IpEndpoint::new(IpAddress::Ipv6(address), remote.port())),
        #[cfg(not(feature = "ipv6"))]
        IpAddr::V6(_) => Err(LinkError::new(LinkErrorKind::Unreachable)),
    }
}

const fn lost(TcpError::ConnectionReset: TcpError) -> ConnectionLost {
    ConnectionLost
}

impl Drop for PooledSocket<'_> {
    fn drop(&mut self) {
        if let Some(mut socket) = self.socket.take() {
            // A connection that both sides have ended needs no reset on top.
            if socket.state() != State::TimeWait {
                socket.abort();
            }
            self.slot.0.set(Some(socket));
        }
    }
}
