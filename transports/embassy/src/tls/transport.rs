//! TLS as a [`Transport`]: connects go to the task of a free slot.

use core::fmt;
use core::future::Future;
use core::net::Ipv4Addr;
use core::pin::Pin;
use core::task::{Context, Poll};

use embassy_time::Instant;
use messina_core::drive::{Endpoint, Name, Security, SteeringKind, Target, Transport};
use messina_core::error::LinkError;

use super::TlsPool;
use super::link::TlsLink;
use super::slot::{Dialed, Request, Slot, State};
use crate::connecting::EmbassyResolving;
use crate::net::NO_FREE_SOCKET;
use crate::time::{self, EmbassyClock, EmbassyTimer};
use crate::transport::EmbassyTransport;

/// Encrypted links over an [`EmbassyTransport`]. Cheap to copy; all copies share the pool.
///
/// Nothing connects unless the pool's [`run`](TlsPool::run) is polled.
#[derive(Clone, Copy)]
pub struct TlsTransport<'d> {
    plain: EmbassyTransport<'d>,
    slots: &'d [Slot<'d>],
}

impl<'d> TlsTransport<'d> {
    /// Encrypts the links of `plain`. The pool of sockets should have as many as this one, or more.
    pub const fn new<const N: usize>(
        plain: EmbassyTransport<'d>,
        pool: &'d TlsPool<'d, N>,
    ) -> Self {
        let slots = pool.slots.as_slice();
        Self { plain, slots }
    }
}

impl<'d> Transport for TlsTransport<'d> {
    type Link = TlsLink<'d>;
    type Timer = EmbassyTimer;
    type Clock = EmbassyClock;
    type Connecting = TlsConnecting<'d>;
    type Resolving = EmbassyResolving<'d>;

    const RESOLVES: bool = <EmbassyTransport<'d> as Transport>::RESOLVES;

    fn resolve(&self, name: &Name) -> Self::Resolving {
        self.plain.resolve(name)
    }

    fn connect(&self, target: Target) -> Self::Connecting {
        let peer = match (&target.server_name, &target.endpoint) {
            (Some(name), _) => Dialed::Name(name.clone()),
            (None, Endpoint::Addr(addr)) => Dialed::Address(addr.ip()),
            (None, Endpoint::Name { host, .. } | Endpoint::Local(host)) => {
                Dialed::Name(host.clone())
            }
            // No certificate is for nobody's address.
            (None, _) => Dialed::Address(Ipv4Addr::UNSPECIFIED.into()),
        };
        let deadline = time::tick_at(target.deadline).unwrap_or(Instant::MAX);
        TlsConnecting {
            slots: self.slots,
            slot: None,
            request: Some(Request {
                connecting: self.plain.connect(target),
                peer,
                deadline,
                clock: self.plain.clock(),
            }),
            deadline,
        }
    }

    fn steering(&self) -> SteeringKind {
        self.plain.steering()
    }

    fn security(&self) -> Security {
        Security::Tls
    }

    fn timer(&self) -> EmbassyTimer {
        self.plain.timer()
    }

    fn clock(&self) -> EmbassyClock {
        self.plain.clock()
    }
}

impl fmt::Debug for TlsTransport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsTransport")
            .field("plain", &self.plain)
            .finish_non_exhaustive()
    }
}

/// A connect and its handshake under way. Dropping it abandons both; the pool has its memory back
/// as soon as its task has seen that.
#[must_use = "nothing connects unless it is polled"]
pub struct TlsConnecting<'d> {
    slots: &'d [Slot<'d>],
    /// Where the request was put.
    slot: Option<&'d Slot<'d>>,
    request: Option<Request<'d>>,
    deadline: Instant,
}

impl<'d> TlsConnecting<'d> {
    fn poll_slot(&mut self, cx: &Context<'_>) -> Poll<Result<(), LinkError>> {
        let Some(request) = self.request.take() else {
            return Poll::Ready(Ok(()));
        };
        let free = self.slots.iter().find(|slot| slot.state() == State::Free);
        if let Some(slot) = free {
            slot.ask(request);
            self.slot = Some(slot);
            return Poll::Ready(Ok(()));
        }
        // One that is being tidied up will do.
        let abandoned = self
            .slots
            .iter()
            .find(|slot| slot.state() == State::Abandoned);
        let Some(slot) = abandoned else {
            return Poll::Ready(Err(NO_FREE_SOCKET));
        };
        slot.watch(cx);
        self.request = Some(request);
        Poll::Pending
    }

    fn poll_steps(&mut self, cx: &Context<'_>) -> Poll<Result<TlsLink<'d>, LinkError>> {
        if let Poll::Ready(Err(error)) = self.poll_slot(cx) {
            return Poll::Ready(Err(error));
        }
        let Some(slot) = self.slot else {
            return Poll::Pending;
        };
        match slot.state() {
            State::Open => {
                self.slot = None;
                Poll::Ready(Ok(TlsLink::new(slot)))
            }
            State::Ended(how) => Poll::Ready(Err(how.err().unwrap_or(LinkError::CLOSED_BY_PEER))),
            _ => {
                slot.watch(cx);
                Poll::Pending
            }
        }
    }
}

impl<'d> Future for TlsConnecting<'d> {
    type Output = Result<TlsLink<'d>, LinkError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let outcome = this.poll_steps(cx);
        if outcome.is_pending() {
            // The task keeps the deadline too, and knows better what it waited for; this is for one
            // that is not polled.
            let late = this
                .deadline
                .saturating_add(embassy_time::Duration::from_millis(100));
            return time::poll_at(late, cx).map(|()| Err(LinkError::TIMED_OUT));
        }
        outcome
    }
}

impl Drop for TlsConnecting<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            slot.abandon();
        }
    }
}

impl fmt::Debug for TlsConnecting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConnecting").finish_non_exhaustive()
    }
}
