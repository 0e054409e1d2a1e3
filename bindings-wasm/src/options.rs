//! How a statement is to be run, as the shell says it.

use core::time::Duration;

use bytes::{Bytes, BytesMut};
#[cfg(feature = "full")]
use messina_core::drive::{Batch, Prepared, Statement};
use messina_core::exec::paging::PagingState;
use messina_core::wire::{Consistency, SerialConsistency};

use crate::outbox::NONE;

/// The numbers of a request; see [`message`](crate::message).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunOptions {
    pub(crate) timeout: u32,
    pub(crate) page_size: u32,
    /// Bit 0 idempotent, 1 timestamp in front of the input (8 bytes, little-endian), 2 traced; bits
    /// 8 to 15 the consistency's number plus 1, 16 and 17 the serial one: 1 SERIAL, 2
    /// LOCAL_SERIAL.
    pub(crate) flags: u32,
    pub(crate) paging_len: usize,
}

/// The same with what stands in the input.
#[derive(Debug)]
pub(crate) struct Options {
    given: RunOptions,
    timestamp: Option<i64>,
    paging_state: Option<PagingState>,
}

/// Sets what is given on anything that has the setters of statements.
#[cfg(feature = "full")]
macro_rules! apply {
    ($options:expr, $statement:expr) => {{
        let (options, mut statement) = ($options, $statement);
        if let Some(consistency) = options.given.consistency() {
            statement = statement.with_consistency(consistency);
        }
        if let Some(level) = options.given.serial_consistency() {
            statement = statement.with_serial_consistency(level);
        }
        if let Some(timeout) = options.given.timeout() {
            statement = statement.with_timeout(timeout);
        }
        if let Some(micros) = options.timestamp {
            statement = statement.with_timestamp(micros);
        }
        if options.given.is_idempotent() {
            statement = statement.idempotent();
        }
        if options.given.flags & TRACED != 0 {
            statement = statement.traced();
        }
        statement
    }};
}

impl RunOptions {
    /// Takes what stands in front of the input.
    pub(crate) fn take(self, input: &mut BytesMut) -> Options {
        let mut timestamp = None;
        if self.flags & TIMESTAMP != 0
            && let Some(micros) = input.first_chunk()
        {
            timestamp = Some(i64::from_le_bytes(*micros));
            drop(input.split_to(size_of::<i64>()));
        }
        let state: Bytes = input.split_to(self.paging_len.min(input.len())).freeze();
        Options {
            given: self,
            timestamp,
            paging_state: (!state.is_empty()).then(|| PagingState::from_bytes(state)),
        }
    }

    fn timeout(self) -> Option<Duration> {
        (self.timeout > 0).then(|| Duration::from_millis(u64::from(self.timeout)))
    }

    fn page_size(self) -> Option<i32> {
        match self.page_size {
            0 => None,
            NONE => Some(0),
            rows => Some(i32::try_from(rows).unwrap_or(i32::MAX)),
        }
    }

    fn consistency(self) -> Option<Consistency> {
        let [_, level, ..] = self.flags.to_le_bytes();
        Consistency::from_code(u16::from(level.checked_sub(1)?))
    }

    const fn serial_consistency(self) -> Option<SerialConsistency> {
        match (self.flags >> 16) & 3 {
            1 => Some(SerialConsistency::Serial),
            2 => Some(SerialConsistency::LocalSerial),
            _ => None,
        }
    }

    pub(crate) const fn is_idempotent(self) -> bool {
        self.flags & IDEMPOTENT != 0
    }
}

#[cfg(any(test, not(feature = "full")))]
impl Options {
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.given.timeout()
    }

    pub(crate) fn page_size(&self) -> Option<i32> {
        self.given.page_size()
    }

    pub(crate) fn consistency(&self) -> Option<Consistency> {
        self.given.consistency()
    }

    pub(crate) const fn serial_consistency(&self) -> Option<SerialConsistency> {
        self.given.serial_consistency()
    }

    pub(crate) const fn is_idempotent(&self) -> bool {
        self.given.is_idempotent()
    }

    pub(crate) const fn is_traced(&self) -> bool {
        self.given.flags & TRACED != 0
    }

    pub(crate) const fn timestamp(&self) -> Option<i64> {
        self.timestamp
    }

    pub(crate) fn paging_state(&self) -> Option<&[u8]> {
        self.paging_state
            .as_ref()
            .map(|state| &state.as_bytes()[..])
    }
}

