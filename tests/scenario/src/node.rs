//! The node's side of one link: what a script does with it.
//!
//! The control plane's questions (system tables, REGISTER, heartbeats) come whenever the driver
//! likes, so [`Peer::request`] answers them on the way; a script sees only what its case is about.

use core::future::{Future, poll_fn};
use core::net::SocketAddr;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::rc::Rc;

use bytes::{Buf, BytesMut};
use messina_core::drive::Link;
use messina_core::error::{LinkError, LinkErrorKind};

use crate::frame::{COMPRESSED, Frame, OPTIONS, QUERY, REGISTER, STARTUP, hex, response};
use crate::link::Accepted;
use crate::segment::Segmented;
use crate::system::Facts;

/// One link of a node.
#[derive(Debug)]
pub struct Peer {
    accepted: Accepted,
    /// Frames that came.
    input: BytesMut,
    /// What of a segment came.
    raw: BytesMut,
    /// There when frames travel in segments.
    segmented: Option<Segmented>,
    segments: usize,
    /// The version that answers have when they come from here.
    version: u8,
    has_ended: bool,
    /// Which node it is, from 1.
    node: u8,
    facts: Rc<Facts>,
}

impl Peer {
    pub(crate) fn new(accepted: Accepted, node: u8, facts: Rc<Facts>) -> Self {
        Self {
            accepted,
            input: BytesMut::new(),
            raw: BytesMut::new(),
            segmented: None,
            segments: 0,
            version: 4,
            has_ended: false,
            node,
            facts,
        }
    }

    /// The next `len` bytes, whatever they are.
    pub async fn bytes(&mut self, len: usize) -> Vec<u8> {
        poll_fn(|cx| self.poll_fill(cx, len)).await;
        assert!(self.input.len() >= len, "ended after {:?}", self.input);
        self.input.split_to(len).to_vec()
    }

    /// The next frame, whatever it is.
    pub async fn frame(&mut self) -> Frame {
        poll_fn(|cx| self.poll_frame(cx)).await.expect("a frame")
    }

    /// The next frame of the session, not of its control plane.
    pub async fn request(&mut self) -> Frame {
        loop {
            let frame = self.frame().await;
            if !self.answer_housekeeping(&frame) {
                return frame;
            }
        }
    }

    /// Answers OPTIONS with `supported` (a whole frame or a body) and takes STARTUP.
    pub async fn startup(&mut self, supported: &[u8]) -> Frame {
        let options = self.frame().await;
        assert_eq!((options.opcode, &options.body[..]), (OPTIONS, &[][..]));
        let body = supported.strip_prefix(&hex("8400000006")[..]);
        let body = body.map_or(supported, |rest| &rest[4..]);
        self.version = options.version;
        self.reply(response(options.stream, 6, body));
        let startup = self.frame().await;
        assert_eq!(startup.opcode, STARTUP);
        self.version = startup.version;
        startup
    }

    /// From now on all bytes travel in segments, both ways.
    pub fn begin_segments(&mut self, segmented: Segmented) {
        assert!(self.input.is_empty(), "sent too early: {:?}", self.input);
        self.segmented = Some(segmented);
    }

    /// Segments that came.
    pub const fn segments(&self) -> usize {
        self.segments
    }

    /// The whole handshake, without authentication.
    pub async fn handshake(&mut self) {
        let supported = self.facts.supported(self.node).to_vec();
        let startup = self.startup(&supported).await;
        self.reply(response(startup.stream, 2, &[]));
        if self.version == 5 {
            let is_compressed = startup.body.windows(3).any(|part| part == b"lz4");
            self.begin_segments(match is_compressed {
                true => Segmented::Lz4,
                false => Segmented::Plain,
            });
        }
    }

    /// Answers the control plane until `other` is done.
    pub async fn serving<F: Future>(&mut self, other: F) -> F::Output {
        let mut other = pin!(other);
        poll_fn(|cx| {
            if let Poll::Ready(output) = other.as_mut().poll(cx) {
                return Poll::Ready(output);
            }
            self.poll_housekeeping(cx);
            Poll::Pending
        })
        .await
    }

    /// Answers the control plane as long as there is something to answer now.
    pub fn poll_housekeeping(&mut self, cx: &mut Context<'_>) {
        loop {
            let _ = self.poll_fill(cx, usize::MAX);
            let Some(frame) = Frame::cut(&self.input) else {
                return;
            };
            if !self.answer_housekeeping(&frame) {
                return;
            }
            self.input.advance(frame.wire_len());
        }
    }

    /// A whole frame of the session has come and was not taken yet.
    pub fn has_request(&self) -> bool {
        Frame::cut(&self.input).is_some()
    }

    /// Waits for the end of the link; gives what came before it.
    pub async fn closed(&mut self) -> Vec<u8> {
        poll_fn(|cx| self.poll_fill(cx, usize::MAX)).await;
        assert!(self.has_ended);
        self.input.split().to_vec()
    }

    /// Waits for the end of the link, before which nothing more may come.
    pub async fn expect_close(&mut self) {
        assert_eq!(self.closed().await, Vec::<u8>::new());
    }

