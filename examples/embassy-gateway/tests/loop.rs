//! The loop against a cluster that says what a test wants: what is given up, what waits, how fast.

use core::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use embassy_futures::block_on;
use embassy_futures::yield_now;
use embassy_gateway::host::{Chip, Flash};
use embassy_gateway::{
    BatchLimits, DropPolicy, Entry, FlashStore, Gateway, GatewayOptions, Inbox, Sink, SinkError,
    StoreLimits, Time, TokenBucket,
};
use messina_core::time::{Instant, UnixMicros};
use sequential_storage::cache::{Cache, Uncached};

type Uncaching = Cache<Uncached, Uncached, Uncached>;

/// A clock that jumps to whatever is waited for.
#[derive(Clone, Default)]
struct Jumping {
    now: Rc<Cell<u64>>,
    wall_clock: Rc<Cell<Option<i64>>>,
}

impl Time for Jumping {
    fn now(&self) -> Instant {
        Instant::from_micros(self.now.get())
    }

    fn wall_clock(&self) -> Option<UnixMicros> {
        self.wall_clock.get().map(UnixMicros)
    }

    async fn sleep_until(&mut self, at: Instant) {
        assert!(at < Instant::FAR_FUTURE, "waits for ever");
        self.now.set(self.now.get().max(at.as_micros()));
    }
}

/// Answers as told, then with yes.
#[derive(Default)]
struct Script {
    answers: VecDeque<SinkError>,
    /// Sensors whose readings are refused.
    refused: Vec<u8>,
    wall_clocks: VecDeque<Result<i64, SinkError>>,
    written: Vec<u8>,
    sent: Vec<usize>,
    /// Called while an answer is awaited.
    meanwhile: Option<Box<dyn FnOnce()>>,
}

impl Script {
    async fn meanwhile(&mut self) {
        if let Some(meanwhile) = self.meanwhile.take() {
            meanwhile();
            yield_now().await;
            yield_now().await;
        }
    }
}

impl Sink for Script {
    async fn write(&mut self, entries: &[Entry]) -> Result<(), SinkError> {
        self.sent.push(entries.len());
        self.meanwhile().await;
        if let Some(error) = self.answers.pop_front() {
            return Err(error);
        }
        let first = |entry: &Entry| entry.payload[0];
        if entries
            .iter()
            .any(|entry| self.refused.contains(&first(entry)))
        {
            return Err(SinkError::REFUSED);
        }
        self.written.extend(entries.iter().map(first));
        Ok(())
    }

    async fn wall_clock(&mut self) -> Result<UnixMicros, SinkError> {
        self.meanwhile().await;
        let told = self.wall_clocks.pop_front();
        told.unwrap_or(Err(SinkError::TRANSIENT)).map(UnixMicros)
    }
}

struct Rig {
    chip: Chip,
    inbox: &'static Inbox<64>,
    time: Jumping,
    gateway: Gateway<'static, Flash, Uncaching, Jumping, 64>,
}

impl Rig {
    /// The clock is known.
    fn new(rate: TokenBucket) -> Self {
        let rig = Self::without_clock(rate);
        rig.time.wall_clock.set(Some(YEAR_2026));
        rig
    }

    fn without_clock(rate: TokenBucket) -> Self {
        let (chip, time) = (Chip::new(16), Jumping::default());
        let inbox = Box::leak(Box::new(Inbox::new(DropPolicy::Oldest)));
        let flash = chip.power_on(None);
        let cache = Cache::new_uncached();
        let open = FlashStore::open(flash, chip.range(), cache, StoreLimits::default());
        let mut options = GatewayOptions::new(7);
        options.batch = BatchLimits::new(4, 1000);
        options.rate = rate;
        let gateway = Gateway::new(&*inbox, block_on(open).unwrap(), time.clone(), options);
        Self {
            chip,
            inbox,
            time,
            gateway,
        }
    }

    fn take(&self, sensors: core::ops::Range<u8>) {
        for sensor in sensors {
            self.inbox.try_enqueue(self.time.now(), &[sensor]).unwrap();
        }
    }

    fn drain(&mut self, script: &mut Script) {
        block_on(self.gateway.drain(script)).unwrap();
    }
}

const YEAR_2026: i64 = 1_767_225_600_000_000;

fn fast() -> TokenBucket {
    TokenBucket::new(1_000_000, 1000)
}

