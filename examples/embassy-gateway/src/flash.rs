//! The store in flash: a queue of records that outlives the power.
//!
//! On top of `sequential_storage`'s queue, which survives a power cut at any step, this keeps bounds
//! with a policy for what goes first, an age limit, and the dating of readings that were taken before
//! the clock was known. Removal is by sequence number, so what was dropped or taken meanwhile never
//! makes a removal hit another reading.
//!
//! None of the futures should be dropped half-way: like a power cut that leaves a consistent queue,
//! but the counters here would be wrong.

mod dating;
mod open;

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use messina_core::time::UnixMicros;
use sequential_storage::Error as QueueError;
use sequential_storage::cache::CacheImpl;
use sequential_storage::queue::QueueStorage;

use crate::batch::{BatchLimits, Entry};
use crate::clock::{Dating, Stamp};
use crate::inbox::DropPolicy;
use crate::record::{
    Boot, Content, HEAD_LEN, Payload, RECORD_MAX, Record, RecordBuffer, is_through,
};

pub use open::OpenError;

/// Bounds of a store.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StoreLimits {
    /// Bytes of flash that records may take, with their heads. As many as fit, if that is less.
    pub bytes_max: u32,
    /// Readings older than this are not worth writing any more.
    pub age_max: Option<Duration>,
    /// Who goes when there is no room.
    pub policy: DropPolicy,
}

impl Default for StoreLimits {
    /// As much as fits, of any age; the oldest go first.
    fn default() -> Self {
        Self {
            bytes_max: u32::MAX,
            age_max: None,
            policy: DropPolicy::Oldest,
        }
    }
}

impl StoreLimits {
    /// Sets the bytes.
    #[must_use]
    pub const fn with_bytes_max(mut self, bytes: u32) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// Sets the age.
    #[must_use]
    pub const fn with_age_max(mut self, age: Duration) -> Self {
        self.age_max = Some(age);
        self
    }

    /// Sets who goes.
    #[must_use]
    pub const fn with_policy(mut self, policy: DropPolicy) -> Self {
        self.policy = policy;
        self
    }
}

/// What happened to readings since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlashCounters {
    /// Put into flash.
    pub stored: u32,
    /// Made room for newer ones.
    pub dropped: u32,
    /// Not taken for want of room.
    pub refused: u32,
    /// Given up as too old.
    pub expired: u32,
    /// Records that could not be read, whoever wrote them.
    pub unreadable: u32,
}

/// Why a store does not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError<E> {
    /// The flash itself.
    Flash(E),
    /// The flash holds something else, or is worn out. [`FlashStore::format`] helps once.
    Corrupted,
}

impl<E: fmt::Debug> fmt::Display for StoreError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flash(error) => write!(f, "the flash failed: {error:?}"),
            Self::Corrupted => f.write_str("the flash does not hold a store"),
        }
    }
}

impl<E: fmt::Debug> core::error::Error for StoreError<E> {}

impl<E> From<QueueError<E>> for StoreError<E> {
    fn from(error: QueueError<E>) -> Self {
        match error {
            QueueError::Storage { value, .. } => Self::Flash(value),
            _ => Self::Corrupted,
        }
    }
}

/// A bounded queue of readings in flash.
pub struct FlashStore<F: MultiwriteNorFlash, C: CacheImpl<()>> {
    queue: QueueStorage<F, C>,
    limits: StoreLimits,
    counters: FlashCounters,
    /// Readings in flash, those of this boot without a date, and the bytes of all records.
    len: u32,
    undated: u32,
    bytes: u32,
    sequence_next: u32,
    boot: Boot,
    /// Dates this boot's readings; in flash, if any needs it.
    dating: Option<Dating>,
    /// Dates those of an earlier boot; in flash.
    earlier: Option<(Boot, Dating)>,
    newest: i64,
    buffer: RecordBuffer,
}

