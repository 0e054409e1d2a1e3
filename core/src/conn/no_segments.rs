//! In place of `segments` in builds without feature `protocol-v5`: no connection speaks in segments,
//! and nothing of them is linked.

use bytes::BytesMut;

use super::framer::{Cut, Framer, FramerError};

/// There are none.
#[derive(Debug)]
pub(crate) enum Segments {}

impl Segments {
    pub(crate) const fn poll_cut(
        &mut self,
        _: &mut Framer,
        _: &mut BytesMut,
    ) -> Result<Option<Cut>, FramerError> {
        match *self {}
    }

    pub(crate) const fn wanted(&self, _: &BytesMut, _: usize) -> usize {
        match *self {}
    }

    pub(crate) const fn queue(&mut self) -> &mut BytesMut {
        match *self {}
    }

    pub(crate) const fn put_next(&mut self, _: &mut BytesMut) -> usize {
        match *self {}
    }
}
