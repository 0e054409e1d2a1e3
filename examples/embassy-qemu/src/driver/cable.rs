//! `mode=cable`: the cable is pulled for five seconds under load. Every request ends within its
//! deadline, with an error that says what is known; after the link is back there is service at once.

use core::cell::Cell;
use core::time::Duration as CoreDuration;

use embassy_futures::join::{join, join_array};
use embassy_time::{Duration, Instant, Timer};
use messina_core::compact::Session;
use messina_core::config::Config;
use messina_core::drive::Transport;
use messina_core::error::{Error, ErrorKind, LinkErrorKind, TimeoutKind};

use super::plant::{Readings, make_table};
use super::{Failure, Plant};
use crate::boot::Board;
use crate::console::ask;
use crate::println;

const DEADLINE: Duration = Duration::from_secs(2);
/// A request may end so much later: the timer's tick and what the executor does before.
const TOLERANCE: Duration = Duration::from_millis(50);
const PULLED: Duration = Duration::from_secs(5);
const AFTERWARDS: Duration = Duration::from_secs(4);
/// How many requests are under way at once.
const WORKERS: usize = 4;

/// What happened to the requests.
#[derive(Default)]
struct Tally {
    done: Cell<u32>,
    errors: Cell<u32>,
    untrue: Cell<u32>,
    longest_us: Cell<u64>,
    link_back: Cell<Option<Instant>>,
    served_again: Cell<Option<Instant>>,
    is_over: Cell<bool>,
}

/// Runs the scenario.
pub async fn run<T: Transport + Copy>(plant: Plant<T>) -> Result<(), Failure> {
    let set_deadline = |config: &mut Config| config.timeouts.request = CoreDuration::from_secs(2);
    plant
        .run(set_deadline, async |session| {
            make_table(session, plant.board.parameters.nodes).await?;
            let readings = Readings::prepare(session).await?;
            let tally = Tally::default();
            let workers = [(); WORKERS].map(|()| load(&readings, session, &tally));
            join(join_array(workers), pull(plant.board, &tally)).await;
            report(&tally)
        })
        .await
}

async fn load(readings: &Readings, session: &Session, tally: &Tally) {
    let mut number = 0;
    while !tally.is_over.get() {
        let begin = Instant::now();
        match readings.write(session, number % 1_000).await {
            Ok(()) => {
                tally.done.set(tally.done.get() + 1);
                let is_again =
                    tally.link_back.get().is_some() && tally.served_again.get().is_none();
                if is_again {
                    tally.served_again.set(Some(Instant::now()));
                }
            }
            Err(error) => {
                tally.errors.set(tally.errors.get() + 1);
                if !is_true(&error) {
                    println!("untrue_error {error}");
                    tally.untrue.set(tally.untrue.get() + 1);
                }
            }
        }
        let took = begin.elapsed().as_micros();
        tally.longest_us.set(tally.longest_us.get().max(took));
        number += 1;
        // An error that comes at once must not keep the executor busy.
        Timer::after_millis(5).await;
    }
}

/// With the cable out nothing is known but that nobody answers: late, or out of reach.
fn is_true(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Timeout(TimeoutKind::Request) | ErrorKind::Unreachable => true,
        ErrorKind::Link(link) => matches!(
            link.kind(),
            LinkErrorKind::TimedOut | LinkErrorKind::Unreachable
        ),
        _ => false,
    }
}

async fn pull(board: Board, tally: &Tally) {
    Timer::after_millis(500).await;
    let done = tally.done.get();
    println!("before {done}");
    ask("cable_off").await;
    Timer::after(PULLED).await;
    ask("cable_on").await;
    while !board.stack.is_link_up() {
        Timer::after_millis(1).await;
    }
    tally.link_back.set(Some(Instant::now()));
    Timer::after(AFTERWARDS).await;
    tally.is_over.set(true);
}

fn report(tally: &Tally) -> Result<(), Failure> {
    println!("cable_done {}", tally.done.get());
    println!("cable_errors {}", tally.errors.get());
    println!("cable_untrue_errors {}", tally.untrue.get());
    println!("cable_longest_us {}", tally.longest_us.get());
    let (Some(back), Some(again)) = (tally.link_back.get(), tally.served_again.get()) else {
        return Err(Failure::Found("no service after the link came back"));
    };
    println!(
        "cable_service_us {}",
        again.duration_since(back).as_micros()
    );
    if tally.longest_us.get() > (DEADLINE + TOLERANCE).as_micros() {
        return Err(Failure::Found("a request ended after its deadline"));
    }
    Ok(())
}