#[cfg(feature = "full")]
impl Options {
    pub(crate) fn apply_to_statement(self, statement: Statement<'static>) -> Statement<'static> {
        let mut statement = apply!(&self, statement);
        if let Some(rows) = self.given.page_size() {
            statement = statement.with_page_size(rows);
        }
        statement.with_paging_state(self.paging_state)
    }

    pub(crate) fn apply_to_prepared(self, prepared: Prepared) -> Prepared {
        let mut prepared = apply!(&self, prepared);
        if let Some(rows) = self.given.page_size() {
            prepared = prepared.with_page_size(rows);
        }
        prepared.with_paging_state(self.paging_state)
    }

    pub(crate) fn apply_to_batch(self, batch: Batch) -> Batch {
        apply!(&self, batch)
    }
}

const IDEMPOTENT: u32 = 1;
const TIMESTAMP: u32 = 2;
const TRACED: u32 = 4;

#[cfg(all(test, feature = "full"))]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn taken(flags: u32, page_size: u32, paging_len: usize, input: &[u8]) -> (Options, Vec<u8>) {
        let mut input = BytesMut::from(input);
        let options = RunOptions {
            timeout: 250,
            page_size,
            flags,
            paging_len,
        };
        let options = options.take(&mut input);
        (options, input.to_vec())
    }

    #[test]
    fn what_is_given_is_set_and_nothing_else() {
        let micros = [0, 0, 0, 0, 0, 0, 0, 0x80];
        let input = [&micros[..], b"state", b"SELECT"].concat();
        let flags = IDEMPOTENT | TIMESTAMP | TRACED | (7 << 8) | (2 << 16);
        let (options, rest) = taken(flags, 10, 5, &input);
        assert_eq!(rest, b"SELECT");
        let statement = options.apply_to_statement(Statement::new("SELECT"));
        let set = statement.options();
        assert_eq!(set.consistency, Some(Consistency::LocalQuorum));
        assert_eq!(set.serial_consistency, Some(SerialConsistency::LocalSerial));
        assert_eq!(set.timeout, Some(Duration::from_millis(250)));
        assert_eq!((set.timestamp, set.page_size), (Some(i64::MIN), Some(10)));
        assert!(set.is_idempotent && set.is_traced);
        let state = set.paging_state.as_ref().map(|state| &state.as_bytes()[..]);
        assert_eq!(state, Some(&b"state"[..]));

        let (options, rest) = taken(0, 0, 0, b"SELECT");
        let statement = options.apply_to_statement(Statement::new("SELECT"));
        let mut expected = Statement::new("SELECT").options().clone();
        expected.timeout = Some(Duration::from_millis(250));
        assert_eq!(
            (statement.options(), &rest[..]),
            (&expected, &b"SELECT"[..])
        );
    }

    #[test]
    fn every_level_has_its_number_and_nonsense_is_none() {
        for level in Consistency::ALL {
            let flags = (u32::from(level.code()) + 1) << 8;
            let options = RunOptions {
                flags,
                ..RunOptions::default()
            };
            assert_eq!(options.consistency(), Some(level));
        }
        let options = RunOptions {
            flags: u32::MAX,
            page_size: NONE,
            ..RunOptions::default()
        };
        assert_eq!(options.consistency(), None);
        assert_eq!(options.serial_consistency(), None);
        assert_eq!(options.page_size(), Some(0));
    }

    #[test]
    fn a_short_input_takes_what_there_is() {
        let (options, rest) = taken(TIMESTAMP, 0, 9, b"1234567");
        assert_eq!((options.timestamp, rest.len()), (None, 0));
        assert!(options.paging_state.is_some());
    }
}
