//! `mode=readings`: readings written and read back with prepared statements, which the size card
//! counts; with what one request takes, warm.

use embassy_time::Instant;
use messina_core::drive::{Prepared, Session};

use super::plant::{Readings, make_table};
use super::{Failure, Plant};
use crate::board::heap;
use crate::parameters::Parameters;
use crate::println;

/// Rounds before the figures are taken: all tablets are known by then.
const WARM_UP_MAX: u32 = 200;

/// Runs the scenario.
pub async fn run(plant: Plant) -> Result<(), Failure> {
    let begin = Instant::now();
    plant
        .run(plant.config(), async |session| {
            println!("ready_us {}", begin.elapsed().as_micros());
            work(session, plant.board.parameters).await
        })
        .await
}

async fn work(session: &Session, parameters: &Parameters) -> Result<(), Failure> {
    let count = parameters.count;
    make_table(session, parameters.nodes).await?;
    let readings = Readings::prepare(session).await?;
    let others = prepare_others(session).await?;
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
    drop(others);
    Ok(())
}

/// What else a plant would ask, so that eight statements are held.
async fn prepare_others(session: &Session) -> Result<[Prepared; 6], Failure> {
    let latest = "SELECT at, celsius FROM plant.readings WHERE sensor = ? ORDER BY at DESC LIMIT 1";
    let since = "SELECT at, celsius FROM plant.readings WHERE sensor = ? AND at >= ?";
    let between = "SELECT at, celsius FROM plant.readings WHERE sensor = ? AND at >= ? AND at < ?";
    let delete = "DELETE FROM plant.readings WHERE sensor = ? AND at = ?";
    let clear = "DELETE FROM plant.readings WHERE sensor = ?";
    let correct = "UPDATE plant.readings SET celsius = ? WHERE sensor = ? AND at = ?";
    Ok([
        session.prepare(latest).await?,
        session.prepare(since).await?,
        session.prepare(between).await?,
        session.prepare(delete).await?,
        session.prepare(clear).await?,
        session.prepare(correct).await?,
    ])
}
