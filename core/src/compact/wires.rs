//! A link as the platform has it: looked up, connected, read into buffers of the machine or windows of
//! readers, written, and closed.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::Future as _;
use core::net::{IpAddr, SocketAddr};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use bytes::{Buf as _, BytesMut};

use super::hub::Hub;
use crate::drive::{Endpoint, Link as _, Resolved, Target, Transport};
use crate::error::{LinkError, LinkErrorKind};
use crate::sync::assert_unlocked;
use crate::target::RESOLVED_MAX;
use crate::time::Instant;

/// A link, as the platform has it, under the machine's number of it.
pub(super) struct Wire<T: Transport> {
    pub(super) number: u32,
    pub(super) stage: Stage<T>,
    /// What else may be connected to, if it leads to a name.
    choice: Option<Box<Choice>>,
    /// Bytes that the machine has given and the link has not taken.
    output: BytesMut,
    needs_flush: bool,
    /// It is being closed, until then; far future while it is not.
    pub(super) close_by: Instant,
    /// It was not read when it was last asked, since nothing was to be.
    pub(super) is_unread: bool,
}

pub(super) enum Stage<T: Transport> {
    Resolving(T::Resolving),
    Connecting(T::Connecting),
    Open(T::Link),
    Ended,
}

/// A name, its addresses, and how many of them were tried.
struct Choice {
    target: Target,
    addresses: heapless::Vec<IpAddr, RESOLVED_MAX>,
    tried: usize,
}

impl<T: Transport> Wire<T> {
    /// Names are looked up first.
    pub(super) fn new(number: u32, transport: &T, target: Target) -> Self {
        let (stage, choice) = match &target.endpoint {
            Endpoint::Name { host, .. } if T::RESOLVES => {
                let resolving = transport.resolve(host);
                let choice = Choice {
                    target,
                    addresses: heapless::Vec::new(),
                    tried: 0,
                };
                (Stage::Resolving(resolving), Some(Box::new(choice)))
            }
            _ => (Stage::Connecting(transport.connect(target)), None),
        };
        Self {
            number,
            stage,
            choice,
            output: BytesMut::new(),
            needs_flush: false,
            close_by: Instant::FAR_FUTURE,
            is_unread: false,
        }
    }

    /// Goes on to the next address of a name; whether there is one.
    fn connect_next(&mut self, transport: &T) -> bool {
        let Some(choice) = self.choice.as_mut().filter(|_| T::RESOLVES) else {
            return false;
        };
        let (target, address) = (&choice.target, choice.addresses.get(choice.tried));
        let (Some(&address), Endpoint::Name { port, .. }) = (address, &target.endpoint) else {
            return false;
        };
        choice.tried = choice.tried.saturating_add(1);
        let address = Endpoint::Addr(SocketAddr::new(address, *port));
        let mut next = Target::new(address, target.deadline);
        next.steering = target.steering;
        next.server_name.clone_from(&target.server_name);
        self.stage = Stage::Connecting(transport.connect(next));
        true
    }

    /// Whether bytes were not taken by the link yet.
    pub(super) fn is_writing(&self) -> bool {
        self.needs_flush || !self.output.is_empty()
    }

    pub(super) const fn is_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended)
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_ended() || self.close_by < Instant::FAR_FUTURE
    }

    /// Goes on with whatever the link is about; whether something has happened.
    #[inline(never)]
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        transport: &T,
        hub: &Hub,
        chunk: usize,
        wakers: &mut Vec<Waker>,
    ) -> bool {
        assert_unlocked();
        let link = match &mut self.stage {
            Stage::Open(link) if self.close_by == Instant::FAR_FUTURE => link,
            _ => return self.poll_stage(cx, transport, hub),
        };
        match read(cx, link, self.number, hub, chunk, wakers) {
            Ok(has_read) => {
                self.is_unread = has_read.is_none();
                has_read == Some(true)
            }
            Err(error) => {
                self.fail(hub, error);
                true
            }
        }
    }

    /// The same for a link that is not open yet, or being closed.
    #[inline(never)]
    fn poll_stage(&mut self, cx: &mut Context<'_>, transport: &T, hub: &Hub) -> bool {
        match &mut self.stage {
            Stage::Resolving(_) if !T::RESOLVES => false,
            Stage::Resolving(resolving) => {
                let Poll::Ready(resolved) = Pin::new(resolving).poll(cx) else {
                    return false;
                };
                let begun = resolved.map(|resolved| match resolved {
                    Resolved::KeepName => self.choice.take().is_some_and(|choice| {
                        self.stage = Stage::Connecting(transport.connect(choice.target));
                        true
                    }),
                    Resolved::Addrs(addresses) => {
                        if let Some(choice) = &mut self.choice {
                            choice.addresses = addresses;
                        }
                        self.connect_next(transport)
                    }
                });
                match begun {
                    Ok(true) => {}
                    Ok(false) => self.fail(hub, LinkError::new(LinkErrorKind::Resolve)),
                    Err(error) => self.fail(hub, error),
                }
                true
            }
            Stage::Connecting(connecting) => {
                let Poll::Ready(connected) = Pin::new(connecting).poll(cx) else {
                    return false;
                };
                match connected {
                    Ok(link) => {
                        self.stage = Stage::Open(link);
                        hub.with(|state| state.machine.handle_opened(self.number));
                    }
                    Err(error) => {
                        if !self.connect_next(transport) {
                            self.fail(hub, error);
                        }
                    }
                }
                true
            }
            Stage::Open(link) => {
                let is_closed = link.poll_close(cx).is_ready();
                if is_closed {
                    self.stage = Stage::Ended;
                }
                is_closed
            }
            Stage::Ended => false,
        }
    }

    /// Writes what there is; whether the machine has to look at that.
    #[inline(never)]
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, hub: &Hub) -> bool {
        let link = match &mut self.stage {
            Stage::Open(link) if self.close_by == Instant::FAR_FUTURE => link,
            _ => return false,
        };
        let (number, mut must_run) = (self.number, false);
        let failed = loop {
            if self.output.is_empty() {
                let output = &mut self.output;
                hub.with(|state| {
                    if let Some(link) = state.machine.link(number) {
                        link.swap_output(output);
                    }
                });
                if self.output.is_empty() {
                    break None;
                }
            }
            assert_unlocked();
            match link.poll_write(cx, &self.output) {
                Poll::Pending => return must_run,
                Poll::Ready(Ok(0)) => break Some(LinkError::CLOSED_BY_PEER),
                Poll::Ready(Err(error)) => break Some(error),
                Poll::Ready(Ok(len)) => {
                    let len = len.min(self.output.len());
                    self.output.advance(len);
                    self.needs_flush = true;
                    let (closing, has_more) = hub
                        .with(|state| {
                            let has_more = state.machine.link(number).is_some_and(|link| {
                                link.handle_taken(len);
                                !link.is_idle()
                            });
                            (state.machine.is_closing(), has_more)
                        })
                        .unwrap_or_default();
                    must_run |= closing;
                    if !has_more {
                        break None;
                    }
                }
            }
        };
        let failed = failed.or_else(|| {
            if !self.needs_flush {
                return None;
            }
            match link.poll_flush(cx) {
                Poll::Pending => None,
                Poll::Ready(Ok(())) => {
                    self.needs_flush = false;
                    None
                }
                Poll::Ready(Err(error)) => Some(error),
            }
        });
        if let Some(error) = failed {
            self.fail(hub, error);
            return true;
        }
        must_run
    }

    fn fail(&mut self, hub: &Hub, error: LinkError) {
        self.stage = Stage::Ended;
        hub.with(|state| state.machine.handle_ended(self.number, error));
    }
}

