//! TCP sockets that neither wait for more to send nor delay their acknowledgements.
//!
//! A client that leaves Nagle's algorithm on (Deno's WebSocket does for messages over a kilobyte)
//! sends the second half of a message only when the first is acknowledged; the kernel delays that
//! for some forty milliseconds. `TCP_QUICKACK` does not last, so it is set again when everything that
//! came has been read, which also sends an acknowledgement that is due.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::io::{self, IoSlice};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

/// A TCP stream that acknowledges at once.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    /// The last read filled its buffer, so there may be more, and it is not acknowledged yet.
    owes: bool,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let socket = Self {
            stream,
            owes: false,
        };
        socket.acknowledge();
        Ok(socket)
    }

    fn acknowledge(&self) {
        // A wish only; other systems do not delay or cannot be told.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let _ = socket2::SockRef::from(&self.stream).set_tcp_quickack(true);
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = into.remaining();
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        let is_more = into.remaining() < room;
        let is_full = is_more && into.remaining() == 0;
        if (is_more || self.owes) && !is_full {
            self.acknowledge();
        }
        self.owes = is_full;
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Either side, encrypted where the relay has a certificate or its nodes have.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(Socket),
    Tls(Box<TlsStream<Socket>>),
}

impl Stream {
    /// The socket below.
    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => &socket.stream,
            Self::Tls(stream) => &stream.get_ref().0.stream,
        }
    }
}

macro_rules! each {
    ($this:expr, $stream:ident => $call:expr) => {
        match $this.get_mut() {
            Stream::Plain($stream) => $call,
            Stream::Tls($stream) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_read(cx, into))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
