//! Opening a store: what an earlier boot has left.

use core::fmt;
use core::ops::Range;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use sequential_storage::cache::CacheImpl;
use sequential_storage::queue::{QueueConfig, QueueStorage};

use super::{FlashCounters, FlashStore, StoreError, StoreLimits, footprint};
use crate::clock::Stamp;
use crate::record::{Boot, Content, RECORD_MAX, Record, RecordBuffer};

/// Why a store cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError<E> {
    /// The range is not made of at least three whole pages that are large enough for a record.
    Range,
    /// The flash.
    Store(StoreError<E>),
}

impl<E: fmt::Debug> fmt::Display for OpenError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range => f.write_str("the range must be three or more whole pages"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug> core::error::Error for OpenError<E> {}

impl<F: MultiwriteNorFlash, C: CacheImpl<()>> FlashStore<F, C> {
    /// Opens what is in this range of the flash; an erased range is an empty store. Reads all
    /// records once. `cache` must be new.
    pub async fn open(
        flash: F,
        range: Range<u32>,
        cache: C,
        limits: StoreLimits,
    ) -> Result<Self, OpenError<F::Error>> {
        let bytes_max = bytes_max::<F>(&range).ok_or(OpenError::Range)?;
        let config = QueueConfig::try_new(range).map_err(|_| OpenError::Range)?;
        let mut store = Self {
            queue: QueueStorage::new(flash, config, cache),
            limits: StoreLimits {
                bytes_max: limits.bytes_max.min(bytes_max),
                ..limits
            },
            counters: FlashCounters::default(),
            len: 0,
            undated: 0,
            bytes: 0,
            sequence_next: 0,
            boot: 0,
            dating: None,
            earlier: None,
            newest: i64::MIN,
            buffer: RecordBuffer([0; RECORD_MAX]),
        };
        store.look().await.map_err(OpenError::Store)?;
        Ok(store)
    }

    /// Makes an empty store of a range that holds anything.
    pub async fn format(mut flash: F, range: Range<u32>) -> Result<F, F::Error> {
        flash.erase(range.start, range.end).await?;
        Ok(flash)
    }

    /// Gives the flash back.
    pub fn close(self) -> F {
        self.queue.destroy().0
    }

    async fn look(&mut self) -> Result<(), StoreError<F::Error>> {
        let mut last: Option<Boot> = None;
        let mut records = self.queue.iter().await?;
        while let Some(stored) = records.next(&mut self.buffer.0).await? {
            self.bytes = self.bytes.saturating_add(footprint::<F>(stored.len()));
            // Removed when it is the oldest.
            let Some(record) = Record::parse(&stored) else {
                continue;
            };
            self.sequence_next = record.sequence.wrapping_add(1);
            last = match last {
                Some(last) if is_later(last, record.boot) => Some(last),
                _ => Some(record.boot),
            };
            match record.content {
                Content::Reading { stamp, .. } => {
                    self.len += 1;
                    if let Stamp::Wall { micros, .. } = stamp {
                        self.newest = self.newest.max(micros);
                    }
                }
                Content::Dating(dating) => self.newest = self.newest.max(dating.start),
            }
        }
        self.boot = last.map_or(0, |last| last.wrapping_add(1));
        Ok(())
    }
}

/// The bytes of records that find room, however they fall into pages, with a page to spare: for the
/// page that is filled in part at either end, and for the datings, which must find room at any time.
fn bytes_max<F: MultiwriteNorFlash>(range: &Range<u32>) -> Option<u32> {
    let page = u32::try_from(F::ERASE_SIZE).ok()?;
    let pages = range.end.checked_sub(range.start)?.checked_div(page)?;
    let marks = u32::try_from(2 * F::WRITE_SIZE).ok()?;
    // A record that does not fit behind the others leaves less than its length unused.
    let usable = page
        .checked_sub(marks)?
        .checked_sub(footprint::<F>(RECORD_MAX))?;
    let bytes = pages.checked_sub(2)?.checked_mul(usable)?;
    (bytes >= footprint::<F>(RECORD_MAX)).then_some(bytes)
}

/// Boots wrap; no store holds half of them.
const fn is_later(boot: Boot, than: Boot) -> bool {
    let ahead = boot.wrapping_sub(than);
    ahead != 0 && ahead < 1 << 15
}
