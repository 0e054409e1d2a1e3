//! The loop: from the inbox to flash, from flash to the cluster.

use alloc::vec::Vec;
use core::ops::ControlFlow;
use core::pin::pin;
use core::time::Duration;

use embassy_futures::select::{Either, select};
use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use messina_core::time::{Instant, UnixMicros};
use sequential_storage::cache::CacheImpl;

use crate::batch::{BatchLimits, Entry};
use crate::bucket::TokenBucket;
use crate::flash::{FlashCounters, FlashStore, StoreError};
use crate::inbox::Inbox;
use crate::sink::{Sink, SinkError};
use crate::time::Time;

/// How a gateway writes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GatewayOptions {
    /// The largest batch.
    pub batch: BatchLimits,
    /// How fast the store is drained.
    pub rate: TokenBucket,
    /// The first pause after a failure; each further one doubles it.
    pub retry_min: Duration,
    /// The longest pause.
    pub retry_max: Duration,
    /// Spreads the pauses of many gateways. Different on each.
    pub seed: u32,
}

impl GatewayOptions {
    /// Batches of 16 readings, 100 readings a second, pauses of one second to one minute.
    pub fn new(seed: u32) -> Self {
        Self {
            batch: BatchLimits::new(16, 1024),
            rate: TokenBucket::new(100, 32),
            retry_min: Duration::from_secs(1),
            retry_max: Duration::from_secs(60),
            seed,
        }
    }
}

/// What a gateway has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayCounters {
    /// Readings that the cluster has answered for.
    pub written: u32,
    /// Batches that it has answered for.
    pub batches: u32,
    /// Batches that failed and are sent again.
    pub failed: u32,
    /// Of those, the ones that may have been written all the same.
    pub uncertain: u32,
    /// Readings that the cluster refused while it took others: given up.
    pub rejected: u32,
}

/// A gateway: an inbox, a store, and the time.
#[derive(Debug)]
pub struct Gateway<'a, F: MultiwriteNorFlash, C: CacheImpl<()>, T, const N: usize> {
    inbox: &'a Inbox<N>,
    store: FlashStore<F, C>,
    time: T,
    options: GatewayOptions,
    batch: Vec<Entry>,
    counters: GatewayCounters,
    retry: Option<(Instant, Duration)>,
}

