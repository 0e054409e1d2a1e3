//! `mode=readings`: readings written and read back with prepared statements, which the size card
//! counts; with what one request takes, warm.

use embassy_time::Instant;
use messina_core::compact::Session;
use messina_core::drive::Transport;

use super::plant::{Readings, make_table};
use super::{Failure, Plant};
use crate::board::executor::busy_ticks;
use crate::board::heap;
use crate::parameters::Parameters;
use crate::println;

/// Rounds before the figures are taken: all tablets are known by then.
const WARM_UP_MAX: u32 = 200;

/// Runs the scenario.
pub async fn run<T: Transport + Copy>(plant: Plant<T>) -> Result<(), Failure> {
    let (begin, busy) = (Instant::now(), busy_ticks());
    plant
        .run(
            |_| (),
            async |session| {
                println!("ready_us {}", begin.elapsed().as_micros());
                println!("ready_busy_ticks {}", busy_ticks().wrapping_sub(busy));
                work(session, plant.board.parameters).await
            },
        )
        .await
}

async fn work(session: &Session, parameters: &Parameters) -> Result<(), Failure> {
    let count = parameters.count;
    make_table(session, parameters.nodes).await?;
    let readings = Readings::prepare(session).await?;
    for text in OTHERS {
        session.prepare(text).await?;
    }
    for number in 0..count.min(WARM_UP_MAX) {
        readings.write(session, number).await?;
        readings.check(session, number).await?;
    }

    let (calls, warm) = (heap::usage().calls, Instant::now());
    for number in 0..count {
        readings.write(session, number).await?;
    }
    let per_request = u64::from(count).max(1);
    println!("write_us {}", warm.elapsed().as_micros() / per_request);
    println!("write_heap_calls {}", heap::usage().calls - calls);

    let (calls, warm) = (heap::usage().calls, Instant::now());
    for number in 0..count {
        readings.check(session, number).await?;
    }
    println!("read_us {}", warm.elapsed().as_micros() / per_request);
    println!("read_heap_calls {}", heap::usage().calls - calls);
    println!("rows {count}");
    Ok(())
}

/// What else a plant would ask, so that eight statements are held.
const OTHERS: [&str; 6] = [
    "SELECT at, celsius FROM plant.readings WHERE sensor = ? ORDER BY at DESC LIMIT 1",
    "SELECT at, celsius FROM plant.readings WHERE sensor = ? AND at >= ?",
    "SELECT at, celsius FROM plant.readings WHERE sensor = ? AND at >= ? AND at < ?",
    "DELETE FROM plant.readings WHERE sensor = ? AND at = ?",
    "DELETE FROM plant.readings WHERE sensor = ?",
    "UPDATE plant.readings SET celsius = ? WHERE sensor = ? AND at = ?",
];
