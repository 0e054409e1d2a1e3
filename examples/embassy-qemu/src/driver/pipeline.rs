//! `mode=pipeline`: INSERTs, several under way at once on one connection.

use core::cell::Cell;

use embassy_futures::join::join_array;
use embassy_time::Instant;
use messina_core::compact::Session;
use messina_core::drive::Transport;

use super::plant::{Readings, make_table};
use super::{Failure, Plant};
use crate::board::{executor::busy_ticks, heap};
use crate::console::ask;
use crate::println;

/// How many are under way at once.
const DEPTH: usize = 8;

/// Runs the scenario.
pub async fn run<T: Transport + Copy>(plant: Plant<T>) -> Result<(), Failure> {
    let parameters = plant.board.parameters;
    let count = parameters.count;
    plant
        .run(
            |_| (),
            async |session| {
                make_table(session, parameters.nodes).await?;
                let readings = Readings::prepare(session).await?;
                write(&readings, session, 200).await?;
                ask("stats pipeline_begin").await;
                let (calls, begin, busy) = (heap::usage().calls, Instant::now(), busy_ticks());
                write(&readings, session, count).await?;
                let busy = busy_ticks().wrapping_sub(busy);
                println!("pipeline_us {}", begin.elapsed().as_micros());
                println!("pipeline_busy_ticks {busy}");
                println!("pipeline_heap_calls {}", heap::usage().calls - calls);
                ask("stats pipeline_end").await;
                Ok(())
            },
        )
        .await
}

/// Writes `count` readings, [`DEPTH`] at a time.
pub(super) async fn write(
    readings: &Readings,
    session: &Session,
    count: u32,
) -> Result<(), Failure> {
    let next = Cell::new(0);
    let worker = || async {
        loop {
            let number = next.get();
            if number == count {
                return Ok(());
            }
            next.set(number + 1);
            readings.write(session, number).await?;
        }
    };
    let outcomes: [Result<(), Failure>; DEPTH] = join_array([(); DEPTH].map(|()| worker())).await;
    outcomes.into_iter().collect()
}
