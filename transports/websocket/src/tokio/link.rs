//! A WebSocket as a byte stream: the borders of its messages mean nothing.

use core::pin::Pin;
use core::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Sink, Stream};
use messina_core::drive::Link;
use messina_core::error::{LinkError, LinkErrorKind};
use messina_tokio::TokioLink;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::answer::{MESSAGE_MAX, TEXT, closed};

/// An open WebSocket whose binary messages are a byte stream.
///
/// Pings are answered beside it. A text message is a protocol error: the link closes with code 1003
/// and fails. There is no half-close; a close by the peer is the end of the stream if it was an
/// ordinary one, else an error that tells its code.
#[derive(Debug)]
pub struct WebSocketLink {
    stream: WebSocketStream<TokioLink>,
    /// The rest of a message that did not fit.
    rest: Bytes,
    ended: Option<Result<(), LinkError>>,
}

impl WebSocketLink {
    pub(super) const fn new(stream: WebSocketStream<TokioLink>) -> Self {
        Self {
            stream,
            rest: Bytes::new(),
            ended: None,
        }
    }

    /// The next message with bytes in it, kept in `rest`; `None` at the end.
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<()>, LinkError>> {
        loop {
            if let Some(ended) = self.ended {
                return Poll::Ready(ended.map(|()| None));
            }
            let ended = match ready!(Pin::new(&mut self.stream).poll_next(cx)) {
                Some(Ok(Message::Binary(bytes))) => {
                    if bytes.is_empty() {
                        continue;
                    }
                    self.rest = bytes;
                    return Poll::Ready(Ok(Some(())));
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Text(_))) => {
                    self.refuse(cx, CloseCode::Unsupported);
                    Err(TEXT)
                }
                Some(Ok(Message::Close(frame))) => {
                    closed(frame.map_or(1000, |frame| u16::from(frame.code)))
                }
                Some(Err(error)) => Err(link_error(&error)),
                None => Ok(()),
            };
            self.ended = Some(ended);
        }
    }

    /// Tells the peer why it is left, as far as that goes without waiting.
    fn refuse(&mut self, cx: &mut Context<'_>, code: CloseCode) {
        let frame = CloseFrame {
            code,
            reason: "binary messages only".into(),
        };
        let mut stream = Pin::new(&mut self.stream);
        if stream
            .as_mut()
            .start_send(Message::Close(Some(frame)))
            .is_ok()
        {
            let _ = stream.poll_flush(cx);
        }
    }

    /// Ready when the message before has left this process.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        if let Some(ended) = self.ended {
            let error = ended.err().unwrap_or(LinkError::CLOSED_BY_PEER);
            return Poll::Ready(Err(error));
        }
        let room = ready!(Pin::new(&mut self.stream).poll_ready(cx));
        Poll::Ready(room.map_err(|error| self.fail(&error)))
    }

    fn fail(&mut self, error: &Error) -> LinkError {
        let error = link_error(error);
        self.ended = Some(Err(error));
        error
    }
}

impl Link for WebSocketLink {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>> {
        if self.rest.is_empty() && ready!(self.poll_message(cx))?.is_none() {
            return Poll::Ready(Ok(0));
        }
        if into.is_empty() {
            match core::mem::take(&mut self.rest).try_into_mut() {
                Ok(bytes) => {
                    *into = bytes;
                    return Poll::Ready(Ok(into.len()));
                }
                Err(shared) => self.rest = shared,
            }
        }
        let spare = into.capacity().saturating_sub(into.len());
        let len = spare.min(self.rest.len());
        into.extend_from_slice(self.rest.get(..len).unwrap_or_default());
        self.rest.advance(len);
        Poll::Ready(Ok(len))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, LinkError>> {
        self.poll_write_vectored(cx, &[bytes])
    }

    fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[&[u8]],
    ) -> Poll<Result<usize, LinkError>> {
        ready!(self.poll_room(cx))?;
        let mut message = BytesMut::new();
        for part in parts {
            let room = MESSAGE_MAX.saturating_sub(message.len());
            message.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
        }
        let len = message.len();
        let sent = Pin::new(&mut self.stream).start_send(Message::Binary(message.freeze()));
        Poll::Ready(sent.map(|()| len).map_err(|error| self.fail(&error)))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        if let Some(Err(error)) = self.ended {
            return Poll::Ready(Err(error));
        }
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(cx));
        Poll::Ready(flushed.map_err(|error| self.fail(&error)))
    }

    /// Sends a close and waits for the peer's, skipping what still comes before it.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.rest.clear();
        if self.ended.is_none() {
            let sent = ready!(Pin::new(&mut self.stream).poll_close(cx));
            if let Err(error) = sent {
                return Poll::Ready(Err(self.fail(&error)));
            }
            while ready!(self.poll_message(cx))?.is_some() {
                self.rest.clear();
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Bounds of a WebSocket: small buffers, since core has its own.
pub(super) fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(16 << 10)
        .write_buffer_size(16 << 10)
        .max_message_size(Some(INCOMING_MAX))
        .max_frame_size(Some(INCOMING_MAX))
}

/// What went wrong with a WebSocket, its handshake included.
pub(super) fn link_error(error: &Error) -> LinkError {
    let (kind, code, meaning) = match error {
        Error::Io(error) => return messina_tokio::link_error(error),
        Error::ConnectionClosed | Error::AlreadyClosed => return LinkError::CLOSED_BY_PEER,
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            return LinkError::new(LinkErrorKind::Reset);
        }
        Error::Protocol(ProtocolError::SecWebSocketSubProtocolError(_)) => {
            (LinkErrorKind::Other, 1002, "no common sub-protocol")
        }
        Error::Protocol(_) | Error::Utf8(_) => (LinkErrorKind::Other, 1002, "protocol error"),
        Error::Capacity(_) => (LinkErrorKind::Other, 1009, "message too long"),
        Error::Http(answer) => {
            let code = answer.status().as_u16();
            (LinkErrorKind::Refused, code, refusal(code))
        }
        _ => return LinkError::new(LinkErrorKind::Other),
    };
    LinkError::said(kind, code, meaning)
}

/// What a relay means by the status of its answer to the handshake.
const fn refusal(status: u16) -> &'static str {
    match status {
        401 => "the relay wants a valid token",
        403 => "not allowed by the relay",
        404 => "no relay at this path",
        429 => "too many connections at the relay",
        503 => "the relay is full or about to stop",
        _ => "no WebSocket at this address",
    }
}

/// Most bytes of one message that comes; relays send what one read gave them.
const INCOMING_MAX: usize = 16 << 20;
