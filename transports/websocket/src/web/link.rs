//! The web's `WebSocket` as a byte stream.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use bytes::{Buf, BytesMut};
use js_sys::{ArrayBuffer, Uint8Array};
use messina_core::drive::{Clock, Link, Timer};
use messina_core::error::{LinkError, LinkErrorKind};
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::{Closure, JsValue};
use web_sys::{BinaryType, CloseEvent, Event, MessageEvent, WebSocket};

use super::time::{WebClock, WebTimer};
use crate::answer::{MESSAGE_MAX, TEXT, closed};

/// An open WebSocket whose binary messages are a byte stream.
///
/// A text message is a protocol error: the link closes, with code 3003 since hosts reserve 1003,
/// and fails. A close by the peer is the end of the stream if it was an ordinary one, else an error
/// that tells its code.
pub struct WebSocketLink {
    socket: WebSocket,
    state: Rc<RefCell<State>>,
    /// Looks again whether the socket has sent what it holds, of which hosts tell nothing.
    timer: WebTimer,
    is_closed: bool,
    _handlers: Handlers,
}

/// What the host calls; dropped only after the socket has forgotten them.
struct Handlers {
    _open: Closure<dyn FnMut(Event)>,
    _message: Closure<dyn FnMut(MessageEvent)>,
    _close: Closure<dyn FnMut(CloseEvent)>,
    _error: Closure<dyn FnMut(Event)>,
}

#[derive(Default)]
struct State {
    is_open: bool,
    incoming: BytesMut,
    ended: Option<Result<(), LinkError>>,
    waker: Option<Waker>,
}

