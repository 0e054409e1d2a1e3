//! The whole driver under virtual time: seeds with drops, splits, resets and silence. Each seed is
//! run twice and must happen the same way both times. Both drivers, that for servers and that with one
//! owner, are held by the same checks.
//!
//! `MESSINA_SEEDS=N` runs N seeds (default 200) of each, `MESSINA_SEED=S` runs one. A failing seed
//! prints the command that runs it alone.
#![expect(
    clippy::print_stdout,
    reason = "figures of the run are part of its output"
)]

use core::cell::{Cell, RefCell};
use core::time::Duration;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use messina_core::config::Config;
use messina_core::drive;
use messina_core::error::{Applied, Error};
use messina_core::target::Endpoint;
use messina_sim::link::{Counts, Executor, Faults, SimTimer, SimTransport, Spawner, World};
use messina_sim::node::{Options, TabletsMode};

mod client;

use client::{Client, Compact};

/// Virtual time of the stormy part of a run, in microseconds.
const STORM_MICROS: u64 = 20_000_000;

/// After the storm every request must succeed within this time.
const HEAL_MICROS: u64 = 30_000_000;

/// The longest silence of a link that began in the storm is over by then.
const SILENCE_MICROS: u64 = 3_100_000;

/// Requests of one run: callers times requests of each.
const CALLERS: u64 = 12;
const REQUESTS_EACH: u64 = 20;

/// What a run left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    trace: u64,
    counts: Counts,
    ok: u64,
    failed: BTreeMap<String, u64>,
    polls: u64,
    ended_at: u64,
}

#[test]
fn seeds() {
    all::<drive::Session>("seeds");
}

#[test]
fn compact() {
    all::<Compact>("compact");
}

fn all<C: Client>(test: &'static str) {
    if let Some(seed) = number("MESSINA_SEED") {
        println!("{:#?}", twice::<C>(test, seed));
        return;
    }
    let seeds = number("MESSINA_SEEDS").unwrap_or(200);
    let (mut total, mut ok, mut failed) = (Counts::default(), 0, 0);
    let mut kinds = BTreeMap::<String, u64>::new();
    for seed in 1..=seeds {
        let outcome = twice::<C>(test, seed);
        total = sum(total, outcome.counts);
        ok += outcome.ok;
        for (kind, count) in outcome.failed {
            failed += count;
            *kinds.entry(kind).or_default() += count;
        }
    }
    println!(
        "{test}: {seeds} seeds, {ok} requests answered, {failed} failed as they may: {kinds:?}"
    );
    println!("{total:?}");
    let struck = [
        total.splits,
        total.short_writes,
        total.resets,
        total.stalls,
        total.refused,
        total.blackholes,
        total.no_answers,
        total.ports_in_use,
    ];
    assert!(
        seeds < 50 || struck.iter().all(|&count| count > 0),
        "a fault never struck: {total:?}"
    );
}

fn sum(a: Counts, b: Counts) -> Counts {
    let mut total = a;
    total.links += b.links;
    total.splits += b.splits;
    total.short_writes += b.short_writes;
    total.resets += b.resets;
    total.stalls += b.stalls;
    total.refused += b.refused;
    total.blackholes += b.blackholes;
    total.no_answers += b.no_answers;
    total.ports_in_use += b.ports_in_use;
    total
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs a seed twice.
fn twice<C: Client>(test: &'static str, seed: u64) -> Outcome {
    let (first, second) = (run::<C>(test, seed), run::<C>(test, seed));
    let again = Again(test, seed);
    assert_eq!(first, second, "two runs differ");
    drop(again);
    first
}

/// The command that runs a seed alone.
struct Again(&'static str, u64);

impl Drop for Again {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("run it again: {self}");
        }
    }
}

impl fmt::Display for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "MESSINA_SEED={} cargo test -p messina-sim --profile sim --test seeds -- --exact {}",
            self.1, self.0
        )
    }
}

