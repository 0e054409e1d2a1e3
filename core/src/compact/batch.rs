//! Several statements as one request.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use bytes::BytesMut;

use super::binding::{Binder, ToCells, bind};
use super::hub::{Hub, stale};
use super::options::Options;
use super::request::BatchPart;
use super::session::{Prepared, Session, does_not_fit};
use crate::error::Error;
use crate::wire::Values;
use crate::wire::request::BatchKind;

/// Statements that are sent as one request, in the order in which they were added. Values are
/// written when they are added, one behind the other; [`clear`](Self::clear) keeps the room.
pub struct Batch {
    kind: BatchKind,
    options: Options,
    entries: Vec<Entry>,
    bytes: BytesMut,
    texts: String,
}

/// One statement; its values, or its text, end at `end` and begin where those before end.
#[derive(Debug)]
enum Entry {
    Statement {
        number: u32,
        serial: u32,
        count: u16,
        has_unset: bool,
        end: usize,
    },
    Text {
        end: usize,
    },
}

impl Batch {
    /// An empty batch.
    pub fn new(kind: BatchKind) -> Self {
        Self {
            kind,
            options: Options::new(),
            entries: Vec::new(),
            bytes: BytesMut::new(),
            texts: String::new(),
        }
    }

    /// The same batch, to be run like this.
    #[must_use]
    pub fn with(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Adds a prepared statement with values for all of its markers. Of its own options none counts.
    ///
    /// Fails, and leaves the batch as it was, if the values do not fit.
    pub fn push(
        &mut self,
        session: &Session,
        statement: &Prepared,
        values: impl ToCells,
    ) -> Result<(), Error> {
        self.put(session, statement, &values)
    }

    #[inline(never)]
    fn put(
        &mut self,
        session: &Session,
        statement: &Prepared,
        values: &dyn ToCells,
    ) -> Result<(), Error> {
        let (held, binder) = session.hub().held(statement.number, statement.serial)?;
        session.hub().with(|state| state.desk.buffer = binder.bytes);
        let before = self.bytes.len();
        let mut binder = Binder::new(core::mem::take(&mut self.bytes));
        let bound = bind(&held.statement, &held.type_numbers, values, &mut binder);
        let (count, has_unset) = (binder.count, binder.has_unset());
        self.bytes = binder.bytes;
        if let Err(index) = bound {
            self.bytes.truncate(before);
            return Err(does_not_fit(index, held.type_numbers.len()));
        }
        self.entries.push(Entry::Statement {
            number: statement.number,
            serial: statement.serial,
            count,
            has_unset,
            end: self.bytes.len(),
        });
        Ok(())
    }

    /// Adds a text without values.
    pub fn push_text(&mut self, text: &str) {
        self.texts.push_str(text);
        let end = self.texts.len();
        self.entries.push(Entry::Text { end });
    }

    /// Number of statements.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no statement.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes all statements out.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
        self.texts.clear();
    }

    pub(super) fn submit(&self, hub: &Hub) -> Result<u32, Error> {
        let (mut values_at, mut text_at) = (0, 0);
        let parts: Vec<BatchPart<'_>> = self
            .entries
            .iter()
            .map(|entry| match entry {
                Entry::Statement {
                    number,
                    count,
                    has_unset,
                    end,
                    ..
                } => {
                    let start = core::mem::replace(&mut values_at, *end);
                    let bytes = self.bytes.get(start..*end).unwrap_or_default();
                    BatchPart::Statement(*number, Values::encoded(*count, *has_unset, bytes))
                }
                Entry::Text { end } => {
                    let start = core::mem::replace(&mut text_at, *end);
                    let text = self.texts.get(start..*end).unwrap_or_default();
                    BatchPart::Text(text, Values::EMPTY)
                }
            })
            .collect();
        let options = self.options.for_request(None, false);
        hub.submit(false, &mut |state| {
            let is_held = |entry: &Entry| match entry {
                Entry::Statement { number, serial, .. } => state.desk.has(*number, *serial),
                Entry::Text { .. } => true,
            };
            match self.entries.iter().all(is_held) {
                true => state.machine.batch(self.kind, &parts, &options),
                false => state.machine.refuse(stale()),
            }
        })
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("kind", &self.kind)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
