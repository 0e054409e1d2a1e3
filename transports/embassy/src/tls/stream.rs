//! The TCP link as embedded-tls wants it: shared by its reader and its writer, which have it by
//! reference, and guarded. embedded-tls 0.19 trusts what it is given further than it should: it
//! panics at an encrypted record without content, which whoever sits in the middle can make before
//! any certificate is checked, and once it is open it takes records that are not encrypted, closing
//! alerts among them. Neither gets past the guard.

use core::cell::{Cell, RefCell};
use core::fmt;
use core::future::poll_fn;
use core::num::NonZeroU16;

use embedded_io_async::{Error as IoError, ErrorKind, ErrorType, Read, Write};
use messina_core::drive::Link as _;
use messina_core::error::{LinkError, TlsFailure};

use crate::link::EmbassyLink;

const HEADER_LEN: usize = 5;
/// The type of all encrypted records.
const APPLICATION_DATA: u8 = 23;
/// What authenticates a record, behind its content and the byte of its type.
const TAG_LEN: usize = 16;

pub(super) struct Stream<'d> {
    link: RefCell<EmbassyLink<'d>>,
    guard: RefCell<Guard>,
    /// What embedded-tls only has a general word for.
    error: Cell<Option<LinkError>>,
}

impl<'d> Stream<'d> {
    pub(super) const fn new(link: EmbassyLink<'d>) -> Self {
        Self {
            link: RefCell::new(link),
            guard: RefCell::new(Guard::new()),
            error: Cell::new(None),
        }
    }

    /// From now on everything must be encrypted.
    pub(super) fn is_open(&self) {
        self.guard.borrow_mut().is_open = true;
    }

    pub(super) fn source_port(&self) -> Option<NonZeroU16> {
        self.link.borrow().source_port()
    }

    /// Why reading or writing failed.
    pub(super) const fn error(&self) -> Option<LinkError> {
        self.error.get()
    }

    pub(super) async fn close(&self) -> Result<(), LinkError> {
        poll_fn(|cx| self.link.borrow_mut().poll_close(cx)).await
    }

    fn failed(&self, error: LinkError) -> Broken {
        self.error.set(Some(error));
        Broken
    }
}

impl ErrorType for &Stream<'_> {
    type Error = Broken;
}

impl Read for &Stream<'_> {
    async fn read(&mut self, into: &mut [u8]) -> Result<usize, Broken> {
        let read = poll_fn(|cx| self.link.borrow_mut().poll_read_slice(cx, into)).await;
        let len = read.map_err(|error| self.failed(error))?;
        if len == 0 {
            // A stream that ends without the alert that says so.
            self.error.set(Some(LinkError::CLOSED_BY_PEER));
        }
        let fine = self
            .guard
            .borrow_mut()
            .pass(into.get(..len).unwrap_or_default());
        if !fine {
            return Err(self.failed(LinkError::tls(TlsFailure::NotTls)));
        }
        Ok(len)
    }
}

impl Write for &Stream<'_> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        let written = poll_fn(|cx| self.link.borrow_mut().poll_write(cx, bytes)).await;
        written.map_err(|error| self.failed(error))
    }

    /// The stack sends by itself, and its own flush would wait for acknowledgement.
    async fn flush(&mut self) -> Result<(), Broken> {
        Ok(())
    }
}

/// See [`Stream::error`].
#[derive(Debug)]
pub(super) struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the link broke")
    }
}

impl core::error::Error for Broken {}

impl IoError for Broken {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

/// Follows the headers of the records that come in.
struct Guard {
    header: [u8; HEADER_LEN],
    header_len: usize,
    /// Bytes of the record behind its header that are yet to come.
    content_len: usize,
    is_open: bool,
}

impl Guard {
    const fn new() -> Self {
        Self {
            header: [0; HEADER_LEN],
            header_len: 0,
            content_len: 0,
            is_open: false,
        }
    }

    /// `false` if a record begins in `bytes` that must not come.
    fn pass(&mut self, mut bytes: &[u8]) -> bool {
        while let Some((first, later)) = bytes.split_first() {
            if self.content_len > 0 {
                let len = self.content_len.min(bytes.len());
                bytes = bytes.get(len..).unwrap_or_default();
                self.content_len -= len;
                continue;
            }
            if let Some(place) = self.header.get_mut(self.header_len) {
                *place = *first;
            }
            self.header_len += 1;
            bytes = later;
            if self.header_len == HEADER_LEN {
                let [kind, _, _, high, low] = self.header;
                self.header_len = 0;
                self.content_len = usize::from(u16::from_be_bytes([high, low]));
                let is_encrypted = kind == APPLICATION_DATA;
                let is_empty = is_encrypted && self.content_len <= TAG_LEN;
                if is_empty || self.is_open && !is_encrypted {
                    return false;
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(is_open: bool, bytes: &[u8]) -> bool {
        // The same in one piece and in pieces of every size.
        let outcomes = (1..=bytes.len()).map(|size| {
            let mut guard = Guard::new();
            guard.is_open = is_open;
            bytes.chunks(size).all(|piece| guard.pass(piece))
        });
        let mut outcomes: Vec<bool> = outcomes.collect();
        outcomes.dedup();
        assert_eq!(outcomes.len(), 1);
        outcomes[0]
    }

    fn record(kind: u8, len: u16) -> Vec<u8> {
        let [high, low] = len.to_be_bytes();
        let mut record = vec![kind, 3, 3, high, low];
        record.extend(vec![kind; usize::from(len)]);
        record
    }

    #[test]
    fn encrypted_records_without_content_never_pass() {
        for (len, expected) in [(0, false), (16, false), (17, true), (500, true)] {
            for is_open in [false, true] {
                let both = [record(APPLICATION_DATA, 300), record(APPLICATION_DATA, len)];
                assert_eq!(passes(is_open, &both.concat()), expected);
            }
        }
    }

    #[test]
    fn once_open_all_is_encrypted() {
        for kind in [20, 21, 22, 24] {
            let both = [record(APPLICATION_DATA, 40), record(kind, 30)].concat();
            assert!(passes(false, &both));
            assert!(!passes(true, &both));
        }
    }
}