fn run<C: Client>(test: &'static str, seed: u64) -> Outcome {
    let again = Again(test, seed);
    let mut options = Options::uniform(1 + (seed % 4) as usize, 1 + (seed / 4 % 4) as u32);
    options = options.with_tablets(match seed / 16 % 4 {
        0 => TabletsMode::V1,
        1 => TabletsMode::Both,
        2 => TabletsMode::Off,
        _ => TabletsMode::V2,
    });
    options.seed = seed;
    let contacts: Vec<_> = (0..options.nodes.len())
        .map(|node| Endpoint::Addr((options.address(node), options.port).into()))
        .collect();
    let world = World::new(options, Faults::NONE);
    let mut config = Config::server();
    config.contact_points = contacts;
    config.timeouts.request = Duration::from_millis(1500);
    config.timeouts.control = Duration::from_millis(1500);
    config.timeouts.reconnect_max = Duration::from_secs(2);
    config.limits.connection.in_flight = [2, 8, 64][(seed % 3) as usize];
    config.write_deferral = seed.is_multiple_of(2);
    let mut executor = Executor::new(&world, seed);
    let spawner = executor.spawner();
    let session = C::start(config, &world, &spawner, seed);
    let tally = Rc::new(Tally::default());
    let held = session.clone();
    let main = scenario(world.clone(), session, spawner, Rc::clone(&tally), seed);
    let limit = 20 * (STORM_MICROS + HEAL_MICROS);
    if let Err(error) = executor.run(limit, main) {
        panic!(
            "{error}; {:?}; {} callers wait; {:?}",
            world.counts(),
            tally.running.get(),
            held.completeness()
        );
    }
    assert!(
        executor.polls() < 2_000_000,
        "{}: {} polls",
        again,
        executor.polls()
    );
    drop(again);
    Outcome {
        trace: world.trace(),
        counts: world.counts(),
        ok: tally.ok.get(),
        failed: tally.failed.take(),
        polls: executor.polls(),
        ended_at: world.now(),
    }
}

/// What callers saw.
#[derive(Default)]
struct Tally {
    ok: Cell<u64>,
    failed: RefCell<BTreeMap<String, u64>>,
    /// By row: what may be found there.
    rows: RefCell<BTreeMap<i64, Expected>>,
    running: Cell<u64>,
}

/// What may be found in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// This value.
    Value(i64),
    /// This value or nothing: the write failed and may have been applied.
    Perhaps(i64),
    /// Nothing: the driver said that the write was not applied.
    Nothing,
}

impl Expected {
    fn allows(self, found: Option<i64>) -> bool {
        match (self, found) {
            (Self::Value(value) | Self::Perhaps(value), Some(found)) => value == found,
            (Self::Perhaps(_) | Self::Nothing, None) => true,
            (Self::Value(_), None) | (Self::Nothing, Some(_)) => false,
        }
    }
}

/// Quiet set-up, a storm, then calm in which everything must work.
async fn scenario<C: Client>(
    world: World,
    session: C,
    spawner: Spawner,
    tally: Rc<Tally>,
    seed: u64,
) {
    session.ready().await.expect("the network is quiet");
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (pk bigint PRIMARY KEY, v bigint)",
    ] {
        let created = session.create(statement).await;
        created.expect("the network is quiet");
    }
    let insert = session
        .prepare("INSERT INTO ks.t (pk, v) VALUES (?, ?)")
        .await
        .unwrap();
    let select = session
        .prepare("SELECT pk, v FROM ks.t WHERE pk = ?")
        .await
        .unwrap();
    world.set_faults(World::drawn_faults(seed));
    for caller in 0..CALLERS {
        tally.running.set(tally.running.get() + 1);
        let (session, world, tally) = (session.clone(), world.clone(), Rc::clone(&tally));
        let (insert, select) = (insert.clone(), select.clone());
        spawner.spawn(async move {
            for request in 0..REQUESTS_EACH {
                let pk = (caller * REQUESTS_EACH + request) as i64;
                one_row(&session, &insert, &select, pk, &tally).await;
                pause(&world, STORM_MICROS / REQUESTS_EACH / 2).await;
            }
            tally.running.set(tally.running.get() - 1);
        });
    }
    while tally.running.get() > 0 {
        pause(&world, 100_000).await;
    }
    heal(&world, &session, &insert, &select, &tally).await;
    session.close().await;
    drop(session);
    pause(&world, 5_000_000).await;
    let nodes = world.with_cluster(|cluster| cluster.node_count());
    let open: usize = (0..nodes)
        .map(|node| world.with_cluster(|cluster| cluster.connection_count(node)))
        .sum();
    assert_eq!(open, 0, "connections are left after the session has ended");
}