/// Reads once into the machine's buffer, or into the window of a reader that waits for just these
/// bytes; whether something has come for the machine, or nothing if nothing is to be read now.
fn read(
    cx: &mut Context<'_>,
    link: &mut impl crate::drive::Link,
    number: u32,
    hub: &Hub,
    chunk: usize,
    wakers: &mut Vec<Waker>,
) -> Result<Option<bool>, LinkError> {
    let lent = hub.with(|state| {
        let of_machine = state.machine.link(number)?;
        let Some((request, left)) = of_machine.passing() else {
            let (input, wanted) = of_machine.lend_input(chunk)?;
            return Some((input, Lent::Input(wanted)));
        };
        let window = state.desk.lend_window(request)?;
        Some((window, Lent::Window(request, left)))
    });
    let Some(Some((mut buffer, lent))) = lent else {
        return Ok(None);
    };
    let before = buffer.len();
    match lent {
        Lent::Input(wanted) => make_room(&mut buffer, wanted, chunk),
        Lent::Window(..) if buffer.capacity() == before => buffer.reserve(chunk.max(1)),
        Lent::Window(..) => {}
    }
    let mut read = link.poll_read(cx, &mut buffer);
    let mut is_known = read.is_pending();
    if let Lent::Window(_, left) = lent {
        // All that fits, so that the reader is woken once for it; at best until the link has the waker,
        // so that the reader need not call for more.
        let is_right = |read: &Poll<_>| matches!(read, Poll::Ready(Ok(1..)));
        while is_right(&read)
            && buffer.len() < buffer.capacity()
            && buffer.len().saturating_sub(before) < left
        {
            match link.poll_read(cx, &mut buffer) {
                Poll::Pending => {
                    is_known = true;
                    break;
                }
                more => read = more,
            }
        }
    }
    let returned = hub.with(|state| {
        let of_machine = state.machine.link(number)?;
        let Lent::Window(request, left) = lent else {
            of_machine.input = buffer;
            return None;
        };
        // What is behind the body is not the reader's.
        let end = before.saturating_add(left).min(buffer.len());
        let behind = buffer.get(end..).unwrap_or_default();
        let must_run = of_machine.pass(end.saturating_sub(before), behind);
        buffer.truncate(end);
        let is_filled = end > before;
        let waker = state
            .desk
            .return_window(request, buffer, is_filled, is_known);
        Some((must_run, waker))
    });
    // Until the reader waits again nothing is to be read, unless the body is over.
    let has_read = match returned.flatten() {
        None => Some(true),
        Some((must_run, waker)) => {
            wakers.extend(waker);
            must_run.then_some(true)
        }
    };
    match read {
        Poll::Pending => Ok(Some(false)),
        Poll::Ready(Ok(0)) => Err(LinkError::CLOSED_BY_PEER),
        Poll::Ready(Ok(_)) => Ok(has_read),
        Poll::Ready(Err(error)) => Err(error),
    }
}

/// What a link is read into.
enum Lent {
    /// The machine's buffer, which is to have so much room.
    Input(usize),
    /// The window of this request's reader, for so many bytes.
    Window(u32, usize),
}

/// Makes room for a read. The same memory is used again, from its start, as soon as no answer is a
/// slice of it; another is taken only if there is no room at all.
fn make_room(input: &mut BytesMut, wanted: usize, chunk: usize) {
    let spare = input.capacity().saturating_sub(input.len());
    let missing = wanted.max(chunk.saturating_sub(input.len()));
    let is_enough = match input.is_empty() {
        true => spare >= chunk,
        false => spare >= wanted.min(SPARE_MIN),
    };
    if !is_enough && !input.try_reclaim(missing) && spare == 0 {
        input.reserve(missing);
    }
}

/// A read buffer with more room than this is read into as it is.
const SPARE_MIN: usize = 4 << 10;