/// Changes the state and wakes the link's task.
fn change(state: &RefCell<State>, action: impl FnOnce(&mut State)) {
    let waker = {
        let mut state = state.borrow_mut();
        action(&mut state);
        state.waker.take()
    };
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl WebSocketLink {
    /// Begins to open a socket; fails when the host refuses the address.
    pub(super) fn open(url: &str, protocols: &[&str]) -> Result<Self, LinkError> {
        let list: js_sys::Array = protocols
            .iter()
            .map(|name| JsValue::from_str(name))
            .collect();
        let socket = WebSocket::new_with_str_sequence(url, &list);
        let socket = socket.map_err(|_| LinkError::new(LinkErrorKind::Other))?;
        socket.set_binary_type(BinaryType::Arraybuffer);
        let state = Rc::<RefCell<State>>::default();
        let open = Rc::clone(&state);
        let open = Closure::<dyn FnMut(Event)>::new(move |_| {
            change(&open, |state| state.is_open = true);
        });
        let message = Rc::clone(&state);
        let message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            change(&message, |state| state.handle_message(&event.data()));
        });
        let close = Rc::clone(&state);
        let close = Closure::<dyn FnMut(CloseEvent)>::new(move |event: CloseEvent| {
            change(&close, |state| state.handle_close(event.code()));
        });
        // A close should follow; where the handshake was refused, not every host sends it.
        let error = Rc::clone(&state);
        let error = Closure::<dyn FnMut(Event)>::new(move |_| {
            change(&error, |state| state.handle_close(ABNORMAL));
        });
        socket.set_onopen(Some(open.as_ref().unchecked_ref()));
        socket.set_onmessage(Some(message.as_ref().unchecked_ref()));
        socket.set_onerror(Some(error.as_ref().unchecked_ref()));
        socket.set_onclose(Some(close.as_ref().unchecked_ref()));
        Ok(Self {
            socket,
            state,
            timer: WebTimer::new(),
            is_closed: false,
            _handlers: Handlers {
                _open: open,
                _message: message,
                _close: close,
                _error: error,
            },
        })
    }

    /// Ready when it is open or could not be opened.
    pub(super) fn poll_open(&self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let mut state = self.state.borrow_mut();
        if let Some(ended) = state.ended {
            return Poll::Ready(Err(ended.err().unwrap_or(LinkError::CLOSED_BY_PEER)));
        }
        if state.is_open {
            return Poll::Ready(Ok(()));
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The link is of no use any more.
    fn fail(&self) {
        if matches!(self.state.borrow().ended, Some(Err(_))) {
            let _ = self.socket.close_with_code(UNSUPPORTED);
        }
    }
}

impl State {
    fn handle_message(&mut self, data: &JsValue) {
        if self.ended.is_some() {
            return;
        }
        let Some(buffer) = data.dyn_ref::<ArrayBuffer>() else {
            self.ended = Some(Err(TEXT));
            return;
        };
        let array = Uint8Array::new(buffer);
        let before = self.incoming.len();
        let len = usize::try_from(array.length()).unwrap_or(0);
        self.incoming.resize(before.saturating_add(len), 0);
        if let Some(room) = self.incoming.get_mut(before..) {
            array.copy_to(room);
        }
    }

    fn handle_close(&mut self, code: u16) {
        let ended = if self.is_open {
            closed(code)
        } else {
            let meaning = "the WebSocket could not be opened";
            Err(LinkError::said(LinkErrorKind::Refused, code, meaning))
        };
        self.ended.get_or_insert(ended);
    }
}

impl Link for WebSocketLink {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>> {
        if self.is_closed {
            return Poll::Ready(Ok(0));
        }
        let mut state = self.state.borrow_mut();
        if state.incoming.is_empty() {
            let Some(ended) = state.ended else {
                state.waker = Some(cx.waker().clone());
                return Poll::Pending;
            };
            drop(state);
            self.fail();
            return Poll::Ready(ended.map(|()| 0));
        }
        if into.is_empty() {
            core::mem::swap(into, &mut state.incoming);
            return Poll::Ready(Ok(into.len()));
        }
        let spare = into.capacity().saturating_sub(into.len());
        let len = spare.min(state.incoming.len());
        into.extend_from_slice(state.incoming.get(..len).unwrap_or_default());
        state.incoming.advance(len);
        Poll::Ready(Ok(len))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, LinkError>> {
        if self.is_closed {
            return Poll::Ready(Err(LinkError::new(LinkErrorKind::ClosedByUs)));
        }
        if let Some(ended) = self.state.borrow().ended {
            let error = ended.err().unwrap_or(LinkError::CLOSED_BY_PEER);
            return Poll::Ready(Err(error));
        }
        if self.socket.buffered_amount() > UNSENT_MAX {
            let again = WebClock.now().saturating_add(LOOK_AGAIN);
            self.timer.arm(Some(again));
            let _ = self.timer.poll_fired(cx);
            // The end of the socket is worth waking for too.
            self.state.borrow_mut().waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let part = bytes.get(..bytes.len().min(MESSAGE_MAX)).unwrap_or(bytes);
        match self.socket.send_with_u8_array(part) {
            Ok(()) => Poll::Ready(Ok(part.len())),
            Err(_) => Poll::Ready(Err(LinkError::new(LinkErrorKind::Reset))),
        }
    }

    fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[&[u8]],
    ) -> Poll<Result<usize, LinkError>> {
        if let [part] = parts {
            return self.poll_write(cx, part);
        }
        let mut message = Vec::new();
        for part in parts {
            let room = MESSAGE_MAX.saturating_sub(message.len());
            message.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
        }
        self.poll_write(cx, &message)
    }

    /// The host sends by itself.
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    /// Begins the close; the host brings it to its end.
    fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        if !self.is_closed {
            self.is_closed = true;
            let _ = self.socket.close();
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for WebSocketLink {
    fn drop(&mut self) {
        self.socket.set_onopen(None);
        self.socket.set_onmessage(None);
        self.socket.set_onerror(None);
        self.socket.set_onclose(None);
        let _ = self.socket.close();
    }
}

impl fmt::Debug for WebSocketLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebSocketLink")
    }
}

/// Bytes that the socket may hold before more are taken.
const UNSENT_MAX: u32 = 256 << 10;

/// How long until a full socket is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(4);

/// What hosts say of a socket that ended without a close.
const ABNORMAL: u16 = 1006;

/// The nearest to "unsupported data" that a program may say.
const UNSUPPORTED: u16 = 3003;
