//! The only module that names embassy-net: sockets, their pool, look-ups, and whether the network is
//! there at all. A successor of embassy-net is met here and nowhere else.
//!
//! Nothing here waits: what embassy-net offers as `async fn` is polled afresh each time, which is
//! right because those futures hold no progress. The exception is a look-up, which is boxed.
//!
//! Invariant: a socket is either in its slot of the pool or owned by one [`PooledSocket`]. What
//! returns to the pool is aborted; the reset that this owes to the peer leaves before the socket
//! connects again.

#[cfg(feature = "dns")]
use alloc::boxed::Box;
use core::cell::Cell;
#[cfg(not(feature = "dns"))]
use core::convert::Infallible;
use core::fmt;
use core::future::Future;
#[cfg(not(feature = "dns"))]
use core::marker::PhantomData;
use core::net::{IpAddr, SocketAddr};
#[cfg(feature = "dns")]
use core::pin::Pin;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

pub(crate) use embassy_net::IpAddress;
#[cfg(feature = "dns")]
use embassy_net::dns::DnsQueryType;
use embassy_net::tcp::{ConnectError, TcpSocket};
use embassy_net::{IpEndpoint, Stack};
use messina_core::drive::Name;
use messina_core::drive::transport::RESOLVED_MAX;
use messina_core::error::{LinkError, LinkErrorKind};

use crate::steering::{ShardWish, SteeringCounts};

mod socket;

pub(crate) use socket::{ConnectionLost, PooledSocket};

/// All sockets of the pool are in use: more connections are wanted than were placed.
pub const NO_FREE_SOCKET: LinkError = LinkError::with_os_code(LinkErrorKind::Other, 1);

/// The cable is out, or the radio has no network.
pub const LINK_DOWN: LinkError = LinkError::with_os_code(LinkErrorKind::Unreachable, 2);

/// The stack has no address: DHCP has not given one yet, or its lease was lost.
pub const NO_ADDRESS: LinkError = LinkError::with_os_code(LinkErrorKind::Unreachable, 3);

/// Ports that a fresh pool may skip, so that a stack with the same seed at each boot does not begin
/// at the same port.
const SKIPPED_MAX: u64 = 256;

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
pub struct SocketPool<'d, const N: usize>(Sockets<'d, [Slot<'d>; N]>);

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
        // In a loop: mapping an array would make each socket by code of its own.
        let slots = [const { Slot(Cell::new(None)) }; N];
        for (slot, (rx, tx)) in slots.iter().zip(&mut buffers.sockets) {
            slot.put(TcpSocket::new(stack, rx, tx));
        }
        Self(Sockets {
            stack,
            steering: Cell::default(),
            #[cfg(feature = "dns")]
            turn: Cell::new(0),
            slots,
        })
    }

    /// Sockets that are in nobody's use.
    pub fn free(&self) -> usize {
        self.0.slots.iter().filter(|slot| slot.is_free()).count()
    }

    /// What became of wishes for a shard.
    pub const fn steering(&self) -> SteeringCounts {
        self.0.steering.get()
    }

    pub(crate) const fn network(&'d self) -> Network<'d> {
        Network(&self.0)
    }
}

impl<const N: usize> fmt::Debug for SocketPool<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SocketPool {{ {} of {N} free }}", self.free())
    }
}

struct Sockets<'d, S: ?Sized> {
    stack: Stack<'d>,
    steering: Cell<SteeringCounts>,
    /// Whose turn it is of the addresses of a name.
    #[cfg(feature = "dns")]
    turn: Cell<u8>,
    slots: S,
}

struct Slot<'d>(Cell<Option<TcpSocket<'d>>>);

impl<'d> Slot<'d> {
    fn put(&self, mut socket: TcpSocket<'d>) {
        // Whole frames are written at once; waiting for more would only add the peer's ack delay.
        socket.set_nagle_enabled(false);
        self.0.set(Some(socket));
    }

    fn is_free(&self) -> bool {
        let socket = self.0.take();
        let free = socket.is_some();
        self.0.set(socket);
        free
    }
}

/// What a look-up gives.
pub(crate) type Addrs = heapless::Vec<IpAddress, RESOLVED_MAX>;

/// Where a connection leads; a stack built for IPv4 alone has no way to an IPv6 address.
#[derive(Clone, Copy)]
pub(crate) struct Remote(IpEndpoint);

impl Remote {
    /// No one; a connect to it ends as unreachable.
    pub(crate) const NOBODY: Self = Self(IpEndpoint::new(IpAddress::v4(0, 0, 0, 0), 0));

    pub(crate) const fn new(remote: SocketAddr) -> Self {
        match remote.ip() {
            IpAddr::V4(address) => Self::at(IpAddress::Ipv4(address), remote.port()),
            #[cfg(feature = "ipv6")]
            IpAddr::V6(address) => Self::at(IpAddress::Ipv6(address), remote.port()),
            #[cfg(not(feature = "ipv6"))]
            IpAddr::V6(_) => Self::NOBODY,
        }
    }

    pub(crate) const fn at(address: IpAddress, port: u16) -> Self {
        Self(IpEndpoint::new(address, port))
    }
}

/// Reads a literal address. Stacks without IPv6 need no code that reads such ones.
pub(crate) fn literal(name: &str) -> Option<IpAddress> {
    #[cfg(feature = "ipv6")]
    return name.parse().ok().map(IpAddr::into);
    #[cfg(not(feature = "ipv6"))]
    name.parse().ok().map(IpAddress::Ipv4)
}

