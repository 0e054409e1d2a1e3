//! One WebSocket from its upgrade to its end: messages in, channels, messages out, in one task.
//!
//! Everything of a WebSocket is polled by one task, so a byte passes the relay without a hop between
//! tasks. A channel is polled only when its socket or the client has something new for it.
//! Costs for each message: two reads and two writes of sockets, one copy into the tunnel's output,
//! no allocation beside the messages' own buffers.

use core::cell::RefCell;
use core::future::poll_fn;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::HashMap;
use std::sync::Arc;
use std::task::Wake;
use std::time::Instant;

use futures_util::task::AtomicWaker;
use futures_util::{Sink, SinkExt, Stream as _, StreamExt};
use messina_websocket::tunnel::Reason;
use tokio::time::{Sleep, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::access::Grant;
use crate::audit;
use crate::carrier::{Asked, Carrier, Id};
use crate::channel::{Channel, Ended};
use crate::limits::Admission;
use crate::server::Shared;
use crate::socket::Stream;
use crate::target::Target;

/// One WebSocket.
pub(crate) struct Session {
    socket: WebSocketStream<Stream>,
    carrier: Carrier,
    channels: HashMap<Id, Place>,
    grant: Grant,
    admission: Admission,
    shared: Arc<Shared>,
    waker: Arc<AtomicWaker>,
    stopping: Pin<Box<WaitForCancellationFutureOwned>>,
    /// From when on it had to stop.
    stops: Option<Instant>,
    timer: Pin<Box<Sleep>>,
    /// Nothing is read before this, because of a byte rate.
    throttle: Option<Pin<Box<Sleep>>>,
    /// When there was last a channel.
    active: Instant,
    is_unflushed: bool,
}

struct Place {
    channel: Channel,
    flag: Arc<Flag>,
    waker: Waker,
}

/// Wakes the session and tells which channel is meant.
struct Flag {
    is_raised: AtomicBool,
    session: Arc<AtomicWaker>,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_raised.swap(true, Ordering::AcqRel) {
            self.session.wake();
        }
    }
}

/// Why a WebSocket ends.
#[derive(Debug)]
pub(crate) enum End {
    /// The client is gone or has said goodbye.
    Gone,
    /// The relay says goodbye.
    Said(u16, String),
}

impl End {
    fn said(code: u16, text: impl Into<String>) -> Self {
        Self::Said(code, text.into())
    }
}

impl Session {
    pub(crate) fn new(
        socket: WebSocketStream<Stream>,
        carrier: Carrier,
        grant: Grant,
        admission: Admission,
        shared: Arc<Shared>,
    ) -> Self {
        let stopping = Box::pin(shared.stop.clone().cancelled_owned());
        let timer = Box::pin(sleep(shared.limits.idle_timeout));
        Self {
            socket,
            carrier,
            channels: HashMap::new(),
            grant,
            admission,
            shared,
            waker: Arc::new(AtomicWaker::new()),
            stopping,
            stops: None,
            timer,
            throttle: None,
            active: Instant::now(),
            is_unflushed: false,
        }
    }

