//! A TCP stream as a link.

use core::num::NonZeroU16;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io::{self, ErrorKind, IoSlice};

use bytes::BytesMut;
use messina_core::drive::Link;
use messina_core::error::{LinkError, LinkErrorKind};
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio_util::io::poll_read_buf;

/// An open TCP connection with `TCP_NODELAY` on.
#[derive(Debug)]
pub struct TcpLink {
    stream: TcpStream,
}

impl TcpLink {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream })
    }
}

impl Link for TcpLink {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>> {
        poll_read_buf(Pin::new(&mut self.stream), cx, into).map_err(|error| link_error(&error))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, LinkError>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
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
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, &slices[..len]));
        Poll::Ready(written.map_err(|error| link_error(&error)))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Pin::new(&mut self.stream)
            .poll_flush(cx)
            .map_err(|error| link_error(&error))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Pin::new(&mut self.stream)
            .poll_shutdown(cx)
            .map_err(|error| link_error(&error))
    }

    fn source_port(&self) -> Option<NonZeroU16> {
        NonZeroU16::new(self.stream.local_addr().ok()?.port())
    }
}

/// Sorts an I/O error by its cause.
pub(crate) fn link_error(error: &io::Error) -> LinkError {
    let kind = match error.kind() {
        ErrorKind::ConnectionRefused => LinkErrorKind::Refused,
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
            LinkErrorKind::Reset
        }
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
