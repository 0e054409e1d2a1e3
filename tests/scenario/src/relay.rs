//! A relay in memory: the far end of the driver's tunnel, whose channels lead to the script's links.

use core::future::{Future, Ready, poll_fn, ready};
use core::task::{Context, Poll};
use std::rc::Rc;

use bytes::BytesMut;
use messina_core::drive::{Endpoint, Link, Name, Resolved, Target, Transport};
use messina_core::error::{LinkError, LinkErrorKind};
use messina_core::testing::{MemoryLink, memory_pair};
use messina_core::time::Instant;
use messina_sim::link::{SimClock, SimTimer, Spawner};
use messina_websocket::tunnel::{ChannelId, Limits, Opening, Progress, Reason, Tunnel};

use crate::link::{ScriptLink, ScriptTransport};

/// Links of this transport lead to a relay of their own.
#[derive(Debug)]
pub(crate) struct RelayTransport {
    script: Rc<ScriptTransport>,
    spawner: Spawner,
}

impl RelayTransport {
    pub(crate) fn new(script: ScriptTransport, spawner: Spawner) -> Self {
        let script = Rc::new(script);
        Self { script, spawner }
    }
}

impl Transport for RelayTransport {
    type Link = MemoryLink;
    type Timer = SimTimer;
    type Clock = SimClock;
    type Connecting = Ready<Result<MemoryLink, LinkError>>;
    type Resolving = Ready<Result<Resolved, LinkError>>;

    fn resolve(&self, _name: &Name) -> Self::Resolving {
        ready(Err(LinkError::new(LinkErrorKind::Resolve)))
    }

    fn connect(&self, _relay: Target) -> Self::Connecting {
        // Little room, so that messages are cut and both ends wait for each other.
        let (near, far) = memory_pair(1000);
        self.spawner.spawn(carry(far, Rc::clone(&self.script)));
        ready(Ok(near))
    }

    fn timer(&self) -> SimTimer {
        self.script.timer()
    }

    fn clock(&self) -> SimClock {
        self.script.clock()
    }
}

/// A channel and the link that it leads to.
struct Joined {
    channel: ChannelId,
    link: ScriptLink,
    to_node: BytesMut,
    to_client: BytesMut,
    is_closing: bool,
}

fn carry(mut link: MemoryLink, script: Rc<ScriptTransport>) -> impl Future<Output = ()> {
    let mut tunnel = Tunnel::relay(Limits::relay());
    let (mut joined, mut outgoing) = (Vec::new(), BytesMut::new());
    poll_fn(move |cx| {
        loop {
            let mut has_moved = false;
            if tunnel.wants_input() {
                let mut incoming = BytesMut::with_capacity(300);
                match link.poll_read(cx, &mut incoming) {
                    Poll::Ready(Ok(len)) if len > 0 => {
                        let taken = tunnel.handle_input(&incoming);
                        taken.expect("the driver keeps the rules of the tunnel");
                        has_moved = true;
                    }
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => {}
                }
            }
            while let Some(opening) = tunnel.poll_opening() {
                joined.extend(join(&mut tunnel, &opening, &script, cx));
            }
            joined.retain_mut(|joined: &mut Joined| joined.carry(cx, &mut tunnel, &mut has_moved));
            while tunnel.poll_changed().is_some() {}
            if outgoing.is_empty() {
                outgoing = tunnel.poll_output(777).unwrap_or_default();
            }
            if !outgoing.is_empty() {
                match link.poll_write(cx, &outgoing) {
                    Poll::Ready(Ok(len)) => {
                        drop(outgoing.split_to(len));
                        has_moved = true;
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => {}
                }
            }
            if !has_moved {
                return Poll::Pending;
            }
        }
    })
}

/// Dials what the driver wishes; the script answers at once.
fn join(
    tunnel: &mut Tunnel,
    opening: &Opening,
    script: &ScriptTransport,
    cx: &mut Context<'_>,
) -> Option<Joined> {
    let address = opening.target.parse().expect("an address");
    let target = Target::new(Endpoint::Addr(address), Instant::FAR_FUTURE);
    let mut connecting = script.connect(target);
    let Poll::Ready(dialled) = core::pin::Pin::new(&mut connecting).poll(cx) else {
        panic!("links of a script are ready at once");
    };
    match dialled {
        Ok(link) => {
            tunnel.accept(opening.channel, 0);
            Some(Joined {
                channel: opening.channel,
                link,
                to_node: BytesMut::new(),
                to_client: BytesMut::new(),
                is_closing: false,
            })
        }
        Err(_) => {
            tunnel.close(opening.channel, Reason::Refused, "");
            tunnel.release(opening.channel);
            None
        }
    }
}

impl Joined {
    /// Moves bytes both ways; false when it is over.
    fn carry(&mut self, cx: &mut Context<'_>, tunnel: &mut Tunnel, has_moved: &mut bool) -> bool {
        if self.to_node.is_empty() {
            match tunnel.read(self.channel, &mut self.to_node) {
                Ok(None) => {}
                Ok(Some(0)) => self.is_closing = true,
                Ok(Some(_)) => *has_moved = true,
                Err(_) => {
                    tunnel.release(self.channel);
                    return false;
                }
            }
        }
        if !self.to_node.is_empty() {
            match self.link.poll_write(cx, &self.to_node) {
                // Nobody waits for what the node does not take.
                Poll::Pending if self.is_given_up(tunnel) => {
                    tunnel.release(self.channel);
                    return false;
                }
                Poll::Pending => {}
                Poll::Ready(Ok(len)) => {
                    drop(self.to_node.split_to(len));
                    *has_moved = true;
                }
                Poll::Ready(Err(_)) => return self.reset(tunnel),
            }
        } else if self.is_closing && self.link.poll_close(cx).is_ready() {
            tunnel.release(self.channel);
            return false;
        }
        if self.to_client.is_empty() {
            self.to_client.reserve(5000);
            match self.link.poll_read(cx, &mut self.to_client) {
                Poll::Pending => {}
                Poll::Ready(Ok(0)) => tunnel.finish(self.channel),
                Poll::Ready(Ok(_)) => *has_moved = true,
                Poll::Ready(Err(_)) => return self.reset(tunnel),
            }
        }
        if !self.to_client.is_empty()
            && let Ok(Some(len)) = tunnel.write(self.channel, &self.to_client)
        {
            drop(self.to_client.split_to(len));
            *has_moved = true;
        }
        true
    }

    fn is_given_up(&self, tunnel: &Tunnel) -> bool {
        matches!(tunnel.progress(self.channel), Progress::Closed(_))
    }

    fn reset(&self, tunnel: &mut Tunnel) -> bool {
        tunnel.close(self.channel, Reason::Reset, "");
        tunnel.release(self.channel);
        false
    }
}
