//! The store in flash by itself: bounds, ages, readings of boots that did not know the time, and two
//! power cuts one after the other at any two steps.

use core::time::Duration;
use std::collections::BTreeMap;

use embassy_futures::block_on;
use embassy_futures::select::{Either, select};
use embassy_gateway::host::{Chip, Cut, Flash, Tear};
use embassy_gateway::{
    BatchLimits, Certainty, Dating, DropPolicy, Entry, FlashStore, Payload, RamFlash, Stamp,
    StoreLimits,
};
use messina_core::time::UnixMicros;
use sequential_storage::cache::{Cache, Uncached};
use sequential_storage::queue::{QueueConfig, QueueStorage};

type Store = FlashStore<Flash, Cache<Uncached, Uncached, Uncached>>;

const ALL: BatchLimits = BatchLimits::new(1000, 100_000);
const YEAR_2026: i64 = 1_767_225_600_000_000;

async fn open(chip: &Chip, limits: StoreLimits) -> Store {
    let flash = chip.power_on(None);
    let store = FlashStore::open(flash, chip.range(), Cache::new_uncached(), limits).await;
    store.expect("a store")
}

fn payload(number: u32) -> Payload {
    let mut payload = Payload::from_slice(&number.to_le_bytes()).unwrap();
    payload.resize(12, 0).unwrap();
    payload
}

fn number(payload: &Payload) -> u32 {
    u32::from_le_bytes(payload[..4].try_into().unwrap())
}

fn wall(micros: i64) -> Stamp {
    let (micros, certainty) = (YEAR_2026 + micros, Certainty::Read);
    Stamp::Wall { micros, certainty }
}

fn dating(start: i64) -> Dating {
    Dating {
        start: YEAR_2026 + start,
        certainty: Certainty::Dated,
    }
}

async fn push(store: &mut Store, numbers: core::ops::Range<u32>) -> u32 {
    let mut taken = 0;
    for number in numbers {
        let stamp = wall(i64::from(number));
        taken += u32::from(store.push(stamp, &payload(number)).await.unwrap());
    }
    taken
}

async fn batch(store: &mut Store, limits: BatchLimits) -> Vec<Entry> {
    let mut batch = Vec::new();
    store.fill(&mut batch, limits, None).await.unwrap();
    batch
}

fn numbers(batch: &[Entry]) -> Vec<u32> {
    batch.iter().map(|entry| number(&entry.payload)).collect()
}

#[test]
fn readings_leave_in_their_order_and_only_when_they_are_removed() {
    block_on(async {
        let chip = Chip::new(8);
        let mut store = open(&chip, StoreLimits::default()).await;
        assert_eq!(push(&mut store, 0..10).await, 10);
        let first = batch(&mut store, BatchLimits::new(4, 1000)).await;
        assert_eq!(numbers(&first), [0, 1, 2, 3]);
        let by_bytes = batch(&mut store, BatchLimits::new(9, 30)).await;
        assert_eq!(numbers(&by_bytes), [0, 1], "12 bytes each");
        let one = batch(&mut store, BatchLimits::new(9, 1)).await;
        assert_eq!(numbers(&one), [0], "one at least");

        let mut store = open(&chip, StoreLimits::default()).await;
        assert_eq!(store.len(), 10);
        assert_eq!(store.newest(), YEAR_2026 + 9);
        let removed = store.remove_through(first[2].sequence).await.unwrap();
        assert_eq!(removed, 3);
        push(&mut store, 10..12).await;
        let mut store = open(&chip, StoreLimits::default()).await;
        assert_eq!(
            numbers(&batch(&mut store, ALL).await),
            [3, 4, 5, 6, 7, 8, 9, 10, 11]
        );
        assert_eq!(store.remove_through(first[2].sequence).await.unwrap(), 0);
    });
}

#[test]
fn bytes_are_bounded_and_the_policy_says_who_goes() {
    block_on(async {
        // 36 bytes each: a head of 8, one of 16, 12 of payload.
        let limits = StoreLimits::default().with_bytes_max(5 * 36 + 35);
        let chip = Chip::new(8);
        let mut store = open(&chip, limits).await;
        assert_eq!(push(&mut store, 0..8).await, 8);
        assert_eq!(store.bytes(), 5 * 36);
        assert_eq!(numbers(&batch(&mut store, ALL).await), [3, 4, 5, 6, 7]);
        assert_eq!((store.counters().dropped, store.counters().refused), (3, 0));

        let chip = Chip::new(8);
        let mut store = open(&chip, limits.with_policy(DropPolicy::Newest)).await;
        assert_eq!(push(&mut store, 0..8).await, 5);
        assert_eq!(numbers(&batch(&mut store, ALL).await), [0, 1, 2, 3, 4]);
        assert_eq!((store.counters().dropped, store.counters().refused), (0, 3));
    });
}