    /// Runs until it ends, says goodbye, and tells why.
    pub(crate) async fn run(mut self) -> End {
        let end = poll_fn(|cx| self.poll(cx)).await;
        self.carrier.handle_lost();
        let reason = match (&end, self.stops) {
            (End::Said(..), Some(_)) => Reason::Draining,
            (End::Said(..), None) => Reason::Other,
            (End::Gone, _) => Reason::Lost,
        };
        for (_, place) in self.channels.drain() {
            self.shared
                .channel_ended(&self.grant, &place.channel.facts, reason);
        }
        if let End::Said(code, text) = &end {
            let frame = CloseFrame {
                code: CloseCode::from(*code),
                reason: cut(text).into(),
            };
            let _ = timeout(GOODBYE_TIMEOUT, goodbye(&mut self.socket, frame)).await;
        }
        end
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.waker.register(cx.waker());
        SCRATCH.with_borrow_mut(|scratch| {
            for _ in 0..TURNS_MAX {
                match self.turn(cx, scratch) {
                    Ok(true) => {}
                    Ok(false) => return Poll::Pending,
                    Err(end) => return Poll::Ready(end),
                }
            }
            // Other tasks want their turn.
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    }

    /// Once through everything; whether anything moved.
    fn turn(&mut self, cx: &mut Context<'_>, scratch: &mut [u8]) -> Result<bool, End> {
        self.poll_stop(cx)?;
        let mut is_moving = false;
        if !self.is_throttled(cx) {
            is_moving |= self.poll_client(cx)?;
            while let Some(asked) = self.carrier.poll_asked() {
                self.handle_asked(asked);
                is_moving = true;
            }
            is_moving |= self.poll_channels(scratch);
        }
        is_moving |= self.poll_output(cx)?;
        if let Some((reason, text)) = self.carrier.end() {
            let code = match (reason, text) {
                (Reason::Abandoned, "") => NORMAL,
                _ => CLOSE_CODE_BASE + u16::from(reason as u8),
            };
            let text = if text.is_empty() {
                reason.as_str()
            } else {
                text
            };
            return Err(End::said(code, text));
        }
        self.poll_timer(cx)?;
        Ok(is_moving)
    }

    fn poll_stop(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        if self.stops.is_none() && self.stopping.as_mut().poll(cx).is_ready() {
            self.stops = Some(Instant::now());
            self.carrier.drain();
            self.arm(Instant::now());
        }
        Ok(())
    }

    fn is_throttled(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(throttle) = &mut self.throttle else {
            return false;
        };
        if throttle.as_mut().poll(cx).is_pending() {
            return true;
        }
        self.throttle = None;
        false
    }

    fn spend(&mut self, bytes: usize) {
        if let Some(wait) = self.admission.spend(bytes) {
            self.throttle = Some(Box::pin(sleep(wait)));
            self.shared
                .metrics
                .throttled
                .fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes messages of the client.
    fn poll_client(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let mut is_moving = false;
        for _ in 0..MESSAGES_MAX {
            if self.throttle.is_some() || !self.carrier.wants_input() {
                return Ok(is_moving);
            }
            let message = match Pin::new(&mut self.socket).poll_next(cx) {
                Poll::Ready(Some(Ok(message))) => message,
                Poll::Ready(Some(Err(WsError::Capacity(_)))) => {
                    let most = self.shared.limits.message_len_max;
                    let text = format!("message of more than {most} bytes: send smaller ones");
                    return Err(End::said(TOO_BIG, text));
                }
                Poll::Ready(Some(Err(WsError::Protocol(_) | WsError::Utf8(_)))) => {
                    return Err(End::said(PROTOCOL, "not a proper WebSocket"));
                }
                Poll::Ready(_) => return Err(End::Gone),
                Poll::Pending => return Ok(is_moving),
            };
            is_moving = true;
            self.spend(message.len());
            match message {
                Message::Binary(bytes) => {
                    if let Err(violation) = self.carrier.handle_input(&bytes) {
                        self.shared
                            .metrics
                            .violations
                            .fetch_add(1, Ordering::Relaxed);
                        return Err(End::said(VIOLATION, violation.as_str()));
                    }
                }
                Message::Text(_) => {
                    return Err(End::said(UNSUPPORTED, "text: send binary messages"));
                }
                Message::Close(_) => return Err(End::Gone),
                // The answer to a ping is queued and must be flushed.
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => self.is_unflushed = true,
            }
        }
        Ok(is_moving)
    }

    /// Decides about a wished channel.
    fn handle_asked(&mut self, Asked { id, target, wish }: Asked) {
        self.shared.metrics.channels.fetch_add(1, Ordering::Relaxed);
        let refused = match Target::parse(&target) {
            Err(error) => Err((Reason::Forbidden, error.to_string())),
            Ok(_) if self.stops.is_some() => Err((Reason::Draining, String::new())),
            Ok(_) if self.grant.is_over() => {
                Err((Reason::Forbidden, "token has expired".to_owned()))
            }
            Ok(asked) => self.judge(&asked),
        };
        let destination = match refused {
            Ok(destination) => destination,
            Err((reason, text)) => {
                self.carrier.close(id, reason, &text);
                self.shared
                    .channel_refused(&self.grant, &target, reason, &text);
                return;
            }
        };
        let dialling = Box::pin(self.shared.dialer.clone().dial(destination, wish));
        let flag = Arc::new(Flag {
            is_raised: AtomicBool::new(true),
            session: Arc::clone(&self.waker),
        });
        let waker = Waker::from(Arc::clone(&flag));
        let channel = Channel::new(id, target, wish, dialling);
        self.shared.metrics.channels_open.up();
        self.channels.insert(
            id,
            Place {
                channel,
                flag,
                waker,
            },
        );
        self.arm(Instant::now() + self.shared.limits.dial_timeout);
    }

    fn judge(&self, asked: &Target) -> Result<crate::allow::Destination, (Reason, String)> {
        if let Some(scope) = &self.grant.scope
            && !scope.names(asked)
        {
            let text = "target is none of the token's".to_owned();
            return Err((Reason::Forbidden, text));
        }
        let judged = self.shared.dialer.allow.judge(asked);
        judged.map_err(|error| (Reason::Forbidden, error.to_string()))
    }

    /// Polls the channels that have something new.
    fn poll_channels(&mut self, scratch: &mut [u8]) -> bool {
        while let Some(id) = self.carrier.poll_changed() {
            if let Some(place) = self.channels.get(&id) {
                place.flag.is_raised.store(true, Ordering::Release);
            }
        }
        let mut is_moving = false;
        let mut over: Option<Vec<(Id, Ended)>> = None;
        let mut carried = 0;
        for (id, place) in &mut self.channels {
            if !place.flag.is_raised.swap(false, Ordering::AcqRel) {
                continue;
            }
            let mut cx = Context::from_waker(&place.waker);
            let before = place.channel.facts.to_client;
            let policy = &self.shared.policy;
            let polled = place
                .channel
                .poll(&mut cx, &mut self.carrier, policy, scratch);
            carried += place.channel.facts.to_client - before;
            is_moving = true;
            if let Poll::Ready(ended) = polled {
                over.get_or_insert_default().push((*id, ended));
            }
        }
        for (id, ended) in over.into_iter().flatten() {
            self.carrier.close(id, ended.reason, &ended.text);
            if let Some(place) = self.channels.remove(&id) {
                let facts = &place.channel.facts;
                self.shared.channel_ended(&self.grant, facts, ended.reason);
            }
            self.active = Instant::now();
        }
        self.spend(usize::try_from(carried).unwrap_or(usize::MAX));
        is_moving
    }

    /// Sends what the carrier has, as long as the client takes it.
    fn poll_output(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let mut is_moving = false;
        loop {
            match Pin::new(&mut self.socket).poll_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Err(End::Gone),
                Poll::Pending => return Ok(is_moving),
            }
            let Some(bytes) = self.carrier.poll_output(MESSAGE_LEN) else {
                break;
            };
            let message = Message::Binary(bytes.freeze());
            let sent = Pin::new(&mut self.socket).start_send(message);
            sent.map_err(|_| End::Gone)?;
            is_moving = true;
            self.is_unflushed = true;
        }
        if self.is_unflushed {
            match Pin::new(&mut self.socket).poll_flush(cx) {
                Poll::Ready(Ok(())) => self.is_unflushed = false,
                Poll::Ready(Err(_)) => return Err(End::Gone),
                Poll::Pending => {}
            }
        }
        Ok(is_moving)
    }

    /// Fires not later than this.
    fn arm(&mut self, at: Instant) {
        let at = tokio::time::Instant::from_std(at);
        if at < self.timer.deadline() {
            self.timer.as_mut().reset(at);
        }
    }

    /// Looks at every bound of time when the first of them could be over.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let next = self.check_times(now)?;
            let next = next.max(now + TICK);
            self.timer
                .as_mut()
                .reset(tokio::time::Instant::from_std(next));
        }
        Ok(())
    }

    /// Ends what has taken too long; when to look again.
    fn check_times(&mut self, now: Instant) -> Result<Instant, End> {
        let limits = &self.shared.limits;
        let mut next = now + limits.idle_timeout;
        if let Some(since) = self.stops {
            let last = since + limits.drain_timeout;
            let quiet_from = |place: &Place| match place.channel.facts.is_waiting {
                true => last,
                false => place.channel.facts.active + QUIET,
            };
            let quiet = self.channels.values().map(quiet_from).max();
            let end = quiet.unwrap_or(now).max(since + QUIET).min(last);
            if now >= last || (now >= end && !self.carrier.has_output()) {
                return Err(End::said(RESTART, Reason::Draining.as_str()));
            }
            // An answer that comes makes the end an earlier one.
            next = next.min(end.min(now + QUIET).max(now + TICK));
        }
        if self.channels.is_empty() {
            let end = self.active + limits.idle_timeout;
            if now >= end && self.throttle.is_none() {
                let code = CLOSE_CODE_BASE + u16::from(Reason::Idle as u8);
                return Err(End::said(code, "no channel for too long"));
            }
            return Ok(next.min(end.max(now + TICK)));
        }
        let mut over = Vec::new();
        for (id, place) in &self.channels {
            let facts = &place.channel.facts;
            let (end, reason) = match place.channel.is_at_gate() {
                true => (facts.since + limits.first_bytes_timeout, Reason::NotCql),
                false => (facts.active + limits.idle_timeout, Reason::Idle),
            };
            if now >= end {
                over.push((*id, reason));
            } else {
                next = next.min(end);
            }
        }
        for (id, reason) in over {
            let text = match reason {
                Reason::NotCql => "no CQL in time",
                _ => "",
            };
            self.carrier.close(id, reason, text);
            if let Some(place) = self.channels.remove(&id) {
                let facts = &place.channel.facts;
                self.shared.channel_ended(&self.grant, facts, reason);
            }
            self.active = now;
            // What was put is sent.
            self.waker.wake();
        }
        Ok(next)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Only if its task is dropped in the middle.
        for (_, place) in self.channels.drain() {
            let facts = &place.channel.facts;
            self.shared.channel_ended(&self.grant, facts, Reason::Lost);
        }
    }
}

impl core::fmt::Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// Says why, and waits until the client has heard it.
async fn goodbye(socket: &mut WebSocketStream<Stream>, frame: CloseFrame) {
    let close = Message::Close(Some(frame));
    if socket.send(close).await.is_ok() {
        while let Some(Ok(_)) = socket.next().await {}
    }
}

/// A reason of a close frame has at most 123 bytes.
fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(123))
        .unwrap_or_default()
}