impl<F: MultiwriteNorFlash, C: CacheImpl<()>> fmt::Debug for FlashStore<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlashStore")
            .field("len", &self.len)
            .field("bytes", &self.bytes)
            .field("boot", &self.boot)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl<F: MultiwriteNorFlash, C: CacheImpl<()>> FlashStore<F, C> {
    /// Puts a reading behind all others. Once this is `Ok(true)` it outlives the power. `Ok(false)`
    /// if there is no room for it, which happens with [`DropPolicy::Newest`] only.
    pub async fn push(
        &mut self,
        stamp: Stamp,
        payload: &Payload,
    ) -> Result<bool, StoreError<F::Error>> {
        let stamp = match (stamp, self.dating) {
            (Stamp::Uptime { micros }, Some(dating)) => {
                let (micros, certainty) = dating.date(micros);
                Stamp::Wall { micros, certainty }
            }
            (stamp, _) => stamp,
        };
        let len = footprint::<F>(HEAD_LEN + payload.len());
        while self.bytes.saturating_add(len) > self.limits.bytes_max {
            if self.limits.policy == DropPolicy::Newest || !self.drop_oldest().await? {
                self.counters.refused = self.counters.refused.wrapping_add(1);
                return Ok(false);
            }
        }
        let payload = payload.clone();
        let is_room = self.limits.policy == DropPolicy::Oldest;
        let content = Content::Reading { stamp, payload };
        if !self.append(self.boot, content, is_room).await? {
            self.counters.refused = self.counters.refused.wrapping_add(1);
            return Ok(false);
        }
        self.len += 1;
        match stamp {
            Stamp::Uptime { .. } => self.undated += 1,
            Stamp::Wall { micros, .. } => self.newest = self.newest.max(micros),
        }
        self.counters.stored = self.counters.stored.wrapping_add(1);
        Ok(true)
    }

    /// Fills a batch with the oldest readings; they stay in the store. Readings of this boot without
    /// a date, and all behind them, wait for the clock.
    pub async fn fill(
        &mut self,
        batch: &mut Vec<Entry>,
        limits: BatchLimits,
        now: Option<UnixMicros>,
    ) -> Result<(), StoreError<F::Error>> {
        self.expire(now).await?;
        loop {
            batch.clear();
            let Some(boot) = self.collect(batch, limits).await? else {
                return Ok(());
            };
            if !self.find_dating(boot).await? {
                return Ok(());
            }
        }
    }

    /// Removes the readings up to and with this one.
    pub async fn remove_through(&mut self, sequence: u32) -> Result<u32, StoreError<F::Error>> {
        self.remove_while(|record, _| is_through(record.sequence, sequence))
            .await
    }

    /// Readings in flash.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that its records take.
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// What happened since it was opened.
    pub const fn counters(&self) -> FlashCounters {
        self.counters
    }

    /// The newest final time that was found in flash, or put there; `i64::MIN` if none was.
    pub const fn newest(&self) -> i64 {
        self.newest
    }

    /// Takes readings until the batch is full. Returns the boot of the first if that has no date.
    async fn collect(
        &mut self,
        batch: &mut Vec<Entry>,
        limits: BatchLimits,
    ) -> Result<Option<Boot>, StoreError<F::Error>> {
        let (mut bytes, dates) = (0, self.dates());
        let mut records = self.queue.iter().await?;
        while batch.len() < limits.count {
            let Some(record) = records.next(&mut self.buffer.0).await? else {
                break;
            };
            let Some(record) = Record::parse(&record) else {
                continue;
            };
            let Content::Reading { stamp, payload } = record.content else {
                continue;
            };
            let Some((micros, certainty)) = dates.date(record.boot, stamp) else {
                return Ok(batch.is_empty().then_some(record.boot));
            };
            bytes += payload.len();
            if bytes > limits.bytes && !batch.is_empty() {
                break;
            }
            batch.push(Entry {
                sequence: record.sequence,
                micros,
                certainty,
                payload,
            });
        }
        Ok(None)
    }

    async fn expire(&mut self, now: Option<UnixMicros>) -> Result<(), StoreError<F::Error>> {
        let (Some(now), Some(age)) = (now, self.limits.age_max) else {
            return Ok(());
        };
        let age = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
        let oldest = now.0.saturating_sub(age);
        let removed = self
            .remove_while(|_, micros| micros.is_some_and(|micros| micros < oldest))
            .await?;
        self.counters.expired = self.counters.expired.wrapping_add(removed);
        Ok(())
    }

    /// Drops one reading. `false` if there is none.
    async fn drop_oldest(&mut self) -> Result<bool, StoreError<F::Error>> {
        let mut left = 1_u32;
        let removed = self
            .remove_while(|_, _| core::mem::take(&mut left) == 1)
            .await?;
        self.counters.dropped = self.counters.dropped.wrapping_add(removed);
        Ok(removed > 0)
    }

    /// Removes readings from the oldest on while `may` allows it, told the record and its final
    /// time, and whatever else stands before the first that stays. Returns how many readings went.
    async fn remove_while(
        &mut self,
        mut may: impl FnMut(&Record, Option<i64>) -> bool,
    ) -> Result<u32, StoreError<F::Error>> {
        let (mut removed, dates) = (0, self.dates());
        let mut records = self.queue.iter().await?;
        while let Some(stored) = records.next(&mut self.buffer.0).await? {
            let record = Record::parse(&stored);
            let mut reading = None;
            if let Some(record) = &record
                && let Content::Reading { stamp, .. } = record.content
            {
                let micros = dates.date(record.boot, stamp).map(|(micros, _)| micros);
                if !may(record, micros) {
                    break;
                }
                reading = Some((record.boot, stamp));
            }
            let len = footprint::<F>(stored.len());
            stored.pop().await?;
            self.bytes = self.bytes.saturating_sub(len);
            if let Some((boot, stamp)) = reading {
                removed += 1;
                self.len = self.len.saturating_sub(1);
                if boot == self.boot && matches!(stamp, Stamp::Uptime { .. }) {
                    self.undated = self.undated.saturating_sub(1);
                }
            } else if record.is_none() {
                self.counters.unreadable = self.counters.unreadable.wrapping_add(1);
            }
        }
        Ok(removed)
    }

    /// Writes a record. Where the flash is full it drops the oldest readings if it may, and returns
    /// `false` if it may not.
    async fn append(
        &mut self,
        boot: Boot,
        content: Content,
        may_drop: bool,
    ) -> Result<bool, StoreError<F::Error>> {
        let record = Record {
            boot,
            sequence: self.sequence_next,
            content,
        };
        let mut buffer = RecordBuffer([0; RECORD_MAX]);
        let len = record.put(&mut buffer);
        loop {
            match self.queue.push(&buffer.0[..len], false).await {
                Ok(()) => break,
                Err(QueueError::FullStorage) => {
                    if !may_drop || !self.drop_oldest().await? {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.sequence_next = self.sequence_next.wrapping_add(1);
        self.bytes = self.bytes.saturating_add(footprint::<F>(len));
        Ok(true)
    }
}

/// Bytes of flash that a record takes.
fn footprint<F: MultiwriteNorFlash>(len: usize) -> u32 {
    let len = ITEM_HEAD.next_multiple_of(F::WRITE_SIZE) + len.next_multiple_of(F::WRITE_SIZE);
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// What the queue puts before each record.
const ITEM_HEAD: usize = 8;
