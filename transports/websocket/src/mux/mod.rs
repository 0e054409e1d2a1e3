//! core's `Transport` through a tunnel: one link of an inner transport to the relay, and a channel
//! of the tunnel for each link that the driver asks for.
//!
//! The inner transport is anything that opens a byte stream to the relay: a WebSocket, a shell's
//! socket, a pair in memory. The mux asks it to connect to the relay's endpoint at the first wish
//! for a link, and again after a tunnel broke: its links then fail and the driver dials anew, as
//! after any lost connection. A relay that is about to stop keeps the channels it has; new ones go
//! into a new tunnel meanwhile. A tunnel is taken for dead when the relay has sent nothing from the
//! moment a link was asked for until that link's deadline.
//!
//! Names stay names: the relay resolves them, and decides what it allows. The driver's wish for a
//! shard goes along, and the relay binds a source port for it where it can.
//!
//! How the WASM module uses it (tokio and the browser links do the same): its own transport
//! connects links to the shell's sockets, so with a multiplexing relay it makes
//! `Mux::new(shell_transport, Endpoint::Local("".into()), Limits::client())`, hands the mux to
//! `start` in place of the transport and runs the [`Pump`] as one more task. The shell is then asked
//! for one link only, to a host without a name, and opens the WebSocket to the relay for it.

mod cell;
mod link;
mod pump;
#[cfg(test)]
mod tests;

use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::future::{Ready, ready};
use core::task::Waker;

use messina_core::Shared;
use messina_core::drive::{Endpoint, Name, Resolved, Steering, SteeringKind, Target, Transport};
use messina_core::error::{LinkError, LinkErrorKind};
use messina_core::time::Instant;

use crate::sync::Lock;
use crate::tunnel::{ChannelId, Limits, Reason, Wish};
use cell::Cell;
pub use cell::link_error as reason_error;
pub use link::{ChannelLink, Connecting};
pub use pump::Pump;

/// A transport whose links are channels of a tunnel.
pub struct Mux<T: Transport> {
    inner: T,
    relay: Endpoint,
    limits: Limits,
    hub: Shared<Lock<Hub<T>>>,
}

/// What a mux and its pump share.
struct Hub<T: Transport> {
    /// The tunnel that gets new channels.
    current: Option<Shared<Cell>>,
    started: Vec<Started<T>>,
    pump: Option<Waker>,
    is_closed: bool,
    is_pump_gone: bool,
}

/// A tunnel that the pump has not seen yet.
struct Started<T: Transport> {
    cell: Shared<Cell>,
    connecting: T::Connecting,
    timer: T::Timer,
}

impl<T: Transport> Mux<T> {
    /// A mux that reaches its relay through `inner`, and the pump that has to be run for it.
    /// Nothing is opened yet.
    pub fn new(inner: T, relay: Endpoint, limits: Limits) -> (Self, Pump<T>) {
        let hub = Shared::new(Lock::new(Hub {
            current: None,
            started: Vec::new(),
            pump: None,
            is_closed: false,
            is_pump_gone: false,
        }));
        let pump = Pump::new(Shared::clone(&hub), inner.clock());
        let mux = Self {
            inner,
            relay,
            limits,
            hub,
        };
        (mux, pump)
    }

    /// The tunnel for a new channel; opens one if there is none.
    #[cfg_attr(
        not(feature = "std"),
        expect(
            clippy::arc_with_non_send_sync,
            reason = "core's own pointer; without `std` there is one thread"
        )
    )]
    fn cell(&self, deadline: Instant) -> Shared<Cell> {
        let current = self.hub.with(|hub| hub.current.clone());
        if let Some(cell) = current.filter(|cell| cell.is_usable()) {
            return cell;
        }
        let cell = Shared::new(Cell::new(self.limits));
        let started = Started {
            cell: Shared::clone(&cell),
            connecting: self
                .inner
                .connect(Target::new(self.relay.clone(), deadline)),
            timer: self.inner.timer(),
        };
        let kept = Shared::clone(&cell);
        let (pump, old, refused) = self.hub.with(|hub| {
            let old = hub.current.replace(kept);
            if hub.is_pump_gone {
                return (None, old, Some(started));
            }
            hub.started.push(started);
            (hub.pump.take(), old, None)
        });
        drop(old);
        if refused.is_some() {
            cell.handle_end(LinkError::new(LinkErrorKind::ClosedByUs));
        }
        if let Some(pump) = pump {
            pump.wake();
        }
        cell
    }
}

impl<T: Transport> Transport for Mux<T> {
    type Link = ChannelLink;
    type Timer = T::Timer;
    type Clock = T::Clock;
    type Connecting = Connecting;
    type Resolving = Ready<Result<Resolved, LinkError>>;

    fn resolve(&self, _name: &Name) -> Self::Resolving {
        ready(Ok(Resolved::KeepName))
    }

    fn connect(&self, target: Target) -> Connecting {
        let cell = self.cell(target.deadline);
        let (text, wish) = (target.endpoint.to_string(), wish(target.steering));
        Connecting::new(open(cell, &text, wish, target.deadline))
    }

    fn steering(&self) -> SteeringKind {
        SteeringKind::BestEffortShard
    }

    fn timer(&self) -> T::Timer {
        self.inner.timer()
    }

    fn clock(&self) -> T::Clock {
        self.inner.clock()
    }
}

impl<T: Transport> Drop for Mux<T> {
    fn drop(&mut self) {
        let pump = self.hub.with(|hub| {
            hub.is_closed = true;
            hub.pump.take()
        });
        if let Some(pump) = pump {
            pump.wake();
        }
    }
}

impl<T: Transport> fmt::Debug for Mux<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mux")
            .field("relay", &self.relay)
            .finish_non_exhaustive()
    }
}

fn open(
    cell: Shared<Cell>,
    target: &str,
    wish: Wish,
    deadline: Instant,
) -> Result<ChannelLink, LinkError> {
    let opened: Result<ChannelId, LinkError> = cell.with(|state| {
        let Some(id) = state.tunnel.open(target, wish) else {
            return Err(state.ended().unwrap_or(reason_error(Reason::TooMany)));
        };
        state.answer_due.get_or_insert(deadline);
        Ok(id)
    });
    opened.map(|id| ChannelLink::new(cell, id))
}

const fn wish(steering: Steering) -> Wish {
    match steering {
        Steering::Shard { shard, of } => Wish::Shard { shard, of },
        _ => Wish::None,
    }
}