    /// Sends frames, in a segment if they travel so.
    pub fn send(&mut self, frames: &[u8]) {
        match self.segmented {
            Some(segmented) => self.send_bytes(&segmented.put(frames, true)),
            None => self.send_bytes(frames),
        }
    }

    /// Sends a frame of whoever's version in its own.
    fn reply(&mut self, mut frame: Vec<u8>) {
        frame[0] = 0x80 | self.version;
        self.send(&frame);
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, mut bytes: &[u8]) {
        let mut cx = Context::from_waker(Waker::noop());
        while !bytes.is_empty() {
            match self.accepted.link.poll_write(&mut cx, bytes) {
                Poll::Ready(Ok(len)) => bytes = &bytes[len..],
                other => panic!("the node cannot send: {other:?}"),
            }
        }
    }

    /// Sends a frame with the stream id of the request that it answers; one of version 4 in version 5
    /// where that is spoken.
    pub fn answer(&mut self, to: &Frame, frame: &str) {
        let mut bytes = on_stream(to.stream, frame);
        if (bytes[0], self.version) == (0x84, 5) {
            bytes[0] = 0x85;
        }
        self.send(&bytes);
    }

    /// Every later write of the driver takes at most `max` bytes.
    pub fn take_per_write(&self, max: usize) {
        self.accepted.gate.per_write.set(max);
    }

    /// Takes `len` more bytes, then none until [`Peer::take_all`].
    pub fn take_only(&self, len: usize) {
        self.accepted.gate.left.set(len);
    }

    /// Takes `len` more bytes, then answers a write with a reset.
    pub fn reset_after(&self, len: usize) {
        let reset = LinkError::new(LinkErrorKind::Reset);
        self.accepted.gate.then.set(Some(reset));
        self.accepted.gate.left.set(len);
    }

    /// Takes any number of bytes again.
    pub fn take_all(&self) {
        self.accepted.gate.open();
    }

    /// Flush and close of the driver's end never finish.
    pub fn hang_at_close(&self) {
        self.accepted.gate.hangs.set(true);
    }

    /// Resets the link.
    pub fn reset(&self) {
        self.accepted
            .link
            .reset(LinkError::new(LinkErrorKind::Reset));
    }

    /// Reads until `len` bytes wait or the link has ended.
    fn poll_fill(&mut self, cx: &mut Context<'_>, len: usize) -> Poll<()> {
        while self.input.len() < len && !self.has_ended {
            let into = match self.segmented {
                None => &mut self.input,
                Some(_) => &mut self.raw,
            };
            into.reserve(4096);
            match self.accepted.link.poll_read(cx, into) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0) | Err(_)) => self.has_ended = true,
                Poll::Ready(Ok(_)) => {}
            }
            if let Some(segmented) = self.segmented {
                self.segments += segmented.take(&mut self.raw, &mut self.input);
            }
        }
        Poll::Ready(())
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame>> {
        loop {
            if let Some(frame) = Frame::cut(&self.input) {
                self.input.advance(frame.wire_len());
                return Poll::Ready(Some(frame));
            }
            if self.has_ended {
                return Poll::Ready(None);
            }
            let more = self.input.len() + 1;
            if self.poll_fill(cx, more).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn answer_housekeeping(&mut self, frame: &Frame) -> bool {
        let answer = match frame.opcode {
            OPTIONS => response(frame.stream, 6, self.facts.supported(self.node)),
            REGISTER => response(frame.stream, 2, &[]),
            // Questions about the cluster are short: no compressed one is.
            QUERY if frame.flags & COMPRESSED != 0 => return false,
            QUERY => match self.facts.answer(self.node, frame.statement()) {
                Some((opcode, body)) => response(frame.stream, opcode, &body),
                None => return false,
            },
            _ => return false,
        };
        self.reply(answer);
        true
    }
}

/// The next frame of the session on any of these links, and which.
pub async fn any_request(peers: &mut [Peer]) -> (usize, Frame) {
    poll_fn(|cx| {
        for (place, peer) in peers.iter_mut().enumerate() {
            peer.poll_housekeeping(cx);
            if let Some(frame) = Frame::cut(&peer.input) {
                peer.input.advance(frame.wire_len());
                return Poll::Ready((place, frame));
            }
        }
        Poll::Pending
    })
    .await
}

/// Answers the control plane on all of these links until `other` is done.
pub async fn serving<F: Future>(peers: &mut [Peer], other: F) -> F::Output {
    let mut other = pin!(other);
    poll_fn(|cx| {
        if let Poll::Ready(output) = other.as_mut().poll(cx) {
            return Poll::Ready(output);
        }
        peers.iter_mut().for_each(|peer| peer.poll_housekeeping(cx));
        Poll::Pending
    })
    .await
}

/// The frame with another stream id.
pub fn on_stream(stream: i16, frame: &str) -> Vec<u8> {
    let mut bytes = hex(frame);
    bytes[2..4].copy_from_slice(&stream.to_be_bytes());
    bytes
}

/// The address of a node, from 1.
pub fn address(node: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, node], 9042))
}