#[test]
fn a_removal_hits_nothing_else_when_readings_were_dropped_meanwhile() {
    block_on(async {
        let chip = Chip::new(8);
        let mut store = open(&chip, StoreLimits::default().with_bytes_max(5 * 36)).await;
        push(&mut store, 0..5).await;
        let sent = batch(&mut store, BatchLimits::new(2, 1000)).await;
        push(&mut store, 5..9).await; // drops 0 to 3
        assert_eq!(store.remove_through(sent[1].sequence).await.unwrap(), 0);
        assert_eq!(numbers(&batch(&mut store, ALL).await), [4, 5, 6, 7, 8]);
    });
}

#[test]
fn the_whole_flash_is_used_over_and_over() {
    block_on(async {
        for policy in [DropPolicy::Oldest, DropPolicy::Newest] {
            let chip = Chip::new(5);
            let mut store = open(&chip, StoreLimits::default().with_policy(policy)).await;
            let mut next = 0;
            for round in 0..40 {
                push(&mut store, next..next + 30).await;
                next += 30;
                assert!(store.len() >= 12, "{policy:?} {round}: {store:?}");
                let sent = batch(&mut store, BatchLimits::new(7, 1000)).await;
                assert_eq!(sent.len(), 7);
                assert_eq!(store.remove_through(sent[6].sequence).await.unwrap(), 7);
            }
            assert_eq!(chip.stats().spoiled, 0);
        }
    });
}

#[test]
fn old_readings_are_given_up() {
    block_on(async {
        let limits = StoreLimits::default().with_age_max(Duration::from_micros(100));
        let chip = Chip::new(8);
        let mut store = open(&chip, limits).await;
        push(&mut store, 0..5).await;
        let mut batch = Vec::new();
        let at = |micros| Some(UnixMicros(YEAR_2026 + micros));
        store.fill(&mut batch, ALL, at(102)).await.unwrap();
        assert_eq!(numbers(&batch), [2, 3, 4]);
        assert_eq!((store.counters().expired, store.len()), (2, 3));
        store.fill(&mut batch, ALL, None).await.unwrap();
        assert_eq!(batch.len(), 3, "nobody knows how old they are");
    });
}

#[test]
fn readings_without_a_date_wait_for_the_clock_and_keep_theirs_ever_after() {
    block_on(async {
        let chip = Chip::new(8);
        let mut store = open(&chip, StoreLimits::default()).await;
        let uptime = |micros| Stamp::Uptime { micros };
        store.push(uptime(10), &payload(0)).await.unwrap();
        store.push(uptime(20), &payload(1)).await.unwrap();
        assert_eq!(batch(&mut store, ALL).await, []);
        store.set_dating(dating(1000)).await.unwrap();
        store.push(uptime(30), &payload(2)).await.unwrap();
        let sent = batch(&mut store, ALL).await;
        let micros: Vec<_> = sent.iter().map(|entry| entry.micros - YEAR_2026).collect();
        assert_eq!(micros, [1010, 1020, 1030]);

        // The power goes before they are removed; the clock is another one now.
        let mut store = open(&chip, StoreLimits::default()).await;
        assert_eq!(batch(&mut store, ALL).await, sent);
        store.set_dating(dating(77_000)).await.unwrap();
        assert_eq!(batch(&mut store, ALL).await, sent);
        store.remove_through(sent[2].sequence).await.unwrap();
        assert_eq!(store.bytes(), 0, "the dating has gone with them");
    });
}

#[test]
fn boots_that_never_knew_the_time_end_before_the_next_begins() {
    block_on(async {
        let chip = Chip::new(8);
        for boot in 0..3_u32 {
            let mut store = open(&chip, StoreLimits::default()).await;
            for reading in 0..2 {
                let micros = u64::from(100 * (reading + 1));
                let payload = payload(10 * boot + reading);
                store
                    .push(Stamp::Uptime { micros }, &payload)
                    .await
                    .unwrap();
            }
        }
        let mut store = open(&chip, StoreLimits::default()).await;
        assert_eq!(batch(&mut store, ALL).await, []);
        store.set_dating(dating(1000)).await.unwrap();
        let mut seen = Vec::new();
        for boot in 0..3 {
            let sent = batch(&mut store, ALL).await;
            assert_eq!(numbers(&sent), [10 * boot, 10 * boot + 1]);
            // The same after a power cut, with another clock.
            let mut again = open(&chip, StoreLimits::default()).await;
            again.set_dating(dating(999_000)).await.unwrap();
            assert_eq!(batch(&mut again, ALL).await, sent);
            store = open(&chip, StoreLimits::default()).await;
            store.set_dating(dating(1000)).await.unwrap();
            store.remove_through(sent[1].sequence).await.unwrap();
            seen.extend(sent);
        }
        assert!(
            seen.iter()
                .all(|entry| entry.certainty == Certainty::Latest)
        );
        let micros: Vec<_> = seen.iter().map(|entry| entry.micros - YEAR_2026).collect();
        assert_eq!(micros, [497, 597, 698, 798, 899, 999]);
    });
}

#[test]
fn records_of_others_are_passed_over_and_counted() {
    block_on(async {
        let chip = Chip::new(8);
        let config = QueueConfig::new(chip.range());
        let mut queue = QueueStorage::new(chip.power_on(None), config, Cache::new_uncached());
        queue.push(b"not one of ours", false).await.unwrap();
        let mut store = open(&chip, StoreLimits::default()).await;
        push(&mut store, 0..2).await;
        let sent = batch(&mut store, ALL).await;
        assert_eq!(numbers(&sent), [0, 1]);
        assert_eq!(store.remove_through(sent[1].sequence).await.unwrap(), 2);
        assert_eq!(store.counters().unreadable, 1);
        assert_eq!(store.bytes(), 0);
    });
}