thread_local! {
    /// What sockets of nodes are read into; each thread polls one session at a time.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_LEN].into());
}

/// Most bytes of one read from a node.
const SCRATCH_LEN: usize = 32 << 10;

/// Turns of one session before others have theirs.
const TURNS_MAX: usize = 32;

/// Messages of one turn.
const MESSAGES_MAX: usize = 32;

/// Most bytes of a message to the client.
const MESSAGE_LEN: usize = 64 << 10;

/// Without bytes for this long, a channel that waits for no answer can be ended when the relay stops.
const QUIET: Duration = Duration::from_millis(300);

/// Shortest time between two looks at the times.
const TICK: Duration = Duration::from_millis(20);

/// Longest that a client has to hear why.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);

/// Close codes of RFC 6455, section 7.4.1.
const NORMAL: u16 = 1000;
const PROTOCOL: u16 = 1002;
const UNSUPPORTED: u16 = 1003;
const TOO_BIG: u16 = 1009;
/// Service restart, in IANA's registry.
const RESTART: u16 = 1012;

/// The tunnel's rules were broken.
pub(crate) const VIOLATION: u16 = 4100;

/// The plain form closes with this plus the number of the [`Reason`].
pub(crate) const CLOSE_CODE_BASE: u16 = 4000;

/// One line for each WebSocket.
pub(crate) fn tell_end(grant: &Grant, peer: core::net::SocketAddr, since: Instant, end: &End) {
    audit::connection_ended(&grant.label, peer, since.elapsed(), end);
}
