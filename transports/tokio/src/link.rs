//! A TCP stream as a link, plain or under TLS.

use core::num::NonZeroU16;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io::{self, ErrorKind, IoSlice};

use bytes::BytesMut;
use messina_core::drive::Link;
use messina_core::error::{LinkError, LinkErrorKind};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(feature = "tls")]
use tokio_rustls::client::TlsStream;
use tokio_util::io::poll_read_buf;

/// An open TCP connection with `TCP_NODELAY` on, encrypted where its transport says so.
#[derive(Debug)]
pub struct TokioLink {
    stream: Stream,
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream<TcpStream>>),
}

/// Calls a method of whichever stream it is.
macro_rules! each {
    ($link:expr, $stream:ident => $call:expr) => {
        match &mut $link.stream {
            Stream::Plain($stream) => $call,
            #[cfg(feature = "tls")]
            Stream::Tls($stream) => $call,
        }
    };
}

impl TokioLink {
    pub(crate) const fn plain(stream: TcpStream) -> Self {
        let stream = Stream::Plain(stream);
        Self { stream }
    }

    #[cfg(feature = "tls")]
    pub(crate) fn tls(stream: TlsStream<TcpStream>) -> Self {
        let stream = Stream::Tls(Box::new(stream));
        Self { stream }
    }

    /// The socket below.
    fn socket(&self) -> &TcpStream {
        match &self.stream {
            Stream::Plain(stream) => stream,
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.get_ref().0,
        }
    }
}

impl Link for TokioLink {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>> {
        let read = each!(self, stream => poll_read_buf(Pin::new(stream), cx, into));
        read.map_err(|error| link_error(&error))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, LinkError>> {
        let written = ready!(each!(self, stream => Pin::new(stream).poll_write(cx, bytes)));
        Poll::Ready(written.map_err(|error| link_error(&error)))
    }

    fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[&[u8]],
    ) -> Poll<Result<usize, LinkError>> {
        let mut slices = [IoSlice::new(&[]); VECTORED_MAX];
        let mut len = 0;
        for (slice, part) in slices.iter_mut().zip(parts) {
            *slice = IoSlice::new(part);
            len += 1;
        }
        let slices = &slices[..len];
        let written =
            ready!(each!(self, stream => Pin::new(stream).poll_write_vectored(cx, slices)));
        Poll::Ready(written.map_err(|error| link_error(&error)))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        each!(self, stream => Pin::new(stream).poll_flush(cx)).map_err(|error| link_error(&error))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let closed = each!(self, stream => Pin::new(stream).poll_shutdown(cx));
        closed.map_err(|error| link_error(&error))
    }

    fn source_port(&self) -> Option<NonZeroU16> {
        NonZeroU16::new(self.socket().local_addr().ok()?.port())
    }
}

/// As the byte stream below another protocol.
impl AsyncRead for TokioLink {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_read(cx, into))
    }
}

impl AsyncWrite for TokioLink {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}

/// Sorts an I/O error by its cause.
pub fn link_error(error: &io::Error) -> LinkError {
    #[cfg(feature = "tls")]
    if let Some(error) = crate::tls::link_error(error) {
        return error;
    }
    let kind = match error.kind() {
        ErrorKind::ConnectionRefused => LinkErrorKind::Refused,
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
            LinkErrorKind::Reset
        }
        // TLS that ends without its own farewell.
        ErrorKind::UnexpectedEof => LinkErrorKind::ClosedByPeer,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => {
            LinkErrorKind::Unreachable
        }
        ErrorKind::TimedOut => LinkErrorKind::TimedOut,
        ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable => LinkErrorKind::PortInUse,
        _ => LinkErrorKind::Other,
    };
    LinkError::with_os_code(kind, error.raw_os_error().unwrap_or(0))
}

/// Parts of one vectored write.
const VECTORED_MAX: usize = 8;