#[test]
fn batches_leave_in_order_and_again_after_an_error() {
    let mut rig = Rig::new(fast());
    rig.take(0..10);
    let mut script = Script {
        answers: [SinkError::TRANSIENT, SinkError::TRANSIENT.uncertain()].into(),
        ..Script::default()
    };
    rig.drain(&mut script);
    assert_eq!(script.written, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(script.sent, [4, 4, 4, 4, 2]);
    let counters = rig.gateway.counters();
    assert_eq!((counters.written, counters.batches), (10, 3));
    assert_eq!((counters.failed, counters.uncertain), (2, 1));
    let waited = rig.time.now.get();
    assert!(
        (1_500_000..=3_000_000).contains(&waited),
        "1 s, then 2 s, at least half: {waited}"
    );
}

#[test]
fn pauses_double_up_to_their_limit() {
    let mut rig = Rig::new(fast());
    rig.take(0..1);
    let mut script = Script {
        answers: [SinkError::TRANSIENT; 20].into(),
        ..Script::default()
    };
    rig.drain(&mut script);
    let seconds = rig.time.now.get() / 1_000_000;
    // 1, 2, 4, 8, 16, 32 and fourteen times 60.
    assert!((451..=903).contains(&seconds), "{seconds}");
}

#[test]
fn a_reading_that_alone_is_refused_is_given_up() {
    let mut rig = Rig::new(fast());
    rig.take(0..6);
    let mut script = Script {
        refused: vec![2],
        ..Script::default()
    };
    rig.drain(&mut script);
    assert_eq!(script.written, [0, 1, 3, 4, 5]);
    let counters = rig.gateway.counters();
    assert_eq!((counters.written, counters.rejected), (5, 1));
}

#[test]
fn readings_that_are_all_refused_wait_for_somebody_to_mend_the_table() {
    let mut rig = Rig::new(fast());
    rig.take(0..3);
    let mut script = Script {
        answers: [SinkError::REFUSED; 9].into(),
        ..Script::default()
    };
    rig.drain(&mut script);
    assert_eq!(script.written, [0, 1, 2]);
    let counters = rig.gateway.counters();
    // Three rounds: together, then each by itself, two of nine answers being left for the last.
    assert_eq!((counters.rejected, counters.written), (0, 3));
    assert!(counters.failed >= 2);
}

#[test]
fn a_session_that_is_over_ends_the_loop_and_loses_nothing() {
    let mut rig = Rig::new(fast());
    rig.take(0..3);
    let mut script = Script {
        answers: [SinkError::OVER].into(),
        ..Script::default()
    };
    block_on(rig.gateway.run(&mut script)).unwrap();
    assert_eq!(script.sent, [3]);
    let mut another = Script::default();
    rig.drain(&mut another);
    assert_eq!(another.written, [0, 1, 2]);
}

#[test]
fn what_is_measured_while_an_answer_is_awaited_is_safe_at_once() {
    let mut rig = Rig::new(fast());
    rig.take(0..2);
    let (inbox, time) = (rig.inbox, rig.time.clone());
    let mut script = Script {
        meanwhile: Some(Box::new(move || {
            inbox.try_enqueue(time.now(), &[9]).unwrap();
        })),
        answers: [SinkError::OVER].into(),
        ..Script::default()
    };
    block_on(rig.gateway.run(&mut script)).unwrap();
    assert!(rig.inbox.is_empty());
    assert_eq!(rig.gateway.store().len(), 3);
}

#[test]
fn the_cluster_is_asked_for_the_time_until_it_tells() {
    let mut rig = Rig::without_clock(fast());
    rig.time.now.set(5_000_000);
    rig.take(0..2);
    let mut script = Script {
        wall_clocks: [
            Err(SinkError::TRANSIENT),
            Err(SinkError::TRANSIENT),
            Ok(YEAR_2026),
        ]
        .into(),
        ..Script::default()
    };
    rig.drain(&mut script);
    assert_eq!(script.written, [0, 1]);
    assert!(script.wall_clocks.is_empty());
    let wall = rig.inbox.wall_clock(rig.time.now()).unwrap();
    assert!((YEAR_2026..YEAR_2026 + 1_000_000).contains(&wall.0));
}

#[test]
fn the_rate_is_kept() {
    let mut rig = Rig::new(TokenBucket::new(8, 4));
    rig.time.now.set(10_000_000);
    rig.take(0..20);
    let mut script = Script::default();
    rig.drain(&mut script);
    assert_eq!(script.sent, [4; 5]);
    // Four at once, sixteen at eight a second.
    assert_eq!(rig.time.now.get() - 10_000_000, 2_000_000);
}

#[test]
fn what_is_measured_while_the_time_is_asked_for_is_safe_at_once() {
    let mut rig = Rig::without_clock(fast());
    rig.take(0..2);
    let (inbox, time) = (rig.inbox, rig.time.clone());
    let mut script = Script {
        meanwhile: Some(Box::new(move || {
            inbox.try_enqueue(time.now(), &[9]).unwrap();
        })),
        wall_clocks: [Err(SinkError::OVER)].into(),
        ..Script::default()
    };
    block_on(rig.gateway.run(&mut script)).unwrap();
    assert!(rig.inbox.is_empty());
    assert_eq!(rig.gateway.store().len(), 3);
}

#[test]
fn a_reading_stays_in_the_inbox_while_the_flash_fails() {
    let mut rig = Rig::new(fast());
    rig.take(0..2);
    rig.chip.set_failing(true);
    let mut script = Script::default();
    block_on(rig.gateway.run(&mut script)).unwrap_err();
    assert_eq!(rig.inbox.len(), 2);
    rig.chip.set_failing(false);
    rig.drain(&mut script);
    assert_eq!(script.written, [0, 1]);
}
