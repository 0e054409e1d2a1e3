//! For tests of transports: a pair of in-memory links, a clock set by hand, and the contract that
//! every link must keep.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::{Context, Poll, Waker};

use bytes::BytesMut;

use crate::drive::Link;
use crate::error::LinkError;

/// One end of an in-memory byte stream for a single thread.
#[derive(Debug)]
pub struct MemoryLink {
    outgoing: Rc<Pipe>,
    incoming: Rc<Pipe>,
}

/// One direction.
#[derive(Debug)]
struct Pipe {
    bytes: RefCell<VecDeque<u8>>,
    capacity: usize,
    /// Most bytes that one write takes.
    write_max: Cell<usize>,
    end: Cell<Option<Result<(), LinkError>>>,
    reader: RefCell<Option<Waker>>,
    writer: RefCell<Option<Waker>>,
}

impl Pipe {
    fn new(capacity: usize) -> Rc<Self> {
        Rc::new(Self {
            bytes: RefCell::default(),
            capacity,
            write_max: Cell::new(usize::MAX),
            end: Cell::new(None),
            reader: RefCell::default(),
            writer: RefCell::default(),
        })
    }

    fn wake(waker: &RefCell<Option<Waker>>) {
        if let Some(waker) = waker.take() {
            waker.wake();
        }
    }

    fn close(&self, how: Result<(), LinkError>) {
        if self.end.get().is_none() {
            self.end.set(Some(how));
        }
        Self::wake(&self.reader);
        Self::wake(&self.writer);
    }
}

/// Two ends of a stream that holds at most `capacity` bytes in each direction.
pub fn memory_pair(capacity: usize) -> (MemoryLink, MemoryLink) {
    let (there, back) = (Pipe::new(capacity), Pipe::new(capacity));
    let one = MemoryLink {
        outgoing: Rc::clone(&there),
        incoming: Rc::clone(&back),
    };
    (
        one,
        MemoryLink {
            outgoing: back,
            incoming: there,
        },
    )
}

impl MemoryLink {
    /// Lets each later write of this end take at most `max` bytes; 0 takes none until changed.
    pub fn set_write_max(&self, max: usize) {
        self.outgoing.write_max.set(max);
        Pipe::wake(&self.outgoing.writer);
    }

    /// Breaks the stream in both directions.
    pub fn reset(&self, error: LinkError) {
        self.outgoing.close(Err(error));
        self.incoming.close(Err(error));
    }
}

impl Link for MemoryLink {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>> {
        let pipe = &self.incoming;
        if let Some(Err(error)) = pipe.end.get() {
            return Poll::Ready(Err(error));
        }
        let mut bytes = pipe.bytes.borrow_mut();
        if bytes.is_empty() {
            if pipe.end.get().is_some() {
                return Poll::Ready(Ok(0));
            }
            *pipe.reader.borrow_mut() = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let len = bytes.len().min(into.capacity().saturating_sub(into.len()));
        let taken: Vec<u8> = bytes.drain(..len).collect();
        into.extend_from_slice(&taken);
        drop(bytes);
        Pipe::wake(&pipe.writer);
        Poll::Ready(Ok(len))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, LinkError>> {
        let pipe = &self.outgoing;
        if let Some(end) = pipe.end.get() {
            return Poll::Ready(Err(end.err().unwrap_or(LinkError::CLOSED_BY_PEER)));
        }
        let held = pipe.bytes.borrow().len();
        let room = pipe.capacity.saturating_sub(held).min(pipe.write_max.get());
        if room == 0 {
            *pipe.writer.borrow_mut() = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let len = room.min(bytes.len());
        pipe.bytes.borrow_mut().extend(bytes.iter().take(len));
        Pipe::wake(&pipe.reader);
        Poll::Ready(Ok(len))
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.outgoing.close(Ok(()));
        self.incoming.close(Ok(()));
        self.incoming.bytes.borrow_mut().clear();
        Poll::Ready(Ok(()))
    }
}

impl Drop for MemoryLink {
    fn drop(&mut self) {
        self.outgoing.close(Ok(()));
        self.incoming.close(Ok(()));
    }
}

/// Checks a link whose far end sends back whatever it gets. Sends 300,000 bytes in writes of many
/// sizes while reading with buffers of many sizes, then closes. Both directions are pending on one
/// waker at once.
///
/// Fails with a sentence that says what the link did wrong.
pub async fn link_contract(mut link: impl Link) -> Result<(), String> {
    let sent: Vec<u8> = (0..300_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let (mut written, mut received, mut step) = (0, Vec::new(), 0_usize);
    poll_fn(|cx| pump(cx, &mut link, &sent, &mut written, &mut received, &mut step)).await?;
    if received != sent {
        return Err(String::from("what came back is not what was sent"));
    }
    let closed = poll_fn(|cx| link.poll_close(cx)).await;
    closed.map_err(|error| format!("an orderly close failed: {error}"))?;
    let mut rest = BytesMut::with_capacity(16);
    match poll_fn(|cx| link.poll_read(cx, &mut rest)).await {
        Ok(0) => Ok(()),
        other => Err(format!(
            "a read after the close gave {other:?} instead of 0 bytes"
        )),
    }
}

fn pump(
    cx: &mut Context<'_>,
    link: &mut impl Link,
    sent: &[u8],
    written: &mut usize,
    received: &mut Vec<u8>,
    step: &mut usize,
) -> Poll<Result<(), String>> {
    loop {
        *step += 1;
        let mut is_pending = true;
        if let Some(rest) = sent.get(*written..).filter(|rest| !rest.is_empty()) {
            let offered = rest.len().min(1 + (*step * 7919) % 20_000);
            match link.poll_write(cx, rest.get(..offered).unwrap_or(rest)) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err("a write took 0 bytes".into())),
                Poll::Ready(Ok(len)) if len > offered => {
                    return Poll::Ready(Err("a write took more than it was offered".into()));
                }
                Poll::Ready(Ok(len)) => {
                    *written += len;
                    is_pending = false;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(format!("write: {error}"))),
                Poll::Pending => {}
            }
        } else if let Poll::Ready(Err(error)) = link.poll_flush(cx) {
            return Poll::Ready(Err(format!("flush: {error}")));
        }
        if received.len() == sent.len() {
            return Poll::Ready(Ok(()));
        }
        let mut chunk = BytesMut::from(&vec![0xaa; *step % 3][..]);
        chunk.reserve(1 + (*step * 104_729) % 9_000);
        let (before, room) = (chunk.len(), chunk.capacity());
        match link.poll_read(cx, &mut chunk) {
            Poll::Ready(Ok(0)) => return Poll::Ready(Err("the link ended early".into())),
            Poll::Ready(Ok(len)) => {
                if chunk.len() != before + len || (before > 0 && chunk.len() > room) {
                    return Poll::Ready(Err("a read gave another number than it said".into()));
                }
                received.extend_from_slice(chunk.get(before..).unwrap_or(&[]));
                is_pending = false;
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(format!("read: {error}"))),
            Poll::Pending => {}
        }
        if is_pending {
            return Poll::Pending;
        }
    }
}