#[test]
fn memory_is_a_flash_too() {
    block_on(async {
        let mut memory = [0xff; 3 * 512];
        let flash = RamFlash::<512>::new(&mut memory);
        let limits = StoreLimits::default();
        let opened = FlashStore::open(flash, 0..3 * 512, Cache::new_uncached(), limits).await;
        let mut store = opened.unwrap();
        store.push(wall(0), &payload(0)).await.unwrap();
        let opened = FlashStore::open(store.close(), 0..3 * 512, Cache::new_uncached(), limits);
        assert_eq!(opened.await.unwrap().len(), 1);
        for range in [0..1024, 0..1000, 512..1536] {
            let flash = RamFlash::<512>::new(&mut memory);
            let opened = FlashStore::open(flash, range, Cache::new_uncached(), limits);
            assert!(opened.await.is_err());
        }
    });
}

/// What must become of the readings of boots that are cut.
#[derive(Default)]
struct Ledger {
    next: u32,
    /// Readings that the store has taken, and those of which nobody knows.
    kept: Vec<u32>,
    open: Vec<u32>,
    /// What the cluster was told of each.
    table: BTreeMap<u32, i64>,
}

/// One boot: readings come and go; its clock is known in the middle of it. The cluster takes
/// everything.
async fn boot(store: &mut Store, clock: i64, ledger: &mut Ledger) {
    for step in 0..13_u32 {
        if step == 5 {
            store.set_dating(dating(clock)).await.unwrap();
        }
        if step % 4 == 3 {
            let sent = batch(store, BatchLimits::new(3, 1000)).await;
            for entry in &sent {
                let number = number(&entry.payload);
                let before = ledger.table.insert(number, entry.micros);
                assert!(
                    before.is_none_or(|before| before == entry.micros),
                    "{entry:?}"
                );
            }
            if let Some(last) = sent.last() {
                store.remove_through(last.sequence).await.unwrap();
            }
            continue;
        }
        let (number, micros) = (ledger.next, u64::from(step) * 10);
        ledger.next += 1;
        ledger.open.push(number);
        let stamp = Stamp::Uptime { micros };
        assert!(store.push(stamp, &payload(number)).await.unwrap());
        ledger.open.pop();
        ledger.kept.push(number);
    }
}

/// Returns whether the power went.
async fn boot_cut(chip: &Chip, cut: Option<Cut>, clock: i64, ledger: &mut Ledger) -> bool {
    let flash = chip.power_on(cut);
    let boot = async {
        let limits = StoreLimits::default();
        let opened = FlashStore::open(flash, chip.range(), Cache::new_uncached(), limits).await;
        let mut store = opened.expect("a store after any cut");
        boot(&mut store, clock, ledger).await;
        while !store.is_empty() && cut.is_none() {
            boot_to_the_end(&mut store, ledger).await;
        }
    };
    matches!(select(chip.off(), boot).await, Either::First(()))
}

async fn boot_to_the_end(store: &mut Store, ledger: &mut Ledger) {
    let sent = batch(store, ALL).await;
    let last = sent.last().expect("something can be sent");
    for entry in &sent {
        let number = number(&entry.payload);
        let before = ledger.table.insert(number, entry.micros);
        assert!(
            before.is_none_or(|before| before == entry.micros),
            "{entry:?}"
        );
    }
    store.remove_through(last.sequence).await.unwrap();
}

#[test]
fn two_cuts_one_after_the_other() {
    block_on(async {
        let mut runs = 0;
        for tear in Tear::EACH {
            let mut is_first_over = false;
            for first in 0.. {
                for second in 0.. {
                    let chip = Chip::new(8);
                    let mut ledger = Ledger::default();
                    let cut = |operation| Some(Cut { operation, tear });
                    is_first_over = !boot_cut(&chip, cut(first), 1_000_000, &mut ledger).await;
                    let was_cut = boot_cut(&chip, cut(second), 2_000_000, &mut ledger).await;
                    boot_cut(&chip, None, 3_000_000, &mut ledger).await;
                    runs += 1;
                    let place = format!("{tear:?} {first} {second}");
                    for number in &ledger.kept {
                        assert!(
                            ledger.table.contains_key(number),
                            "{place}: {number} is lost"
                        );
                    }
                    for number in ledger.table.keys() {
                        let known = [&ledger.kept, &ledger.open];
                        let is_known = known.iter().any(|known| known.contains(number));
                        assert!(is_known, "{place}: nobody took {number}");
                    }
                    assert!(ledger.open.len() <= 2, "{place}");
                    assert_eq!(chip.stats().spoiled, 0, "{place}");
                    if !was_cut {
                        break;
                    }
                }
                if is_first_over {
                    break;
                }
            }
        }
        assert!(runs > 4_000, "{runs}");
    });
}
