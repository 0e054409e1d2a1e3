//! How links lead out: each by a socket of the shell, or all through one tunnel to a relay.
//!
//! One type for both, so that the driver is compiled once.

use core::future::{Future, Ready};
use core::num::NonZeroU16;
use core::pin::Pin;
use core::task::{Context, Poll};

use bytes::BytesMut;
use messina_core::drive::{self, Name, Resolved, Security, SteeringKind, Target, Transport};
use messina_core::error::LinkError;
use messina_websocket::mux;

use crate::executor::Task;
use crate::link::{Connecting, Link};
use crate::time::{ShellClock, Timer};
use crate::transport::ShellTransport;

/// The transport of a session.
#[derive(Debug)]
pub(crate) enum Route {
    Direct(ShellTransport),
    Tunnel(mux::Mux<ShellTransport>),
}

#[derive(Debug)]
pub(crate) enum RouteLink {
    Direct(Link),
    Tunnel(mux::ChannelLink),
}

#[derive(Debug)]
pub(crate) enum RouteConnecting {
    Direct(Connecting),
    Tunnel(mux::Connecting),
}

impl Route {
    pub(crate) const fn direct(shell: ShellTransport) -> (Self, Option<Task>) {
        (Self::Direct(shell), None)
    }

    /// The shell is asked for one link, to a host without a name; the task carries the tunnel.
    pub(crate) fn tunnel(shell: ShellTransport) -> (Self, Option<Task>) {
        use alloc::boxed::Box;
        use messina_core::drive::Endpoint;
        use messina_websocket::tunnel::Limits;

        let relay = Endpoint::Local("".into());
        let (mux, pump) = mux::Mux::new(shell, relay, Limits::client());
        (Self::Tunnel(mux), Some(Box::pin(pump)))
    }
}

/// The same call on whichever it is.
macro_rules! either {
    ($outer:ident, $value:expr, $held:ident => $call:expr) => {
        match $value {
            $outer::Direct($held) => $call,
            $outer::Tunnel($held) => $call,
        }
    };
}

impl Transport for Route {
    type Link = RouteLink;
    type Timer = Timer;
    type Clock = ShellClock;
    type Connecting = RouteConnecting;
    type Resolving = Ready<Result<Resolved, LinkError>>;

    fn resolve(&self, name: &Name) -> Self::Resolving {
        either!(Self, self, held => held.resolve(name))
    }

    fn connect(&self, target: Target) -> RouteConnecting {
        match self {
            Self::Direct(shell) => RouteConnecting::Direct(shell.connect(target)),
            Self::Tunnel(mux) => RouteConnecting::Tunnel(mux.connect(target)),
        }
    }

    fn steering(&self) -> SteeringKind {
        either!(Self, self, held => held.steering())
    }

    fn security(&self) -> Security {
        either!(Self, self, held => held.security())
    }

    fn timer(&self) -> Timer {
        either!(Self, self, held => held.timer())
    }

    fn clock(&self) -> ShellClock {
        either!(Self, self, held => held.clock())
    }
}

impl Future for RouteConnecting {
    type Output = Result<RouteLink, LinkError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Direct(held) => Pin::new(held).poll(cx).map_ok(RouteLink::Direct),
            Self::Tunnel(held) => Pin::new(held).poll(cx).map_ok(RouteLink::Tunnel),
        }
    }
}

impl drive::Link for RouteLink {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>> {
        either!(Self, self, held => held.poll_read(cx, into))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, LinkError>> {
        either!(Self, self, held => held.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[&[u8]],
    ) -> Poll<Result<usize, LinkError>> {
        either!(Self, self, held => held.poll_write_vectored(cx, parts))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        either!(Self, self, held => held.poll_flush(cx))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        either!(Self, self, held => held.poll_close(cx))
    }

    fn source_port(&self) -> Option<NonZeroU16> {
        either!(Self, self, held => held.source_port())
    }
}
