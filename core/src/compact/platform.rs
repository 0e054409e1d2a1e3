//! Between the platform's links and those of the machine: bytes in and out, beginnings and ends, and
//! pieces of bodies that are read as they come.

use alloc::boxed::Box;

use bytes::BytesMut;

use super::host::Host;
use super::link::{Link, Pieces};
use super::machine::Machine;
use super::request::Request;
use super::slab::Slab;
use crate::error::LinkError;
use crate::wire::FrameHeader;

impl Machine {
    #[inline(never)]
    pub(super) fn link(&mut self, number: u32) -> Option<&mut Link> {
        let mut links = self.links.iter_mut();
        links
            .find(|link| link.number == number)
            .map(|link| &mut **link)
    }

    /// A link is open.
    pub fn handle_opened(&mut self, link: u32) {
        let handshake = self.handshake.clone();
        if let Some(link) = self.link(link) {
            link.handle_opened(&handshake);
        }
    }

    /// A link could not be opened, or has ended. What had come is still looked at.
    pub fn handle_ended(&mut self, link: u32, error: LinkError) {
        if let Some(link) = self.link(link) {
            link.handle_ended(error);
        }
    }

    /// Where bytes that have come on a link are appended; `None` after its end. While more than a
    /// chunk waits there, nothing should be read.
    pub fn input(&mut self, link: u32) -> Option<&mut BytesMut> {
        self.link(link).map(|link| &mut link.input)
    }

    /// Bytes to be written on a link.
    pub fn output(&mut self, link: u32) -> &[u8] {
        self.link(link).map_or(&[], Link::output)
    }

    /// That many bytes of the output were taken.
    pub fn handle_written(&mut self, link: u32, len: usize) {
        if let Some(link) = self.link(link) {
            link.handle_written(len);
        }
    }

    /// Offers every link's bytes to `write`, which tells how many it has taken.
    pub fn write(&mut self, write: &mut dyn FnMut(u32, &[u8]) -> usize) {
        for link in &mut self.links {
            let number = link.number;
            loop {
                let output = link.output();
                if output.is_empty() {
                    break;
                }
                let offered = output.len();
                let taken = write(number, output);
                link.handle_written(taken);
                if taken < offered {
                    break;
                }
            }
        }
    }
}

/// The host, for what is streamed: requests say whether they want that.
pub(super) struct Streams<'a, H> {
    pub(super) requests: &'a mut Slab<Box<Request>>,
    pub(super) host: &'a mut H,
}

impl<H: Host> Pieces for Streams<'_, H> {
    fn begin(&mut self, request: u32, header: &FrameHeader) -> bool {
        match self.requests.get_mut(request) {
            Some(found) if found.is_streamed && found.preparing.is_none() => {
                found.has_begun = self.host.begin(request, header);
                found.has_begun
            }
            _ => false,
        }
    }

    fn has_room(&mut self, request: u32) -> bool {
        self.host.has_room(request)
    }

    fn put(&mut self, request: u32, piece: BytesMut) {
        self.host.piece(request, piece);
    }
}
