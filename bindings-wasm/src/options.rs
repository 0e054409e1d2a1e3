//! How a statement is to be run, as the shell says it.

use core::time::Duration;

use bytes::{Bytes, BytesMut};
use messina_core::compact::RequestOptions;
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

impl Options {
    /// As the machine takes them.
    pub(crate) fn as_request(&self) -> RequestOptions<'_> {
        let state = self.paging_state.as_ref();
        RequestOptions {
            consistency: self.given.consistency(),
            serial_consistency: self.given.serial_consistency(),
            page_size: self.given.page_size(),
            paging_state: state.map(|state| &state.as_bytes()[..]),
            timestamp: self.timestamp,
            timeout: self.given.timeout(),
            is_idempotent: self.given.is_idempotent(),
            is_traced: self.given.flags & TRACED != 0,
            is_streamed: false,
        }
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
        let set = options.as_request();
        assert_eq!(set.consistency, Some(Consistency::LocalQuorum));
        assert_eq!(set.serial_consistency, Some(SerialConsistency::LocalSerial));
        assert_eq!(set.timeout, Some(Duration::from_millis(250)));
        assert_eq!((set.timestamp, set.page_size), (Some(i64::MIN), Some(10)));
        assert!(set.is_idempotent && set.is_traced);
        assert_eq!(set.paging_state, Some(&b"state"[..]));

        let (options, rest) = taken(0, 0, 0, b"SELECT");
        let set = options.as_request();
        assert_eq!(set.timeout, Some(Duration::from_millis(250)));
        assert!(set.consistency.is_none() && set.serial_consistency.is_none());
        assert!(set.timestamp.is_none() && set.page_size.is_none());
        assert!(set.paging_state.is_none() && !set.is_idempotent && !set.is_traced);
        assert_eq!(rest, b"SELECT");
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
