//! What came back for one request: the frame's body, still undecoded.
//!
//! Decoding belongs to the caller's task, so that it runs on all cores. Bodies of up to 32 bytes
//! (a VOID result) are copied into the answer, so that they do not keep a whole read chunk alive; not
//! on targets of 32 bits.

use core::fmt;

use bytes::BytesMut;

use kept::{Inline, Kept};

use super::extensions::Agreed;
use crate::error::{Applied, Error};
use crate::wire::response::{Extras, ServerError};
use crate::wire::{Flags, Opcode, Reader};

/// A response frame without its stream id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What the body is.
    pub opcode: Opcode,
    /// Which optional parts the body begins with.
    pub flags: Flags,
    /// The body.
    pub body: Body,
}

impl Answer {
    /// The error that a node has answered with, where the opcode says so.
    pub(crate) fn server_error(&self, agreed: &Agreed) -> Error {
        let mut reader = Reader::new(self.body.as_slice());
        let parsed = Extras::parse(self.flags, &mut reader)
            .and_then(|_extras| ServerError::parse(&agreed.dialect(), &mut reader));
        match parsed {
            Ok(error) => Error::from_server(error),
            Err(error) => Error::from(error).with_applied(Applied::Unknown),
        }
    }
}

/// A frame body, small ones inline.
#[derive(Clone, PartialEq, Eq)]
pub struct Body(Repr);

#[derive(Clone, PartialEq, Eq)]
enum Repr {
    Inline(Inline),
    Kept(Kept),
}

#[cfg(not(target_pointer_width = "32"))]
mod kept {
    use bytes::BytesMut;

    /// A body that may be shared.
    pub(super) type Kept = bytes::Bytes;

    pub(super) fn keep(bytes: BytesMut) -> Kept {
        bytes.freeze()
    }

    /// A small body. The length is a word so that it is moved word by word: an answer is moved a few
    /// times until its caller has it.
    #[derive(Clone, PartialEq, Eq)]
    pub(super) struct Inline {
        len: usize,
        bytes: [u8; INLINE_MAX],
    }

    impl Inline {
        pub(super) fn new(from: &[u8]) -> Option<Self> {
            let mut inline = Self {
                len: from.len(),
                bytes: [0; INLINE_MAX],
            };
            inline.bytes.get_mut(..from.len())?.copy_from_slice(from);
            Some(inline)
        }

        pub(super) fn as_slice(&self) -> &[u8] {
            self.bytes.get(..self.len).unwrap_or(&[])
        }
    }

    const INLINE_MAX: usize = 32;
}

#[cfg(target_pointer_width = "32")]
mod kept {
    use bytes::BytesMut;

    /// A body with one owner, as it is cut from what was read: what shares one is more code.
    pub(super) type Kept = BytesMut;

    pub(super) const fn keep(bytes: BytesMut) -> Kept {
        bytes
    }

    /// There is none: chunks are small where memory is, and an answer that is moved by few words is
    /// less code.
    #[derive(Clone, PartialEq, Eq)]
    pub(super) enum Inline {}

    impl Inline {
        pub(super) const fn new(_: &[u8]) -> Option<Self> {
            None
        }

        pub(super) const fn as_slice(&self) -> &[u8] {
            match *self {}
        }
    }
}

impl Body {
    /// Takes a slice of the read chunk; copies it if it is small.
    pub fn new(bytes: BytesMut) -> Self {
        match Inline::new(&bytes) {
            Some(inline) => Self(Repr::Inline(inline)),
            None => Self(Repr::Kept(kept::keep(bytes))),
        }
    }

    /// Copies `bytes`; allocates if they are not small.
    pub fn from_slice(bytes: &[u8]) -> Self {
        match Inline::new(bytes) {
            Some(inline) => Self(Repr::Inline(inline)),
            None => Self(Repr::Kept(kept::keep(BytesMut::from(bytes)))),
        }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline(inline) => inline.as_slice(),
            Repr::Kept(bytes) => bytes,
        }
    }

    /// The bytes in a buffer of their own; copies a body that is small or shared.
    pub fn into_bytes(self) -> BytesMut {
        match self.0 {
            Repr::Inline(inline) => BytesMut::from(inline.as_slice()),
            Repr::Kept(bytes) => bytes.into(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.as_slice().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_bodies_do_not_pin_the_chunk() {
        for (len, pinned) in [(0, false), (32, false), (33, true), (100, true)] {
            let mut chunk = BytesMut::from(&[7; 100][..]);
            let body = Body::new(chunk.split_to(len));
            assert_eq!(body.as_slice(), &[7; 100][..len]);
            chunk.clear();
            assert_eq!(!chunk.try_reclaim(100), pinned, "{len}");
        }
    }

    #[test]
    fn bodies_are_shared_whole_and_printed_as_their_length() {
        for len in [0, 1, 32, 33, 100] {
            let bytes = alloc::vec![7; len];
            let body = Body::from_slice(&bytes);
            assert_eq!(
                alloc::format!("{body:?}"),
                alloc::format!("Body({len} bytes)")
            );
            assert_eq!(body.into_bytes(), bytes);
        }
    }
}
