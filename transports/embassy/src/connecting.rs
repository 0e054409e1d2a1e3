//! Connects and look-ups, each one small machine: written by hand, so that a connect needs no heap
//! and one body of code serves all of them.
//!
//! A stage that waits for the network looks again now and then. The stack could say when it is
//! there, but to a single task only: two that ask would wake each other without end.

use core::fmt;
use core::future::Future;
use core::net::IpAddr;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use embassy_time::{Duration, Instant};
use messina_core::drive::{Name, Resolved};
use messina_core::error::{LinkError, LinkErrorKind};

use crate::link::EmbassyLink;
use crate::net::{Addrs, IpAddress, NO_FREE_SOCKET, Network, PooledSocket, Query, Remote, literal};
use crate::steering::ShardWish;
use crate::time;
use crate::transport::Watch;

/// How long the reset of a socket's previous connection may take to leave (a cut cable keeps it for
/// ever, and then it is of no use to anyone), and how soon a network that came back is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A connect under way. Dropping it gives the socket back to the pool.
#[must_use = "nothing connects unless it is polled"]
pub struct EmbassyConnecting<'d> {
    network: Network<'d>,
    watch: Option<Watch>,
    wish: Option<ShardWish>,
    deadline: Instant,
    /// Until it is done, `remote` is not known; with the port.
    #[cfg(feature = "dns")]
    resolving: Option<(EmbassyResolving<'d>, u16)>,
    remote: Remote,
    socket: Option<PooledSocket<'d>>,
    reset_until: Instant,
    has_begun: bool,
}

impl<'d> EmbassyConnecting<'d> {
    pub(crate) fn new(
        network: Network<'d>,
        watch: Option<Watch>,
        wish: Option<ShardWish>,
        deadline: Instant,
        remote: Remote,
    ) -> Self {
        Self {
            network,
            watch,
            wish,
            deadline,
            #[cfg(feature = "dns")]
            resolving: None,
            remote,
            socket: None,
            reset_until: time::after(LOOK_EVERY),
            has_begun: false,
        }
    }

    /// Looks the name up first, if there is one.
    #[cfg(feature = "dns")]
    pub(crate) fn after(mut self, resolving: Option<(EmbassyResolving<'d>, u16)>) -> Self {
        self.resolving = resolving;
        self
    }

    fn poll_steps(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        #[cfg(feature = "dns")]
        if let Some((resolving, port)) = &mut self.resolving {
            let address = ready!(resolving.poll_addr(cx))?;
            self.remote = Remote::at(address, *port);
            self.resolving = None;
        }
        let socket = match &mut self.socket {
            Some(socket) => socket,
            None => self.socket.insert(self.network.lease()?),
        };
        let network = self.network.state();
        let look_again = time::after(LOOK_EVERY);
        if !self.has_begun {
            let must_reset = || Instant::now() < self.reset_until;
            if network.is_err() || socket.poll_reset_sent(cx).is_pending() && must_reset() {
                time::wake_at(look_again, cx);
                return Poll::Pending;
            }
            self.network.begin(socket, self.remote, self.wish)?;
            self.has_begun = true;
        }
        match socket.poll_opened(cx) {
            Poll::Ready(true) => Poll::Ready(Ok(())),
            // The loss of the address may end a connect as a refusal does, or not at all.
            _ if network.is_err() => Poll::Ready(network),
            Poll::Ready(false) => Poll::Ready(Err(LinkError::new(LinkErrorKind::Refused))),
            Poll::Pending => {
                time::wake_at(look_again, cx);
                Poll::Pending
            }
        }
    }
}

impl<'d> Future for EmbassyConnecting<'d> {
    type Output = Result<EmbassyLink<'d>, LinkError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let opened = match this.poll_steps(cx) {
            Poll::Ready(opened) => opened,
            Poll::Pending => {
                ready!(time::poll_at(this.deadline, cx));
                Err(this.network.silence())
            }
        };
        // Whatever the outcome, nothing is held afterwards.
        let socket = this.socket.take();
        Poll::Ready(match (opened, socket) {
            (Ok(()), Some(socket)) => Ok(EmbassyLink::new(this.network, socket, this.watch)),
            (Ok(()), None) => Err(NO_FREE_SOCKET),
            (Err(error), _) => Err(error),
        })
    }
}

impl fmt::Debug for EmbassyConnecting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbassyConnecting").finish_non_exhaustive()
    }
}

/// A look-up under way. Dropping it abandons the question.
#[must_use = "nothing is looked up unless it is polled"]
pub struct EmbassyResolving<'d> {
    network: Network<'d>,
    deadline: Instant,
    state: LookUp<'d>,
}

enum LookUp<'d> {
    Known(IpAddress),
    Asked(Query<'d>),
    Unknown,
}

impl<'d> EmbassyResolving<'d> {
    /// Literal addresses need neither server nor feature.
    pub(crate) fn new(network: Network<'d>, name: &Name, deadline: Instant) -> Self {
        let state = match literal(name) {
            Some(address) => LookUp::Known(address),
            None => match network.query(name) {
                Some(query) => LookUp::Asked(query),
                None => LookUp::Unknown,
            },
        };
        Self {
            network,
            deadline,
            state,
        }
    }

    fn poll_addrs(&mut self, cx: &mut Context<'_>) -> Poll<Result<Addrs, LinkError>> {
        let addrs = match &mut self.state {
            LookUp::Known(address) => [*address].into_iter().collect(),
            LookUp::Asked(query) => match query.poll(cx) {
                Poll::Ready(addrs) => addrs,
                Poll::Pending => {
                    ready!(time::poll_at(self.deadline, cx));
                    return Poll::Ready(Err(self.network.silence()));
                }
            },
            LookUp::Unknown => Addrs::new(),
        };
        Poll::Ready(Ok(addrs))
    }

    /// One of the addresses, another at each call.
    #[cfg(feature = "dns")]
    fn poll_addr(&mut self, cx: &mut Context<'_>) -> Poll<Result<IpAddress, LinkError>> {
        if let LookUp::Known(address) = self.state {
            return Poll::Ready(Ok(address));
        }
        let addrs = ready!(self.poll_addrs(cx))?;
        let unknown = LinkError::new(LinkErrorKind::Resolve);
        Poll::Ready(self.network.turn_of(&addrs).ok_or(unknown))
    }
}

impl Future for EmbassyResolving<'_> {
    type Output = Result<Resolved, LinkError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let addrs = ready!(self.get_mut().poll_addrs(cx))?;
        if addrs.is_empty() {
            return Poll::Ready(Err(LinkError::new(LinkErrorKind::Resolve)));
        }
        let addrs = addrs.into_iter().map(IpAddr::from).collect();
        Poll::Ready(Ok(Resolved::Addrs(addrs)))
    }
}

impl fmt::Debug for EmbassyResolving<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbassyResolving").finish_non_exhaustive()
    }
}