/// A question to the name servers.
#[cfg(feature = "dns")]
pub(crate) struct Query<'d>(Pin<Box<dyn Future<Output = Addrs> + 'd>>);

#[cfg(feature = "dns")]
impl Query<'_> {
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Addrs> {
        self.0.as_mut().poll(cx)
    }
}

/// There are no name servers to ask.
#[cfg(not(feature = "dns"))]
pub(crate) struct Query<'d>(Infallible, PhantomData<&'d ()>);

#[cfg(not(feature = "dns"))]
impl Query<'_> {
    pub(crate) const fn poll(&mut self, _cx: &mut Context<'_>) -> Poll<Addrs> {
        match self.0 {}
    }
}

/// The pool without its size in the type, and the stack.
#[derive(Clone, Copy)]
pub(crate) struct Network<'d>(&'d Sockets<'d, [Slot<'d>]>);

impl<'d> Network<'d> {
    /// Whether the cable is in.
    pub(crate) fn is_link_up(self) -> bool {
        self.0.stack.is_link_up()
    }

    /// Whether the cable is in and an address is known; if not, what is missing.
    // Asked for in many places, and twice the size where it is inlined.
    #[inline(never)]
    pub(crate) fn state(self) -> Result<(), LinkError> {
        if !self.0.stack.is_link_up() {
            Err(LINK_DOWN)
        } else if !self.0.stack.is_config_up() {
            Err(NO_ADDRESS)
        } else {
            Ok(())
        }
    }

    /// What it means that nothing was heard.
    pub(crate) fn silence(self) -> LinkError {
        self.state().err().unwrap_or(LinkError::TIMED_OUT)
    }

    pub(crate) fn lease(self) -> Result<PooledSocket<'d>, LinkError> {
        let leased = self.0.slots.iter().find_map(|slot| {
            let socket = slot.0.take()?;
            Some(PooledSocket::new(slot, socket))
        });
        leased.ok_or(NO_FREE_SOCKET)
    }

    /// Begins to connect: the socket has its source port, and the first segment leaves when the
    /// stack runs next.
    pub(crate) fn begin(
        self,
        pooled: &mut PooledSocket<'d>,
        remote: Remote,
        wish: Option<ShardWish>,
    ) -> Result<(), LinkError> {
        let socket = pooled.socket()?;
        // Without a timeout in the stack, its "reset" while connecting can only be a refusal.
        socket.set_timeout(None);
        socket.set_keep_alive(None);
        let Some(wish) = wish else {
            return draw(socket, remote).map(|_port| ());
        };
        // The stack does not run in between, so a draw that is not kept sends nothing.
        let mut counts = self.0.steering.get();
        let led = counts.lead(wish, || draw(socket, remote));
        self.0.steering.set(counts);
        led
    }

    /// Skips a number of source ports, so that a stack that has the same seed after each boot does
    /// not take those again that the peer still holds to be open.
    pub(crate) fn skip_ports(self, entropy: u64) {
        let Ok(mut pooled) = self.lease() else {
            return;
        };
        let Ok(socket) = pooled.socket() else {
            return;
        };
        // The connect fails at once, and the port is used up all the same.
        for _ in 0..entropy % SKIPPED_MAX {
            let _ = draw(socket, Remote::NOBODY);
        }
    }

    /// One of the addresses of a name, another at each call.
    #[cfg(feature = "dns")]
    pub(crate) fn turn_of(self, addrs: &Addrs) -> Option<IpAddress> {
        let turn = self.0.turn.get();
        self.0.turn.set(turn.wrapping_add(1));
        addrs
            .get(usize::from(turn).checked_rem(addrs.len())?)
            .copied()
    }

    /// Asks the name servers, once there is a network. How many addresses can come is fixed when
    /// smoltcp is built: `SMOLTCP_DNS_MAX_RESULT_COUNT`, one.
    #[cfg(feature = "dns")]
    pub(crate) fn query(self, name: &Name) -> Option<Query<'d>> {
        let (stack, name) = (self.0.stack, name.clone());
        Some(Query(Box::pin(async move {
            let mut addrs = Addrs::new();
            stack.wait_config_up().await;
            if let Ok(found) = stack.dns_query(&name, DnsQueryType::A).await {
                addrs.extend(found.into_iter().take(RESOLVED_MAX));
            }
            #[cfg(feature = "ipv6")]
            if addrs.is_empty()
                && let Ok(found) = stack.dns_query(&name, DnsQueryType::Aaaa).await
            {
                addrs.extend(found.into_iter().take(RESOLVED_MAX));
            }
            addrs
        })))
    }

    #[cfg(not(feature = "dns"))]
    #[expect(
        clippy::unused_self,
        reason = "the same call with and without the feature"
    )]
    pub(crate) const fn query(self, _name: &Name) -> Option<Query<'d>> {
        None
    }
}

/// Takes the allocator's next port for a connection to `remote`, in place of what the socket was
/// doing.
fn draw(socket: &mut TcpSocket<'_>, Remote(remote): Remote) -> Result<u16, LinkError> {
    socket.abort();
    // All is done in the first poll; the answer is awaited by `poll_opened`.
    let begun = pin!(socket.connect(remote)).poll(&mut Context::from_waker(Waker::noop()));
    if let Poll::Ready(Err(error)) = begun {
        return Err(LinkError::new(match error {
            ConnectError::NoRoute => LinkErrorKind::Unreachable,
            _ => LinkErrorKind::Other,
        }));
    }
    Ok(socket.local_endpoint().map_or(0, |local| local.port))
}