impl<'a, F, C, T, const N: usize> Gateway<'a, F, C, T, N>
where
    F: MultiwriteNorFlash,
    C: CacheImpl<()>,
    T: Time,
{
    /// A gateway that has done nothing yet.
    pub fn new(
        inbox: &'a Inbox<N>,
        store: FlashStore<F, C>,
        time: T,
        options: GatewayOptions,
    ) -> Self {
        inbox.begin_after(store.newest());
        Self {
            inbox,
            store,
            time,
            batch: Vec::with_capacity(options.batch.count),
            options,
            counters: GatewayCounters::default(),
            retry: None,
        }
    }

    /// Works until the session behind the sink is over; then another sink is to be given.
    ///
    /// Fails when the flash does. Readings stay where they are; what was being written may be
    /// written again.
    pub async fn run(&mut self, sink: &mut impl Sink) -> Result<(), StoreError<F::Error>> {
        while self.round(sink).await?.is_continue() {}
        Ok(())
    }

    /// Like [`run`](Self::run), but is also done when nothing is left to be written.
    pub async fn drain(&mut self, sink: &mut impl Sink) -> Result<(), StoreError<F::Error>> {
        while !self.is_empty() && self.round(sink).await?.is_continue() {}
        Ok(())
    }

    /// Moves what is in the inbox to flash, and writes nothing: for the time without a link.
    pub async fn keep(&mut self) -> Result<(), StoreError<F::Error>> {
        self.learn_time().await?;
        keep(self.inbox, &mut self.store).await
    }

    /// Whether all readings are written, or given up.
    pub fn is_empty(&self) -> bool {
        self.inbox.is_empty() && self.store.is_empty()
    }

    /// What was written so far.
    pub const fn counters(&self) -> GatewayCounters {
        self.counters
    }

    /// What the store has done so far.
    pub const fn store_counters(&self) -> FlashCounters {
        self.store.counters()
    }

    /// The store.
    pub const fn store(&self) -> &FlashStore<F, C> {
        &self.store
    }

    /// Ends it; the store's content stays in flash.
    pub fn into_store(self) -> FlashStore<F, C> {
        self.store
    }

    /// One thing at a time: at most one batch is sent, or one pause made.
    async fn round(
        &mut self,
        sink: &mut impl Sink,
    ) -> Result<ControlFlow<()>, StoreError<F::Error>> {
        self.keep().await?;
        let now = self.time.now();
        if let Some((at, _)) = self.retry
            && now < at
        {
            self.rest(at).await;
            return Ok(ControlFlow::Continue(()));
        }
        let wanted = usize::try_from(self.store.len()).unwrap_or(usize::MAX);
        let wanted = wanted.min(self.options.batch.count);
        let tokens = self.options.rate.available(now);
        let count = wanted.min(usize::try_from(tokens).unwrap_or(usize::MAX));
        if wanted == 0 {
            self.rest(Instant::FAR_FUTURE).await;
            return Ok(ControlFlow::Continue(()));
        }
        if count < wanted {
            let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
            let at = self.options.rate.next_at(wanted);
            if now < at {
                self.rest(at).await;
                return Ok(ControlFlow::Continue(()));
            }
        }
        let limits = BatchLimits {
            count,
            ..self.options.batch
        };
        let wall = self.inbox.wall_clock(now);
        self.store.fill(&mut self.batch, limits, wall).await?;
        if self.batch.is_empty() {
            return match self.store.is_empty() {
                true => Ok(ControlFlow::Continue(())),
                false => self.ask_time(sink).await,
            };
        }
        self.send(sink).await
    }

    async fn send(
        &mut self,
        sink: &mut impl Sink,
    ) -> Result<ControlFlow<()>, StoreError<F::Error>> {
        let count = u32::try_from(self.batch.len()).unwrap_or(u32::MAX);
        self.options.rate.take(self.time.now(), count);
        let write = sink.write(&self.batch);
        let outcome = keeping(self.inbox, &mut self.store, write).await?;
        match outcome {
            Ok(()) => self.written(self.batch.len()).await?,
            Err(error) if error.is_refused => return self.send_singly(sink).await,
            Err(error) => return Ok(self.failed(error)),
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Finds the readings of a refused batch that the cluster does not want. They are given up only
    /// if it takes others: if it wants none, the table is wrong, and somebody may put it right.
    async fn send_singly(
        &mut self,
        sink: &mut impl Sink,
    ) -> Result<ControlFlow<()>, StoreError<F::Error>> {
        let (mut taken, mut refused, mut last) = (0, 0, SinkError::REFUSED);
        for entry in &self.batch {
            let write = sink.write(core::slice::from_ref(entry));
            match keeping(self.inbox, &mut self.store, write).await? {
                Ok(()) => taken += 1,
                Err(error) if error.is_refused => refused += 1,
                Err(error) => {
                    last = error;
                    break;
                }
            }
        }
        if taken == 0 {
            return Ok(self.failed(last));
        }
        self.counters.rejected = self.counters.rejected.wrapping_add(refused);
        let through = usize::try_from(refused).map_or(taken, |refused| taken + refused);
        self.written(through).await?;
        self.counters.written = self.counters.written.wrapping_sub(refused);
        Ok(ControlFlow::Continue(()))
    }

    /// The cluster has answered for so many of the batch.
    async fn written(&mut self, count: usize) -> Result<(), StoreError<F::Error>> {
        let Some(last) = count.checked_sub(1).and_then(|last| self.batch.get(last)) else {
            return Ok(());
        };
        self.store.remove_through(last.sequence).await?;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.counters.written = self.counters.written.wrapping_add(count);
        self.counters.batches = self.counters.batches.wrapping_add(1);
        self.retry = None;
        Ok(())
    }

    fn failed(&mut self, error: SinkError) -> ControlFlow<()> {
        let counters = &mut self.counters;
        counters.failed = counters.failed.wrapping_add(1);
        if error.may_have_been_applied {
            counters.uncertain = counters.uncertain.wrapping_add(1);
        }
        self.pause();
        match error.is_over {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// The pause before the next attempt: between half of it and the whole, by chance.
    fn pause(&mut self) {
        let options = &mut self.options;
        let pause = self.retry.map_or(options.retry_min, |(_, pause)| {
            pause.saturating_mul(2).min(options.retry_max)
        });
        options.seed = next_random(options.seed);
        let micros = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        let micros = micros / 2 + u64::from(options.seed) % (micros / 2 + 1);
        let at = self
            .time
            .now()
            .saturating_add(Duration::from_micros(micros));
        self.retry = Some((at, pause));
    }

    /// Asks the cluster what time it is. The answer is as exact as the round trip is short.
    async fn ask_time(
        &mut self,
        sink: &mut impl Sink,
    ) -> Result<ControlFlow<()>, StoreError<F::Error>> {
        let asked = self.time.now();
        let answer = keeping(self.inbox, &mut self.store, sink.wall_clock()).await?;
        let now = self.time.now();
        let trip = now.saturating_since(asked);
        match answer {
            Ok(wall) if trip <= TRIP_MAX => {
                let half = i64::try_from(trip.as_micros() / 2).unwrap_or(0);
                let wall = UnixMicros(wall.0.saturating_add(half));
                self.inbox.set_wall_clock(now, wall);
                self.retry = None;
            }
            Err(error) if error.is_over => return Ok(ControlFlow::Break(())),
            _ => self.pause(),
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Hears the platform's clock, and has the flash remember how readings are dated.
    async fn learn_time(&mut self) -> Result<(), StoreError<F::Error>> {
        if let Some(wall) = self.time.wall_clock() {
            self.inbox.set_wall_clock(self.time.now(), wall);
        }
        match self.inbox.dating() {
            Some(dating) => self.store.set_dating(dating).await,
            None => Ok(()),
        }
    }

    /// Waits for a reading or for that time.
    async fn rest(&mut self, until: Instant) {
        select(self.inbox.wait(), self.time.sleep_until(until)).await;
    }
}

/// Moves what is in an inbox to a store, each reading before it leaves the inbox.
async fn keep<F: MultiwriteNorFlash, C: CacheImpl<()>, const N: usize>(
    inbox: &Inbox<N>,
    store: &mut FlashStore<F, C>,
) -> Result<(), StoreError<F::Error>> {
    while let Some(waiting) = inbox.oldest() {
        store.push(waiting.stamp, &waiting.payload).await?;
        inbox.remove_through(waiting.sequence);
    }
    Ok(())
}

/// Waits for the cluster. It may be long in answering: what is measured meanwhile is made safe.
async fn keeping<F, C, R, const N: usize>(
    inbox: &Inbox<N>,
    store: &mut FlashStore<F, C>,
    answer: impl Future<Output = R>,
) -> Result<R, StoreError<F::Error>>
where
    F: MultiwriteNorFlash,
    C: CacheImpl<()>,
{
    let mut answer = pin!(answer);
    loop {
        match select(answer.as_mut(), inbox.wait()).await {
            Either::First(answer) => return Ok(answer),
            Either::Second(()) => keep(inbox, store).await?,
        }
    }
}

/// Marsaglia's xorshift with 32 bits.
const fn next_random(seed: u32) -> u32 {
    let mut word = if seed == 0 { 0x9e37_79b9 } else { seed };
    word ^= word << 13;
    word ^= word >> 17;
    word ^= word << 5;
    word
}

/// A clock that took longer to ask than this is asked again.
const TRIP_MAX: Duration = Duration::from_secs(1);