/// Keys of writes that are given up, beyond all others.
const GIVEN_UP: i64 = 500_000;

/// Writes a row and reads it back. Whatever is read must have been written to that very row.
async fn one_row<C: Client>(
    session: &C,
    insert: &C::Statement,
    select: &C::Statement,
    pk: i64,
    tally: &Tally,
) {
    let value = pk * 1000 + 7;
    if pk % 4 == 1 {
        let row = (GIVEN_UP + pk, value);
        let polls = u32::try_from(pk / 4 % 4).expect("small");
        session.write_halfway(insert, row, polls).await;
        let mut rows = tally.rows.borrow_mut();
        rows.insert(row.0, Expected::Perhaps(value));
    }
    match session.write(insert, (pk, value)).await {
        Ok(_) => {
            tally.ok.set(tally.ok.get() + 1);
            tally.rows.borrow_mut().insert(pk, Expected::Value(value));
        }
        Err(error) => {
            let expected = match error.applied() {
                Applied::No => Expected::Nothing,
                _ => Expected::Perhaps(value),
            };
            tally.rows.borrow_mut().insert(pk, expected);
            tally.failure(&error);
        }
    }
    let read = match pk % 2 {
        0 => session.read(select, pk).await,
        _ => session.read_otherwise(select, pk).await,
    };
    match read {
        Ok(row) => {
            tally.ok.set(tally.ok.get() + 1);
            assert!(
                row.is_none_or(|row| row.0 == pk),
                "the answer of another request"
            );
            let (expected, found) = (tally.rows.borrow()[&pk], row.map(|row| row.1));
            assert!(
                expected.allows(found),
                "row {pk}: {found:?}, expected {expected:?}"
            );
        }
        Err(error) => tally.failure(&error),
    }
}

impl Tally {
    fn failure(&self, error: &Error) {
        *self
            .failed
            .borrow_mut()
            .entry(format!("{:?}", error.kind()))
            .or_default() += 1;
    }
}

/// The storm is over: within a bounded time every request works, and nothing is left in flight.
async fn heal<C: Client>(
    world: &World,
    session: &C,
    insert: &C::Statement,
    select: &C::Statement,
    tally: &Tally,
) {
    world.set_faults(Faults::NONE);
    let start = world.now();
    let mut streak = 0;
    while streak < 50 {
        assert!(
            world.now() - start < HEAL_MICROS,
            "it does not heal: {:?}",
            session.completeness()
        );
        let written = session.write(insert, (1_000_000, streak)).await;
        let read = session.read(select, 1_000_000).await;
        match (written, read) {
            (Ok(()), Ok(read)) => {
                assert_eq!(read, Some((1_000_000, streak)));
                streak += 1;
            }
            _ => streak = 0,
        }
        pause(world, 10_000).await;
    }
    // The streak was of one row, on few links.
    pause(world, SILENCE_MICROS).await;
    let rows = tally.rows.borrow().clone();
    for (pk, expected) in rows {
        let found = session.read(select, pk).await.expect("calm");
        let found = found.map(|row| row.1);
        assert!(
            expected.allows(found),
            "row {pk}: {found:?}, expected {expected:?}"
        );
    }
    while let Err(what) = session.completeness() {
        assert!(
            world.now() - start < 2 * HEAL_MICROS,
            "pools stay thin: {what}"
        );
        pause(world, 100_000).await;
    }
    // New connections may be given statements still; a leak does not end.
    pause(world, 1_000_000).await;
    let leaked = session.leaked();
    assert_eq!(leaked, 0, "stream ids in use without a request");
}

/// Virtual time passes.
async fn pause(world: &World, micros: u64) {
    use messina_core::drive::{Clock, Timer, Transport};
    let transport = SimTransport::new(world);
    let mut timer: SimTimer = transport.timer();
    let until = transport
        .clock()
        .now()
        .saturating_add(Duration::from_micros(micros));
    timer.arm(Some(until));
    core::future::poll_fn(|cx| timer.poll_fired(cx)).await;
}
