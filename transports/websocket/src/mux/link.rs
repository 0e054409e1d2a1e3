//! A channel as a link. Not generic: it knows the tunnel, not what carries it.

use core::future::Future;
use core::num::NonZeroU16;
use core::pin::Pin;
use core::task::{Context, Poll};

use bytes::BytesMut;
use messina_core::Shared;
use messina_core::drive::Link;
use messina_core::error::{LinkError, LinkErrorKind};

use super::cell::{Cell, Phase};
use crate::tunnel::{ChannelId, Progress};

/// A channel of a tunnel.
///
/// It can be used as soon as the tunnel is open, before the relay has said whether the channel leads
/// anywhere: the first request goes along with the wish to open. If it leads nowhere, reads and
/// writes fail with the relay's reason.
#[derive(Debug)]
pub struct ChannelLink {
    cell: Shared<Cell>,
    id: ChannelId,
    is_closed: bool,
}

impl ChannelLink {
    pub(super) const fn new(cell: Shared<Cell>, id: ChannelId) -> Self {
        Self {
            cell,
            id,
            is_closed: false,
        }
    }
}

impl Link for ChannelLink {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>> {
        if self.is_closed {
            return Poll::Ready(Ok(0));
        }
        let id = self.id;
        let read = self.cell.with_waker(id, cx.waker(), |state| {
            let read = state.tunnel.read(id, into).transpose()?;
            Some(read.map_err(|reason| state.link_error(reason)))
        });
        read.map_or(Poll::Pending, Poll::Ready)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, LinkError>> {
        self.poll_write_vectored(cx, &[bytes])
    }

    fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[&[u8]],
    ) -> Poll<Result<usize, LinkError>> {
        if self.is_closed {
            return Poll::Ready(Err(LinkError::new(LinkErrorKind::ClosedByUs)));
        }
        let id = self.id;
        let written = self.cell.with_waker(id, cx.waker(), |state| {
            let written = state.tunnel.write_vectored(id, parts).transpose()?;
            Some(written.map_err(|reason| state.link_error(reason)))
        });
        written.map_or(Poll::Pending, Poll::Ready)
    }

    /// The pump sends by itself.
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    /// Says that no more will be written. What the peer still sends is not read.
    fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        if !self.is_closed {
            self.is_closed = true;
            self.cell.with(|state| state.tunnel.finish(self.id));
        }
        Poll::Ready(Ok(()))
    }

    fn source_port(&self) -> Option<NonZeroU16> {
        match self.cell.with(|state| state.tunnel.progress(self.id)) {
            Progress::Open(port) => port,
            _ => None,
        }
    }
}

impl Drop for ChannelLink {
    fn drop(&mut self) {
        self.cell.release(self.id);
    }
}

/// A link on its way: ready as soon as its tunnel is open.
#[derive(Debug)]
pub struct Connecting(Result<Option<ChannelLink>, LinkError>);

impl Connecting {
    pub(super) fn new(link: Result<ChannelLink, LinkError>) -> Self {
        Self(link.map(Some))
    }
}

impl Future for Connecting {
    type Output = Result<ChannelLink, LinkError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let link = match &mut self.0 {
            Ok(link) => link,
            Err(error) => return Poll::Ready(Err(*error)),
        };
        let Some(ChannelLink { cell, id, .. }) = link else {
            return Poll::Ready(Err(LinkError::new(LinkErrorKind::Other)));
        };
        let id = *id;
        let answer = cell.with_waker(id, cx.waker(), |state| match state.phase {
            Phase::Connecting => None,
            Phase::Ended(error) => Some(Err(error)),
            Phase::Open => Some(match state.tunnel.progress(id) {
                Progress::Closed(reason) => Err(state.link_error(reason)),
                _ => Ok(()),
            }),
        });
        match answer {
            None => Poll::Pending,
            Some(Err(error)) => Poll::Ready(Err(error)),
            Some(Ok(())) => Poll::Ready(link.take().ok_or(LinkError::new(LinkErrorKind::Other))),
        }
    }
}
